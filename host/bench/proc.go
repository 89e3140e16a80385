package bench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Memory is the most that a process was seen with, in bytes; see
// proc_pid_status(5).
type Memory struct {
	Name      string
	Anonymous int64 // RssAnon, the greatest of the samples
	Peak      int64 // VmHWM: resident with files, kept by the kernel
}

// String returns the memory as one line.
func (m Memory) String() string {
	return fmt.Sprintf("%s: RssAnon %d MB, peak RSS %d MB", m.Name, m.Anonymous>>20, m.Peak>>20)
}

const (
	sampleEvery = 5 * time.Millisecond
	lookEvery   = 10 // samples between two looks for new processes
)

// watched runs a command and samples the memory of it and of all processes below
// it until it ends. Processes of one name are one entry, the larger ones.
func watched(cmd *exec.Cmd) ([]Memory, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	peak := map[int]*Memory{}
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	var pids []int
	for n := 0; ; n++ {
		if n%lookEvery == 0 {
			pids = family(cmd.Process.Pid)
		}
		for _, pid := range pids {
			m, err := memoryOf(pid)
			if err != nil {
				continue // it has ended
			}
			if p := peak[pid]; p != nil {
				m.Anonymous = max(p.Anonymous, m.Anonymous)
			}
			peak[pid] = &m // with the name it has now: it is set after the start
		}
		select {
		case err := <-done:
			return byName(peak), err
		case <-tick.C:
		}
	}
}

// byName makes processes of one name one entry, with the most of each.
func byName(peak map[int]*Memory) []Memory {
	var all []Memory
	for _, m := range peak {
		i := slices.IndexFunc(all, func(o Memory) bool { return o.Name == m.Name })
		if i < 0 {
			all = append(all, *m)
			continue
		}
		all[i].Anonymous, all[i].Peak = max(all[i].Anonymous, m.Anonymous), max(all[i].Peak, m.Peak)
	}
	slices.SortFunc(all, func(a, b Memory) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// family lists a process and all below it.
func family(root int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	parents := map[int]int{}
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		f := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
		parents[pid], _ = strconv.Atoi(string(f[1]))
	}
	all := []int{root}
	for i := 0; i < len(all); i++ {
		for pid, parent := range parents {
			if parent == all[i] {
				all = append(all, pid)
			}
		}
	}
	return all
}

func memoryOf(pid int) (Memory, error) {
	var m Memory
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return m, err
	}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		kb := func() int64 {
			n, _ := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
			return n << 10
		}
		switch name {
		case "Name":
			m.Name = value
		case "RssAnon":
			m.Anonymous = kb()
		case "VmHWM":
			m.Peak = kb()
		}
	}
	if m.Peak == 0 {
		return m, fmt.Errorf("process %d has no memory of its own", pid)
	}
	return m, nil
}
