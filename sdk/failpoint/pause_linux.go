package failpoint

import (
	"runtime"
	"syscall"
)

// pause stops the process. The signal goes to this very thread, which takes it on
// its way back from the call: one that is sent to the process may reach another
// thread, a good while later, and the code after the fail point would run on.
func pause() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_, _, _ = syscall.Syscall(syscall.SYS_TGKILL, uintptr(syscall.Getpid()), uintptr(syscall.Gettid()), uintptr(syscall.SIGSTOP))
}
