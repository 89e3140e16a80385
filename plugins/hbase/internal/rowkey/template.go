package rowkey

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/plugins/hbase/internal/value"
	"github.com/datalink-go/datalink/sdk/batch"
)

type form uint8

const (
	literal form = iota
	ordered
	text
	reverse
	salt
	hash
)

type part struct {
	form    form
	column  int // place in the schema
	key     int // place in the schema's key
	literal []byte
	n       int // of salt and hash
	last    bool
	stop    byte // text: what follows begins with it; 0 = an escaped form is used
}

// Template makes and reads the row keys of one schema.
type Template struct {
	schema *batch.Schema
	parts  []part
	plain  bool
}

// Default is the template of a schema for which none is given: the columns of its
// key, one after the other.
func Default(s *batch.Schema) string {
	var b strings.Builder
	for _, k := range s.Key {
		b.WriteString("{" + s.Columns[k].Name + "}")
	}
	return b.String()
}

// Parse reads a template for a schema. It must hold each column of the key once,
// and no other: rows whose other columns change could not be found again.
func Parse(spec string, s *batch.Schema) (*Template, error) {
	t := &Template{schema: s, plain: true}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("row key template %q of %s: %s", spec, s.Name(), fmt.Sprintf(format, args...))
	}
	used := map[int]bool{}
	for rest := spec; rest != ""; {
		lit, after, ok := strings.Cut(rest, "{")
		if lit != "" {
			t.parts = append(t.parts, part{form: literal, literal: []byte(lit)})
			t.plain = false
		}
		if !ok {
			break
		}
		word, tail, ok := strings.Cut(after, "}")
		if !ok {
			return nil, bad("a { is not closed")
		}
		rest = tail
		name, how, _ := strings.Cut(word, ":")
		p := part{column: s.Column(name)}
		if p.column < 0 && (name == "salt" || name == "hash") {
			n, err := strconv.Atoi(how)
			if p.form = salt; name == "hash" {
				p.form = hash
			}
			if err != nil || n < 1 || p.form == salt && n > 256 || p.form == hash && n > 16 {
				return nil, bad("{%s}: want {salt:1} to {salt:256} or {hash:1} to {hash:16}", word)
			}
			if len(t.parts) > 0 {
				return nil, bad("{%s} must come first: it is made of what follows", word)
			}
			p.n = n
			t.parts, t.plain = append(t.parts, p), false
			continue
		}
		if p.key = slices.Index(s.Key, p.column); p.column < 0 || p.key < 0 {
			return nil, bad("%q is no column of the key", name)
		}
		if used[p.column] {
			return nil, bad("column %q comes twice", name)
		}
		used[p.column] = true
		col := &s.Columns[p.column]
		switch how {
		case "":
			p.form = ordered
			t.plain = t.plain && p.key == len(used)-1
		case "text":
			p.form, t.plain = text, false
		case "reverse":
			p.form, t.plain = reverse, false
		default:
			return nil, bad("{%s}: want {%s}, {%s:text} or {%s:reverse}", word, name, name, name)
		}
		switch w := width(col.Type); {
		case w < 0:
			return nil, bad("column %q has type %s, which a row key cannot hold", name, col.Type)
		case p.form == reverse && w == 0:
			return nil, bad("column %q has type %s, which has no fixed width to reverse", name, col.Type)
		}
		t.parts = append(t.parts, p)
	}
	for _, k := range s.Key {
		if !used[k] {
			return nil, bad("key column %q is missing: rows that differ in it would be one row", s.Columns[k].Name)
		}
	}
	if n := len(t.parts); n > 0 {
		t.parts[n-1].last = true
		for i := range n - 1 {
			if next := &t.parts[i+1]; t.parts[i].form == text && next.form == literal {
				t.parts[i].stop = next.literal[0]
			}
		}
	}
	return t, nil
}

// Ordered reports whether keys compare as the tuples of key values do.
func (t *Template) Ordered() bool { return t.plain }

