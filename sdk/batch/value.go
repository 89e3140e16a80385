package batch

import (
	"encoding/binary"
	"fmt"
	"math"
)

// ValueState says whether a column of an image has a value.
type ValueState uint8

// The states of a column in an image. Absent: the source's log does not hold
// the column (minimal images). Unchanged: the column keeps what the target has.
// Raw: the value is not of the column's type, see Value.Raw.
const (
	Absent ValueState = iota
	Null
	Unchanged
	Present
	Raw
)

var stateNames = [...]string{"absent", "null", "unchanged", "set", "raw"}

// String returns the name of the state.
func (s ValueState) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// Value is one decoded column. It boxes nothing: numbers and packed times lie
// in it, everything else is a view of the block's bytes. Which accessor applies
// follows from Column.Type.
type Value struct {
	State ValueState
	num   uint64
	bytes []byte
}

// Has reports whether the value is Set or Raw, that is neither NULL nor left out.
func (v *Value) Has() bool { return v.State >= Present }

// Int64 returns the value of Bool, Int*, Date, Time, DateTime and Timestamp columns.
func (v *Value) Int64() int64 { return int64(v.num) }

// Uint64 returns the value of Bool, Uint* and Year columns.
func (v *Value) Uint64() uint64 { return v.num }

// Float64 returns the value of Float32 and Float64 columns.
func (v *Value) Float64() float64 { return math.Float64frombits(v.num) }

// Bytes returns the encoded bytes of all other types, without the length. It is
// a view: copy it to keep it.
func (v *Value) Bytes() []byte { return v.bytes }

// Raw splits a raw value into the name of its charset or native type and its
// exact bytes. Ok is false where the value is not raw.
func (v *Value) Raw() (name string, data []byte, ok bool) {
	if v.State != Raw {
		return "", nil, false
	}
	n := int(v.num)
	return string(v.bytes[:n]), v.bytes[n:], true
}

// Image is one row image of an event: the columns of its schema, encoded.
type Image struct {
	schema *Schema
	data   []byte // flags, bitmaps, values
}

const (
	imageAbsent    = 1
	imageNull      = 2
	imageUnchanged = 4
	imageRaw       = 8
	imageAll       = imageAbsent | imageNull | imageUnchanged | imageRaw
)

// IsZero reports whether the event has no such image.
func (im Image) IsZero() bool { return im.data == nil }

// Schema returns the schema of the image.
func (im Image) Schema() *Schema { return im.schema }

// Data returns the encoded image, a view.
func (im Image) Data() []byte { return im.data }

// Complete reports whether the image has every column, none absent or
// unchanged. It reads the flags alone: an image that has a bitmap without a set
// bit is not complete.
func (im Image) Complete() bool {
	return len(im.data) > 0 && im.data[0]&(imageAbsent|imageUnchanged) == 0
}

// bit i of a bitmap is bit i%8 of byte i/8, the least significant first.
func bit(m []byte, i int) bool { return m != nil && m[i>>3]&(1<<(i&7)) != 0 }

