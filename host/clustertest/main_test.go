package clustertest

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// built are the programs under test.
var built struct{ root, datalink string }

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if testing.Short() {
		fmt.Println("tests of clusters are not run with -short")
		return 0
	}
	dir, err := os.MkdirTemp("", "clustertest")
	if err == nil {
		defer os.RemoveAll(dir)
		err = build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build the programs under test:", err)
		return 1
	}
	return m.Run()
}

func build(dir string) error {
	var err error
	if built.root, err = filepath.Abs("../.."); err != nil {
		return err
	}
	plugins := filepath.Join(dir, "plugins")
	if err := os.Mkdir(plugins, 0o755); err != nil {
		return err
	}
	list := ""
	for name, folder := range map[string]string{"mysql": "./plugins/mysql", "rdbms": "./plugins/rdbms", "ticker": "./host/clustertest/ticker", "jsonfiles": "./examples/jsonfiles"} {
		path := filepath.Join(plugins, name)
		if err := compile("-ldflags", "-s -w", "-tags", "faults", "-o", path, folder); err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		list += fmt.Sprintf("%s=%x,", name, sha256.Sum256(data))
	}
	built.datalink = filepath.Join(dir, "datalink")
	return compile("-ldflags", "-s -w -X main.bundled="+list, "-tags", "faults", "-o", built.datalink, "./host/cmd/datalink")
}

func compile(args ...string) error {
	cmd := exec.Command("go", append([]string{"build"}, args...)...)
	cmd.Dir, cmd.Env = built.root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return nil
}
