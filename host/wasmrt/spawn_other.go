//go:build !linux

package wasmrt

import (
	"context"
	"errors"
	"os"
)

const self = ""

func memfile(string, []byte) (*os.File, error) {
	return nil, errors.New("modules need Linux (memfd, parent-death signal)")
}

func (r *Runtime) spawn(context.Context, *Module, string) (*child, error) {
	return nil, errors.New("modules need Linux (memfd, parent-death signal)")
}

func rss(int) int64 { return 0 }