// Salts returns how many buckets the keys are spread over, 0 without a salt.
func (t *Template) Salts() int {
	if len(t.parts) > 0 && t.parts[0].form == salt {
		return t.parts[0].n
	}
	return 0
}

// Encode appends the row key for the key's values, one for each column of the
// schema's key in that order.
func (t *Template) Encode(dst []byte, key []batch.Value) ([]byte, error) {
	from := len(dst)
	var tmp []byte
	for i := range t.parts {
		p := &t.parts[i]
		if p.form == literal {
			dst = append(dst, p.literal...)
			continue
		}
		if p.form == salt || p.form == hash {
			n := p.n
			if p.form == salt {
				n = 1
			}
			dst = append(dst, make([]byte, n)...)
			continue
		}
		v, col := &key[p.key], &t.schema.Columns[p.column]
		if v.State != batch.Present {
			return nil, fmt.Errorf("key column %s is %s", col.Name, v.State)
		}
		switch p.form {
		case ordered:
			dst = appendOrdered(dst, col.Type, v, p.last)
		case reverse:
			at := len(dst)
			dst = appendOrdered(dst, col.Type, v, p.last)
			for k := at; k < len(dst); k++ {
				dst[k] = ^dst[k]
			}
		case text:
			tmp = appendText(tmp[:0], col, v)
			switch {
			case p.last:
				dst = append(dst, tmp...)
			case p.stop == 0:
				dst = appendEscaped(dst, tmp)
			default:
				for _, c := range tmp {
					if c == p.stop || c == '\\' {
						dst = append(dst, '\\')
					}
					dst = append(dst, c)
				}
			}
		}
	}
	if len(dst) == from {
		return nil, fmt.Errorf("the row key is empty, which HBase does not allow")
	}
	t.prefix(dst[from:])
	return dst, nil
}

func (t *Template) prefix(row []byte) {
	switch p := &t.parts[0]; p.form {
	case salt:
		sum := md5.Sum(row[1:])
		row[0] = byte((uint(sum[0])<<8 | uint(sum[1])) % uint(p.n))
	case hash:
		sum := md5.Sum(row[p.n:])
		copy(row, sum[:p.n])
	}
}

// appendText appends a value as text, bytes as they are.
func appendText(dst []byte, c *batch.Column, v *batch.Value) []byte {
	if out, ok := batch.AppendText(dst, c, v); ok {
		return out
	}
	return append(dst, v.Bytes()...)
}

// Part is a column's value in a row key.
type Part struct {
	Column int    // place in the schema
	Text   bool   // Data is the value as text, or its bytes
	Data   []byte // else the ordered form, see Ordered
	Bits   uint64 // of fixed-width types: as batch.Value has them
}

// Decode takes a row key apart: one Part for each column of the key, in the
// template's order.
func (t *Template) Decode(row []byte) ([]Part, error) {
	all := row
	var out []Part
	for i := range t.parts {
		p := &t.parts[i]
		switch p.form {
		case literal:
			var ok bool
			if row, ok = bytes.CutPrefix(row, p.literal); !ok {
				return nil, fmt.Errorf("row key %q: %w: %q is not where it should be", all, errShort, p.literal)
			}
			continue
		case salt, hash:
			n := p.n
			if p.form == salt {
				n = 1
			}
			if len(row) < n {
				return nil, fmt.Errorf("row key %q: %w", all, errShort)
			}
			row = row[n:]
			continue
		}
		col := &t.schema.Columns[p.column]
		x, rest, err := p.cut(col, row)
		if err != nil {
			return nil, fmt.Errorf("row key %q, column %s: %w", all, col.Name, err)
		}
		out, row = append(out, x), rest
	}
	if len(row) > 0 {
		return nil, fmt.Errorf("row key %q: %w: %d bytes are left over", all, errShort, len(row))
	}
	return out, nil
}

