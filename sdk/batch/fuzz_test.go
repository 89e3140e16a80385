package batch

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// known reports whether an error is one that decoders of foreign bytes return.
func known(err error) bool {
	return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrUnknownSchema)
}

// FuzzBlock decodes all of a block: envelope, events, values, keys, bodies. What
// decodes is copied and decodes to the same again.
func FuzzBlock(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(vectorDir, "*.bin"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	limits := Limits{Block: 1 << 20, Record: 1 << 18}
	f.Fuzz(func(t *testing.T, data []byte) {
		reg := NewRegistry()
		check(t, reg.Add(typesSchema()))
		check(t, reg.Add(wideSchema()))
		var blk Block
		if err := blk.Decode(data, reg, limits); err != nil {
			if !known(err) {
				t.Fatalf("unknown error %v", err)
			}
			return
		}
		if _, err := renderBlock(&blk); err != nil {
			if !known(err) {
				t.Fatalf("unknown error %v", err)
			}
			return
		}
		out := NewBuilder(Limits{})
		for _, id := range blk.Definitions() {
			check(t, out.Define(reg.Get(id)))
		}
		for _, tx := range blk.Txs {
			for i := tx.First; i < tx.First+tx.Count; i++ {
				var e Event
				check(t, blk.Event(i, &e))
				check(t, out.CopyEvent(&e))
			}
			out.AppendTx(tx)
		}
		copied, err := out.Finish()
		check(t, err)
		var again Block
		check(t, again.Decode(copied, NewRegistry(), Limits{}))
		for i := range again.Len() {
			var a, b Event
			check(t, blk.Event(i, &a))
			check(t, again.Event(i, &b))
			if !bytes.Equal(a.Raw(), b.Raw()) {
				t.Fatalf("event %d changed by copying", i)
			}
		}
	})
}

// FuzzSchema decodes a definition; what decodes is encoded to what decodes to the
// same.
func FuzzSchema(f *testing.F) {
	for _, s := range []*Schema{typesSchema(), wideSchema(), fullSchema(), testSchema(), {ID: 1}} {
		f.Add(AppendSchema(nil, s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := DecodeSchema(data)
		if err != nil {
			if !known(err) {
				t.Fatalf("unknown error %v", err)
			}
			return
		}
		def := AppendSchema(nil, s)
		again, err := DecodeSchema(def)
		check(t, err)
		if !bytes.Equal(AppendSchema(nil, again), def) {
			t.Fatal("a schema changes when it is encoded again")
		}
	})
}

// FuzzBody decodes bodies and nested values of every kind from the same bytes.
func FuzzBody(f *testing.F) {
	full := fullSchema()
	f.Add(uint8(0), appendChange(nil, &Change{Kind: DDLAddColumn, Column: &full.Columns[1], Index: &full.Uniques[1], Schema: full}))
	f.Add(uint8(1), appendRange(nil, &KeyRange{Lo: []byte("a"), Last: true}))
	f.Add(uint8(2), appendState(nil, &StateItem{Key: "k", Value: []byte("v")}))
	f.Add(uint8(3), AppendArray(nil, []Dim{{2, 1}, {2, 0}}, [][]byte{{1}, nil, {2}, {3}}))
	f.Add(uint8(4), AppendMap(nil, []Pair{{[]byte("a"), nil}, {[]byte("b"), []byte("c")}}))
	f.Add(uint8(5), []byte("\x80\x00\x02\x01xy\x01\x00"))
	wide := wideSchema()
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		var err error
		switch which % 6 {
		case 0:
			_, err = decodeChange(data)
		case 1:
			_, err = decodeRange(data)
		case 2:
			_, err = decodeState(data)
		case 3:
			_, _, err = DecodeArray(data, Type(which/6))
		case 4:
			_, err = DecodeMap(data)
		case 5:
			_, err = wide.KeyValues(data)
		}
		if err != nil && !known(err) {
			t.Fatalf("unknown error %v", err)
		}
	})
}
