package snapshot

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/mysql/alltypes"
	"github.com/datalink-go/datalink/plugins/mysql/internal/rows"
	"github.com/datalink-go/datalink/sdk/batch"
)

// TestSameValues writes each value of each type before the snapshot and after it:
// what comes by the snapshot and what comes by the log must be the same, byte by
// byte. The servers' zones are not UTC.
func TestSameValues(t *testing.T) {
	for _, c := range []struct {
		kind string
		is   alltypes.Server
	}{{"mysql", alltypes.MySQL}, {"mariadb", alltypes.MariaDB}} {
		t.Run(c.kind, func(t *testing.T) {
			srv := stack.Start(t, c.kind, "--default-time-zone=+05:30")
			srv.SQL(alltypes.Create(c.is), "--default-character-set=utf8mb4")
			srv.SQL(alltypes.Insert(c.is, 1), "--default-character-set=utf8mb4")
			s := newStream(t, srv)
			s.wants = func(db, _ string) bool { return db == "alltypes" }
			conn, err := dialTest(t.Context(), srv)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			s.w = New(Config{Options: Options{Parallel: 2, StatementTimeout: time.Minute}, All: true}, s, nil)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			began := time.Now()
			s.w.Start(t.Context())
			defer s.w.Close()
			if s.defs, err = dial(ctx, s, &s.w.cfg); err != nil {
				t.Fatal(err)
			}
			defer s.defs.Close()
			if err := s.run(ctx, func() bool { return !s.w.Active() }); err != nil {
				t.Fatalf("%v\n%s", err, s.w.dump())
			}
			took := time.Since(began).Round(time.Millisecond)
			srv.SQL(alltypes.Insert(c.is, 1001), "--default-character-set=utf8mb4")
			s.catchUp(ctx)
			compared := 0
			for name, tab := range s.model.tables {
				compared += sameRows(t, name, tab)
				sameColumns(t, name, s.model.schema[name])
			}
			t.Logf("%d rows of %d tables compared, snapshot after %s", compared, len(s.model.tables), took)
			if want := len(alltypes.Cases(c.is)); len(s.model.tables) < want {
				t.Errorf("%d tables, want %d", len(s.model.tables), want)
			}
		})
	}
}

// sameRows compares the rows 1… with 1001….
func sameRows(t *testing.T, name string, tab map[string]string) (compared int) {
	for key, row := range tab {
		id := binary.LittleEndian.Uint32([]byte(key))
		if id > 1000 {
			continue
		}
		compared++
		later, ok := tab[string(binary.LittleEndian.AppendUint32(nil, id+1000))]
		if !ok {
			t.Errorf("%s: row %d did not come by the log", name, id+1000)
			continue
		}
		_, a, _ := strings.Cut(row, "|")
		_, b, _ := strings.Cut(later, "|")
		if name == "alltypes.serial" || name == "alltypes.timestamp_up" {
			continue // unique values, and the time of the write
		}
		if a != b {
			t.Errorf("%s, row %d:\n  snapshot %.200q\n  log      %.200q", name, id, a, b)
		}
	}
	if 2*compared != len(tab) {
		t.Errorf("%s: %d rows, %d came by the snapshot", name, len(tab), compared)
	}
	return compared
}

func sameColumns(t *testing.T, name string, schemas map[uint32]*batch.Schema) {
	var first *batch.Schema
	for _, s := range schemas {
		if first == nil {
			first = s
			continue
		}
		if !rows.Alike(first, s) {
			t.Errorf("%s: snapshot and log do not agree on its columns:\n  %s\n  %s", name, columnsText(first), columnsText(s))
		}
	}
}

func columnsText(s *batch.Schema) string {
	var out []string
	for i := range s.Columns {
		c := &s.Columns[i]
		out = append(out, fmt.Sprintf("%d: %s %s %s/%s %d,%d %v flags %d", s.ID, c.Name, c.Type, c.Charset, c.Collation, c.Precision, c.Scale, c.Values, c.Flags))
	}
	return strings.Join(out, "; ") + fmt.Sprint(s.Key)
}
