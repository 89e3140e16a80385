//go:build unix

package failpoint

import "syscall"

func act(stop bool) {
	sig := syscall.SIGKILL
	if stop {
		sig = syscall.SIGSTOP
	}
	_ = syscall.Kill(syscall.Getpid(), sig)
	if !stop {
		select {} // the signal is on its way: nothing after the fail point may run
	}
}
