package batch

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// oneRow opens a transaction and a row of s with an after image.
func oneRow(t *testing.T, s *Schema) *Builder {
	t.Helper()
	b := NewBuilder(Limits{})
	check(t, b.BeginTx(Tx{Begins: true}))
	check(t, b.BeginRow(Insert, s))
	b.BeginImage(AfterImage)
	return b
}

// TestMisuse: a mistake in a row is reported by EndRow, the row is gone, and the
// block stays good.
func TestMisuse(t *testing.T) {
	s := &Schema{ID: 1, Table: "t", Key: []int{0}, Columns: []Column{
		{Name: "id", Type: Int8}, {Name: "s", Type: String}, {Name: "f", Type: Float32}, {Name: "u", Type: UUID},
	}}
	good := func(b *Builder) {
		b.PutInt(1)
		b.PutString("a")
		b.PutFloat(1)
		b.PutBytes(make([]byte, 16))
	}
	for _, tt := range []struct {
		name string
		row  func(b *Builder)
		want string
	}{
		{"too few values", func(b *Builder) { b.PutInt(1); b.EndImage() }, "1 values for the 4 columns of t"},
		{"too many values", func(b *Builder) { good(b); b.PutInt(1); b.EndImage() }, "more values than columns"},
		{"int8 of 128", func(b *Builder) { b.PutInt(128) }, "128 for column id of type int8"},
		{"uint for int8", func(b *Builder) { b.PutUint(math.MaxUint64) }, "for column id of type int8"},
		{"int for text", func(b *Builder) { b.PutInt(1); b.PutInt(1) }, "column s of type string"},
		{"float for int", func(b *Builder) { b.PutFloat(1) }, "float for column id"},
		{"text for int", func(b *Builder) { b.PutString("a") }, "1 bytes for column id"},
		{"VarStart for int", func(b *Builder) { b.VarEnd(b.VarStart()) }, "bytes for column id"},
		{"short uuid", func(b *Builder) { b.PutInt(1); b.PutNull(); b.PutNull(); b.PutBytes([]byte("x")) }, "1 bytes for column u"},
		{"null key", func(b *Builder) { b.PutNull() }, "NULL for the key column id"},
		{"raw key of fixed width", func(b *Builder) { b.PutRaw("x", nil) }, "raw value for the key column id"},
		{"absent key", func(b *Builder) { b.PutAbsent(); b.PutNull(); b.PutNull(); b.PutNull(); b.EndImage() }, "lack a value of the key"},
		{"image open", func(b *Builder) { good(b) }, "open image"},
		{"image twice", func(b *Builder) { good(b); b.EndImage(); b.BeginImage(AfterImage) }, "out of order"},
		{"before behind after", func(b *Builder) { good(b); b.EndImage(); b.BeginImage(BeforeImage) }, "out of order"},
		{"EndImage twice", func(b *Builder) { good(b); b.EndImage(); b.EndImage() }, "EndImage without BeginImage"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := oneRow(t, s)
			good(b)
			b.EndImage()
			check(t, b.EndRow())
			size := b.Size()
			check(t, b.BeginRow(Insert, s))
			b.BeginImage(AfterImage)
			tt.row(b)
			err := b.EndRow()
			if !errors.Is(err, ErrMisuse) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if b.Size() != size || b.Len() != 1 {
				t.Fatalf("%d bytes, %d events after the bad row, want %d and 1", b.Size(), b.Len(), size)
			}
			check(t, b.BeginRow(Insert, s))
			b.BeginImage(AfterImage)
			good(b)
			b.EndImage()
			check(t, b.EndRow())
			check(t, b.EndTx(true, nil, nil))
			if blk := decodeOwn(t, b); blk.Len() != 2 {
				t.Errorf("%d events, want 2", blk.Len())
			}
		})
	}
}

func decodeOwn(t *testing.T, b *Builder) *Block {
	t.Helper()
	data, err := b.Finish()
	check(t, err)
	blk := new(Block)
	check(t, blk.Decode(data, NewRegistry(), Limits{}))
	return blk
}

