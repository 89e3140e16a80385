package endtoend

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// built are the programs under test.
var built struct {
	datalink string
	root     string // of the repository
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "endtoend")
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
	if err := compile("-o", plugins+"/", "./plugins/mysql", "./plugins/rdbms"); err != nil {
		return err
	}
	list := ""
	for _, p := range []string{"mysql", "rdbms"} {
		data, err := os.ReadFile(filepath.Join(plugins, p))
		if err != nil {
			return err
		}
		list += fmt.Sprintf("%s=%x,", p, sha256.Sum256(data))
	}
	built.datalink = filepath.Join(dir, "datalink")
	return compile("-ldflags", "-s -w -X main.bundled="+list, "-o", built.datalink, "./host/cmd/datalink")
}

func compile(args ...string) error {
	cmd := exec.Command("go", append([]string{"build"}, args...)...)
	cmd.Dir, cmd.Env = built.root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return nil
}
