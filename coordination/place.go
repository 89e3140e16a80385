package coordination

import (
	"fmt"
	"os"
	"path/filepath"
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
	p := Place{Host: host, BootID: strings.TrimSpace(string(boot)), DataDir: abs}
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
