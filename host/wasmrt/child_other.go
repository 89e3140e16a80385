//go:build !linux

package wasmrt

import (
	"fmt"
	"os"
)

// ChildMain says that there are no children here.
func ChildMain() {
	fmt.Fprintln(os.Stderr, "wasm child: modules need Linux (memfd, parent-death signal)")
	os.Exit(3)
}
