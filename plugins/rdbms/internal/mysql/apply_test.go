package mysql

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/rowtest"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

func init() {
	suite["operations"] = operations
	suite["a hit on another unique key"] = otherUnique
	suite["records that cannot be written are named"] = namedRecords
	suite["keys of several columns"] = compositeKeys
	suite["keyless tables"] = keylessTables
	suite["ranges of a snapshot"] = ranges
	suite["foreign keys and cascades"] = cascades
	suite["a batch of several packets"] = largeBatch
}

func patch(t *testing.T, op sdk.Op, s *batch.Schema, before, after []any) sdk.Change {
	return rowtest.Change(t, op, s, before, after)
}

func operations(t *testing.T, s *testServer) {
	db, k := s.database(t), rowtest.Keyed()
	a := s.writer(t, db, nil)
	claim(t, a, execution("a", 1))
	n := uint64(0)
	run := func(changes ...sdk.Change) error {
		err := write(a, next(0, n+1), changes...)
		if err == nil {
			n++
		}
		return err
	}
	v := rowtest.Vals
	un, ab := rowtest.Unchanged, rowtest.Absent
	rowtest.Must(t, run(insert(t, k, 1, "a", 1), insert(t, k, 2, "b", nil), insert(t, k, 3, nil, 3)))
	rowtest.Must(t, run(insert(t, k, 2, "B", 2), remove(t, k, 3, nil, 3), remove(t, k, 99, nil, 3)))
	expect(t, s, db, "SELECT * FROM t ORDER BY id", "1 a 1", "2 B 2")
	rowtest.Must(t, run(patch(t, sdk.Patch, k, v(1, "a", 1), v(1, un, 7)), patch(t, sdk.Patch, k, v(2, ab, ab), v(2, nil, ab))))
	expect(t, s, db, "SELECT * FROM t ORDER BY id", "1 a 7", "2 NULL 2")
	err := run(patch(t, sdk.Patch, k, v(9, "a", 1), v(9, un, 7)))
	if !errors.Is(err, &sdk.Fault{Code: sdk.CodeMissingRow}) {
		t.Errorf("patch of a missing row: got %v", err)
	}
	rowtest.Must(t, run(patch(t, sdk.Patch, k, v(9, "a", 1), v(9, "n", 7))))
	rowtest.Must(t, run(patch(t, sdk.Rekey, k, v(1, "a", 7), v(11, un, 8))))
	expect(t, s, db, "SELECT * FROM t ORDER BY id", "2 NULL 2", "9 n 7", "11 a 8")
	// The same again: the row has moved already.
	rowtest.Must(t, run(patch(t, sdk.Rekey, k, v(1, "a", 7), v(11, un, 8))))
	rowtest.Must(t, run(insert(t, k, 5, "quo'te\\ \x00\n\r\x1a \u00e9 \U0001F600", 1)))
	if got := s.rows(db, "SELECT HEX(v) FROM t WHERE id = 5"); len(got) != 1 || got[0] != fmt.Sprintf("%X", "quo'te\\ \x00\n\r\x1a \u00e9 \U0001F600") {
		t.Errorf("a text with special characters became %v", got)
	}
	rowtest.Must(t, run(sdk.Change{Op: sdk.Truncate, Schema: k}))
	expect(t, s, db, "SELECT COUNT(*) FROM t", "0")
}

// otherUnique: an insert that meets another row in a key beside its own changes
// neither.
func otherUnique(t *testing.T, s *testServer) {
	db, k := s.database(t), rowtest.Keyed()
	s.SQL("CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR(40), n INT, UNIQUE (n))", db)
	a := s.writer(t, db, nil)
	claim(t, a, execution("a", 1))
	cons, err := a.Prepare(bg, k)
	rowtest.Must(t, err)
	if d := cmp.Diff([]batch.Index{{Name: "n", Columns: []int{2}}}, cons.Uniques); d != "" {
		t.Error(d)
	}
	rowtest.Must(t, write(a, next(0, 1), insert(t, k, 1, "a", 1), insert(t, k, 2, "b", 2), insert(t, k, 3, "c", nil), insert(t, k, 4, "c", nil)))
	for name, c := range map[string]sdk.Change{
		"a new row with a value that another one has": insert(t, k, 5, "x", 1),
		"a row that takes the value of another one":   insert(t, k, 2, "x", 1),
		"a change of columns that does":               patch(t, sdk.Patch, k, rowtest.Vals(2, "b", 2), rowtest.Vals(2, rowtest.Unchanged, 1)),
	} {
		if err := write(a, next(0, 2), insert(t, k, 6, "y", 6), c); !errors.Is(err, &sdk.Fault{Code: sdk.CodeConflict}) {
			t.Errorf("%s: got %v, want %s", name, err, sdk.CodeConflict)
		}
		expect(t, s, db, "SELECT * FROM t ORDER BY id", "1 a 1", "2 b 2", "3 c NULL", "4 c NULL")
	}
	rowtest.Must(t, write(a, next(0, 2), insert(t, k, 1, "A", 1), insert(t, k, 2, "B", 3)))
	expect(t, s, db, "SELECT * FROM t WHERE id < 3 ORDER BY id", "1 A 1", "2 B 3")
}

