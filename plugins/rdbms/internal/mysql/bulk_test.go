package mysql

import (
	"fmt"
	"testing"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/rowtest"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

func init() { suite["rows of a snapshot in bulk"] = bulkLoad }

// bulkLoad: rows come by LOAD DATA, with every byte they had; rows that are there
// already are written over all the same.
func bulkLoad(t *testing.T, s *testServer) {
	s.SQL("SET GLOBAL local_infile = 1")
	db, k := s.database(t), rowtest.Keyed()
	k.Columns = append(k.Columns, batch.Column{Name: "b", Type: batch.Bytes, Length: 300}, batch.Column{Name: "d", Type: batch.DateTime, Scale: 6})
	a := s.writer(t, db, nil)
	claim(t, a, execution("a", 1))
	rowsOf := func(gen int) []sdk.Change {
		var out []sdk.Change
		for i := range 3000 {
			var b []byte
			for c := range 256 {
				b = append(b, byte(c+i))
			}
			v := any(fmt.Sprintf("tab\tline\nback\\slash 'é' %d %d", i, gen))
			if i%7 == 0 {
				v = nil
			}
			c := insert(t, k, i, v, gen, b, civil(2026, 1, 1, 0, 0, 0, i))
			c.Kind = batch.Read
			out = append(out, c)
		}
		return out
	}
	check := func(gen int) {
		expect(t, s, db, fmt.Sprintf("SELECT COUNT(*), SUM(v = CONCAT('tab\\tline\\nback\\\\slash \\'é\\' ', id, ' %d')), SUM(v IS NULL), SUM(n = %[1]d), SUM(LENGTH(b)), COUNT(DISTINCT d) FROM t", gen),
			"3000 2571 429 3000 768000 3000")
		expect(t, s, db, "SELECT LEFT(HEX(b), 24) FROM t WHERE id IN (0, 9, 92) ORDER BY id", "000102030405060708090A0B", "090A0B0C0D0E0F1011121314", "5C5D5E5F6061626364656667")
	}
	rowtest.Must(t, write(a, next(0, 1), rowsOf(1)...))
	check(1)
	loaded := a.cfg.Stats.Statements.Load()
	if loaded != 1 {
		t.Errorf("took %d statements, want one LOAD DATA", loaded)
	}
	rowtest.Must(t, write(a, next(0, 2), rowsOf(2)...))
	check(2)
	if a.lanes[0].a.misses == nil {
		t.Error("rows that were there already went unnoticed")
	}
}
