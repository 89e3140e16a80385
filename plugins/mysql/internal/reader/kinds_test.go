package reader

import (
	"bytes"
	"encoding/binary"
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

// TestKinds has small inputs on which readers of this kind go wrong, in events
// that the servers at hand do not write.
func TestKinds(t *testing.T) {
	enum := &binlogtest.Table{ID: 1, Database: "d", Name: "t", Bare: true, Columns: []binlogtest.Column{{Type: 3}, {Type: 254, Meta: []byte{247, 1}}}}
	small := func(id, v byte) []byte { return []byte{0, id, 0, 0, 0, v} }
	hidden := pair("t", 1)
	hidden.Columns = append(hidden.Columns, binlogtest.Column{Name: "#alibaba_rds_row_id#", Type: 8})
	hidden.Key = nil
	bareHidden := *hidden
	bareHidden.Bare = true
	tb := pair("t", 1)
	for _, c := range []struct {
		id, name string
		o        binlogtest.Options
		f        func(w *binlogtest.Writer)
		want     []string
		err      []string // parts of the message
	}{
		{"B006", "label of an ENUM by the statement that made the table", binlogtest.Options{Version: "5.7.44-log"}, func(w *binlogtest.Writer) {
			w.GTID(1)
			w.Query("d", "CREATE TABLE t (id INT PRIMARY KEY, status ENUM('active','inactive','pending') NOT NULL)")
			w.GTID(2)
			w.Begin()
			w.Map(enum)
			w.Rows(binlog.WriteRowsV2, enum, small(1, 1))
			w.Commit(2)
		}, []string{"insert t 1 active"}, nil},
		{"B007", "ENUM value beyond the known labels", binlogtest.Options{}, func(w *binlogtest.Writer) {
			w.GTID(1)
			w.Query("d", "CREATE TABLE t (id INT PRIMARY KEY, e ENUM('a','b'))")
			w.GTID(2)
			w.Begin()
			w.Map(enum)
			w.Rows(binlog.WriteRowsV2, enum, small(1, 3))
			w.Commit(2)
		}, nil, []string{"d.t", "column e", "3"}},
		{"B008", "invalid ENUM value", binlogtest.Options{}, func(w *binlogtest.Writer) {
			w.GTID(1)
			w.Query("d", "CREATE TABLE t (id INT PRIMARY KEY, e ENUM('a','b'))")
			w.GTID(2)
			w.Begin()
			w.Map(enum)
			w.Rows(binlog.WriteRowsV2, enum, append(small(1, 0), 2, 2, 0, 0, 0))
			w.Commit(2)
		}, []string{"insert t 1 ", "insert t 2 \x00NULL"}, nil},
		{"B065", "key that a hosted server hides, with names", binlogtest.Options{}, func(w *binlogtest.Writer) {
			w.GTID(1)
			w.Begin()
			w.Map(hidden)
			w.Rows(binlog.WriteRowsV2, hidden, append(ints(7, 8), 1, 0, 0, 0, 0, 0, 0, 0))
			w.Commit(1)
		}, []string{"insert t 7 8"}, nil},
		{"B065", "key that a hosted server hides, without names", binlogtest.Options{}, func(w *binlogtest.Writer) {
			w.GTID(1)
			w.Query("d", "CREATE TABLE t (id INT, v INT)")
			w.GTID(2)
			w.Begin()
			w.Map(&bareHidden)
			w.Rows(binlog.WriteRowsV2, &bareHidden, append(ints(7, 8), 1, 0, 0, 0, 0, 0, 0, 0))
			w.Commit(2)
		}, []string{"insert t 7 8"}, nil},
		{"B065", "column too many in a table that has a key", binlogtest.Options{}, func(w *binlogtest.Writer) {
			w.GTID(1)
			w.Query("d", "CREATE TABLE t (id INT PRIMARY KEY, v INT)")
			w.GTID(2)
			w.Begin()
			w.Map(&bareHidden)
			w.Rows(binlog.WriteRowsV2, &bareHidden, append(ints(7, 8), 1, 0, 0, 0, 0, 0, 0, 0))
			w.Commit(2)
		}, nil, []string{"d.t", "3 columns"}},
		{"B123", "file that was not closed", binlogtest.Options{Checksum: true, InUse: true}, func(w *binlogtest.Writer) { insert(w, 1, tb, 1, 1) }, []string{"insert t 1 1"}, nil},
	} {
		t.Run(c.id+" "+c.name, func(t *testing.T) {
			path := write(t, t.TempDir(), "log.000001", c.o, c.f)
			s, err := open(t, Config{Files: sdk.Strings{path}, DDL: "ignore"}, batch.Limits{}, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			all, err := s.all()
			if (err == nil) != (c.err == nil) {
				t.Errorf("it ended with %v, want %q", err, c.err)
			}
			for _, part := range c.err {
				if err != nil && !strings.Contains(err.Error(), part) {
					t.Errorf("%v does not name %q", err, part)
				}
			}
			var got []string
			for _, e := range events(all) {
				if !strings.HasPrefix(e, "state") {
					got = append(got, e)
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestCountedPositions has a log that says nothing of use about offsets: MariaDB
// writes 0 into all events of a group but the last, and so do events inside of a
// compressed transaction.
func TestCountedPositions(t *testing.T) {
	tb := pair("t", 1)
	var b bytes.Buffer
	w := binlogtest.New(&b, binlogtest.Options{})
	first := w.Offset()
	insert(w, 1, tb, 1, 10)
	middle := w.Offset()
	insert(w, 2, tb, 2, 20)
	end := w.Offset()
	data := b.Bytes()
	for at := first; at < end; at += int64(binary.LittleEndian.Uint32(data[at+9:])) {
		binary.LittleEndian.PutUint32(data[at+13:], 0)
	}
	path := filepath.Join(t.TempDir(), "log.000001")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	got := steps(t, Config{Files: sdk.Strings{path}}, nil, nil)
	if len(got) != 2 {
		t.Fatalf("%d transactions", len(got))
	}
	for i, want := range []int64{middle, end} {
		if p, _, err := parsePlace(got[i].end); err != nil || p.off != want {
			t.Errorf("transaction %d ends at %s (%v), want %d", i, got[i].end, err, want)
		}
	}
	point := []sdk.Point{{Position: sdk.Position{Format: positionFormat, Version: positionVersion, Source: []byte(got[0].end)}}}
	if again := steps(t, Config{Files: sdk.Strings{path}}, point, nil); len(again) != 1 || again[0].events[len(again[0].events)-1] != "insert t 2 20" {
		t.Errorf("after the first: %+v", again)
	}
}

// TestB094FarPosition has a transaction beyond 4 GiB of a file, most of which is a
// hole, and goes on behind it.
func TestB094FarPosition(t *testing.T) {
	tb := pair("t", 1)
	path := filepath.Join(t.TempDir(), "log.000001")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := binlogtest.New(f, binlogtest.Options{})
	insert(w, 1, tb, 1, 10)
	// Ignorable events of 256 MiB, of which only the heads are written.
	at := w.Offset()
	const size = 256 << 20
	for range 17 {
		head := make([]byte, binlog.HeaderSize)
		head[4] = 99
		binary.LittleEndian.PutUint32(head[5:], 1)
		binary.LittleEndian.PutUint32(head[9:], size)
		binary.LittleEndian.PutUint16(head[17:], binlog.FlagIgnorable)
		if _, err := f.WriteAt(head, at); err != nil {
			t.Fatal(err)
		}
		at += size
	}
	if _, err := f.Seek(at, 0); err != nil {
		t.Fatal(err)
	}
	insert(w, 2, tb, 2, 20)
	end, _ := f.Seek(0, 1)
	got := steps(t, Config{Files: sdk.Strings{path}}, nil, nil)
	last := got[len(got)-1].end
	p, _, err := parsePlace(last)
	if err != nil || p.off != end || end < 1<<32 {
		t.Errorf("the last transaction ends at %s (%v), want %d", last, err, end)
	}
	insert(w, 3, tb, 3, 30)
	point := []sdk.Point{{Position: sdk.Position{Format: positionFormat, Version: positionVersion, Source: []byte(last)}}}
	again := steps(t, Config{Files: sdk.Strings{path}}, point, nil)
	if len(again) != 1 || again[0].events[len(again[0].events)-1] != "insert t 3 30" {
		t.Errorf("behind %s: %+v", last, again)
	}
}

// TestB095NumbersOfFiles reads two files whose numbers have six and seven digits.
func TestB095NumbersOfFiles(t *testing.T) {
	dir, tb := t.TempDir(), pair("t", 1)
	write(t, dir, "mysql-bin.1000000", binlogtest.Options{}, func(w *binlogtest.Writer) { insert(w, 2, tb, 2, 20) })
	write(t, dir, "mysql-bin.999999", binlogtest.Options{}, func(w *binlogtest.Writer) {
		insert(w, 1, tb, 1, 10)
		w.Rotate("mysql-bin.1000000")
	})
	var got []string
	for _, s := range steps(t, Config{Files: sdk.Strings{filepath.Join(dir, "mysql-bin.*")}}, nil, nil) {
		p, _, _ := strings.Cut(s.end, ":")
		got = append(got, p+" "+s.events[len(s.events)-1])
	}
	if d := cmp.Diff([]string{"mysql-bin.999999 insert t 1 10", "mysql-bin.1000000 insert t 2 20"}, got); d != "" {
		t.Error(d)
	}
}

// TestCollations has the defaults that a table does not write: the layout names
// the character set and the collation all the same, by their present names.
func TestCollations(t *testing.T) {
	dir := samples(t)[0]
	for _, c := range []struct{ id, log, table, column, want string }{
		{"B039", "mysql97", "keyed.ci", "id", "utf8mb3/utf8mb3_general_ci"},
		{"B039", "mariadb1011-nolog", "keyed.ci", "id", "utf8mb3/utf8mb3_general_ci"},
		{"B040", "mysql97", "ddl.charset_default", "s", "latin1/latin1_swedish_ci"},
		{"B040", "mariadb1011", "ddl.charset_default", "s", "latin1/latin1_swedish_ci"},
	} {
		t.Run(c.id+" "+c.log+" "+c.table, func(t *testing.T) {
			got := ""
			err := collect(t, Config{Files: sdk.Strings{filepath.Join(dir, c.log+".0*")}, Tables: sdk.Strings{c.table}}, func(_ *batch.Tx, e *batch.Event) {
				if e.Kind == batch.Insert {
					col := e.Schema.Columns[e.Schema.Column(c.column)]
					got = col.Charset + "/" + col.Collation
				}
			})
			if got != c.want || err != nil {
				t.Errorf("got %s, %v, want %s", got, err, c.want)
			}
		})
	}
}
