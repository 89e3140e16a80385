package crashtest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/datalink-go/datalink/examples/stack/programs"
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
	if built.root, err = programs.Root(); err != nil {
		return err
	}
	if built.datalink, err = programs.Build(dir, "faults", "./plugins/mysql", "./plugins/rdbms"); err != nil {
		return err
	}
	tools := filepath.Join(dir, "tools")
	if err := os.Mkdir(tools, 0o755); err != nil {
		return err
	}
	if err := programs.Compile(nil, "-o", tools+"/", "./plugins/mysql/cmd/binloggen", "./host/cmd/localregistry"); err != nil {
		return err
	}
	module := filepath.Join(dir, "mask-go.wasm")
	if err := programs.Compile([]string{"GOOS=wasip1", "GOARCH=wasm"}, "-buildmode=c-shared", "-o", module, "./examples/mask-go"); err != nil {
		return err
	}
	built.binloggen = filepath.Join(tools, "binloggen")
	return install(dir, filepath.Join(tools, "localregistry"), module)
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
