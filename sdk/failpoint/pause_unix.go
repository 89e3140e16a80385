//go:build unix && !linux

package failpoint

import "syscall"

// pause stops the process; the code after the fail point may run on for a moment.
func pause() { _ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP) }
