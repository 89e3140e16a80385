package delivery

import (
	"bytes"
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/datalink-go/datalink/sdk/batch"
)

// mode says with which other touches of a value a touch conflicts. Touches of
// one share mode do not conflict with one another, all others do.
type mode uint8

const (
	exclusive mode = iota
	shareA
	shareB
)

func (m mode) conflicts(o mode) bool { return m == exclusive || m != o }

// touch is one value that a change takes, gives up or refers to, as a hash. Two
// values of one hash only make the engine more careful.
type touch struct {
	hash uint64
	mode mode
}

// Tokens beside the values of a tie.
const (
	tokenWild  = hashA // changes whose value is not known, or that equals others in ways not known
	tokenAny   = hashB // all children
	tokenTable = hashC // all rows of a keyless table
)

// toucher finds touches. Its buffers serve one row after the other.
type toucher struct {
	before, after []batch.Encoded
	out           []touch
	buf           []byte
}

// of returns the touches of the event's parts, valid until the next call.
func (t *toucher) of(p *plan, ev *batch.Event, parts uint8) ([]touch, error) {
	t.out = t.out[:0]
	if !p.tied {
		return nil, nil
	}
	if p.keyless {
		m := exclusive
		if ev.Kind == batch.Insert || ev.Kind == batch.Read {
			m = shareA
		}
		t.out = append(t.out, touch{p.table.seed ^ tokenTable, m})
	}
	var before, after []batch.Encoded
	var err error
	if !ev.Before.IsZero() {
		if t.before, err = ev.Before.Columns(t.before); err != nil {
			return nil, err
		}
		before = t.before
	}
	if !ev.After.IsZero() {
		if t.after, err = ev.After.Columns(t.after); err != nil {
			return nil, err
		}
		after = t.after
	}
	moves := parts != partWhole || len(ev.OldKey) > 0
	gives := ev.Kind == batch.Update || ev.Kind == batch.Delete
	takes := ev.Kind != batch.Delete
	switch parts {
	case partOld:
		takes = false
	case partNew:
		gives = false
	}
	for i := range p.uniques {
		t.unique(p, &p.uniques[i], before, after, gives, takes, moves)
	}
	if p.fold != nil {
		t.unique(p, p.fold, before, after, gives, takes, true)
	}
	for i := range p.children {
		t.child(p, &p.children[i], before, after, gives, takes, moves)
	}
	for i := range p.parents {
		t.parent(p, &p.parents[i], before, after, gives, takes, moves)
	}
	return t.out, nil
}

type valueState uint8

const (
	valuePlain valueState = iota
	valueWild             // equal to other values in ways not known
	valueNull             // ties nothing
	valueMissing
)

func (t *toucher) unique(p *plan, u *tie, before, after []batch.Encoded, gives, takes, moves bool) {
	if !moves && same(u, before, after) {
		return
	}
	if takes {
		h, s := t.value(p, u, after, before)
		t.uniqueValue(u, h, s)
	}
	if gives {
		h, s := t.value(p, u, before, nil)
		t.uniqueValue(u, h, s)
	}
}

func (t *toucher) uniqueValue(u *tie, h uint64, s valueState) {
	wild := u.seed ^ tokenWild
	switch s {
	case valuePlain:
		t.out = append(t.out, touch{h, exclusive}, touch{wild, shareA})
	case valueWild:
		t.out = append(t.out, touch{wild, exclusive})
	case valueMissing:
		t.out = append(t.out, touch{wild, shareB})
	}
}

func (t *toucher) child(p *plan, u *tie, before, after []batch.Encoded, gives, takes, moves bool) {
	if !moves && same(u, before, after) {
		return
	}
	add := func(h uint64, s valueState) {
		switch s {
		case valueNull:
			return
		case valuePlain:
			t.out = append(t.out, touch{h, shareA})
		default:
			t.out = append(t.out, touch{u.seed ^ tokenWild, shareA})
		}
		t.out = append(t.out, touch{u.seed ^ tokenAny, shareA})
	}
	if takes {
		add(t.value(p, u, after, before))
	}
	if gives {
		add(t.value(p, u, before, nil))
	}
}

func (t *toucher) parent(p *plan, u *tie, before, after []batch.Encoded, gives, takes, moves bool) {
	if !moves && same(u, before, after) {
		return
	}
	add := func(h uint64, s valueState) {
		switch s {
		case valueNull:
			return
		case valuePlain:
			t.out = append(t.out, touch{h, exclusive})
		default:
			t.out = append(t.out, touch{u.seed ^ tokenAny, shareB})
		}
		t.out = append(t.out, touch{u.seed ^ tokenWild, shareB})
	}
	if takes {
		add(t.value(p, u, after, before))
	}
	if gives {
		add(t.value(p, u, before, nil))
	}
}