func TestWrongImages(t *testing.T) {
	s := &Schema{ID: 1, Table: "t", Columns: []Column{{Name: "a", Type: Int32}}}
	for _, tt := range []struct {
		kind  Kind
		sides []Side
		ok    bool
	}{
		{Insert, []Side{AfterImage}, true},
		{Insert, []Side{BeforeImage}, false},
		{Insert, []Side{BeforeImage, AfterImage}, false},
		{Read, []Side{AfterImage}, true},
		{Read, []Side{BeforeImage}, false},
		{Update, []Side{AfterImage}, true},
		{Update, []Side{BeforeImage, AfterImage}, true},
		{Update, []Side{BeforeImage}, false},
		{Delete, []Side{BeforeImage}, true},
		{Delete, []Side{AfterImage}, false},
		{Delete, nil, false},
	} {
		b := NewBuilder(Limits{})
		check(t, b.BeginTx(Tx{}))
		check(t, b.BeginRow(tt.kind, s))
		for _, side := range tt.sides {
			b.BeginImage(side)
			b.PutInt(1)
			b.EndImage()
		}
		if err := b.EndRow(); (err == nil) != tt.ok {
			t.Errorf("%s with %v: %v", tt.kind, tt.sides, err)
		}
	}
}

func TestTransactionMisuse(t *testing.T) {
	b := NewBuilder(Limits{})
	s := testSchema()
	for name, err := range map[string]error{
		"row outside":        b.BeginRow(Insert, s),
		"end without begin":  b.EndTx(true, nil, nil),
		"copy of no event":   b.CopyEvent(&Event{}),
		"EndRow without row": b.EndRow(),
	} {
		if !errors.Is(err, ErrMisuse) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	check(t, b.BeginTx(Tx{}))
	if err := b.BeginTx(Tx{}); !errors.Is(err, ErrMisuse) {
		t.Errorf("two entries open: %v", err)
	}
	if err := b.EndTx(false, nil, nil); !errors.Is(err, ErrMisuse) {
		t.Errorf("goes on without a position: %v", err)
	}
	if _, err := b.Finish(); !errors.Is(err, ErrMisuse) {
		t.Errorf("finish with an open entry: %v", err)
	}
	check(t, b.EndTx(true, nil, nil))
	check(t, b.Heartbeat(1))
	if err := b.BeginTx(Tx{}); !errors.Is(err, ErrMisuse) {
		t.Errorf("event before the entry: %v", err)
	}
	if _, err := b.Finish(); !errors.Is(err, ErrMisuse) {
		t.Errorf("event outside of an entry: %v", err)
	}
	b.AppendTx(Tx{Ends: true})
	if blk := decodeOwn(t, b); blk.Len() != 1 {
		t.Errorf("%d events, want 1", blk.Len())
	}
}

func TestKeyBytes(t *testing.T) {
	s := &Schema{ID: 1, Table: "t", Key: []int{2, 0}, Columns: []Column{{Name: "a", Type: Int16}, {Name: "b", Type: Int32}, {Name: "c", Type: String}}}
	put := func(a int64, c string) func(b *Builder) {
		return func(b *Builder) { b.PutInt(a); b.PutNull(); b.PutString(c) }
	}
	absent := func(b *Builder) { b.PutAbsent(); b.PutInt(5); b.PutAbsent() }
	half := func(b *Builder) { b.PutInt(9); b.PutInt(5); b.PutUnchanged() }
	rawC := func(b *Builder) { b.PutInt(1); b.PutNull(); b.PutRaw("", []byte("x")) }
	for _, tt := range []struct {
		name          string
		kind          Kind
		before, after func(b *Builder)
		key, old      string
	}{
		{"insert", Insert, nil, put(1, "x"), "\x01x\x01\x00", ""},
		{"update, key kept", Update, put(1, "x"), put(1, "x"), "\x01x\x01\x00", ""},
		{"update, key changed", Update, put(1, "x"), put(2, "x"), "\x01x\x02\x00", "\x01x\x01\x00"},
		{"update, key only before", Update, put(1, "x"), absent, "\x01x\x01\x00", ""},
		{"update, half of the key after", Update, put(1, "x"), half, "\x01x\x09\x00", "\x01x\x01\x00"},
		{"update, key only after", Update, absent, put(2, "y"), "\x01y\x02\x00", ""},
		{"delete", Delete, put(-1, ""), nil, "\x00\xff\xff", ""},
		{"raw", Insert, nil, rawC, "\x80\x00\x02\x00x\x01\x00", ""},
		{"text with the bytes of the raw one", Insert, nil, put(1, "\x00x"), "\x02\x00x\x01\x00", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := NewBuilder(Limits{})
			check(t, b.BeginTx(Tx{}))
			wrap := func(f func(*Builder)) func() {
				if f == nil {
					return nil
				}
				return func() { f(b) }
			}
			addRow(t, b, tt.kind, s, wrap(tt.before), wrap(tt.after))
			check(t, b.EndTx(true, nil, nil))
			var e Event
			check(t, decodeOwn(t, b).Event(0, &e))
			if string(e.Key) != tt.key || string(e.OldKey) != tt.old {
				t.Errorf("key % x, old % x, want % x and % x", e.Key, e.OldKey, tt.key, tt.old)
			}
			if _, err := s.KeyValues(e.Key); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestBitmapsInserted puts each state at each place of a row of nine columns,
// among values of other states, and reads all of them back.
func TestBitmapsInserted(t *testing.T) {
	s := &Schema{ID: 1, Table: "t", Key: []int{8}}
	for i := range 9 {
		s.Columns = append(s.Columns, Column{Name: string(rune('a' + i)), Type: [...]Type{String, Int64, Uint8}[i%3]})
	}
	states := []ValueState{Absent, Null, Unchanged, Present, Raw}
	for first := range 8 {
		for second := range 8 {
			for _, a := range states {
				for _, c := range states {
					b := oneRow(t, s)
					var want []ValueState
					for i := range 9 {
						st := Present
						switch i {
						case first:
							st = a
						case second:
							st = c
						}
						want = append(want, st)
						switch {
						case st == Absent:
							b.PutAbsent()
						case st == Null:
							b.PutNull()
						case st == Unchanged:
							b.PutUnchanged()
						case st == Raw:
							b.PutRaw("n", bytes.Repeat([]byte{byte(i)}, 130))
						case i%3 == 0:
							b.VarEnd(append(b.VarStart(), byte(i)))
						default:
							b.PutInt(int64(i))
						}
					}
					b.EndImage()
					check(t, b.EndRow())
					check(t, b.EndTx(true, nil, nil))
					var e Event
					check(t, decodeOwn(t, b).Event(0, &e))
					v, err := e.After.Values(nil)
					check(t, err)
					for i := range v {
						_, raw, isRaw := v[i].Raw()
						switch {
						case v[i].State != want[i]:
							t.Fatalf("column %d is %s, want %s", i, v[i].State, want[i])
						case isRaw && (len(raw) != 130 || raw[129] != byte(i)):
							t.Fatalf("raw column %d: % x", i, raw)
						case v[i].State == Present && i%3 == 0 && string(v[i].Bytes()) != string(rune(i)):
							t.Fatalf("text column %d: % x", i, v[i].Bytes())
						case v[i].State == Present && i%3 != 0 && v[i].Int64() != int64(i):
							t.Fatalf("integer column %d: %d", i, v[i].Int64())
						}
					}
					if string(e.Key) != "\x08" {
						t.Fatalf("key % x", e.Key)
					}
				}
			}
		}
	}
}

// TestCopy copies events into another block with their transactions, leaving one
// out.
func TestCopy(t *testing.T) {
	types := typesSchema()
	b := NewBuilder(Limits{})
	check(t, b.BeginTx(Tx{Begins: true, ID: "one", Covers: []Cover{{Point: 2}}}))
	for which := range 3 {
		addRow(t, b, Insert, types, nil, func() { putTypes(b, types, which) })
	}
	check(t, b.EndTx(true, nil, []byte("e1")))
	check(t, b.BeginTx(Tx{Begins: true, ID: "two"}))
	check(t, b.Heartbeat(1))
	check(t, b.EndTx(false, []byte("s2"), nil))
	in := decodeOwn(t, b)

	out := NewBuilder(Limits{})
	for _, tx := range in.Txs {
		for i := tx.First; i < tx.First+tx.Count; i++ {
			var e Event
			check(t, in.Event(i, &e))
			if i != 1 {
				check(t, out.CopyEvent(&e))
			}
		}
		out.AppendTx(tx)
	}
	got := decodeOwn(t, out)
	a, err := renderBlock(in)
	check(t, err)
	c, err := renderBlock(got)
	check(t, err)
	a["events"] = append(a["events"].([]any)[:1:1], a["events"].([]any)[2:]...)
	for i, want := range []struct{ first, count int }{{0, 2}, {2, 1}} {
		tx := a["transactions"].([]any)[i].(doc)
		tx["first"], tx["count"] = want.first, want.count
	}
	if d := cmp.Diff(a, c); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// TestPutValue copies each value of each type and state by Value.
func TestPutValue(t *testing.T) {
	types := typesSchema()
	b, c := NewBuilder(Limits{}), NewBuilder(Limits{})
	check(t, b.BeginTx(Tx{}))
	for which := range 3 {
		addRow(t, b, Insert, types, nil, func() { putTypes(b, types, which) })
	}
	check(t, b.EndTx(true, nil, nil))
	in := decodeOwn(t, b)
	check(t, c.BeginTx(Tx{}))
	for i := range in.Len() {
		var e Event
		check(t, in.Event(i, &e))
		v, err := e.After.Values(nil)
		check(t, err)
		addRow(t, c, Insert, types, nil, func() {
			for i := range v {
				c.PutValue(&v[i])
			}
		})
	}
	check(t, c.EndTx(true, nil, nil))
	if got := decodeOwn(t, c); !bytes.Equal(got.Bytes(), in.Bytes()) {
		t.Error("values that were copied one by one make another block")
	}
}

func TestLimits(t *testing.T) {
	s := &Schema{ID: 1, Table: "t", Columns: []Column{{Name: "a", Type: Bytes}}}
	b := NewBuilder(Limits{Record: 100, Block: 600, Full: 300, Events: 3})
	row := func(n int) error {
		check(t, b.BeginRow(Insert, s))
		b.BeginImage(AfterImage)
		b.PutBytes(make([]byte, n))
		b.EndImage()
		return b.EndRow()
	}
	check(t, b.BeginTx(Tx{}))
	if err := row(100); !errors.Is(err, ErrTooLarge) || b.Len() != 0 {
		t.Fatalf("record over the limit: %v, %d events", err, b.Len())
	}
	if err := b.StateItem(&StateItem{Value: make([]byte, 200)}); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("body over the limit: %v", err)
	}
	for i := range 3 {
		if b.Full() {
			t.Fatalf("full with %d events", i)
		}
		check(t, row(10))
	}
	if !b.Full() {
		t.Fatal("not full with 3 events")
	}
	for range 6 {
		check(t, row(85))
	}
	check(t, b.EndTx(true, nil, nil))
	if _, err := b.Finish(); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("block over the limit: %v", err)
	}

	// A receiver with smaller limits.
	b = NewBuilder(Limits{})
	check(t, b.BeginTx(Tx{}))
	check(t, row(1000))
	check(t, b.EndTx(true, nil, nil))
	data, err := b.Finish()
	check(t, err)
	var blk Block
	if err := blk.Decode(data, NewRegistry(), Limits{Block: len(data) - 1}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("block over the receiver's limit: %v", err)
	}
	check(t, blk.Decode(data, NewRegistry(), Limits{Record: 900}))
	var e Event
	if err := blk.Event(0, &e); !errors.Is(err, ErrTooLarge) {
		t.Errorf("record over the receiver's limit: %v", err)
	}
}

func TestRegistry(t *testing.T) {
	r := NewRegistry()
	a := &Schema{ID: 5, Table: "a", Columns: []Column{{Name: "x", Type: Int8}}}
	other := &Schema{ID: 5, Table: "a", Columns: []Column{{Name: "x", Type: Int16}}}
	check(t, r.Add(a))
	check(t, r.Add(a.Clone()))
	check(t, r.Add(&Schema{ID: maxDense + 1, Table: "far"}))
	if err := r.Add(other); !errors.Is(err, ErrCorrupt) || r.Get(5) != a {
		t.Errorf("another layout of id 5: %v", err)
	}
	if r.Get(4) != nil || r.Get(6) != nil || r.Get(math.MaxUint32) != nil || r.Get(maxDense+1) == nil || len(r.All()) != 2 {
		t.Error("Get and All do not give what was added")
	}
	block := func(s *Schema) []byte {
		b := NewBuilder(Limits{})
		check(t, b.Define(s))
		data, err := b.Finish()
		check(t, err)
		return data
	}
	var blk Block
	check(t, blk.Decode(block(a), r, Limits{}))
	if err := blk.Decode(block(other), r, Limits{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a block with another layout of id 5: %v", err)
	}
	b := NewBuilder(Limits{})
	check(t, b.Define(a))
	check(t, b.Define(a.Clone()))
	if err := b.Define(other); !errors.Is(err, ErrMisuse) {
		t.Errorf("builder, another layout of id 5: %v", err)
	}
	if err := b.Define(&Schema{Table: "x"}); !errors.Is(err, ErrMisuse) {
		t.Errorf("builder, id 0: %v", err)
	}
	// A second block does not define again, after Forget it does.
	b.Reset()
	check(t, b.Define(a))
	if !b.Empty() {
		t.Error("a schema was defined twice on a stream")
	}
	b.Forget()
	check(t, b.Define(a))
	if b.Empty() {
		t.Error("no definition after Forget")
	}
}
