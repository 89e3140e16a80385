package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Demo runs the tasks of `make demo` in dir and returns the most that host,
// reader, WASM child and writer were seen with. Root is the folder of the module.
func Demo(ctx context.Context, b *Built, root, dir string) ([]Memory, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	for _, program := range []string{"./host/cmd/localregistry", "./examples/quickstart/demo"} {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", b.Dir+"/", program)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w: %s", program, err, out)
		}
	}
	// The tasks name paths relative to the folder they are run in.
	if err := os.CopyFS(filepath.Join(dir, "examples", "quickstart"), os.DirFS(filepath.Join(root, "examples", "quickstart"))); err != nil {
		return nil, err
	}
	if err := os.Mkdir(filepath.Join(dir, "demo-out"), 0o700); err != nil {
		return nil, err
	}
	module, err := os.ReadFile(b.MaskGo())
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "demo-out", "mask-go.wasm"), module, 0o600); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(b.Dir, "demo"), "-bin", b.Dir, "-dir", "demo-out")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	all, err := watched(cmd)
	if err != nil {
		return nil, fmt.Errorf("demo: %w: %s", err, out.Bytes())
	}
	return all, nil
}
