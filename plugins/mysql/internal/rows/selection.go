package rows

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/datalink-go/datalink/plugins/mysql/internal/schema"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Selection reads the rows that SELECT gives of a table, in the binary protocol,
// into the values that the log of the same rows gives. It is made for sessions
// with character_set_results=NULL, time_zone='+00:00' and sql_mode=”.
//
// It is not safe for concurrent use; its buffers serve one row after the other.
type Selection struct {
	Schema *batch.Schema
	Def    *schema.Table

	cols  []column // of the schema, in order
	names []string // of the columns, as the server writes them
	types []uint8  // of the result's columns
	key   [][]byte // of the last row, by place in the key
	place []int    // by column: its place in the key, -1 for others
	it    Iter
}

// NewSelection returns a selection of all columns that rows of the log have.
// Its schema is that of SchemaOf; UseSchema may replace it.
func NewSelection(def *schema.Table, opt Options) (*Selection, error) {
	tm := mapTable(def, opt)
	l, err := NewLayout(tm, def, opt)
	if err != nil {
		return nil, err
	}
	s := &Selection{Schema: l.Schema, Def: def}
	for i := range l.cols {
		if c := &l.cols[i]; !c.skip {
			s.cols = append(s.cols, *c)
			s.names = append(s.names, l.Schema.Columns[len(s.names)].Name)
		}
	}
	s.setKey()
	return s, nil
}

func (s *Selection) setKey() {
	s.place = make([]int, len(s.cols))
	for i := range s.place {
		s.place[i] = -1
	}
	for p, c := range s.Schema.Key {
		s.place[c] = p
	}
	s.key = make([][]byte, len(s.Schema.Key))
}

// UseSchema makes rows those of another schema, which must have the same columns
// and key. It reports whether it has.
func (s *Selection) UseSchema(other *batch.Schema) bool {
	if !Alike(s.Schema, other) {
		return false
	}
	s.Schema = other
	s.setKey()
	return true
}

// Alike reports whether rows of two schemas are interchangeable: the same
// columns of the same types, and the same key.
func Alike(a, b *batch.Schema) bool {
	if len(a.Columns) != len(b.Columns) || len(a.Key) != len(b.Key) {
		return false
	}
	for i := range a.Key {
		if a.Key[i] != b.Key[i] {
			return false
		}
	}
	for i := range a.Columns {
		x, y := &a.Columns[i], &b.Columns[i]
		if !strings.EqualFold(x.Name, y.Name) || x.Type != y.Type || x.Scale != y.Scale || x.Precision != y.Precision ||
			x.Charset != y.Charset || x.Collation != y.Collation || len(x.Values) != len(y.Values) || x.Flags&batch.Hidden != y.Flags&batch.Hidden {
			return false
		}
		for k := range x.Values {
			if x.Values[k] != y.Values[k] {
				return false
			}
		}
	}
	return true
}

// List returns the select list.
func (s *Selection) List() string {
	var b strings.Builder
	for i := range s.cols {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(s.expr(i))
	}
	return b.String()
}

func (s *Selection) expr(i int) string {
	switch s.cols[i].op {
	case opEnum, opSet:
		// The number of the label: labels are made of it as they are in the log.
		return "CAST(" + QuoteName(s.names[i]) + " AS UNSIGNED)"
	}
	return QuoteName(s.names[i])
}

// Order returns the columns of the key from place from on, for ORDER BY.
func (s *Selection) Order(from int) string {
	var b strings.Builder
	for i, c := range s.Schema.Key[from:] {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(QuoteName(s.names[c]))
	}
	return b.String()
}

// QuoteName quotes an identifier.
func QuoteName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// Result says which types the columns of a result have, in the order of List.
func (s *Selection) Result(types []uint8) error {
	if len(types) != len(s.cols) {
		return fmt.Errorf("%w: %s: the result has %d columns, %d were selected", ErrCorrupt, s.Schema.Name(), len(types), len(s.cols))
	}
	s.types = append(s.types[:0], types...)
	return nil
}

// Append appends a row of the result to out as a Read event.
func (s *Selection) Append(out *batch.Builder, packet []byte) error {
	nulls := (len(s.cols) + 9) / 8
	if len(packet) < 1+nulls || packet[0] != 0 {
		return fmt.Errorf("%w: row of %s: %d bytes", ErrCorrupt, s.Schema.Name(), len(packet))
	}
	null, b := packet[1:1+nulls], packet[1+nulls:]
	if err := out.BeginRow(batch.Read, s.Schema); err != nil {
		return err
	}
	out.BeginImage(batch.AfterImage)
	for i := range s.cols {
		c := &s.cols[i]
		if null[(i+2)>>3]&(1<<((i+2)&7)) != 0 {
			out.PutNull()
			continue
		}
		head, n, err := wireSize(s.types[i], b)
		if err != nil {
			out.DropRow()
			return s.errorf(c, err)
		}
		v := b[head : head+n]
		b = b[head+n:]
		if p := s.place[i]; p >= 0 {
			s.key[p] = append(s.key[p][:0], v...)
		}
		if err := s.put(out, c, s.types[i], v); err != nil {
			out.DropRow()
			return s.errorf(c, err)
		}
	}
	out.EndImage()
	if len(b) != 0 {
		out.DropRow()
		return fmt.Errorf("%w: row of %s: %d bytes follow the last column", ErrCorrupt, s.Schema.Name(), len(b))
	}
	return out.EndRow()
}

