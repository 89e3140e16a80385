package postgres

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"

	"github.com/datalink-go/datalink/sdk/batch"
)

// encodeArray writes an array as PostgreSQL reads it: bounds where they are not
// usual, elements in quotes.
func encodeArray(dst []byte, c *batch.Column, _ *info, v *batch.Value) ([]byte, *misfit) {
	dims, elems, err := batch.DecodeArray(v.Bytes(), c.Elem)
	if err != nil {
		return dst, misfitf(nil, "%v", err)
	}
	if len(dims) == 0 {
		return append(dst, "{}"...), nil
	}
	usual := true
	for _, d := range dims {
		usual = usual && d.Lower == 1
	}
	if !usual {
		for _, d := range dims {
			dst = append(dst, '[')
			dst = strconv.AppendInt(dst, int64(d.Lower), 10)
			dst = append(dst, ':')
			dst = strconv.AppendInt(dst, int64(d.Lower+d.Len-1), 10)
			dst = append(dst, ']')
		}
		dst = append(dst, '=')
	}
	e := elemColumn(c)
	var bad *misfit
	at := 0
	var level func(k int)
	level = func(k int) {
		dst = append(dst, '{')
		for n := range dims[k].Len {
			if n > 0 {
				dst = append(dst, ',')
			}
			if k+1 < len(dims) {
				level(k + 1)
				continue
			}
			x := &elems[at]
			at++
			if x.State == batch.Null {
				dst = append(dst, "NULL"...)
				continue
			}
			t := elemText(&e, x)
			if bytes.IndexByte(t, 0) >= 0 && bad == nil {
				bad = misfitf(nil, "PostgreSQL's text has no U+0000, found in element %d", at)
			}
			dst = append(dst, '"')
			for _, b := range t {
				if b == '"' || b == '\\' {
					dst = append(dst, '\\')
				}
				dst = append(dst, b)
			}
			dst = append(dst, '"')
		}
		dst = append(dst, '}')
	}
	from := len(dst)
	level(0)
	if bad != nil {
		return dst[:from], bad
	}
	return dst, nil
}

func elemText(e *batch.Column, v *batch.Value) []byte {
	switch e.Type {
	case batch.Bytes, batch.Geometry:
		return hex.AppendEncode([]byte(`\x`), v.Bytes())
	case batch.Native:
		if e.Flags&batch.TextValue == 0 {
			return hex.AppendEncode([]byte(`\x`), v.Bytes())
		}
	case batch.Interval:
		// Its text has units, which PostgreSQL reads.
		return intervalText(v.Bytes())
	}
	return text(e, v)
}

func appendFloats(dst, b []byte, open, end byte) []byte {
	dst = append(dst, open)
	for k := 0; k+4 <= len(b); k += 4 {
		if k > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendFloat(dst, float64(math.Float32frombits(binary.LittleEndian.Uint32(b[k:]))), 'g', -1, 32)
	}
	return append(dst, end)
}

func encodeVectorAsArray(dst []byte, _ *batch.Column, _ *info, v *batch.Value) ([]byte, *misfit) {
	return appendFloats(dst, v.Bytes(), '{', '}'), nil
}

func encodeVector(dst []byte, _ *batch.Column, _ *info, v *batch.Value) ([]byte, *misfit) {
	return appendFloats(dst, v.Bytes(), '[', ']'), nil
}

// encodeMap writes a map as a JSON object.
func encodeMap(dst []byte, _ *batch.Column, _ *info, v *batch.Value) ([]byte, *misfit) {
	pairs, err := batch.DecodeMap(v.Bytes())
	if err != nil {
		return dst, misfitf(nil, "%v", err)
	}
	dst = append(dst, '{')
	for k, p := range pairs {
		if k > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(appendJSON(dst, p.Key), ": "...)
		if p.Value == nil {
			dst = append(dst, "null"...)
		} else {
			dst = appendJSON(dst, p.Value)
		}
	}
	return append(dst, '}'), nil
}

func appendJSON(dst, s []byte) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(string(s)) // a string encodes
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

// duplicateName finds a name that an object has twice. Text that is no JSON has
// none: the server says what is wrong with it.
func duplicateName(t []byte) (string, bool) {
	d := json.NewDecoder(bytes.NewReader(t))
	d.UseNumber()
	type level struct {
		names map[string]bool // nil in arrays
		value bool            // the next token is a value
	}
	var stack []level
	for {
		tok, err := d.Token()
		if err != nil {
			return "", false
		}
		n := len(stack)
		if n > 0 && stack[n-1].names != nil && !stack[n-1].value {
			if name, ok := tok.(string); ok {
				if stack[n-1].names[name] {
					return name, true
				}
				stack[n-1].names[name], stack[n-1].value = true, true
				continue
			}
		}
		switch tok {
		case json.Delim('{'):
			stack = append(stack, level{names: map[string]bool{}})
			continue
		case json.Delim('['):
			stack = append(stack, level{})
			continue
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:n-1]
		}
		if n = len(stack); n > 0 {
			stack[n-1].value = false
		} else {
			return "", false
		}
	}
}
