package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Built is a folder with the programs that are measured.
type Built struct{ Dir string }

// Build compiles them into dir. Root is the folder of the module.
func Build(ctx context.Context, root, dir string) (*Built, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	b := &Built{dir}
	run := func(env []string, args ...string) error {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir, cmd.Env = root, append(append(os.Environ(), "CGO_ENABLED=0"), env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Join(dir, "plugins"), 0o755); err != nil {
		return nil, err
	}
	if err := run(nil, "build", "-ldflags", "-s -w", "-o", filepath.Join(dir, "plugins")+"/", "./plugins/mysql", "./plugins/rdbms"); err != nil {
		return nil, err
	}
	var bundled []string
	for _, name := range []string{"mysql", "rdbms"} {
		sum, err := digest(b.Plugin(name))
		if err != nil {
			return nil, err
		}
		bundled = append(bundled, name+"="+sum)
	}
	if err := run(nil, "build", "-ldflags", "-s -w -X main.bundled="+strings.Join(bundled, ","), "-o", b.Daemon(), "./host/cmd/datalink"); err != nil {
		return nil, err
	}
	const logs = "./plugins/mysql/internal/binlogtest/"
	if err := run(nil, "build", "-o", dir+"/", logs+"writelog", logs+"readlog", logs+"readserver"); err != nil {
		return nil, err
	}
	return b, run([]string{"GOOS=wasip1", "GOARCH=wasm"}, "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", b.MaskGo(), "./examples/mask-go")
}

// Add compiles a further plugin, which the daemon does not know.
func (b *Built) Add(ctx context.Context, root, name string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", b.Plugin(name), "./plugins/"+name)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build plugin %s: %w: %s", name, err, out)
	}
	return nil
}

// Plugin returns the path of a plugin.
func (b *Built) Plugin(name string) string { return filepath.Join(b.Dir, "plugins", name) }

// Daemon returns the path of the daemon's program.
func (b *Built) Daemon() string { return filepath.Join(b.Dir, "datalink") }

// ReadServer returns the path of the program that reads from servers.
func (b *Built) ReadServer() string { return filepath.Join(b.Dir, "readserver") }

// MaskGo returns the path of the module of examples/mask-go.
func (b *Built) MaskGo() string { return filepath.Join(b.Dir, "mask-go.wasm") }

// WriteLog writes a binary log of rows of 20 columns.
func (b *Built) WriteLog(ctx context.Context, path string, transactions, rows, perEvent int) error {
	cmd := exec.CommandContext(ctx, filepath.Join(b.Dir, "writelog"),
		"-transactions", fmt.Sprint(transactions), "-rows", fmt.Sprint(rows), "-per-event", fmt.Sprint(perEvent), path)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("write log: %w: %s", err, out)
	}
	return nil
}
