package rows

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/plugins/internal/charset"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Cursor is a key as the server gave it: for each column its exact bytes, text in
// its own character set. It names a place in the server's order of the key, which
// key bytes of a batch cannot where several codes of a character set are one
// character of Unicode.
type Cursor [][]byte

// Clone returns a copy.
func (c Cursor) Clone() Cursor {
	if c == nil {
		return nil
	}
	out := make(Cursor, len(c))
	for i := range c {
		out[i] = bytes.Clone(c[i])
		if out[i] == nil {
			out[i] = []byte{}
		}
	}
	return out
}

// Cursor returns the key of the row that was appended last; it owns its bytes.
func (s *Selection) Cursor() Cursor {
	out := make(Cursor, len(s.key))
	for p, at := range s.Schema.Key {
		c := &s.cols[at]
		if c.number() {
			n, _ := number(s.types[at], s.key[p])
			switch c.op {
			case opUint8:
				n &= 0xFF
			case opUint16, opYear:
				n &= 0xFFFF
			case opUint24, opUint32:
				n &= 0xFFFFFFFF
			}
			out[p] = binary.LittleEndian.AppendUint64(nil, uint64(n))
			continue
		}
		out[p] = append([]byte{}, s.key[p]...)
	}
	return out
}

// number reports whether the column is compared as an integer.
func (c *column) number() bool {
	switch c.op {
	case opInt8, opInt16, opInt24, opInt32, opInt64, opUint8, opUint16, opUint24, opUint32, opUint64, opYear, opEnum, opSet:
		return true
	}
	return false
}

func (c *column) unsigned() bool {
	return c.op == opUint64 || c.op == opSet
}

// literal is a constant that compares with the column as the stored value does.
func (s *Selection) literal(p int, v []byte) (string, error) {
	at := s.Schema.Key[p]
	c, bc := &s.cols[at], &s.Schema.Columns[at]
	bad := func() (string, error) {
		return "", fmt.Errorf("%w: %d bytes for key column %s of %s", ErrCorrupt, len(v), bc.Name, s.Schema.Name())
	}
	if c.number() {
		if len(v) != 8 {
			return bad()
		}
		n := binary.LittleEndian.Uint64(v)
		if c.unsigned() {
			return strconv.FormatUint(n, 10), nil
		}
		return strconv.FormatInt(int64(n), 10), nil
	}
	switch c.op {
	case opFloat32:
		if len(v) != 4 {
			return bad()
		}
		return floatLiteral(float64(math.Float32frombits(binary.LittleEndian.Uint32(v)))), nil
	case opFloat64:
		if len(v) != 8 {
			return bad()
		}
		return floatLiteral(math.Float64frombits(binary.LittleEndian.Uint64(v))), nil
	case opDecimal:
		for _, x := range v {
			if (x < '0' || x > '9') && x != '-' && x != '.' {
				return bad()
			}
		}
		return string(v), nil
	case opBit:
		if len(v) > 8 {
			return bad()
		}
		var b [8]byte
		copy(b[8-len(v):], v)
		return strconv.FormatUint(binary.BigEndian.Uint64(b[:]), 10), nil
	case opDate, opDateTime, opDateTime2, opTimestamp, opTimestamp2, opTime, opTime2:
		return c.clockLiteral(v)
	case opText, opTextCompr:
		if len(v) == 0 {
			return "_" + c.name + "''", nil
		}
		return "_" + c.name + " x'" + hex.EncodeToString(v) + "'", nil
	case opUUID, opInet4, opInet6:
		for _, x := range v {
			if !(x >= '0' && x <= '9' || x >= 'a' && x <= 'f' || x >= 'A' && x <= 'F' || x == '-' || x == ':' || x == '.') {
				return bad()
			}
		}
		return "'" + string(v) + "'", nil
	case opBytes, opPadded, opBytesCompr:
		return "x'" + hex.EncodeToString(v) + "'", nil
	}
	return "", fmt.Errorf("column %s of type %s cannot be in a key that is read in order", bc.Name, bc.Native)
}

// floatLiteral is a number with an exponent, which the server reads as a double.
func floatLiteral(f float64) string { return strconv.FormatFloat(f, 'e', -1, 64) }

func (c *column) clockLiteral(v []byte) (string, error) {
	t := uint8(typeDateTime)
	if c.op == opTime || c.op == opTime2 {
		t = typeTime
	}
	d, ok := readClock(t, v)
	if !ok {
		return "", fmt.Errorf("%w: date or time of %d bytes", ErrCorrupt, len(v))
	}
	b := []byte{'\''}
	switch {
	case t == typeTime:
		us := ((int64(d.days)*24+int64(d.Hour))*3600+int64(d.Minute)*60+int64(d.Second))*1e6 + int64(d.Mic)
		if d.negative {
			us = -us
		}
		b = batch.AppendTime(b, us, 6)
	case c.op == opDate:
		b = batch.AppendDate(b, batch.PackDate(d.Year, d.Month, d.Day))
	default:
		b = batch.AppendDateTime(b, d.Pack(), 6)
	}
	return string(append(b, '\'')), nil
}

// After is the part of "key > cursor" in which the first n columns of the key
// equal those of the cursor and the next one is greater. For a key of k columns
// the parts k-1, k-2, … 0 follow one another in the order of the key; each is a
// range of an index by itself, which a comparison of rows is not to every server.
func (s *Selection) After(cur Cursor, n int) (string, error) { return s.compare(cur, n, ">") }

