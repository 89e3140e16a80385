package mysql

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk/batch"
)

// appendValue appends a value as a literal of the column, by policy where the
// target cannot hold it.
func (a *applier) appendValue(b []byte, p *plan, i int, v *batch.Value) ([]byte, error) {
	c := &p.columns[i]
	at := len(b)
	var why string
	switch v.State {
	case batch.Present:
		if b, why = c.appendPresent(b, v); why == "" {
			return b, nil
		}
	case batch.Raw:
		if b, why = c.appendRaw(b, v); why == "" {
			return b, nil
		}
	case batch.Null:
		if !c.notNull {
			return append(b, "NULL"...), nil
		}
		why = "found NULL, and the column is NOT NULL in the target"
	default:
		why = "found no value"
	}
	b = b[:at]
	o := &a.w.cfg.Options
	switch o.Choose(!c.notNull, c.cuttable(v)) {
	case target.SetNull:
		a.replaced++
		return append(b, "NULL"...), nil
	case target.Cut:
		if out, ok := c.appendCut(b, v); ok {
			a.replaced++
			return out, nil
		}
	}
	return b, target.Unfit(p.schema, i, "%s (%s in the target)", why, c.have.Type)
}

// appendPresent appends a value that is there, or says why it does not fit.
func (c *column) appendPresent(b []byte, v *batch.Value) ([]byte, string) {
	switch c.source.Type {
	case batch.Bool, batch.Int8, batch.Int16, batch.Int32, batch.Int64:
		if c.narrow && !c.holdsInt(v.Int64()) {
			return b, "found " + strconv.FormatInt(v.Int64(), 10)
		}
		return strconv.AppendInt(b, v.Int64(), 10), ""
	case batch.Uint8, batch.Uint16, batch.Uint32, batch.Uint64, batch.Year:
		u := v.Uint64()
		if c.source.Type == batch.Year && c.to.base == "year" && u != 0 && (u < 1901 || u > 2155) || c.narrow && !c.holdsUint(u) {
			return b, "found " + strconv.FormatUint(u, 10)
		}
		return strconv.AppendUint(b, u, 10), ""
	case batch.Bit:
		return c.appendBit(b, v.Bytes())
	case batch.Float32, batch.Float64:
		return c.appendFloat(b, v.Float64())
	case batch.Decimal:
		return c.appendDecimal(b, v.Bytes())
	case batch.String, batch.Inet:
		if c.narrow {
			if why := c.textFits(v.Bytes()); why != "" {
				return b, why
			}
		}
		return appendQuoted(b, v.Bytes()), ""
	case batch.Enum, batch.Set:
		return c.appendLabel(b, v.Bytes())
	case batch.JSON:
		if c.to.base == "json" && c.have.Charset == "" && !jsonExact(v.Bytes()) {
			return b, "found a document with a name twice in an object, a number of more digits than a double holds, or more than 100 levels"
		}
		return appendQuoted(b, v.Bytes()), ""
	case batch.Bytes, batch.Array, batch.Vector:
		if c.narrow {
			if why := c.textFits(v.Bytes()); why != "" {
				return b, why
			}
		}
		return appendQuoted(append(b, "_binary"...), v.Bytes()), ""
	case batch.Geometry:
		return appendQuoted(append(b, "_binary"...), v.Bytes()), ""
	case batch.Map, batch.Native:
		if asText(c.source) {
			return appendQuoted(b, v.Bytes()), ""
		}
		return appendQuoted(append(b, "_binary"...), v.Bytes()), ""
	case batch.Date, batch.DateTime, batch.Timestamp, batch.Time:
		return c.appendTime(b, v)
	case batch.UUID:
		if c.to.base == "binary" {
			return append(hex.AppendEncode(append(b, "x'"...), v.Bytes()), '\''), ""
		}
		b = append(b, '\'')
		b, _ = batch.AppendText(b, c.source, v)
		return append(b, '\''), ""
	case batch.Interval:
		return append(appendInterval(append(b, '\''), v.Bytes()), '\''), ""
	case batch.TimeTZ:
		return append(appendTimeTZ(append(b, '\''), c.source, v.Bytes()), '\''), ""
	}
	return b, "found a value of type " + c.source.Type.String() + ", for which there is no mapping"
}

// appendRaw appends bytes that are no value of the column's type: into text
// columns as they are, where the server decides whether they are text of its
// charset.
func (c *column) appendRaw(b []byte, v *batch.Value) ([]byte, string) {
	name, data, _ := v.Raw()
	switch c.source.Type {
	case batch.String, batch.Enum, batch.Set:
		if _, family := textRoom[c.to.base]; family || c.to.base == "varchar" || c.to.base == "char" {
			if c.have.Charset == name || c.have.Charset == "utf8mb4" && (name == "utf8mb3" || name == "utf8") {
				return appendQuoted(append(b, "_binary"...), data), ""
			}
		}
	}
	if len(data) > 32 {
		data = data[:32]
	}
	return b, "found bytes 0x" + hex.EncodeToString(data) + " (" + name + "), which are no value of type " + c.source.Type.String()
}

