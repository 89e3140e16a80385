package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlogtest"
)

func main() {
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	err := generate(os.Stdin, out)
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "binloggen:", err)
		os.Exit(1)
	}
}

// line is one line of the input.
type line struct {
	Table    string
	Database string
	Columns  []column
	Key      []string
	Tx       []change
}

type column struct{ Name, Type string }

type change struct {
	Table         string
	Op            string
	Before, After []any
}

func generate(in io.Reader, out io.Writer) error {
	w := binlogtest.New(out, binlogtest.Options{Checksum: true})
	g := generator{w: w, tables: map[string]*table{}}
	d := json.NewDecoder(bufio.NewReaderSize(in, 1<<20))
	d.UseNumber()
	d.DisallowUnknownFields()
	for n := 1; ; n++ {
		var l line
		err := d.Decode(&l)
		if errors.Is(err, io.EOF) {
			return w.Err()
		}
		if err == nil && l.Table != "" {
			err = g.define(&l)
		} else if err == nil {
			err = g.transaction(l.Tx)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
}