// same reports whether the columns of u keep their values.
func same(u *tie, before, after []batch.Encoded) bool {
	if after == nil || before == nil {
		return false
	}
	for _, c := range u.columns {
		a, b := &after[c], &before[c]
		if a.State == batch.Absent || a.State == batch.Unchanged {
			continue
		}
		if a.State != b.State || !bytes.Equal(a.Bytes, b.Bytes) {
			return false
		}
	}
	return true
}

// value hashes the columns of u, those that columns lacks from other.
func (t *toucher) value(p *plan, u *tie, columns, other []batch.Encoded) (uint64, valueState) {
	h, state := u.seed, valuePlain
	for _, i := range u.columns {
		e := batch.Encoded{}
		if columns != nil {
			e = columns[i]
		}
		if (e.State == batch.Absent || e.State == batch.Unchanged) && other != nil {
			e = other[i]
		}
		switch e.State {
		case batch.Null:
			return 0, valueNull
		case batch.Absent, batch.Unchanged:
			state = valueMissing
			continue
		case batch.Raw:
			if state == valuePlain {
				state = valueWild
			}
			continue
		}
		var plain bool
		t.buf, plain = appendNormal(t.buf[:0], &p.schema.Columns[i], e.Payload(p.schema.Columns[i].Type), p.collated[i], p.padded[i])
		if !plain && state == valuePlain {
			state = valueWild
		}
		h = hash(h, t.buf)
	}
	return h, state
}

// appendNormal appends a form of the value that equal values of related columns
// share. Plain is false where other values may be equal all the same.
func appendNormal(dst []byte, c *batch.Column, v []byte, collated, padded bool) ([]byte, bool) {
	switch c.Type {
	case batch.Bool, batch.Uint8, batch.Uint16, batch.Uint32, batch.Uint64, batch.Year:
		var w [8]byte
		copy(w[:], v)
		return append(dst, w[:]...), true
	case batch.Int8, batch.Int16, batch.Int32, batch.Int64:
		var w [8]byte
		if len(v) > 0 && v[len(v)-1]&0x80 != 0 {
			binary.LittleEndian.PutUint64(w[:], math.MaxUint64)
		}
		copy(w[:], v)
		return append(dst, w[:]...), true
	case batch.Float32:
		f := math.Float32frombits(binary.LittleEndian.Uint32(v))
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(float64(f)+0)), true
	case batch.Float64:
		f := math.Float64frombits(binary.LittleEndian.Uint64(v))
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f+0)), true
	case batch.Decimal:
		if bytes.IndexByte(v, '.') >= 0 {
			v = bytes.TrimRight(bytes.TrimRight(v, "0"), ".")
		}
		if string(v) == "-0" {
			v = v[1:]
		}
		return append(dst, v...), true
	}
	switch {
	case collated:
		v = bytes.TrimRight(v, " ")
		from, plain := len(dst), true
		dst = append(dst, v...)
		for i, b := range dst[from:] {
			switch {
			case b >= 'A' && b <= 'Z':
				dst[from+i] = b + 'a' - 'A'
			case b >= 'a' && b <= 'z', b >= '0' && b <= '9':
			case b < utf8.RuneSelf && b > ' ' && b < 0x7f:
				// Some collations ignore punctuation.
				plain = false
			default:
				plain = false
			}
		}
		return dst, plain
	case padded:
		v = bytes.TrimRight(v, " ")
	}
	return append(dst, v...), true
}

// laneHash hashes a key as its lane depends on it.
func (t *toucher) laneHash(p *plan, key []byte) uint64 {
	if !p.normalize {
		return hash(p.table.seed, key)
	}
	h := p.table.seed
	for _, i := range p.schema.Key {
		c := &p.schema.Columns[i]
		w, skip := c.Type.Width(), 0
		if w == 0 {
			l, k := binary.Uvarint(key)
			if k <= 0 {
				return hash(h, key)
			}
			w, skip = k+int(min(l, uint64(len(key)))), k
		}
		if w > len(key) {
			return hash(h, key)
		}
		t.buf, _ = appendNormal(t.buf[:0], c, key[skip:w], false, p.padded[i])
		h = hash(h, t.buf)
		key = key[w:]
	}
	return h
}
