package reader

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/binlogtest"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// step is a transaction with the reader state that is stored along with its end.
type step struct {
	end    string
	events []string
	state  []batch.StateItem
}

// steps reads a log and merges the entries of each transaction.
func steps(t *testing.T, cfg Config, points []sdk.Point, state []batch.StateItem) []step {
	t.Helper()
	s, err := open(t, cfg, batch.Limits{}, points, state)
	if err != nil {
		t.Fatal(err)
	}
	var out []step
	var open step
	for {
		s.b.Reset()
		end := s.r.Next(context.Background(), s.b)
		data, err := s.b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		var blk batch.Block
		if err := blk.Decode(bytes.Clone(data), s.reg, batch.Limits{}); err != nil {
			t.Fatal(err)
		}
		for i := range blk.Txs {
			tx := &blk.Txs[i]
			for k := range tx.Count {
				var e batch.Event
				if err := blk.Event(tx.First+k, &e); err != nil {
					t.Fatal(err)
				}
				text := short(t, &e)
				if e.Kind == batch.State {
					it, err := e.StateItem()
					if err != nil {
						t.Fatal(err)
					}
					it.Value = bytes.Clone(it.Value)
					open.state = append(open.state, *it)
					text += " " + it.Key
				}
				open.events = append(open.events, text)
			}
			if tx.Ends {
				open.end = string(tx.End)
				if len(open.events) > 0 {
					out = append(out, open)
				}
				open = step{}
			}
		}
		if end == io.EOF {
			return out
		}
		if end != nil {
			t.Fatal(end)
		}
	}
}

// TestResumeEverywhere begins at the end of each transaction of recordings, with
// the state that belongs to it and without any: what follows is the same as when
// all is read at once.
func TestResumeEverywhere(t *testing.T) {
	dir := samples(t)[0]
	for _, name := range []string{"mysql97-minimal", "mysql97-minimalboth", "mariadb1011-nolog", "mysql97-tagged", "mysql97-compressed", "mariadb1011-domains"} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{Files: sdk.Strings{filepath.Join(dir, name+".0*")}, OnStatement: "ignore"}
			whole := steps(t, cfg, nil, nil)
			if len(whole) < 3 {
				t.Fatalf("%d transactions", len(whole))
			}
			items := map[string]batch.StateItem{}
			stride := max(1, len(whole)/40)
			for i := range whole {
				for _, it := range whole[i].state {
					items[it.Key] = it
				}
				if i%stride != 0 {
					continue
				}
				var want []string
				for _, s := range whole[i+1:] {
					want = append(want, s.events...)
				}
				point := []sdk.Point{{Position: sdk.Position{Format: positionFormat, Version: positionVersion, Source: []byte(whole[i].end)}}}
				var state []batch.StateItem
				for _, it := range items {
					state = append(state, it)
				}
				for _, st := range [][]batch.StateItem{state, nil} {
					var got []string
					for _, s := range steps(t, cfg, point, st) {
						got = append(got, s.events...)
					}
					if d := cmp.Diff(want, got); d != "" {
						t.Fatalf("from %s with %d items of state: %.2000s", whole[i].end, len(st), d)
					}
				}
			}
			// State from the end, and a point from before: another writer is behind.
			var all []batch.StateItem
			for _, it := range items {
				all = append(all, it)
			}
			mid := len(whole) / 2
			point := []sdk.Point{{Position: sdk.Position{Format: positionFormat, Version: positionVersion, Source: []byte(whole[mid].end)}}}
			var want, got []string
			for _, s := range whole[mid+1:] {
				want = append(want, s.events...)
			}
			for _, s := range steps(t, cfg, point, all) {
				got = append(got, s.events...)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("with later state: %.2000s", d)
			}
		})
	}
}

func TestWrongPlaces(t *testing.T) {
	dir := samples(t)[0]
	for _, c := range []struct {
		pos  string
		code sdk.Code
	}{
		{"mysql97.000003:99999999", sdk.CodePositionUnknown},
		{"mysql97.000009:4", sdk.CodePositionUnknown},
		{"mysql97.000000:4", sdk.CodePositionPurged},
		{"other.000001:4", sdk.CodePositionUnknown},
		{"mysql97.000001:4@1.1", sdk.CodePositionUnknown},
	} {
		p, err := (&Reader{}).ParsePosition(c.pos)
		if err != nil {
			t.Fatal(err)
		}
		_, err = open(t, Config{Files: sdk.Strings{filepath.Join(dir, "mysql97.0*")}}, batch.Limits{}, []sdk.Point{{Position: p}}, nil)
		if f := sdk.AsFault(err); f == nil || f.Code != c.code || !strings.Contains(err.Error(), strings.SplitN(c.pos, ":", 2)[0]) {
			t.Errorf("%s: %v, want %s", c.pos, err, c.code)
		}
	}
}

