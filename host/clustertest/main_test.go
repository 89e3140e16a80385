package clustertest

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/datalink-go/datalink/examples/stack/programs"
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

func build(dir string) (err error) {
	if built.root, err = programs.Root(); err == nil {
		built.datalink, err = programs.Build(dir, "faults", "./plugins/mysql", "./plugins/rdbms", "./host/clustertest/ticker", "./examples/jsonfiles")
	}
	return err
}