func (p *part) cut(col *batch.Column, row []byte) (x Part, rest []byte, err error) {
	x = Part{Column: p.column, Text: true}
	switch {
	case p.form == text && p.last:
		x.Data = row
		return x, nil, nil
	case p.form == text && p.stop != 0:
		for i := 0; i < len(row); i++ {
			switch {
			case row[i] == '\\' && i+1 < len(row):
				i++
				x.Data = append(x.Data, row[i])
			case row[i] == p.stop:
				return x, row[i:], nil
			default:
				x.Data = append(x.Data, row[i])
			}
		}
		return x, nil, errShort
	case p.form == text:
		x.Data, rest, err = cutEscaped(row)
		return x, rest, err
	case col.Type == batch.Decimal:
		var s string
		s, rest, err = cutDecimal(row, int(col.Scale))
		x.Data = []byte(s)
		return x, rest, err
	}
	w := width(col.Type)
	switch {
	case w == 0 && p.last:
		x.Data = row
		return x, nil, nil
	case w == 0:
		x.Data, rest, err = cutEscaped(row)
		return x, rest, err
	case len(row) < w:
		return x, nil, errShort
	}
	data := bytes.Clone(row[:w])
	if p.form == reverse {
		for i := range data {
			data[i] = ^data[i]
		}
	}
	if col.Type == batch.UUID {
		x.Data = data
		return x, row[w:], nil
	}
	x.Text = false
	x.Bits = bitsOf(col.Type, data)
	return x, row[w:], nil
}

// Again appends to nothing the key that this template, a default one, makes of the
// parts that another template of the schema took out of a row key.
func (t *Template) Again(parts []Part) ([]byte, error) {
	values := make([]batch.Value, len(t.schema.Key))
	for i := range t.parts {
		p := &t.parts[i]
		for _, x := range parts {
			if x.Column != p.column {
				continue
			}
			v, err := x.value(&t.schema.Columns[x.Column])
			if err != nil {
				return nil, err
			}
			values[p.key] = v
		}
	}
	return t.Encode(nil, values)
}

// value makes a value of a part, through an image as blocks have them.
func (x *Part) value(c *batch.Column) (batch.Value, error) {
	s := &batch.Schema{Columns: []batch.Column{*c}}
	data := []byte{0}
	if x.Text && width(c.Type) > 0 && c.Type != batch.UUID {
		n, err := strconv.ParseInt(string(x.Data), 10, 64)
		if err != nil {
			u, uerr := strconv.ParseUint(string(x.Data), 10, 64)
			if uerr != nil {
				return batch.Value{}, fmt.Errorf("column %s: text %q in a row key is not read back as %s", c.Name, x.Data, c.Type)
			}
			n = int64(u)
		}
		x = &Part{Column: x.Column, Bits: uint64(n)}
	}
	switch w := width(c.Type); {
	case !x.Text && c.Type == batch.Float32:
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(math.Float64frombits(x.Bits))))
	case !x.Text:
		for i := range w {
			data = append(data, byte(x.Bits>>(8*i)))
		}
	case c.Type == batch.UUID:
		data = append(data, x.Data...)
	default:
		data = append(binary.AppendUvarint(data, uint64(len(x.Data))), x.Data...)
	}
	v, err := batch.NewImage(s, data).Values(nil)
	if err != nil {
		return batch.Value{}, err
	}
	return v[0], nil
}

// Put gives the part to a builder as the value of its column; false: it is none.
func (x *Part) Put(b *batch.Builder, c *batch.Column) bool {
	switch {
	case x.Text:
		return value.PutText(b, c, string(x.Data))
	case c.Type == batch.Float32 || c.Type == batch.Float64:
		b.PutFloat(math.Float64frombits(x.Bits))
	case c.Type == batch.Uint64:
		b.PutUint(x.Bits)
	default:
		b.PutInt(int64(x.Bits))
	}
	return true
}
