package wasmrt

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// cacheDir makes dir, or checks that it is what compiled code may be taken from.
func cacheDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return fmt.Errorf("make the compile cache: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return fmt.Errorf("make the compile cache: %w", err)
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at the compile cache: %w", err)
	}
	if !st.IsDir() {
		return fmt.Errorf("compile cache %s is a %s, expected a folder: remove it", dir, st.Mode().Type())
	}
	if p := st.Mode().Perm(); p != 0o700 {
		return fmt.Errorf("compile cache %s has mode %04o, expected 0700, since code is run from it: remove the folder, or chmod 700 when nobody else could write there", dir, p)
	}
	if uid, ok := owner(st); ok && uid != os.Geteuid() {
		return fmt.Errorf("compile cache %s belongs to uid %d, expected %d: remove the folder or name another", dir, uid, os.Geteuid())
	}
	return nil
}

func owner(st fs.FileInfo) (int, bool) {
	s, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(s.Uid), true
}
