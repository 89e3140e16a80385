package delivery

import (
	"syscall"
	"unsafe"
)

const clockBoottime = 7 // CLOCK_BOOTTIME, clock_gettime(2)

func boottime() int64 {
	var ts syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return monotonic()
	}
	return ts.Nano() / 1000
}
