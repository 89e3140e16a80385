package delivery_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/conformance/reference"
	"github.com/datalink-go/datalink/sdk/delivery"
)

// recorder notes what reaches a transactional writer.
type recorder struct {
	*reference.Transactional
	log *[]string
}

type recorderTx struct {
	sdk.Tx
	log *[]string
}

func (r recorder) Begin(ctx context.Context, lanes []int32) (sdk.Tx, error) {
	tx, err := r.Transactional.Begin(ctx, lanes)
	return recorderTx{tx, r.log}, err
}

func (r recorderTx) Apply(ctx context.Context, c *sdk.Changes) ([]sdk.RecordError, error) {
	for _, seg := range c.Segments {
		var words []string
		for i := range seg {
			words = append(words, describe(&seg[i]))
		}
		*r.log = append(*r.log, strings.Join(words, " | "))
	}
	return r.Tx.Apply(ctx, c)
}

func describe(c *sdk.Change) string {
	s := c.Op.String()
	if len(c.OldKey) > 0 {
		s += fmt.Sprintf(" %d>", c.OldKey[0])
	}
	if len(c.Key) > 0 {
		s += fmt.Sprintf(" %d", c.Key[0])
	}
	if c.After.IsZero() {
		return s
	}
	v, err := c.After.Values(nil)
	if err != nil {
		return err.Error()
	}
	for i := range v {
		switch {
		case v[i].State != batch.Present:
			s += " " + v[i].State.String()
		case c.Schema.Columns[i].Type == batch.String:
			s += " " + string(v[i].Bytes())
		case c.Schema.Key == nil || i != c.Schema.Key[0]:
			s += fmt.Sprintf(" %d", v[i].Int64())
		}
	}
	return s
}

