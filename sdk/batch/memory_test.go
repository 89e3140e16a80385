package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"
)

// TestSteadyStateAllocations holds that neither side allocates per row: the aim is
// 0.01 a row at batches of 1024, and one a batch is already too many.
func TestSteadyStateAllocations(t *testing.T) {
	s := typesSchema()
	b, reg := NewBuilder(Limits{}), NewRegistry()
	ids, covers := make([]string, 102), []Cover{{Point: 1}}
	for i := range ids {
		ids[i] = fmt.Sprintf("3e11fa47-71ca-11e1-9e33-c80aa9429562:%d", i)
	}
	encode := func() []byte {
		b.Reset()
		for tx := range 102 {
			check(t, b.BeginTx(Tx{Begins: true, ID: ids[tx], Covers: covers}))
			for i := range 10 {
				check(t, b.BeginRow(Update, s))
				b.BeginImage(BeforeImage)
				allocFree(b, s, tx*10+i)
				b.EndImage()
				b.BeginImage(AfterImage)
				allocFree(b, s, tx*10+i+1)
				b.EndImage()
				check(t, b.EndRow())
			}
			check(t, b.EndTx(true, nil, nil))
		}
		data, err := b.Finish()
		check(t, err)
		return data
	}
	data := bytes.Clone(encode())
	var blk Block
	check(t, blk.Decode(data, reg, Limits{}))
	rows := float64(blk.Len())
	if got := testing.AllocsPerRun(20, func() { encode() }) / rows; got > 0.01 {
		t.Errorf("encode: %.3f allocations a row, want at most 0.01", got)
	}
	var values []Value
	var e Event
	decode := func() {
		check(t, blk.Decode(data, reg, Limits{}))
		for i := range blk.Len() {
			check(t, blk.Event(i, &e))
			var err error
			for _, im := range [...]Image{e.Before, e.After} {
				values, err = im.Values(values)
				check(t, err)
			}
		}
	}
	if got := testing.AllocsPerRun(20, decode) / rows; got > 0.01 {
		t.Errorf("decode: %.3f allocations a row, want at most 0.01", got)
	}
}

var fixedBytes = make([]byte, 16)

// allocFree writes a value of each type and a state of each kind.
func allocFree(b *Builder, s *Schema, n int) {
	for i := range s.Columns {
		switch typ := s.Columns[i].Type; {
		case typ == Int64:
			b.PutInt(int64(n))
		case typ == Vector:
			b.PutRaw("x", fixedBytes)
		case typ == Map:
			b.PutAbsent()
		case typ == Array:
			b.PutUnchanged()
		case typ == JSON:
			b.PutNull()
		case typ == Decimal:
			b.VarEnd(append(b.VarStart(), "12.50"...))
		case typ == Float32 || typ == Float64:
			b.PutFloat(1.5)
		case typ.Width() == 0 || typ == UUID || typ == Interval || typ == TimeTZ:
			b.PutBytes(fixedBytes[:max(typ.Width(), 5)])
		default:
			b.PutInt(1)
		}
	}
}

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestHostileLengths announces as much as each count can in blocks and bodies of
// few bytes, and as many empty items as fit in larger ones: what decoding
// allocates stays below the limit of the block.
func TestHostileLengths(t *testing.T) {
	const limit = 4 << 20
	header := func(events, txs, schemas int, tx, defs []byte) []byte {
		data := make([]byte, headerSize, headerSize+len(tx)+len(defs))
		copy(data, magic[:])
		data = append(append(data, tx...), defs...)
		for i, v := range []int{len(data), events, headerSize, headerSize, txs, headerSize + len(tx), schemas} {
			binary.LittleEndian.PutUint32(data[4+4*i:], uint32(v))
		}
		return data
	}
	huge := binary.AppendUvarint(nil, math.MaxUint64)
	repeat := func(item []byte, n int) (out []byte) {
		for range n {
			out = append(out, item...)
		}
		return out
	}
	emptyTx := []byte{txEnds, 0, 0, 0, 0, 0, 0}
	tenCovers := append([]byte{txEnds, 0, 0, 0, 0, 0}, binary.AppendUvarint(nil, limit/4)...)
	schemaHead := []byte{1, 0, 0, 0, 0, 0}
	column := []byte{0, byte(String), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	columns := func(n int) []byte {
		def := append(append([]byte(nil), schemaHead...), binary.AppendUvarint(nil, uint64(n))...)
		return append(append(def, repeat(column, n)...), 0, 0, 0)
	}
	var many []byte
	for id := range byte(100) {
		def := columns(limit / 14 / 100)
		def[0] = id + 1
		many = appendBytes(many, def)
	}
	blocks := map[string][]byte{
		"events":             header(math.MaxInt32, 0, 0, nil, nil),
		"transactions":       header(0, math.MaxInt32, 0, nil, nil),
		"schemas":            header(0, 0, math.MaxInt32, nil, nil),
		"empty transactions": header(0, limit/8, 0, repeat(emptyTx, limit/8), nil),
		"covers":             header(0, 1, 0, append(tenCovers, make([]byte, limit/2)...), nil),
		"covers announced":   header(0, 1, 0, append([]byte{txEnds, 0, 0, 0, 0, 0}, huge...), nil),
		"columns announced":  header(0, 0, 1, nil, appendBytes(nil, append(append([]byte(nil), schemaHead...), huge...))),
		"columns":            header(0, 0, 1, nil, appendBytes(nil, columns(limit/14))),
		"columns of many":    header(0, 0, 100, nil, many),
	}
	for name, data := range blocks {
		var err error
		got := allocated(func() {
			var blk Block
			err = blk.Decode(data, NewRegistry(), Limits{Block: limit})
		})
		if got > 2*limit {
			t.Errorf("%s: %d bytes allocated for a block of %d, the limit is %d", name, got, len(data), limit)
		}
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: got %v, want an error", name, err)
		}
	}
	for name, decode := range map[string]func() error{
		"array, dimensions": func() error { _, _, err := DecodeArray(huge, Int8); return err },
		"array, length":     func() error { _, _, err := DecodeArray([]byte{1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0}, Int8); return err },
		"array, product": func() error {
			_, _, err := DecodeArray([]byte{2, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 0}, Int8)
			return err
		},
		"array, length 0 and more": func() error {
			_, _, err := DecodeArray([]byte{2, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 1}, Int8)
			return err
		},
		"map":    func() error { _, err := DecodeMap(huge); return err },
		"schema": func() error { _, err := DecodeSchema(append(append([]byte(nil), schemaHead...), huge...)); return err },
		"ddl":    func() error { _, err := decodeChange(append([]byte{1}, huge...)); return err },
		"range":  func() error { _, err := decodeRange(huge); return err },
		"state":  func() error { _, err := decodeState(huge); return err },
	} {
		var err error
		if got := allocated(func() { err = decode() }); got > 64<<10 {
			t.Errorf("%s: %d bytes allocated", name, got)
		}
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: got %v, want an error", name, err)
		}
	}
}