// Values decodes the image into dst, which is grown when needed and returned
// with one Value for each column of the schema. Errors wrap ErrCorrupt and name
// table and column.
func (im Image) Values(dst []Value) ([]Value, error) {
	cols := im.schema.Columns
	n := len(cols)
	if cap(dst) < n {
		dst = make([]Value, n)
	}
	dst = dst[:n]
	data := im.data
	if len(data) < 1 {
		return dst, im.corrupt("flags", "cut off")
	}
	flags := data[0]
	nb := (n + 7) / 8
	pos := 1
	var maps [4][]byte
	for k := range maps {
		if flags&(1<<k) == 0 {
			continue
		}
		if len(data)-pos < nb {
			return dst, im.corrupt("bitmaps", "cut off")
		}
		maps[k] = data[pos : pos+nb]
		pos += nb
	}
	if flags&^imageAll != 0 {
		return dst, im.corrupt("flags", "unknown bits")
	}
	absent, null, unchanged, raw := maps[0], maps[1], maps[2], maps[3]
	special := flags&(imageAbsent|imageUnchanged|imageRaw) != 0
	if msg := checkBitmaps(maps, nb, n); msg != "" {
		return dst, im.corrupt("bitmaps", msg)
	}
	for i := range n {
		v := &dst[i]
		if bit(null, i) {
			*v = Value{State: Null}
			continue
		}
		if special {
			switch {
			case bit(absent, i):
				*v = Value{State: Absent}
				continue
			case bit(unchanged, i):
				*v = Value{State: Unchanged}
				continue
			case bit(raw, i):
				l, k := binary.Uvarint(data[pos:])
				if k <= 0 || l > uint64(len(data)-pos-k) {
					return dst, im.corrupt(cols[i].Name, "raw value cut off")
				}
				pos += k
				body := data[pos : pos+int(l)]
				pos += int(l)
				name, k := binary.Uvarint(body)
				if k <= 0 || name > uint64(len(body)-k) {
					return dst, im.corrupt(cols[i].Name, "raw name cut off")
				}
				*v = Value{State: Raw, num: name, bytes: body[k:]}
				continue
			}
		}
		t := cols[i].Type
		w := int(widths[t])
		if w == 0 {
			// One-byte lengths are by far the most frequent.
			if pos < len(data) && data[pos] < 0x80 && int(data[pos]) < len(data)-pos {
				l := int(data[pos])
				*v = Value{State: Present, bytes: data[pos+1 : pos+1+l : pos+1+l]}
				pos += 1 + l
				continue
			}
			l, k := binary.Uvarint(data[pos:])
			if k <= 0 || l > uint64(len(data)-pos-k) {
				return dst, im.corrupt(cols[i].Name, "value cut off")
			}
			pos += k
			*v = Value{State: Present, bytes: data[pos : pos+int(l) : pos+int(l)]}
			pos += int(l)
			continue
		}
		if len(data)-pos < w {
			return dst, im.corrupt(cols[i].Name, "value cut off")
		}
		if !fixed(v, t, data[pos:pos+w:pos+w]) {
			return dst, im.corrupt(cols[i].Name, fmt.Sprintf("bytes % x", data[pos:pos+w]))
		}
		pos += w
	}
	if pos != len(data) {
		return dst, im.corrupt("end", fmt.Sprintf("%d bytes follow the last column", len(data)-pos))
	}
	return dst, nil
}

// fixed decodes the bytes of a type with a width. False: they are no value of it.
func fixed(v *Value, t Type, d []byte) bool {
	switch t {
	case Bool:
		*v = Value{State: Present, num: uint64(d[0])}
		return d[0] <= 1
	case Uint8:
		*v = Value{State: Present, num: uint64(d[0])}
	case Int8:
		*v = Value{State: Present, num: uint64(int64(int8(d[0])))}
	case Int16:
		*v = Value{State: Present, num: uint64(int64(int16(binary.LittleEndian.Uint16(d))))}
	case Uint16, Year:
		*v = Value{State: Present, num: uint64(binary.LittleEndian.Uint16(d))}
	case Int32, Date:
		*v = Value{State: Present, num: uint64(int64(int32(binary.LittleEndian.Uint32(d))))}
	case Uint32:
		*v = Value{State: Present, num: uint64(binary.LittleEndian.Uint32(d))}
	case Float32:
		*v = Value{State: Present, num: math.Float64bits(float64(math.Float32frombits(binary.LittleEndian.Uint32(d))))}
	case UUID, Interval, TimeTZ:
		*v = Value{State: Present, bytes: d}
	default:
		*v = Value{State: Present, num: binary.LittleEndian.Uint64(d)}
	}
	return true
}

// checkBitmaps finds columns in two states and bits behind the last column.
func checkBitmaps(maps [4][]byte, nb, n int) string {
	for i := range nb {
		var seen, twice byte
		for _, m := range maps {
			if m != nil {
				twice |= seen & m[i]
				seen |= m[i]
			}
		}
		if twice != 0 {
			return "a column is in two states"
		}
		if i == nb-1 && n&7 != 0 && seen>>(n&7) != 0 {
			return "bits behind the last column"
		}
	}
	return ""
}

func (im Image) corrupt(field, msg string) error {
	return fmt.Errorf("%w: row of %s, %s: %s", ErrCorrupt, im.schema.Name(), field, msg)
}
