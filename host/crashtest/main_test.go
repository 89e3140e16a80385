package crashtest

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// built are the programs under test and what all tests share.
var built struct {
	datalink  string // with the tag faults
	binloggen string
	template  string // data directory with the transform installed and compiled
	root      string // of the repository
}

func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("4") // tests wait for back-offs most of the time
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if testing.Short() {
		fmt.Println("crash tests are not run with -short")
		return 0
	}
	dir, err := os.MkdirTemp("", "crashtest")
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
	plugins, host, tools := filepath.Join(dir, "plugins"), filepath.Join(dir, "datalink"), filepath.Join(dir, "tools")
	for _, d := range []string{plugins, tools} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	if err := compile(nil, "-tags", "faults", "-ldflags", "-s -w", "-o", plugins+"/", "./plugins/mysql", "./plugins/rdbms"); err != nil {
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
	if err := compile(nil, "-tags", "faults", "-ldflags", "-s -w -X main.bundled="+list, "-o", host, "./host/cmd/datalink"); err != nil {
		return err
	}
	if err := compile(nil, "-o", tools+"/", "./plugins/mysql/cmd/binloggen", "./host/cmd/localregistry"); err != nil {
		return err
	}
	module := filepath.Join(dir, "mask-go.wasm")
	if err := compile([]string{"GOOS=wasip1", "GOARCH=wasm"}, "-buildmode=c-shared", "-o", module, "./examples/mask-go"); err != nil {
		return err
	}
	built.datalink, built.binloggen = host, filepath.Join(tools, "binloggen")
	return install(dir, filepath.Join(tools, "localregistry"), module)
}

func compile(env []string, args ...string) error {
	cmd := exec.Command("go", append([]string{"build"}, args...)...)
	cmd.Dir, cmd.Env = built.root, append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	return output(cmd)
}

func output(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return nil
}

// install makes the data directory that others are copied from: to compile the
// module for each of them would take longer than the tests themselves.
func install(dir, localregistry, module string) error {
	registry, data := filepath.Join(dir, "registry"), filepath.Join(dir, "template")
	if err := output(exec.Command(localregistry, "--to", registry, module)); err != nil {
		return err
	}
	if err := output(exec.Command(built.datalink, "plugin", "install", "mask-go", "--registry", registry, "--data-dir", data)); err != nil {
		return err
	}
	src := newModel(1)
	src.transactions(1)
	log := filepath.Join(dir, "warm.000001")
	if err := src.write(log); err != nil {
		return err
	}
	file := filepath.Join(dir, "warm.yaml")
	s := spec{files: log, tables: "crash.*", mask: true, writers: []writer{{name: "target", path: filepath.Join(dir, "warm.db")}}}
	if err := os.WriteFile(file, s.yaml(), 0o600); err != nil {
		return err
	}
	if err := output(exec.Command(built.datalink, "run", file, "--data-dir", data)); err != nil {
		return err
	}
	built.template = data
	for _, own := range []string{"state.db", "lock"} {
		if err := os.Remove(filepath.Join(data, own)); err != nil {
			return err
		}
	}
	return nil
}
