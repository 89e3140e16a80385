//go:build wasip1

package wasm

import "unsafe"

//go:wasmimport datalink log
func importLog(level int32, ptr unsafe.Pointer, n uint32)

//go:wasmimport datalink clock
func importClock() int64

//go:wasmimport datalink metric
func importMetric(kind int32, name unsafe.Pointer, n uint32, value float64)

// marker says by its name which version of the ABI the module speaks.
//
//go:wasmexport datalink_abi_1
func marker() {}

//go:wasmexport alloc
func exportAlloc(n uint32) uint32 { return address(exported.alloc(n)) }

//go:wasmexport call
func exportCall(method, ptr, n uint32) uint64 {
	in := exported.in
	if ptr != address(in) || uint64(n) > uint64(len(in)) {
		return 0 // not the buffer that alloc gave: a fault of the host
	}
	out := exported.Call(method, in[:n])
	return uint64(address(out))<<32 | uint64(len(out))
}

func address(p []byte) uint32 { return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(p)))) }

func hostLog(level int32, line []byte) {
	importLog(level, unsafe.Pointer(unsafe.SliceData(line)), uint32(len(line)))
}

func hostClock() int64 { return importClock() }

func hostMetric(kind int32, name string, value float64) {
	importMetric(kind, unsafe.Pointer(unsafe.StringData(name)), uint32(len(name)), value)
}
