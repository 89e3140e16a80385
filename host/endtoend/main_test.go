package endtoend

import (
	"fmt"
	"os"
	"testing"

	"github.com/datalink-go/datalink/examples/stack/programs"
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

func build(dir string) (err error) {
	if built.root, err = programs.Root(); err == nil {
		built.datalink, err = programs.Build(dir, "", "./plugins/mysql", "./plugins/rdbms")
	}
	return err
}