func (s *Selection) errorf(c *column, err error) error {
	return fmt.Errorf("row of %s, column %s: %w", s.Schema.Name(), c.display, err)
}

// wireSize returns how many bytes stand before a value in the binary protocol
// and how many it has.
func wireSize(t uint8, b []byte) (head, n int, err error) {
	switch t {
	case typeTiny:
		n = 1
	case typeShort, typeYear:
		n = 2
	case typeLong, typeInt24, typeFloat:
		n = 4
	case typeLongLong, typeDouble:
		n = 8
	default:
		l, k := lenenc(b)
		if k == 0 || l > uint64(len(b)-k) {
			return 0, 0, errCut
		}
		return k, int(l), nil
	}
	if len(b) < n {
		return 0, 0, errCut
	}
	return 0, n, nil
}

// lenenc reads a length; 0 bytes: it is cut off.
func lenenc(b []byte) (uint64, int) {
	if len(b) == 0 {
		return 0, 0
	}
	switch b[0] {
	case 0xFC:
		if len(b) >= 3 {
			return uint64(binary.LittleEndian.Uint16(b[1:])), 3
		}
	case 0xFD:
		if len(b) >= 4 {
			return uint64(b[1]) | uint64(b[2])<<8 | uint64(b[3])<<16, 4
		}
	case 0xFE:
		if len(b) >= 9 {
			return binary.LittleEndian.Uint64(b[1:]), 9
		}
	case 0xFB, 0xFF:
	default:
		return uint64(b[0]), 1
	}
	return 0, 0
}

// number reads an integer of the binary protocol, its sign extended.
func number(t uint8, v []byte) (int64, bool) {
	switch {
	case t == typeTiny && len(v) == 1:
		return int64(int8(v[0])), true
	case (t == typeShort || t == typeYear) && len(v) == 2:
		return int64(int16(binary.LittleEndian.Uint16(v))), true
	case (t == typeLong || t == typeInt24) && len(v) == 4:
		return int64(int32(binary.LittleEndian.Uint32(v))), true
	case t == typeLongLong && len(v) == 8:
		return int64(binary.LittleEndian.Uint64(v)), true
	}
	return 0, false
}

// put appends one value of a result.
func (s *Selection) put(out *batch.Builder, c *column, t uint8, v []byte) error {
	switch c.op {
	case opInt8, opInt16, opInt24, opInt32, opInt64, opUint8, opUint16, opUint24, opUint32, opUint64, opYear, opEnum, opSet:
		n, ok := number(t, v)
		if !ok {
			return fmt.Errorf("%w: type %d for a number", ErrCorrupt, t)
		}
		return s.putNumber(out, c, n)
	case opFloat32:
		if t != typeFloat {
			return fmt.Errorf("%w: type %d for float", ErrCorrupt, t)
		}
		out.PutFloat(float64(math.Float32frombits(binary.LittleEndian.Uint32(v))))
		return nil
	case opFloat64:
		if t != typeDouble {
			return fmt.Errorf("%w: type %d for double", ErrCorrupt, t)
		}
		out.PutFloat(math.Float64frombits(binary.LittleEndian.Uint64(v)))
		return nil
	case opDate, opDateTime, opDateTime2, opTimestamp, opTimestamp2, opTime, opTime2:
		return putClock(out, c, t, v)
	}
	// All others come as a length and bytes.
	switch t {
	case typeTiny, typeShort, typeYear, typeLong, typeInt24, typeFloat, typeLongLong, typeDouble, typeDate, typeDateTime, typeTimestamp, typeTime:
		return fmt.Errorf("%w: type %d for text or bytes", ErrCorrupt, t)
	}
	switch c.op {
	case opDecimal:
		out.VarEnd(appendDecimal(out.VarStart(), v))
	case opText, opTextCompr:
		s.it.text(out, c, v)
	case opGeometry:
		if len(v) < 9 {
			out.PutRaw("geometry", v)
		} else {
			out.PutBytes(v)
		}
	case opVector:
		if len(v)%4 != 0 {
			return fmt.Errorf("%w: vector of %d bytes", ErrCorrupt, len(v))
		}
		out.PutBytes(v)
	case opUUID:
		u, ok := parseUUID(v)
		if !ok {
			return fmt.Errorf("%w: uuid %q", ErrCorrupt, v)
		}
		out.PutBytes(u[:])
	default: // bit, bytes, JSON, addresses
		out.PutBytes(v)
	}
	return nil
}