// TestStart tries the ways to begin without progress.
func TestStart(t *testing.T) {
	dir := samples(t)[0]
	files := sdk.Strings{filepath.Join(dir, "mysql97.0*")}
	count := func(start string) int {
		n := 0
		for _, s := range steps(t, Config{Files: files, Start: start, OnStatement: "ignore"}, nil, nil) {
			n += len(s.events)
		}
		return n
	}
	all := count("earliest")
	for _, c := range []struct {
		start string
		want  int
	}{{"latest", 0}, {"time:2000-01-01T00:00:00Z", all}, {"time:2099-01-01", 0}, {"position:mysql97.000001:4", all}} {
		if got := count(c.start); got != c.want {
			t.Errorf("start %s: %d events, want %d", c.start, got, c.want)
		}
	}
}

// TestSameMapAfterStatement has the same table map before and after a change of
// names alone: the rows after it are of the new layout.
func TestSameMapAfterStatement(t *testing.T) {
	bare := pair("t", 1)
	bare.Bare = true
	path := write(t, t.TempDir(), "log.000001", binlogtest.Options{}, func(w *binlogtest.Writer) {
		w.GTID(1)
		w.Query("d", "CREATE TABLE t (id INT PRIMARY KEY, v INT)")
		insert(w, 2, bare, 1, 10)
		w.GTID(3)
		w.Query("d", "ALTER TABLE t RENAME COLUMN v TO w")
		insert(w, 4, bare, 2, 20)
	})
	var names []string
	err := collect(t, Config{Files: sdk.Strings{path}}, func(_ *batch.Tx, e *batch.Event) {
		if e.Kind == batch.Insert {
			names = append(names, e.Schema.Columns[1].Name)
		}
	})
	if d := cmp.Diff([]string{"v", "w"}, names); d != "" || err != nil {
		t.Error(d, err)
	}
}

// TestPendingAlter has an ALTER that MariaDB logs where it begins and again where
// it ends, and one that was given up: rows between are of the layout before.
func TestPendingAlter(t *testing.T) {
	gtid := func(w *binlogtest.Writer, n byte, more byte) {
		b := make([]byte, 19)
		b[0], b[12], b[13] = n, 1, more // standalone
		w.Event(binlog.MariaGTID, 0, b)
	}
	bare, wide := pair("t", 1), pair("t", 2)
	bare.Bare, wide.Bare = true, true
	wide.Columns = append(wide.Columns, binlogtest.Column{Name: "w", Type: 3})
	rows := func(w *binlogtest.Writer, n byte, tb *binlogtest.Table, vals []byte) {
		b := make([]byte, 19)
		b[0] = n
		w.Event(binlog.MariaGTID, 0, b)
		w.Map(tb)
		w.Rows(binlog.WriteRowsV2, tb, vals)
		w.Commit(uint64(n))
	}
	path := write(t, t.TempDir(), "log.000001", binlogtest.Options{Version: "10.11.19-MariaDB"}, func(w *binlogtest.Writer) {
		gtid(w, 1, 0)
		w.Query("d", "CREATE TABLE t (id INT PRIMARY KEY, v INT)")
		gtid(w, 2, 2)
		w.Query("d", "ALTER TABLE t ADD COLUMN w INT")
		rows(w, 3, bare, ints(1, 10))
		gtid(w, 4, 4)
		w.Query("d", "ALTER TABLE t ADD COLUMN w INT")
		gtid(w, 5, 2)
		w.Query("d", "ALTER TABLE t DROP COLUMN v")
		gtid(w, 6, 8)
		w.Query("d", "ALTER TABLE t DROP COLUMN v")
		rows(w, 7, wide, append(ints(2, 20), 5, 0, 0, 0))
	})
	var got []string
	for _, s := range steps(t, Config{Files: sdk.Strings{path}}, nil, nil) {
		for _, e := range s.events {
			if !strings.HasPrefix(e, "state") {
				got = append(got, e)
			}
		}
	}
	if d := cmp.Diff([]string{"ddl 1 d.t", "insert t 1 10", "ddl 4 d.t", "insert t 2 20 5"}, got); d != "" {
		t.Error(d)
	}
}
