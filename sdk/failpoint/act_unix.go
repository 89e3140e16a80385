//go:build unix

package failpoint

import "syscall"

func act(stop bool) {
	if stop {
		pause()
		return
	}
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way: nothing after the fail point may run
}