func (s *Selection) putNumber(out *batch.Builder, c *column, n int64) error {
	var b [8]byte
	switch c.op {
	case opInt8, opInt16, opInt24, opInt32, opInt64:
		out.PutInt(n)
	case opUint8:
		out.PutUint(uint64(uint8(n)))
	case opUint16, opYear:
		out.PutUint(uint64(uint16(n)))
	case opUint24:
		out.PutUint(uint64(uint32(n) & 0xFFFFFF))
	case opUint32:
		out.PutUint(uint64(uint32(n)))
	case opUint64:
		out.PutUint(uint64(n))
	case opEnum:
		binary.LittleEndian.PutUint64(b[:], uint64(n))
		return c.putEnum(out, b[:max(c.size, 1)])
	case opSet:
		binary.LittleEndian.PutUint64(b[:], uint64(n))
		return c.putSet(out, b[:])
	}
	return nil
}

// civil is a date and time of the binary protocol.
type civil struct {
	batch.Civil
	negative bool
	days     int
}

func readClock(t uint8, v []byte) (d civil, ok bool) {
	le := binary.LittleEndian
	if t == typeTime {
		if len(v) == 0 {
			return d, true
		}
		if len(v) != 8 && len(v) != 12 {
			return d, false
		}
		d.negative, d.days, d.Hour, d.Minute, d.Second = v[0] != 0, int(le.Uint32(v[1:])), int(v[5]), int(v[6]), int(v[7])
		if len(v) == 12 {
			d.Mic = int(le.Uint32(v[8:]))
		}
		return d, true
	}
	switch len(v) {
	case 0, 4, 7, 11:
	default:
		return d, false
	}
	if len(v) >= 4 {
		d.Year, d.Month, d.Day = int(le.Uint16(v)), int(v[2]), int(v[3])
	}
	if len(v) >= 7 {
		d.Hour, d.Minute, d.Second = int(v[4]), int(v[5]), int(v[6])
	}
	if len(v) == 11 {
		d.Mic = int(le.Uint32(v[7:]))
	}
	return d, true
}

func putClock(out *batch.Builder, c *column, t uint8, v []byte) error {
	want := typeDateTime
	switch c.op {
	case opDate:
		want = typeDate
	case opTime, opTime2:
		want = typeTime
	case opTimestamp, opTimestamp2:
		want = typeTimestamp
	}
	d, ok := readClock(t, v)
	if int(t) != want || !ok {
		return fmt.Errorf("%w: type %d of %d bytes for a date or time", ErrCorrupt, t, len(v))
	}
	switch want {
	case typeDate:
		out.PutInt(int64(batch.PackDate(d.Year, d.Month, d.Day)))
	case typeTime:
		us := ((int64(d.days)*24+int64(d.Hour))*3600+int64(d.Minute)*60+int64(d.Second))*1e6 + int64(d.Mic)
		if d.negative {
			us = -us
		}
		out.PutInt(us)
	case typeTimestamp:
		if d.Year == 0 && d.Month == 0 && d.Day == 0 {
			out.PutInt(batch.ZeroTimestamp)
		} else {
			out.PutInt(d.UnixMicro())
		}
	default:
		out.PutInt(d.Pack())
	}
	return nil
}

// appendDecimal appends a decimal without the zeros that ZEROFILL puts before it,
// and with the one before the point that some servers leave out.
func appendDecimal(dst, v []byte) []byte {
	if len(v) > 0 && v[0] == '-' {
		dst, v = append(dst, '-'), v[1:]
	}
	for len(v) > 1 && v[0] == '0' && v[1] != '.' {
		v = v[1:]
	}
	if len(v) > 0 && v[0] == '.' {
		dst = append(dst, '0')
	}
	return append(dst, v...)
}

func parseUUID(v []byte) (u [16]byte, ok bool) {
	if len(v) != 36 {
		return u, false
	}
	n := 0
	for i, c := range v {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return u, false
			}
			continue
		}
		var x byte
		switch {
		case c >= '0' && c <= '9':
			x = c - '0'
		case c >= 'a' && c <= 'f':
			x = c - 'a' + 10
		case c >= 'A' && c <= 'F':
			x = c - 'A' + 10
		default:
			return u, false
		}
		u[n/2] = u[n/2]<<4 | x
		n++
	}
	return u, true
}
