// Command datalink moves row changes from sources to targets and keeps them
// equal. `datalink help` lists its commands; README.md shows it at work.
//
// This package is wiring: it reads arguments, calls host/daemon or a daemon's API
// and prints. Nothing but results goes to standard output.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/datalink-go/datalink/host/api"
	"github.com/datalink-go/datalink/host/wasmrt"
)

// Set when the program is built, see the Makefile. Bundled is the list of
// connectors beside the program, with their digests.
var (
	version = "0.1.0-dev"
	commit  = "unknown"
	bundled = ""
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == wasmrt.ChildArg {
		wasmrt.ChildMain()
	}
	exe, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "datalink: where this program is:", err)
		os.Exit(1)
	}
	ctx, stop := notify()
	code := run(ctx, os.Args[1:], filepath.Join(filepath.Dir(exe), "plugins"), os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// sameRequest is how long a further signal counts as the first one once more:
// `timeout` and some supervisors send it to the process and to its group.
const sameRequest = time.Second

// notify gives a context that ends with the first signal to end; a later one
// kills the process as if nobody had asked.
func notify() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		for range signals {
			if ctx.Err() == nil {
				cancel()
				time.AfterFunc(sameRequest, func() { signal.Stop(signals) })
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel()
	}
}

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, plugins string, out, errs io.Writer) int {
	a := &app{out: out, err: errs, pluginDir: plugins}
	root := a.root()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errs)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if !errors.Is(err, errSilent) {
		fmt.Fprintln(errs, "datalink:", err)
	}
	var coded *api.Error
	if !errors.As(err, &coded) {
		return 1
	}
	return api.ExitCode(err)
}

// errSilent is wrapped by errors whose text was printed already.
var errSilent = errors.New("")
