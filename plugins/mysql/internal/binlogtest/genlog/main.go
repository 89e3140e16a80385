// Command genlog writes a binary log for benchmarks: transactions of rows of
// twenty columns and about 310 bytes.
//
//	go run ./plugins/mysql/internal/binlogtest/genlog -out bench.000001 -transactions 100000
//	go run ./plugins/mysql/internal/binlogtest/genlog -out large.000001 -transactions 1 -rows 3500000 -event 24
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlogtest"
)

func main() {
	out := flag.String("out", "", "file to write, named like bench.000001")
	transactions := flag.Int("transactions", 20_000, "transactions")
	rows := flag.Int("rows", 10, "rows in each")
	event := flag.Int("event", 1, "rows in each row event")
	flag.Parse()
	if err := run(*out, *transactions, *rows, *event); err != nil {
		fmt.Fprintln(os.Stderr, "genlog:", err)
		os.Exit(1)
	}
}

func run(out string, transactions, rows, event int) error {
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	if err := binlogtest.WideFile(w, transactions, rows, event, binlogtest.Options{Checksum: true}); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}
