package reader

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/binlogtest"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// FuzzFile reads damaged files: whatever is in them, the reader ends with events
// that decode or an error, and never panics or allocates what a size promises.
func FuzzFile(f *testing.F) {
	dir := f.TempDir()
	tb := pair("t", 1)
	for i, o := range []binlogtest.Options{{}, {Checksum: true}, {Version: "10.11.4-MariaDB"}} {
		path := write(f, dir, "seed.000001", o, func(w *binlogtest.Writer) {
			w.GTID(1)
			w.Query("d", "CREATE TABLE t (id INT PRIMARY KEY, v INT)")
			insert(w, 2, tb, 1, 10, 2, 20)
			if i == 0 {
				w.GTID(3)
				w.Payload(func(in *binlogtest.Writer) {
					in.Begin()
					in.Map(tb)
					in.Rows(binlog.UpdateRowsV2, tb, ints(1, 10, 1, 11))
					in.Commit(3)
				})
			}
			w.GTID(4)
			w.Query("d", "ALTER TABLE t ADD COLUMN x VARCHAR(10) AFTER id")
		})
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	path := filepath.Join(dir, "fuzz.000001")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := New(sdk.Env{}, Config{Files: sdk.Strings{path}, Start: "earliest", DDL: "apply", OnUnknownTable: "positional", OnStatement: "ignore", MaxEvent: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		defer r.Close(ctx)
		if r.Open(ctx, sdk.Execution{}, nil, nil) != nil {
			return
		}
		b, reg := batch.NewBuilder(batch.Limits{}), batch.NewRegistry()
		for range 1000 {
			b.Reset()
			end := r.Next(ctx, b)
			out, err := b.Finish()
			if err != nil {
				t.Fatal(err)
			}
			var blk batch.Block
			if err := blk.Decode(out, reg, batch.Limits{}); err != nil {
				t.Fatal(err)
			}
			for i := range blk.Len() {
				var e batch.Event
				if err := blk.Event(i, &e); err != nil {
					t.Fatal(err)
				}
				for _, im := range []batch.Image{e.Before, e.After} {
					if im.IsZero() {
						continue
					}
					if _, err := im.Values(nil); err != nil {
						t.Fatal(err)
					}
				}
			}
			if end != nil {
				return
			}
		}
	})
}

func FuzzPosition(f *testing.F) {
	for _, s := range []string{"mysql-bin.000003:1234", "mysql-bin.1000000:4294967297@97.1764530401+17", "a.binlog:4", ":", "x:y+z@"} {
		f.Add(s)
	}
	r := &Reader{}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := r.ParsePosition(s)
		if err != nil {
			return
		}
		text, err := r.FormatPosition(p)
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		again, err := r.ParsePosition(text)
		if err != nil {
			t.Fatalf("%q became %q: %v", s, text, err)
		}
		if o, err := r.ComparePositions(p, again); err != nil || o != sdk.Equal {
			t.Fatalf("%q and %q: %v %v", s, text, o, err)
		}
	})
}
