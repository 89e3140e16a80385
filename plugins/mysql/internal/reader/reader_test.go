package reader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/binlogtest"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// pair is a table (id, v) of integers.
func pair(name string, id uint64) *binlogtest.Table {
	return &binlogtest.Table{ID: id, Database: "d", Name: name, Key: []byte{0}, Columns: []binlogtest.Column{{Name: "id", Type: 3}, {Name: "v", Type: 3}}}
}

func ints(vals ...int32) (b []byte) {
	for i, v := range vals {
		if i%2 == 0 {
			b = append(b, 0)
		}
		b = append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
	}
	return b
}

// write makes a file of a log.
func write(t testing.TB, dir, name string, o binlogtest.Options, f func(w *binlogtest.Writer)) string {
	t.Helper()
	var b bytes.Buffer
	w := binlogtest.New(&b, o)
	f(w)
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// insert writes a transaction that inserts rows (id, v).
func insert(w *binlogtest.Writer, n uint64, tb *binlogtest.Table, vals ...int32) {
	w.GTID(n)
	w.Begin()
	w.Map(tb)
	w.Rows(binlog.WriteRowsV2, tb, ints(vals...))
	w.Commit(n)
}

// seen is one transaction entry with its events in short.
type seen struct {
	Begins, Ends bool
	Ordinal      uint64
	Start, End   string
	ID           string
	Covers       []batch.Cover
	Events       []string
}

type session struct {
	t   testing.TB
	r   *Reader
	b   *batch.Builder
	reg *batch.Registry
}

func open(t testing.TB, cfg Config, limits batch.Limits, points []sdk.Point, state []batch.StateItem) (*session, error) {
	t.Helper()
	for _, d := range []struct {
		v *string
		s string
	}{{&cfg.Start, "earliest"}, {&cfg.DDL, "apply"}, {&cfg.OnUnknownTable, "stop"}, {&cfg.OnStatement, "stop"}} {
		if *d.v == "" {
			*d.v = d.s
		}
	}
	r, err := New(sdk.Env{}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	err = r.Open(context.Background(), sdk.Execution{}, points, state)
	return &session{t, r, batch.NewBuilder(limits), batch.NewRegistry()}, err
}

// next returns the entries of one call of Next.
func (s *session) next() (out []seen, err error) {
	s.t.Helper()
	s.b.Reset()
	err = s.r.Next(context.Background(), s.b)
	data, ferr := s.b.Finish()
	if ferr != nil {
		s.t.Fatal(ferr)
	}
	var blk batch.Block
	if err := blk.Decode(bytes.Clone(data), s.reg, batch.Limits{}); err != nil {
		s.t.Fatal(err)
	}
	for i := range blk.Txs {
		tx := &blk.Txs[i]
		e := seen{Begins: tx.Begins, Ends: tx.Ends, Ordinal: tx.Ordinal, Start: plain(tx.Start), End: plain(tx.End), ID: tx.ID, Covers: append([]batch.Cover(nil), tx.Covers...)}
		for k := range tx.Count {
			var ev batch.Event
			if err := blk.Event(tx.First+k, &ev); err != nil {
				s.t.Fatal(err)
			}
			e.Events = append(e.Events, short(s.t, &ev))
		}
		out = append(out, e)
	}
	return out, err
}

// plain is a position without the identity of its file.
func plain(p []byte) string { s, _, _ := strings.Cut(string(p), "@"); return s }

func short(t testing.TB, e *batch.Event) string {
	if e.Kind == batch.DDL {
		c, err := e.Change()
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("ddl %d %s.%s", c.Kind, c.Namespace, c.Table)
	}
	if e.Schema == nil {
		return e.Kind.String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", e.Kind, e.Schema.Table)
	for _, im := range []batch.Image{e.Before, e.After} {
		if im.IsZero() {
			continue
		}
		v, err := im.Values(nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range v {
			b.WriteString(" " + render(&e.Schema.Columns[i], &v[i]))
		}
	}
	return b.String()
}

// all reads to the end.
func (s *session) all() (out []seen, err error) {
	s.t.Helper()
	for {
		part, err := s.next()
		out = append(out, part...)
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
	}
}

// events are those of all entries.
func events(entries []seen) (out []string) {
	for _, e := range entries {
		out = append(out, e.Events...)
	}
	return out
}

func TestResume(t *testing.T) {
	dir := t.TempDir()
	tb := pair("t", 1)
	write(t, dir, "log.000001", binlogtest.Options{Checksum: true}, func(w *binlogtest.Writer) {
		insert(w, 1, tb, 1, 10)
		insert(w, 2, tb, 2, 20, 3, 30)
		w.Rotate("log.000002")
	})
	write(t, dir, "log.000002", binlogtest.Options{}, func(w *binlogtest.Writer) { insert(w, 3, tb, 4, 40) })
	cfg := Config{Files: sdk.Strings{filepath.Join(dir, "log.*")}}
	s, err := open(t, cfg, batch.Limits{}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := s.all()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"insert t 1 10", "insert t 2 20", "insert t 3 30", "insert t 4 40"}
	if d := cmp.Diff(want, events(whole)); d != "" || len(whole) != 3 || !strings.HasPrefix(whole[2].End, "log.000002:") {
		t.Fatalf("%s%+v", d, whole)
	}
	// Every end of a transaction is a place to begin at, and what two writers have
	// is covered for each of them alone.
	at := func(i int) sdk.Position {
		p, err := s.r.ParsePosition(whole[i].End)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for i := range whole {
		s, err := open(t, cfg, batch.Limits{}, []sdk.Point{{Position: at(i)}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		rest, err := s.all()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(events(whole[i+1:]), events(rest)); d != "" {
			t.Errorf("from %s: %s", whole[i].End, d)
		}
	}
	inside := at(0)
	inside.Ordinal = 1
	s, err = open(t, cfg, batch.Limits{}, []sdk.Point{{Position: at(0)}, {Position: at(1)}, {Position: inside}, {Position: at(2)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	rest, err := s.all()
	if err != nil {
		t.Fatal(err)
	}
	covers := [][]batch.Cover{{{Point: 1}, {Point: 2, Upto: 1}, {Point: 3}}, {{Point: 3}}}
	if d := cmp.Diff(covers, [][]batch.Cover{rest[0].Covers, rest[1].Covers}); d != "" {
		t.Error(d)
	}
	// A writer that has nothing begins at the configured start.
	s, err = open(t, cfg, batch.Limits{}, []sdk.Point{{Position: at(2)}, {}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if rest, err = s.all(); err != nil || len(events(rest)) != 4 || len(rest[0].Covers) != 1 {
		t.Errorf("%v %+v", err, rest)
	}
}

func TestSplitTransaction(t *testing.T) {
	dir := t.TempDir()
	tb := pair("t", 1)
	for _, compressed := range []bool{false, true} {
		write(t, dir, "log.000001", binlogtest.Options{Checksum: true}, func(w *binlogtest.Writer) {
			w.GTID(1)
			body := func(w *binlogtest.Writer) {
				w.Begin()
				for i := range int32(10) {
					w.Map(tb)
					w.Rows(binlog.WriteRowsV2, tb, ints(i, i))
				}
				w.Commit(1)
			}
			if compressed {
				w.Payload(body)
			} else {
				body(w)
			}
		})
		s, err := open(t, Config{Files: sdk.Strings{filepath.Join(dir, "log.000001")}}, batch.Limits{Events: 4}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.all()
		if err != nil {
			t.Fatal(err)
		}
		var shape []seen
		n := 0
		for _, e := range got {
			n += len(e.Events)
			e.Events, e.ID = nil, ""
			if e.End != "" {
				e.End = "end"
			}
			shape = append(shape, e)
		}
		start := fmt.Sprintf("log.000001:%d", firstEvent(t, filepath.Join(dir, "log.000001")))
		want := []seen{
			{Begins: true, Start: start}, {Ordinal: 4, Start: start}, {Ordinal: 8, Ends: true, End: "end"},
		}
		if d := cmp.Diff(want, shape); d != "" || n != 10 {
			t.Errorf("compressed %t: %d events, %s", compressed, n, d)
		}
	}
}

func firstEvent(t *testing.T, path string) int64 {
	base, number, digits := binlog.SplitName(filepath.Base(path))
	src, _, end, err := openFormat(&binlog.File{Path: path, Base: base, Number: number, Digits: digits}, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = src.Close()
	return end
}

func TestNotDelivered(t *testing.T) {
	tb, my := pair("t", 1), pair("m", 2)
	for _, c := range []struct {
		name string
		f    func(w *binlogtest.Writer)
		want []string
	}{
		{"rollback", func(w *binlogtest.Writer) {
			w.GTID(1)
			w.Query("d", "CREATE TABLE t (id INT PRIMARY KEY, v INT)")
			w.GTID(2)
			w.Query("d", "CREATE TABLE m (id INT PRIMARY KEY, v INT) ENGINE=MyISAM")
			w.GTID(3)
			w.Begin()
			w.Map(tb)
			w.Rows(binlog.WriteRowsV2, tb, ints(1, 1))
			w.Map(my)
			w.Rows(binlog.WriteRowsV2, my, ints(2, 2))
			w.Query("", "ROLLBACK")
		}, []string{"insert m 2 2"}},
		{"savepoint", func(w *binlogtest.Writer) {
			w.GTID(1)
			w.Query("d", "CREATE TABLE t (id INT PRIMARY KEY, v INT)")
			w.GTID(3)
			w.Begin()
			w.Map(tb)
			w.Rows(binlog.WriteRowsV2, tb, ints(1, 1))
			w.Query("", "SAVEPOINT `a``b`")
			w.Map(tb)
			w.Rows(binlog.WriteRowsV2, tb, ints(2, 2))
			w.Query("", "ROLLBACK TO `a``b`")
			w.Map(tb)
			w.Rows(binlog.WriteRowsV2, tb, ints(3, 3))
			w.Commit(3)
		}, []string{"insert t 1 1", "insert t 3 3"}},
		{"prepared and rolled back", func(w *binlogtest.Writer) {
			w.GTID(1)
			w.Query("", "XA START X'61',X'',1")
			w.Map(tb)
			w.Rows(binlog.WriteRowsV2, tb, ints(1, 1))
			w.Query("", "XA END X'61',X'',1")
			w.Event(binlog.XAPrepare, 0, []byte{0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 'a'})
			insert(w, 2, tb, 2, 2)
			w.GTID(3)
			w.Query("", "XA ROLLBACK X'61',X'',1")
		}, []string{"insert t 2 2"}},
		{"prepared and committed", func(w *binlogtest.Writer) {
			w.GTID(1)
			w.Query("", "XA START X'61',X'',1")
			w.Map(tb)
			w.Rows(binlog.WriteRowsV2, tb, ints(1, 1))
			w.Query("", "XA END X'61',X'',1")
			w.Event(binlog.XAPrepare, 0, []byte{0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 'a'})
			insert(w, 2, tb, 2, 2)
			w.GTID(3)
			w.Query("", "XA COMMIT X'61',X'',1")
		}, []string{"insert t 2 2", "insert t 1 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, t.TempDir(), "log.000001", binlogtest.Options{}, c.f)
			s, err := open(t, Config{Files: sdk.Strings{path}, DDL: "ignore"}, batch.Limits{}, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.all()
			if err != nil {
				t.Fatal(err)
			}
			var rows []string
			for _, e := range events(got) {
				if e != "state" {
					rows = append(rows, e)
				}
			}
			if d := cmp.Diff(c.want, rows); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestXACommitFromLater begins after the prepare: its rows are found all the same.
func TestXACommitFromLater(t *testing.T) {
	tb := pair("t", 1)
	dir := t.TempDir()
	write(t, dir, "log.000001", binlogtest.Options{}, func(w *binlogtest.Writer) {
		w.GTID(1)
		w.Query("", "XA START X'61',X'',1")
		w.Map(tb)
		w.Rows(binlog.WriteRowsV2, tb, ints(1, 1))
		w.Query("", "XA END X'61',X'',1")
		w.Event(binlog.XAPrepare, 0, []byte{0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 'a'})
	})
	write(t, dir, "log.000002", binlogtest.Options{}, func(w *binlogtest.Writer) {
		w.GTID(2)
		w.Query("", "XA COMMIT X'61',X'',1")
	})
	for _, c := range []struct {
		files string
		err   string
	}{{"log.*", ""}, {"log.000002", "XA COMMIT X'61',X'',1, and its prepared part is in none of the files"}} {
		s, err := open(t, Config{Files: sdk.Strings{filepath.Join(dir, c.files)}, Start: "position:log.000002:4"}, batch.Limits{}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.all()
		if c.err == "" && (err != nil || len(events(got)) != 1) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %v %+v", c.files, err, got)
		}
	}
}

// TestCut cuts a file at every byte: what is delivered is whole transactions, and
// the position after the last of them goes on where it was cut.
func TestCut(t *testing.T) {
	dir := t.TempDir()
	tb := pair("t", 1)
	path := write(t, dir, "log.000001", binlogtest.Options{Checksum: true}, func(w *binlogtest.Writer) {
		insert(w, 1, tb, 1, 10)
		insert(w, 2, tb, 2, 20)
	})
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cutPath := filepath.Join(t.TempDir(), "log.000001")
	for n := len(data); n > 4; n-- {
		if err := os.WriteFile(cutPath, data[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := open(t, Config{Files: sdk.Strings{cutPath}}, batch.Limits{}, nil, nil)
		if err != nil {
			if n > 130 || !errors.Is(err, &sdk.Fault{Code: sdk.CodeCorruptSource}) {
				t.Fatalf("cut at %d: %v", n, err)
			}
			continue
		}
		got, err := s.all()
		want := 0
		at := firstEvent(t, cutPath)
		boundary := int64(n) == at
		for i := range got {
			want++
			p, _, perr := parsePlace(got[i].End)
			if perr != nil || p.off > int64(n) {
				t.Fatalf("cut at %d: end %s", n, got[i].End)
			}
			at = p.off
			boundary = boundary || int64(n) == p.off
		}
		switch {
		case boundary && err != nil:
			t.Fatalf("cut at %d, between transactions: %v", n, err)
		case !boundary && (!errors.Is(err, &sdk.Fault{Code: sdk.CodeCorruptSource}) || !strings.Contains(err.Error(), fmt.Sprintf("everything up to log.000001:%d", at))):
			t.Fatalf("cut at %d, after %d: %v", n, at, err)
		}
	}
}

func TestStops(t *testing.T) {
	tb := pair("t", 1)
	bare := pair("t", 1)
	bare.Bare = true
	for _, c := range []struct {
		name string
		cfg  Config
		o    binlogtest.Options
		f    func(w *binlogtest.Writer)
		code sdk.Code
		text string
	}{
		{"unknown event", Config{}, binlogtest.Options{}, func(w *binlogtest.Writer) { w.Event(99, 0, []byte{1}) }, sdk.CodeUnsupportedEvent, "log.000001 at offset 127: event of type 99"},
		{"unknown event in a transaction", Config{}, binlogtest.Options{}, func(w *binlogtest.Writer) { w.GTID(1); w.Begin(); w.Event(99, 0, nil); w.Commit(1) }, sdk.CodeUnsupportedEvent, "event type 99 event"},
		{"ignorable", Config{}, binlogtest.Options{}, func(w *binlogtest.Writer) { w.Event(99, binlog.FlagIgnorable, []byte{1}) }, "", ""},
		{"incident", Config{}, binlogtest.Options{}, func(w *binlogtest.Writer) { w.Event(binlog.Incident, 0, []byte{1, 0, 4, 'l', 'o', 's', 't'}) }, sdk.CodeUnsupportedEvent, "INCIDENT event 1 (lost)"},
		{"statement", Config{}, binlogtest.Options{}, func(w *binlogtest.Writer) {
			w.GTID(1)
			w.Begin()
			w.Query("d", "INSERT INTO t VALUES (1, 1)")
			w.Commit(1)
		}, sdk.CodeUnsupportedEvent, "not as rows: INSERT INTO t"},
		{"statement ignored", Config{OnStatement: "ignore"}, binlogtest.Options{}, func(w *binlogtest.Writer) {
			w.GTID(1)
			w.Begin()
			w.Query("d", "INSERT INTO t VALUES (1, 1)")
			w.Commit(1)
		}, "", ""},
		{"unknown table", Config{}, binlogtest.Options{}, func(w *binlogtest.Writer) { insert(w, 1, bare, 1, 1) }, sdk.CodeUnknownTable, "d.t: the log holds no column names"},
		{"unknown table left out", Config{Tables: sdk.Strings{"d.*", "!d.t"}}, binlogtest.Options{}, func(w *binlogtest.Writer) { insert(w, 1, bare, 1, 1) }, "", ""},
		{"disagreeing statement", Config{}, binlogtest.Options{}, func(w *binlogtest.Writer) {
			w.GTID(1)
			w.Query("d", "CREATE TABLE t (id INT, v VARCHAR(10))")
			insert(w, 2, bare, 1, 1)
		}, sdk.CodeUnknownTable, "column 2: the log has type 3"},
		{"checksum", Config{}, binlogtest.Options{Checksum: true}, func(w *binlogtest.Writer) {
			w.GTID(1)
			w.Raw([]byte{0, 0, 0, 0, 16, 1, 0, 0, 0, 31, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4})
		}, sdk.CodeCorruptSource, "its checksum is 04030201"},
		{"B124 encrypted", Config{}, binlogtest.Options{Version: "10.11.1-MariaDB"}, func(w *binlogtest.Writer) { w.Event(binlog.StartEncryption, 0, make([]byte, 17)) }, sdk.CodeUnsupportedEvent, "encrypt_binlog=ON"},
		{"ddl stop", Config{DDL: "stop"}, binlogtest.Options{}, func(w *binlogtest.Writer) { w.GTID(1); w.Query("d", "CREATE TABLE t (id INT)") }, sdk.CodeRefused, "a schema change of d.t, and ddl is stop"},
		{"a table that is not read takes the place of one that is", Config{Tables: sdk.Strings{"d.t"}}, binlogtest.Options{}, func(w *binlogtest.Writer) {
			w.GTID(1)
			w.Query("d", "RENAME TABLE t TO _t_del, _t_gho TO t")
		}, sdk.CodeUnsupportedEvent, "d._t_gho takes the place of d.t"},
		{"the same, and the target's table stays", Config{Tables: sdk.Strings{"d.t"}, DDL: "ignore"}, binlogtest.Options{}, func(w *binlogtest.Writer) {
			w.GTID(1)
			w.Query("d", "RENAME TABLE t TO _t_del, _t_gho TO t")
		}, "", ""},
		{"not understood", Config{}, binlogtest.Options{}, func(w *binlogtest.Writer) { w.GTID(1); w.Query("d", "FROBNICATE t") }, sdk.CodeUnsupportedEvent, "FROBNICATE"},
		{"in the middle", Config{Start: "position:log.000001:203"}, binlogtest.Options{}, func(w *binlogtest.Writer) { insert(w, 1, tb, 1, 1) }, sdk.CodeInvalidPosition, "a TABLE_MAP event stands outside of any transaction"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, t.TempDir(), "log.000001", c.o, c.f)
			c.cfg.Files = sdk.Strings{path}
			if c.name == "in the middle" { // after GTID and BEGIN
				c.cfg.Start = fmt.Sprintf("position:log.000001:%d", firstEvent(t, path)+61+19+13+7+1+5)
			}
			s, err := open(t, c.cfg, batch.Limits{}, nil, nil)
			if err == nil {
				_, err = s.all()
			}
			if c.code == "" {
				if err != nil {
					t.Errorf("it stops with %v", err)
				}
				return
			}
			if !errors.Is(err, &sdk.Fault{Code: c.code}) || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), "log.000001") && c.name != "disagreeing statement" {
				t.Errorf("got %v\nwant code %s with %q", err, c.code, c.text)
			}
		})
	}
	// The first byte of a log that MySQL encrypted.
	path := filepath.Join(t.TempDir(), "log.000001")
	if err := os.WriteFile(path, []byte("\xfdbin0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, Config{Files: sdk.Strings{path}}, batch.Limits{}, nil, nil); !errors.Is(err, &sdk.Fault{Code: sdk.CodeUnsupportedEvent}) {
		t.Errorf("encrypted: %v", err)
	}
}
