// Command readlog reads a binary log into blocks twice in one process and prints
// the count of rows and how many allocations each of them cost the second time,
// when buffers and pools are filled: {"rows": 200000, "allocationsPerRow": 0.001}.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/datalink-go/datalink/plugins/mysql/internal/reader"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "readlog:", err)
		os.Exit(1)
	}
}

func run(files []string) error {
	b := batch.NewBuilder(batch.Limits{})
	if _, err := read(files, b); err != nil {
		return err
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	rows, err := read(files, b)
	if err != nil {
		return err
	}
	runtime.ReadMemStats(&after)
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"rows": rows, "allocationsPerRow": float64(after.Mallocs-before.Mallocs) / float64(rows),
	})
}

func read(files []string, b *batch.Builder) (rows int, err error) {
	r, err := reader.New(sdk.Env{}, reader.Config{Files: files, Start: "earliest", DDL: "apply", OnUnknownTable: "stop", OnStatement: "stop"})
	if err != nil {
		return 0, err
	}
	ctx := context.Background()
	defer r.Close(ctx)
	if err := r.Open(ctx, sdk.Execution{}, nil, nil); err != nil {
		return 0, err
	}
	for {
		b.Reset()
		err := r.Next(ctx, b)
		rows += b.Len()
		if !b.Empty() {
			if _, ferr := b.Finish(); ferr != nil {
				return rows, ferr
			}
		}
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
	}
}
