// Package programs builds the program and its connectors for tests and benchmarks
// that run them as processes of their own.
package programs

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Root returns the root folder of the repository, which the working directory is in.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = up
	}
}

// Build compiles datalink into dir, and into dir/plugins the connectors that it
// takes for bundled: packages of the repository such as ./plugins/mysql. It returns
// the path of datalink.
func Build(dir, tags string, connectors ...string) (string, error) {
	plugins := filepath.Join(dir, "plugins")
	if err := os.Mkdir(plugins, 0o755); err != nil {
		return "", err
	}
	args := []string{"-tags", tags, "-ldflags", "-s -w", "-o", plugins + "/"}
	if err := Compile(nil, append(args, connectors...)...); err != nil {
		return "", err
	}
	var bundled []string
	for _, c := range connectors {
		name := filepath.Base(c)
		data, err := os.ReadFile(filepath.Join(plugins, name))
		if err != nil {
			return "", err
		}
		bundled = append(bundled, fmt.Sprintf("%s=%x", name, sha256.Sum256(data)))
	}
	datalink := filepath.Join(dir, "datalink")
	return datalink, Compile(nil, "-tags", tags, "-ldflags", "-s -w -X main.bundled="+strings.Join(bundled, ","), "-o", datalink, "./host/cmd/datalink")
}

// Compile runs go build in the root folder.
func Compile(env []string, args ...string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	cmd := exec.Command("go", append([]string{"build"}, args...)...)
	cmd.Dir, cmd.Env = root, append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return nil
}