func TestMerge(t *testing.T) {
	plain := keyed(1, "t")
	unique := keyed(2, "u")
	unique.Uniques = []batch.Index{{Name: "v", Columns: []int{1}}}
	folded := keyed(3, "f")
	folded.Uniques = []batch.Index{{Name: "v", Columns: []int{1}}}
	folded.Columns[1].Collation = "utf8mb4_0900_ai_ci"
	keyless := keyed(4, "k")
	keyless.Key, keyless.PrimaryKey = nil, false
	parent := keyed(5, "p")
	child := keyed(6, "c")
	child.ForeignKeys = []batch.ForeignKey{{Name: "p", Columns: []int{3}, RefTable: "p", RefColumns: []string{"id"}}}
	child.Columns = append(child.Columns, batch.Column{Name: "p", Type: batch.Int64, Flags: batch.Nullable})

	tests := []struct {
		name   string
		events func(s *source) []func()
		want   []string
	}{
		{"insert and update are an insert", func(s *source) []func() {
			return []func(){s.insert(plain, 1, "a", "x"), s.update(plain, vals(1, "a", "x"), vals(1, "b", "x"))}
		}, []string{"upsert 1 b x"}},
		{"insert and delete are a remove", func(s *source) []func() {
			return []func(){s.insert(plain, 1, "a", "x"), s.del(plain, 1, "a", "x")}
		}, []string{"remove 1"}},
		{"delete and insert replace", func(s *source) []func() {
			return []func(){s.del(plain, 1, "a", "x"), s.insert(plain, 1, "b", "y")}
		}, []string{"upsert 1 b y"}},
		{"delete and an insert without all columns are two segments", func(s *source) []func() {
			return []func(){s.del(plain, 1, "a", "x"), s.insert(plain, 1, "b", absent)}
		}, []string{"remove 1", "upsert 1 b absent"}},
		{"partial updates are overlaid", func(s *source) []func() {
			return []func(){s.update(plain, vals(1, absent, absent), vals(1, "b", absent)), s.update(plain, vals(1, absent, absent), vals(1, absent, "y"))}
		}, []string{"patch 1 b y"}},
		{"B083: absent is not NULL", func(s *source) []func() {
			return []func(){s.update(plain, vals(1, absent, absent), vals(1, nil, absent))}
		}, []string{"patch 1 null absent"}},
		{"unchanged columns come from a whole before image", func(s *source) []func() {
			return []func(){s.update(plain, vals(1, "a", "x"), vals(1, "b", unchanged))}
		}, []string{"upsert 1 b x"}},
		{"B074: insert and a partial update", func(s *source) []func() {
			return []func(){s.insert(plain, 1, "a", "x"), s.update(plain, vals(1, absent, absent), vals(1, absent, "y"))}
		}, []string{"upsert 1 a y"}},
		{"B085: an insert that leaves out columns keeps them absent", func(s *source) []func() {
			return []func(){s.insert(plain, 1, "a", absent)}
		}, []string{"upsert 1 a absent"}},
		{"B071: a chain of key changes", func(s *source) []func() {
			return []func(){
				s.update(plain, vals(3, "c", "x"), vals(4, "c", "x")), s.update(plain, vals(2, "b", "x"), vals(3, "b", "x")),
				s.update(plain, vals(1, "a", "x"), vals(2, "a", "x")),
			}
		}, []string{"upsert 3 b x | upsert 4 c x | upsert 2 a x | remove 1"}},
		{"B073: key change and insert of the old key", func(s *source) []func() {
			return []func(){s.update(plain, vals(1, "a", "x"), vals(2, "a", "x")), s.insert(plain, 1, "b", "y")}
		}, []string{"upsert 1 b y | upsert 2 a x"}},
		{"keys swapped by a third one", func(s *source) []func() {
			return []func(){
				s.update(plain, vals(1, "a", "x"), vals(9, "a", "x")), s.update(plain, vals(2, "b", "x"), vals(1, "b", "x")),
				s.update(plain, vals(9, "a", "x"), vals(2, "a", "x")),
			}
		}, []string{"upsert 1 b x | remove 9 | upsert 2 a x"}},
		{"keys swapped at once", func(s *source) []func() {
			return []func(){s.update(plain, vals(1, "a", "x"), vals(2, "a", "x")), s.update(plain, vals(2, "b", "x"), vals(1, "b", "x"))}
		}, []string{"upsert 1 b x | upsert 2 a x"}},
		{"a key that moves on and back", func(s *source) []func() {
			return []func(){s.update(plain, vals(1, "a", "x"), vals(2, "a", "x")), s.update(plain, vals(2, "a", "x"), vals(1, "c", "x"))}
		}, []string{"upsert 1 c x | remove 2"}},
		{"a key change without the whole row", func(s *source) []func() {
			return []func(){s.update(plain, vals(1, "a", absent), vals(2, "a", unchanged)), s.insert(plain, 1, "b", "y")}
		}, []string{"rekey 1> 2 a unchanged", "upsert 1 b y"}},
		{"B072: a unique value is freed before it is taken", func(s *source) []func() {
			return []func(){s.update(unique, vals(5, "k", "x"), vals(5, "m", "x")), s.insert(unique, 6, "k", "y"), s.insert(unique, 7, "z", "y")}
		}, []string{"upsert 5 m x", "upsert 6 k y | upsert 7 z y"}},
		{"no merge across what takes a value that is freed", func(s *source) []func() {
			return []func(){
				s.insert(unique, 1, "a", "x"), s.update(unique, vals(1, "a", "x"), vals(1, "b", "x")), s.insert(unique, 2, "a", "x"),
				s.update(unique, vals(1, "b", "x"), vals(1, "c", "x")), s.del(unique, 2, "a", "x"), s.update(unique, vals(1, "c", "x"), vals(1, "a", "x")),
			}
		}, []string{"upsert 1 b x", "remove 2 | upsert 1 c x", "upsert 1 a x"}},
		{"updates that keep the unique value stay together", func(s *source) []func() {
			return []func(){s.update(unique, vals(1, "a", "x"), vals(1, "a", "y")), s.insert(unique, 2, "b", "x"), s.update(unique, vals(1, "a", "y"), vals(1, "a", "z"))}
		}, []string{"upsert 1 a z | upsert 2 b x"}},
		{"B070: equal values in different unique keys do not tie", func(s *source) []func() {
			return []func(){s.insert(unique, 1, "a", "b"), s.insert(unique, 2, "b", "a")}
		}, []string{"upsert 1 a b | upsert 2 b a"}},
		{"NULL is not a unique value", func(s *source) []func() {
			return []func(){s.insert(unique, 1, nil, "b"), s.insert(unique, 2, nil, "a")}
		}, []string{"upsert 1 null b | upsert 2 null a"}},
		{"an unknown old value is tied to every new one", func(s *source) []func() {
			return []func(){s.del(unique, 1, absent, absent), s.del(unique, 2, absent, absent), s.insert(unique, 3, "q", "x")}
		}, []string{"remove 1 | remove 2", "upsert 3 q x"}},
		{"values equal under a collation", func(s *source) []func() {
			return []func(){s.del(folded, 1, "Ab", "x"), s.insert(folded, 2, "aB ", "y"), s.insert(folded, 3, "q", "y"), s.insert(folded, 4, "\u00e9", "y")}
		}, []string{"remove 1", "upsert 2 aB  y | upsert 3 q y", "upsert 4 \u00e9 y"}},
		{"keyless rows are not merged", func(s *source) []func() {
			return []func(){
				s.insert(keyless, 1, "a", "x"), s.insert(keyless, 1, "a", "x"),
				s.update(keyless, vals(1, "a", "x"), vals(1, "b", "x")), s.del(keyless, 1, "a", "x"), s.insert(keyless, 1, "c", "x"),
			}
		}, []string{"append 1 a x | append 1 a x", "match-patch 1 b x", "match-remove", "append 1 c x"}},
		{"parents come before children", func(s *source) []func() {
			return []func(){s.insert(child, 8, "n", "x", nil), s.insert(parent, 1, "a", "x"), s.insert(parent, 2, "a", "x"), s.insert(child, 1, "a", "x", 1), s.insert(child, 2, "a", "x", 1), s.del(child, 1, "a", "x", 1)}
		}, []string{"upsert 8 n x null | upsert 1 a x | upsert 2 a x", "remove 1 | upsert 2 a x 1"}},
		{"truncate is a barrier", func(s *source) []func() {
			return []func(){s.insert(plain, 1, "a", "x"), func() { s.must(s.b.Truncate(plain)) }, s.insert(plain, 1, "b", "x")}
		}, []string{"upsert 1 a x", "truncate", "upsert 1 b x"}},
		{"a snapshot range names the keys it had", func(s *source) []func() {
			return []func(){
				s.row(batch.Read, plain, nil, vals(1, "a", "x")), s.row(batch.Read, plain, nil, vals(2, "b", "x")),
				func() { s.must(s.b.KeyRange(plain, &batch.KeyRange{Last: true})) },
			}
		}, []string{"upsert 1 a x | upsert 2 b x", "reconcile"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSource(t)
			s.tx(nil, tt.events(s)...)
			var log []string
			db := reference.NewDatabase()
			if _, err := deliver(t, recorder{reference.NewTransactional(loose(db)), &log}, delivery.Config{}, execution(), s.block()); err != nil && sdk.AsFault(err).Code == sdk.CodeInternal {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, log); d != "" {
				t.Errorf("segments (-want +got):\n%s", d)
			}
		})
	}
}

// loose makes a database shuffle what is in a segment.
func loose(db *reference.Database) *reference.Database {
	db.Shuffle = rand.New(rand.NewPCG(1, 2))
	return db
}