func namedRecords(t *testing.T, s *testServer) {
	db, k := s.database(t), rowtest.Keyed()
	s.SQL("CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR(40), n INT, UNIQUE (n))", db)
	a := s.writer(t, db, nil)
	claim(t, a, execution("a", 1))
	rowtest.Must(t, write(a, next(0, 1), insert(t, k, 1, "a", 1), insert(t, k, 2, "b", 2)))
	tx, err := a.Begin(bg, []int32{0})
	rowtest.Must(t, err)
	rowtest.Must(t, tx.Fence(bg, []sdk.Next{next(0, 2)}))
	bad, err := tx.Apply(bg, &sdk.Changes{Segments: [][]sdk.Change{
		{insert(t, k, 10, "a", 10)},
		{insert(t, k, 11, "a", 11), insert(t, k, 12, "a", 1), insert(t, k, 13, "a", 13), insert(t, k, 14, "a", 2), patch(t, sdk.Patch, k, rowtest.Vals(77, nil, 1), rowtest.Vals(77, rowtest.Unchanged, 1))},
		{insert(t, k, 15, "a", 1)},
	}})
	rowtest.Must(t, err)
	var got []int
	for _, b := range bad {
		got = append(got, b.Index)
	}
	if d := cmp.Diff([]int{2, 4, 5}, got); d != "" {
		t.Error(d)
	}
	rowtest.Must(t, tx.Rollback(bg))
	expect(t, s, db, "SELECT COUNT(*) FROM t", "2")
}

func compositeKeys(t *testing.T, s *testServer) {
	db := s.database(t)
	k := &batch.Schema{ID: 1, Namespace: "", Table: "odd `name`", Key: []int{2, 0}, PrimaryKey: true, Columns: []batch.Column{
		{Name: "select", Type: batch.Int32}, {Name: "a b", Type: batch.String, Length: 20, Flags: batch.Nullable}, {Name: "k.2", Type: batch.String, Length: 20},
	}}
	a := s.writer(t, db, nil)
	claim(t, a, execution("a", 1))
	var all []sdk.Change
	for i := range 600 {
		all = append(all, insert(t, k, i%3, "v", fmt.Sprint("k", i/3)))
	}
	rowtest.Must(t, write(a, next(0, 1), all...))
	var some []sdk.Change
	for i := range 600 {
		if i%2 == 0 {
			some = append(some, remove(t, k, i%3, "v", fmt.Sprint("k", i/3)))
		}
	}
	rowtest.Must(t, write(a, next(0, 2), some...))
	expect(t, s, db, "SELECT COUNT(*), SUM(`select`) FROM `odd ``name```", "300 300")
	// A key differs from another one by case and trailing blanks alone.
	rowtest.Must(t, write(a, next(0, 3), insert(t, k, 0, "x", "K"), insert(t, k, 0, "y", "k"), insert(t, k, 0, "z", "k ")))
	rowtest.Must(t, write(a, next(0, 4), remove(t, k, 0, "y", "k")))
	expect(t, s, db, "SELECT HEX(`k.2`) FROM `odd ``name``` WHERE `k.2` IN ('k','K','k ') ORDER BY 1", "4B", "6B20")
}

func keylessTables(t *testing.T, s *testServer) {
	k, v := rowtest.Keyless(), rowtest.Vals
	db := s.database(t)
	a := s.writer(t, db, nil)
	claim(t, a, execution("a", 1))
	if _, err := a.Prepare(bg, k); !errors.Is(err, &sdk.Fault{Code: sdk.CodeRefused}) {
		t.Errorf("refuse: got %v", err)
	}
	add := func(vals ...any) sdk.Change { return rowtest.Change(t, sdk.Append, k, nil, vals) }
	b := s.writer(t, db, func(c *Config) { c.Keyless = target.Append })
	claim(t, b, execution("b", 2))
	rowtest.Must(t, write(b, next(0, 1), add(1, "x"), add(1, "x"), add(nil, nil)))
	expect(t, s, db, "SELECT * FROM log", "1 x", "1 x", "NULL NULL")
	gone := rowtest.Change(t, sdk.MatchRemove, k, v(1, "x"), nil)
	if err := write(b, next(0, 2), gone); !errors.Is(err, &sdk.Fault{Code: sdk.CodeRefused}) {
		t.Errorf("append: got %v", err)
	}
	c := s.writer(t, db, func(c *Config) { c.Keyless = target.FullRowMatch })
	claim(t, c, execution("c", 3))
	rowtest.Must(t, write(c, next(0, 2), gone, rowtest.Change(t, sdk.MatchPatch, k, v(nil, nil), v(2, "X"))))
	expect(t, s, db, "SELECT * FROM log ORDER BY a", "1 x", "2 X")
	rowtest.Must(t, write(c, next(0, 3), rowtest.Change(t, sdk.MatchRemove, k, v(2, "x"), nil))) // another row
	expect(t, s, db, "SELECT * FROM log ORDER BY a", "1 x", "2 X")
	if err := write(c, next(0, 4), rowtest.Change(t, sdk.MatchPatch, k, v(2, "x"), v(3, "X"))); !errors.Is(err, &sdk.Fault{Code: sdk.CodeMissingRow}) {
		t.Errorf("match of a missing row: got %v", err)
	}
}