// UpTo is the part of "key <= cursor" that belongs to n, in the same way; the one
// with n = the number of columns is the equal key itself.
func (s *Selection) UpTo(cur Cursor, n int) (string, error) { return s.compare(cur, n, "<") }

func (s *Selection) compare(cur Cursor, n int, op string) (string, error) {
	if len(cur) != len(s.Schema.Key) {
		return "", fmt.Errorf("%w: a key of %d columns for %s, which has %d", ErrCorrupt, len(cur), s.Schema.Name(), len(s.Schema.Key))
	}
	var parts []string
	for p := range min(n+1, len(cur)) {
		lit, err := s.literal(p, cur[p])
		if err != nil {
			return "", err
		}
		at := s.Schema.Key[p]
		name := QuoteName(s.names[at])
		if p == n {
			if c := &s.cols[at]; c.op == opEnum || c.op == opSet {
				// Compared with a text a label would sort as text, not by its number.
				name = "CAST(" + name + " AS UNSIGNED)"
			}
			parts = append(parts, name+" "+op+" "+lit)
			continue
		}
		parts = append(parts, name+" = "+lit)
	}
	return strings.Join(parts, " AND "), nil
}

// Within is "key <= cursor" as one condition.
func (s *Selection) Within(cur Cursor) (string, error) {
	var parts []string
	for n := 0; n <= len(cur); n++ {
		p, err := s.UpTo(cur, n)
		if err != nil {
			return "", err
		}
		parts = append(parts, "("+p+")")
	}
	return "(" + strings.Join(parts, " OR ") + ")", nil
}

// Equal is "key = cursor" as one condition.
func (s *Selection) Equal(cur Cursor) (string, error) { return s.compare(cur, len(cur), "=") }

// CursorOf turns key bytes of the schema into a cursor. Text is converted back
// to its character set, where it is exact but for codes that are doubles of
// others; those servers do not keep apart in an index of text.
func (s *Selection) CursorOf(key []byte) (Cursor, error) {
	vals, err := s.Schema.KeyValues(key)
	if err != nil {
		return nil, err
	}
	out := make(Cursor, len(vals))
	for p := range vals {
		if out[p], err = s.wire(p, &vals[p]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// wire is a value of the key as Cursor has it.
func (s *Selection) wire(p int, v *batch.Value) ([]byte, error) {
	at := s.Schema.Key[p]
	c, bc := &s.cols[at], &s.Schema.Columns[at]
	if name, data, ok := v.Raw(); ok {
		if name != c.name {
			return nil, fmt.Errorf("%w: key column %s of %s holds bytes of %s", ErrCorrupt, bc.Name, s.Schema.Name(), name)
		}
		return bytes.Clone(data), nil
	}
	le := binary.LittleEndian
	switch {
	case c.op == opEnum:
		return le.AppendUint64(nil, labelNumber(c.labels, string(v.Bytes()))), nil
	case c.op == opSet:
		var bits uint64
		for l := range strings.SplitSeq(string(v.Bytes()), ",") {
			if n := labelNumber(c.labels, l); n > 0 {
				bits |= 1 << (n - 1)
			}
		}
		return le.AppendUint64(nil, bits), nil
	case c.number():
		switch bc.Type {
		case batch.Uint8, batch.Uint16, batch.Uint32, batch.Uint64, batch.Year, batch.Bool:
			return le.AppendUint64(nil, v.Uint64()), nil
		}
		return le.AppendUint64(nil, uint64(v.Int64())), nil
	}
	switch c.op {
	case opFloat32:
		return le.AppendUint32(nil, math.Float32bits(float32(v.Float64()))), nil
	case opFloat64:
		return le.AppendUint64(nil, math.Float64bits(v.Float64())), nil
	case opDate:
		y, m, d := batch.UnpackDate(int32(v.Int64()))
		return append(le.AppendUint16(nil, uint16(y)), byte(m), byte(d)), nil
	case opDateTime, opDateTime2:
		return civilWire(batch.UnpackDateTime(v.Int64())), nil
	case opTimestamp, opTimestamp2:
		if v.Int64() == batch.ZeroTimestamp {
			return civilWire(batch.Civil{}), nil
		}
		return civilWire(batch.CivilFromUnixMicro(v.Int64())), nil
	case opTime, opTime2:
		us, b := v.Int64(), []byte{0}
		if us < 0 {
			us, b[0] = -us, 1
		}
		sec := us / 1e6
		b = le.AppendUint32(b, uint32(sec/86400))
		b = append(b, byte(sec/3600%24), byte(sec/60%60), byte(sec%60))
		return le.AppendUint32(b, uint32(us%1e6)), nil
	case opUUID:
		return []byte(uuidText(v.Bytes())), nil
	case opText, opTextCompr:
		return charset.Encode(c.name, v.Bytes())
	}
	return append([]byte{}, v.Bytes()...), nil
}

func civilWire(d batch.Civil) []byte {
	b := append(binary.LittleEndian.AppendUint16(nil, uint16(d.Year)), byte(d.Month), byte(d.Day), byte(d.Hour), byte(d.Minute), byte(d.Second))
	return binary.LittleEndian.AppendUint32(b, uint32(d.Mic))
}

func labelNumber(labels []string, l string) uint64 {
	for i := range labels {
		if labels[i] == l {
			return uint64(i + 1)
		}
	}
	return 0
}

func uuidText(b []byte) string {
	h := hex.EncodeToString(b)
	if len(h) != 32 {
		return h
	}
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