func (c *column) holdsInt(n int64) bool {
	s, ok := c.to.span()
	return !ok || n >= s.lo && (n < 0 || uint64(n) <= s.hi)
}

func (c *column) holdsUint(n uint64) bool {
	s, ok := c.to.span()
	return !ok || n <= s.hi
}

func (c *column) appendBit(b, data []byte) ([]byte, string) {
	if c.to.base != "bit" && c.source.Length > 64 || c.to.base != "bit" && c.source.Length == 0 {
		return append(hex.AppendEncode(append(b, "x'"...), data), '\''), ""
	}
	var n uint64
	for _, x := range data {
		n = n<<8 | uint64(x)
	}
	if c.to.base == "bit" && c.to.n < 64 && n>>c.to.n != 0 || c.narrow && !c.holdsUint(n) {
		return b, "found " + strconv.FormatUint(n, 10)
	}
	return strconv.AppendUint(b, n, 10), ""
}

// appendFloat writes all digits of the double: the servers refuse the largest
// float in the digits of a float.
func (c *column) appendFloat(b []byte, f float64) ([]byte, string) {
	switch {
	case math.IsNaN(f), math.IsInf(f, 0):
		return b, "found " + strconv.FormatFloat(f, 'g', -1, 64)
	case c.narrow && c.to.base == "float" && float64(float32(f)) != f:
		return b, "found " + strconv.FormatFloat(f, 'g', -1, 64)
	case c.narrow && c.to.unsigned && f < 0:
		return b, "found " + strconv.FormatFloat(f, 'g', -1, 64)
	}
	return strconv.AppendFloat(b, f, 'e', -1, 64), ""
}

// appendDecimal writes the digits. The servers round what does not fit behind the
// point and say nothing.
func (c *column) appendDecimal(b, text []byte) ([]byte, string) {
	if len(text) > 0 && (text[len(text)-1] == 'N' || text[len(text)-1] == 'y') {
		return b, "found " + string(text)
	}
	if c.narrow && c.to.base == "decimal" {
		before, after := digits(text)
		if after > max(c.to.scale, 0) || before > c.to.n-max(c.to.scale, 0) || c.to.unsigned && text[0] == '-' {
			return b, "found " + string(text[:min(len(text), 80)])
		}
	}
	return append(b, text...), ""
}

// digits counts the digits before and behind the point without zeros that say
// nothing.
func digits(text []byte) (before, after int) {
	i := 0
	for i < len(text) && (text[i] == '-' || text[i] == '0') {
		i++
	}
	for ; i < len(text) && text[i] != '.'; i++ {
		before++
	}
	for j := i + 1; j < len(text); j++ {
		if text[j] != '0' {
			after = j - i
		}
	}
	return before, after
}

func (c *column) appendLabel(b, label []byte) ([]byte, string) {
	if len(label) == 0 && c.source.Type == batch.Enum && c.to.base == "enum" && !hasEmpty(c.to.labels) {
		return b, "found the empty label of an enum"
	}
	if c.narrow {
		if why := c.textFits(label); why != "" {
			return b, why
		}
	}
	return appendQuoted(b, label), ""
}

func hasEmpty(labels []string) bool {
	for _, l := range labels {
		if l == "" {
			return true
		}
	}
	return false
}

// appendInterval prints the three parts of an interval, each with its own sign.
func appendInterval(dst, b []byte) []byte {
	dst = strconv.AppendInt(dst, int64(int32(binary.LittleEndian.Uint32(b))), 10)
	dst = append(dst, " mons "...)
	dst = strconv.AppendInt(dst, int64(int32(binary.LittleEndian.Uint32(b[4:]))), 10)
	dst = append(dst, " days "...)
	return batch.AppendTime(dst, int64(binary.LittleEndian.Uint64(b[8:])), 6)
}

// appendTimeTZ prints a time of day with its offset: "04:05:06+01:30".
func appendTimeTZ(dst []byte, c *batch.Column, b []byte) []byte {
	dst = batch.AppendTime(dst, int64(binary.LittleEndian.Uint64(b)), int(min(c.Scale, 6)))
	off := int64(int32(binary.LittleEndian.Uint32(b[8:])))
	sign := byte('+')
	if off < 0 {
		sign, off = '-', -off
	}
	dst = append(dst, sign, byte('0'+off/36000), byte('0'+off/3600%10), ':', byte('0'+off/600%6), byte('0'+off/60%10))
	if s := off % 60; s != 0 {
		dst = append(dst, ':', byte('0'+s/10), byte('0'+s%10))
	}
	return dst
}