func ranges(t *testing.T, s *testServer) {
	db, k := s.database(t), rowtest.Keyed()
	a := s.writer(t, db, nil)
	claim(t, a, execution("a", 1))
	var all []sdk.Change
	for i := range 10 {
		all = append(all, insert(t, k, i, "v", i))
	}
	rowtest.Must(t, write(a, next(0, 1), all...))
	key := func(id int) []byte { return insert(t, k, id, "", 0).Key }
	for i, c := range []struct {
		lo, hi []byte
		seen   [][]byte
		want   string
	}{
		{key(1), key(4), [][]byte{key(3)}, "0,1,3,5,6,7,8,9"},
		{key(8), nil, nil, "0,1,3,5,6,7,8"},
		{nil, key(3), [][]byte{key(1)}, "1,5,6,7,8"},
		{nil, nil, [][]byte{key(5), key(8)}, "5,8"},
	} {
		rowtest.Must(t, write(a, next(0, uint64(i+2)), sdk.Change{Op: sdk.Reconcile, Schema: k, Range: &batch.KeyRange{Lo: c.lo, Hi: c.hi}, Seen: c.seen}))
		expect(t, s, db, "SELECT GROUP_CONCAT(id ORDER BY id) FROM t", c.want)
	}
}

func cascades(t *testing.T, s *testServer) {
	db := s.database(t)
	parent, child := rowtest.Keyed(), rowtest.Keyed()
	parent.Table, child.Table, child.ID = "parent", "child", 2
	s.SQL("CREATE TABLE parent (id BIGINT PRIMARY KEY, v VARCHAR(40), n INT);"+
		"CREATE TABLE child (id BIGINT PRIMARY KEY, v VARCHAR(40), n BIGINT, CONSTRAINT c1 FOREIGN KEY (n) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE)", db)
	a := s.writer(t, db, nil)
	claim(t, a, execution("a", 1))
	pc, err := a.Prepare(bg, parent)
	rowtest.Must(t, err)
	cc, err := a.Prepare(bg, child)
	rowtest.Must(t, err)
	if !pc.Referenced || len(cc.ForeignKeys) != 1 || cc.ForeignKeys[0].RefTable != "parent" || cc.ForeignKeys[0].RefSchema != "" || cc.ForeignKeys[0].OnDelete != "CASCADE" {
		t.Errorf("got %+v and %+v, want the foreign key on both sides", pc, cc)
	}
	rowtest.Must(t, write(a, next(0, 1), insert(t, parent, 1, "p", 1), insert(t, parent, 2, "p", 1)))
	rowtest.Must(t, write(a, next(0, 2), insert(t, child, 1, "c", 1), insert(t, child, 2, "c", 2)))
	rowtest.Must(t, write(a, next(0, 3), patch(t, sdk.Rekey, parent, rowtest.Vals(1, "p", 1), rowtest.Vals(7, "p", 1))))
	expect(t, s, db, "SELECT id, n FROM child ORDER BY id", "1 7", "2 2")
	rowtest.Must(t, write(a, next(0, 4), remove(t, parent, 7, "p", 1)))
	expect(t, s, db, "SELECT id, n FROM child ORDER BY id", "2 2")
	if err := write(a, next(0, 5), insert(t, child, 3, "c", 99)); !errors.Is(err, &sdk.Fault{Code: sdk.CodeConflict}) {
		t.Errorf("a child without its parent: got %v, want %s", err, sdk.CodeConflict)
	}
}

func largeBatch(t *testing.T, s *testServer) {
	db, k := s.database(t), rowtest.Keyed()
	k.Columns[1].Length = 0
	a := s.writer(t, db, nil)
	claim(t, a, execution("a", 1))
	var all []sdk.Change
	for i := range 9000 {
		all = append(all, insert(t, k, i, fmt.Sprintf("%0100d", i), i))
	}
	all = append(all, insert(t, k, 9000, string(make([]byte, 3<<20)), 1))
	rowtest.Must(t, write(a, next(0, 1), all...))
	expect(t, s, db, "SELECT COUNT(*), SUM(n), MAX(LENGTH(v)) FROM t", "9001 40495501 3145728")
	for i := range all {
		all[i] = remove(t, k, i, "", 0)
	}
	rowtest.Must(t, write(a, next(0, 2), all...))
	expect(t, s, db, "SELECT COUNT(*) FROM t", "0")
}
