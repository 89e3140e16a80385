package batch

import (
	"bytes"
	"errors"
	"testing"
)

// EditRow gives what decoding, changing and encoding all values gives.
func TestEditRow(t *testing.T) {
	s := testSchema()
	src := NewBuilder(Limits{})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	long := bytes.Repeat([]byte("x"), 200)
	fill := func(b *Builder, side Side, id int64, name func()) {
		b.BeginImage(side)
		b.PutInt(id)
		name()
		b.PutString("1.50")
		b.PutNull()
		b.PutFloat(1.5)
		b.EndImage()
	}
	names := []func(b *Builder){
		func(b *Builder) { b.PutString("Ann") },
		func(b *Builder) { b.PutBytes(long) },
		func(b *Builder) { b.PutString("") },
		func(b *Builder) { b.PutNull() },
		func(b *Builder) { b.PutAbsent() },
		func(b *Builder) { b.PutUnchanged() },
		func(b *Builder) { b.PutRaw("latin1", []byte{0xff, 0xfe}) },
	}
	must(src.BeginTx(Tx{Begins: true}))
	for i, before := range names {
		for k, after := range names {
			must(src.BeginRow(Update, s))
			fill(src, BeforeImage, int64(i), func() { before(src) })
			fill(src, AfterImage, int64(k), func() { after(src) })
			must(src.EndRow())
		}
	}
	must(src.EndTx(true, nil, nil))
	data, err := src.Finish()
	must(err)
	var blk Block
	must(blk.Decode(data, NewRegistry(), Limits{}))

	change := func(dst []byte, v *Value) []byte {
		if _, raw, ok := v.Raw(); ok {
			return append(append(dst, "raw:"...), bytes.Repeat([]byte("*"), len(raw))...)
		}
		return append(append(dst, v.Bytes()...), v.Bytes()...)
	}
	slow, fast := NewBuilder(Limits{}), NewBuilder(Limits{})
	must(slow.BeginTx(Tx{Begins: true}))
	must(fast.BeginTx(Tx{Begins: true}))
	var e Event
	for i := range blk.Len() {
		must(blk.Event(i, &e))
		must(fast.EditRow(&e, e.Schema, []bool{false, true, false, false, false}, func(dst []byte, col int, v *Value) []byte {
			if col != 1 {
				t.Errorf("column %d is edited", col)
			}
			return change(dst, v)
		}))
		must(slow.BeginRow(e.Kind, e.Schema))
		for side, im := range []Image{e.Before, e.After} {
			v, err := im.Values(nil)
			must(err)
			slow.BeginImage(Side(side))
			for c := range v {
				if c == 1 && v[c].Has() {
					slow.PutBytes(change(nil, &v[c]))
				} else {
					slow.PutValue(&v[c])
				}
			}
			slow.EndImage()
		}
		must(slow.EndRow())
	}
	must(slow.EndTx(true, nil, nil))
	must(fast.EndTx(true, nil, nil))
	want, err := slow.Finish()
	must(err)
	got, err := fast.Finish()
	must(err)
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes, want %d: % x\nwant % x", len(got), len(want), got[:min(400, len(got))], want[:min(400, len(want))])
	}

	b := NewBuilder(Limits{Record: 300})
	none := func(dst []byte, _ int, _ *Value) []byte { return dst }
	if err := b.EditRow(&e, e.Schema, make([]bool, 5), none); !errors.Is(err, ErrMisuse) {
		t.Errorf("outside of a transaction: %v", err)
	}
	must(b.BeginTx(Tx{Begins: true}))
	for name, edit := range map[string][]bool{"key": {true, false, false, false, false}, "fixed width": {false, false, false, true, false}, "too few": {false}} {
		if err := b.EditRow(&e, e.Schema, edit, none); !errors.Is(err, ErrMisuse) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(blk.Event(8, &e)) // both names are long
	big := func(dst []byte, _ int, v *Value) []byte { return append(dst, v.Bytes()...) }
	if err := b.EditRow(&e, e.Schema, []bool{false, true, false, false, false}, big); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	if b.Len() != 0 || b.Size() != 0 {
		t.Errorf("refused rows leave %d events, %d bytes", b.Len(), b.Size())
	}
}
