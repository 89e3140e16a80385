package coordination

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Here describes this process with the lock file it holds; lock may be nil.
func Here(dir string, lock *os.File) (Place, error) {
	host, err := os.Hostname()
	if err != nil {
		return Place{}, fmt.Errorf("name of this host: %w", err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Place{}, fmt.Errorf("boot id of this host: %w", err)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Place{}, fmt.Errorf("path of data directory %q: %w", dir, err)
	}
	started, err := startTime()
	if err != nil {
		return Place{}, err
	}
	p := Place{Host: host, BootID: strings.TrimSpace(string(boot)), DataDir: abs, Process: strconv.Itoa(os.Getpid()) + "@" + started}
	if lock == nil {
		return p, nil
	}
	fi, err := lock.Stat()
	if err != nil {
		return Place{}, fmt.Errorf("lock file of %s: %w", abs, err)
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return Place{}, fmt.Errorf("lock file of %s: this system tells no inode", abs)
	}
	p.LockID, p.Held = fmt.Sprintf("%d:%d", st.Dev, st.Ino), true
	return p, nil
}

// startTime is field 22 of proc_pid_stat(5): clock ticks since the boot. Field 2,
// the command in brackets, may hold blanks.
func startTime() (string, error) {
	const path = "/proc/self/stat"
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("start time of this process: %w", err)
	}
	s := string(data)
	fields := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	const at = 22 - 3
	if len(fields) <= at {
		return "", fmt.Errorf("start time of this process: %s has %d fields, expected more than 22", path, len(fields)+2)
	}
	return fields[at], nil
}
