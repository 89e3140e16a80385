package supervisor

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// tick is the unit of times in /proc/PID/stat: sysconf(_SC_CLK_TCK), which is 100
// on every architecture Go runs on.
const tick = time.Second / 100

// cpuOf returns the CPU time of a live process; see proc_pid_stat(5).
func cpuOf(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name, field 2, is in parentheses and may hold anything.
	f := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(f) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat: %d fields after the name, expected 13 or more", pid, len(f))
	}
	var sum time.Duration
	for _, field := range f[11:13] { // utime, stime
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}

type memory struct{ resident, anonymous int64 }

// memoryOf returns the memory of a live process; see proc_pid_status(5).
func memoryOf(pid int) (memory, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, err
	}
	var m memory
	for line := range bytes.Lines(data) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		var dst *int64
		switch string(name) {
		case "VmRSS":
			dst = &m.resident
		case "RssAnon":
			dst = &m.anonymous
		default:
			continue
		}
		kb, err := strconv.ParseInt(string(bytes.TrimSuffix(bytes.TrimSpace(value), []byte(" kB"))), 10, 64)
		if err != nil {
			return m, err
		}
		*dst = kb << 10
	}
	return m, nil
}
