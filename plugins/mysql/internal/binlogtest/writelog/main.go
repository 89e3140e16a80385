// Command writelog writes a binary log of rows of 20 columns for measurements and
// tests that use the connector as a process: so many transactions of so many rows
// each, with checksums.
//
//	writelog -transactions 20000 -rows 10 -per-event 1 bench.000001
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlogtest"
)

func main() {
	transactions := flag.Int("transactions", 1, "transactions of the log")
	rows := flag.Int("rows", 10, "rows of each transaction")
	perEvent := flag.Int("per-event", 1, "rows of each row event at most")
	flag.Parse()
	if err := write(flag.Arg(0), *transactions, *rows, *perEvent); err != nil {
		fmt.Fprintln(os.Stderr, "writelog:", err)
		os.Exit(1)
	}
}

func write(path string, transactions, rows, perEvent int) error {
	if path == "" || transactions < 1 || rows < 1 || perEvent < 1 {
		return errors.New("expected positive numbers and the name of the file to write")
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	err = binlogtest.WideFile(w, transactions, rows, perEvent, binlogtest.Options{Checksum: true})
	return errors.Join(err, w.Flush(), f.Close())
}
