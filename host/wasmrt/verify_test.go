package wasmrt

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/sdk/batch"
)

// rebuild copies a block and lets change do something else for single events or
// entries. It returns whether it did all there is to do for the event.
type rebuild struct {
	tx     func(i int, t *batch.Tx)
	event  func(b *batch.Builder, i int, e *batch.Event) bool
	schema func(s *batch.Schema) *batch.Schema
}

func (r rebuild) run(tb testing.TB, block []byte) []byte {
	tb.Helper()
	var in batch.Block
	if err := in.Decode(block, batch.NewRegistry(), batch.Limits{}); err != nil {
		tb.Fatal(err)
	}
	b := batch.NewBuilder(batch.Limits{})
	for i, t := range in.Txs {
		n := t.First + t.Count
		first := t.First
		if r.tx != nil {
			r.tx(i, &t)
		}
		if err := b.BeginTx(t); err != nil {
			tb.Fatal(err)
		}
		for j := first; j < n; j++ {
			var e batch.Event
			if err := in.Event(j, &e); err != nil {
				tb.Fatal(err)
			}
			b.HoldOrdinal(e.Ordinal)
			if r.schema != nil && e.Schema != nil {
				e.Schema = r.schema(e.Schema)
			}
			if r.event != nil && r.event(b, j, &e) {
				continue
			}
			if err := b.CopyEvent(&e); err != nil {
				tb.Fatal(err)
			}
		}
		if err := b.EndTx(t.Ends, t.Start, t.End); err != nil {
			tb.Fatal(err)
		}
	}
	data, err := b.Finish()
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// put writes a row with an after image of these values, or others by change.
func put(tb testing.TB, b *batch.Builder, k batch.Kind, s *batch.Schema, im batch.Image, change func(i int) bool) {
	tb.Helper()
	v, err := im.Values(nil)
	if err != nil {
		tb.Fatal(err)
	}
	if err := b.BeginRow(k, s); err != nil {
		tb.Fatal(err)
	}
	b.BeginImage(batch.AfterImage)
	for i := range v {
		if change == nil || !change(i) {
			b.PutValue(&v[i])
		}
	}
	b.EndImage()
	if err := b.EndRow(); err != nil {
		tb.Fatal(err)
	}
}

func TestVerifier(t *testing.T) {
	s, o := customers(1), orders(2)
	in := sample(t, s, o, 20)
	isRow := func(e *batch.Event) bool { return e.Schema != nil && e.Schema.ID == 1 && e.Kind.IsRow() }
	insert := func(e *batch.Event) bool { return isRow(e) && e.Kind == batch.Insert }
	event := func(f func(b *batch.Builder, i int, e *batch.Event) bool) []byte { return rebuild{event: f}.run(t, in) }
	entry := func(f func(i int, t *batch.Tx)) []byte { return rebuild{tx: f}.run(t, in) }
	// Rows of one kind become another, whatever images they have.
	kinds := func(from, to batch.Kind) []byte {
		var b batch.Block
		if err := b.Decode(bytes.Clone(in), batch.NewRegistry(), batch.Limits{}); err != nil {
			t.Fatal(err)
		}
		for i := range b.Len() {
			var e batch.Event
			if err := b.Event(i, &e); err != nil {
				t.Fatal(err)
			}
			if isRow(&e) && e.Kind == from {
				e.Raw()[0] = byte(to)
			}
		}
		return b.Bytes()
	}
	for _, c := range []struct {
		name string
		out  []byte
		want string // "" = passes
	}{
		{"as it came", in, ""},
		{"all rows dropped", event(func(_ *batch.Builder, _ int, e *batch.Event) bool { return isRow(e) }), ""},
		{"rows twice", event(func(b *batch.Builder, _ int, e *batch.Event) bool {
			if isRow(e) {
				if err := b.CopyEvent(e); err != nil {
					t.Fatal(err)
				}
			}
			return false
		}), ""},
		{"insert for read", event(func(b *batch.Builder, _ int, e *batch.Event) bool {
			if isRow(e) && e.Kind == batch.Read {
				put(t, b, batch.Insert, e.Schema, e.After, nil)
				return true
			}
			return false
		}), ""},
		{"other position", entry(func(i int, tx *batch.Tx) { tx.End = bytes.ReplaceAll(tx.End, []byte("2"), []byte("3")) }), "entry 1: positions"},
		{"position gone", entry(func(i int, tx *batch.Tx) { tx.End = nil }), "entry 0: positions"},
		{"start position", entry(func(i int, tx *batch.Tx) {
			if i == 2 {
				tx.Start = []byte("x")
			}
		}), "entry 2: positions"},
		{"other id", entry(func(i int, tx *batch.Tx) { tx.ID += "x" }), "entry 0"},
		{"begins", entry(func(i int, tx *batch.Tx) { tx.Begins = true }), "entry 0"},
		{"ends", entry(func(i int, tx *batch.Tx) { tx.Ends = true }), "entry 2"},
		{"entry's ordinal", entry(func(i int, tx *batch.Tx) { tx.Ordinal++ }), "entry 0"},
		{"commit time", entry(func(i int, tx *batch.Tx) { tx.Committed++ }), "entry 0"},
		{"coverage", entry(func(i int, tx *batch.Tx) {
			if i == 1 {
				tx.Covers = slices.Clone(tx.Covers)
				tx.Covers[1].Upto++
			}
		}), "entry 1"},
		{"coverage gone", entry(func(i int, tx *batch.Tx) { tx.Covers = nil }), "entry 1"},
		{"other table's row gone", event(func(_ *batch.Builder, _ int, e *batch.Event) bool {
			return e.Schema != nil && e.Schema.ID == 2 && e.Kind.IsRow()
		}), "is not to be transformed"},
		{"truncate gone", event(func(_ *batch.Builder, _ int, e *batch.Event) bool { return e.Kind == batch.Truncate }), "missing"},
		{"state gone", event(func(_ *batch.Builder, _ int, e *batch.Event) bool { return e.Kind == batch.State }), "changed or moved"},
		{"heartbeat changed", event(func(b *batch.Builder, _ int, e *batch.Event) bool {
			return e.Kind == batch.Heartbeat && b.Heartbeat(1) == nil
		}), "changed or moved"},
		{"origin last gone", event(func(_ *batch.Builder, _ int, e *batch.Event) bool { return e.Kind == batch.DDL }), "missing"},
		{"other table's row twice", event(func(b *batch.Builder, _ int, e *batch.Event) bool {
			if e.Schema != nil && e.Schema.ID == 2 && e.Kind.IsRow() {
				_ = b.CopyEvent(e)
			}
			return false
		}), "changed or moved"},
		{"ordinals counted on", event(func(b *batch.Builder, _ int, e *batch.Event) bool {
			if insert(e) {
				b.HoldOrdinal(e.Ordinal + 1)
				put(t, b, e.Kind, e.Schema, e.After, nil)
				return true
			}
			return false
		}), "event"},
		{"row of another table", event(func(b *batch.Builder, _ int, e *batch.Event) bool {
			if insert(e) {
				if err := b.BeginRow(batch.Insert, o); err != nil {
					t.Fatal(err)
				}
				b.BeginImage(batch.AfterImage)
				b.PutInt(1)
				b.PutString("x")
				b.EndImage()
				if err := b.EndRow(); err != nil {
					t.Fatal(err)
				}
				return true
			}
			return false
		}), "event"},
		{"other layout", rebuild{schema: func(s *batch.Schema) *batch.Schema {
			if s.ID == 1 {
				s = s.Clone()
				s.Columns[1].Name = "nick"
			}
			return s
		}}.run(t, in), "schema 1 has another layout"},
		{"other table's layout", rebuild{schema: func(s *batch.Schema) *batch.Schema {
			if s.ID == 2 {
				s = s.Clone()
				s.Table = "x"
			}
			return s
		}}.run(t, in), "schema 2 has another layout"},
		{"new schema", event(func(b *batch.Builder, _ int, e *batch.Event) bool {
			_ = b.Define(orders(77))
			return false
		}), "defines schema 77"},
		{"insert with a before image", kinds(batch.Delete, batch.Insert), "insert"},
		{"delete with an after image", kinds(batch.Insert, batch.Delete), "delete"},
		{"update without an after image", kinds(batch.Delete, batch.Update), "update"},
		{"no decimal", event(func(b *batch.Builder, _ int, e *batch.Event) bool {
			if insert(e) {
				put(t, b, e.Kind, e.Schema, e.After, func(i int) bool {
					if i == 2 {
						b.PutString("0) OR (1=1")
					}
					return i == 2
				})
				return true
			}
			return false
		}), "column amount: not a value of type decimal"},
		{"no UTF-8", event(func(b *batch.Builder, _ int, e *batch.Event) bool {
			if insert(e) {
				put(t, b, e.Kind, e.Schema, e.After, func(i int) bool {
					if i == 1 {
						b.PutString("\xff")
					}
					return i == 1
				})
				return true
			}
			return false
		}), "column name: not a value of type string"},
		{"empty", nil, "header"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v Verifier
			v.Expect(s, s)
			v.Pass(o)
			if _, err := v.Input(in, []uint32{1}); err != nil {
				t.Fatal(err)
			}
			err := v.Output(c.out)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

// A key that is not that of the values is refused: writers place rows by it.
func TestVerifierKeys(t *testing.T) {
	s, o := customers(1), orders(2)
	in := sample(t, s, o, 20)
	var b batch.Block
	if err := b.Decode(in, batch.NewRegistry(), batch.Limits{}); err != nil {
		t.Fatal(err)
	}
	keys := 0
	for i := range b.Len() {
		var e batch.Event
		if err := b.Event(i, &e); err != nil {
			t.Fatal(err)
		}
		for _, k := range [][]byte{e.Key, e.OldKey} {
			if len(k) == 0 {
				continue
			}
			at := bytes.Index(in, e.Raw()) + bytes.LastIndex(e.Raw(), k)
			for _, change := range []byte{1, 0x80} {
				out := bytes.Clone(in)
				out[at] ^= change
				var v Verifier
				v.Expect(s, s)
				if _, err := v.Input(in, []uint32{1}); err != nil {
					t.Fatal(err)
				}
				if err := v.Output(out); err == nil || !strings.Contains(err.Error(), "key bytes") {
					t.Errorf("event %d, %s: a changed key passes: %v", i, e.Kind, err)
				}
				keys++
			}
		}
	}
	if keys < 40 {
		t.Errorf("only %d keys tried", keys)
	}
}

// Dropped tables, other layouts, and definitions that came with earlier blocks.
func TestVerifierLayouts(t *testing.T) {
	s, o := customers(1), orders(2)
	in := sample(t, s, o, 20)
	narrow := s.Clone()
	narrow.Columns = narrow.Columns[:2]
	var v Verifier
	v.Expect(s, narrow)
	v.Pass(o)
	out := rebuild{
		schema: func(s *batch.Schema) *batch.Schema {
			if s.ID == 1 {
				return narrow
			}
			return s
		},
		event: func(b *batch.Builder, _ int, e *batch.Event) bool {
			if e.Schema != narrow || !e.Kind.IsRow() {
				return false
			}
			im := e.After
			if e.Kind == batch.Delete {
				im = e.Before
			}
			vals, err := im.Values(nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.BeginRow(batch.Read, narrow); err != nil {
				t.Fatal(err)
			}
			b.BeginImage(batch.AfterImage)
			b.PutValue(&vals[0])
			b.PutString("x")
			b.EndImage()
			return b.EndRow() == nil
		},
	}.run(t, in)
	if _, err := v.Input(in, []uint32{1}); err != nil {
		t.Fatal(err)
	}
	if err := v.Output(out); err != nil {
		t.Errorf("narrow: %v", err)
	}
	// Rows that keep the old layout do not fit the new one.
	if err := v.Output(in); err == nil {
		t.Error("the old layout passes")
	}
	// The next block of the stream comes without definitions.
	bare := withoutDefinitions(in)
	whole, err := v.Input(bare, []uint32{1})
	if err != nil {
		t.Fatal(err)
	}
	var b batch.Block
	if err := b.Decode(whole, batch.NewRegistry(), batch.Limits{}); err != nil || len(b.Definitions()) != 2 {
		t.Fatalf("completed block: %v, definitions %v", err, b.Definitions())
	}
	if err := v.Output(out); err != nil {
		t.Errorf("without definitions: %v", err)
	}
	if err := v.Output(withoutDefinitions(out)); err == nil || !strings.Contains(err.Error(), "does not define") {
		t.Errorf("a result without definitions: %v", err)
	}
	// Dropped: rows, truncates and ranges of the table.
	v.Expect(s, nil)
	dropped := rebuild{event: func(_ *batch.Builder, _ int, e *batch.Event) bool { return e.Schema != nil && e.Schema.ID == 1 }}.run(t, in)
	if _, err := v.Input(in, []uint32{1}); err != nil {
		t.Fatal(err)
	}
	if err := v.Output(dropped); err != nil {
		t.Errorf("dropped: %v", err)
	}
	if err := v.Output(in); err == nil {
		t.Error("rows of a dropped table pass")
	}
	// A stream that was opened anew uses the id for another table.
	other := orders(1)
	v.Expect(other, other)
	if _, err := v.Input(in, []uint32{1}); err == nil {
		t.Error("a block with the old layout passes")
	}
}

// withoutDefinitions cuts off the last section.
func withoutDefinitions(block []byte) []byte {
	var h [blockSchemas + 4]byte
	copy(h[:], block)
	at := int(h[24]) | int(h[25])<<8 | int(h[26])<<16
	out := bytes.Clone(block[:at])
	copy(out[4:], h[24:28])
	copy(out[blockSchemas:], []byte{0, 0, 0, 0})
	return out
}

// Whatever a module returns, the verifier ends with a verdict, and what passes
// can be read to the last value.
func FuzzVerifier(f *testing.F) {
	s, o := customers(1), orders(2)
	in := sample(f, s, o, 8)
	f.Add(in)
	f.Add(withoutDefinitions(in))
	f.Add(rebuild{event: func(_ *batch.Builder, i int, e *batch.Event) bool { return i%3 == 0 && e.Kind.IsRow() }}.run(f, in))
	f.Fuzz(func(t *testing.T, out []byte) {
		var v Verifier
		v.Limits.Block = 1 << 20
		v.Expect(s, s)
		v.Pass(o)
		if _, err := v.Input(in, []uint32{1}); err != nil {
			t.Fatal(err)
		}
		if v.Output(out) != nil {
			return
		}
		var b, a batch.Block
		if err := b.Decode(out, batch.NewRegistry(), batch.Limits{}); err != nil {
			t.Fatalf("passed, but does not decode: %v", err)
		}
		if err := a.Decode(in, batch.NewRegistry(), batch.Limits{}); err != nil {
			t.Fatal(err)
		}
		if len(a.Txs) != len(b.Txs) {
			t.Fatalf("passed with %d entries", len(b.Txs))
		}
		for i := range b.Len() {
			var e batch.Event
			if err := b.Event(i, &e); err != nil {
				t.Fatalf("passed, but event %d does not decode: %v", i, err)
			}
			for _, im := range []batch.Image{e.Before, e.After} {
				if im.IsZero() {
					continue
				}
				if _, err := im.Values(nil); err != nil {
					t.Fatalf("passed, but event %d does not decode: %v", i, err)
				}
			}
		}
	})
}
