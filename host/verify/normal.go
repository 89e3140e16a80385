package verify

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/sdk/batch"
)

// sum hashes a row in normal form; columns that the target lacks are left out.
func sum(s *batch.Schema, vals []batch.Value, absent []bool, buf []byte) (uint64, []byte) {
	h := uint64(14695981039346656037) // FNV-1a
	for i := range vals {
		if absent != nil && absent[i] {
			continue
		}
		buf = appendNormal(buf[:0], &s.Columns[i], &vals[i])
		n := len(buf)
		buf = binary.LittleEndian.AppendUint32(buf, uint32(n))
		for _, c := range buf {
			h = (h ^ uint64(c)) * 1099511628211
		}
	}
	return h, buf
}

// appendNormal writes a value so that equal values are equal bytes, whichever store
// they come from: trailing zeros of decimals, the order of the members of a JSON
// object and the padding of char columns do not count.
func appendNormal(dst []byte, c *batch.Column, v *batch.Value) []byte {
	switch v.State {
	case batch.Null:
		return append(dst, 0)
	case batch.Raw:
		_, data, _ := v.Raw()
		return append(append(dst, 3), data...)
	case batch.Absent, batch.Unchanged:
		return append(dst, 2)
	}
	dst = append(dst, 1)
	switch c.Type {
	case batch.Bool, batch.Int8, batch.Int16, batch.Int32, batch.Int64, batch.Uint8, batch.Uint16, batch.Uint32, batch.Uint64,
		batch.Year, batch.Date, batch.Time, batch.DateTime, batch.Timestamp:
		return binary.LittleEndian.AppendUint64(dst, v.Uint64())
	case batch.Float32, batch.Float64:
		f := v.Float64()
		switch {
		case f == 0:
			f = 0 // -0
		case math.IsNaN(f):
			f = math.NaN()
		}
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f))
	case batch.Decimal:
		return append(dst, plainDecimal(string(v.Bytes()))...)
	case batch.JSON:
		return appendJSON(dst, v.Bytes())
	case batch.Bit:
		return append(dst, bytes.TrimLeft(v.Bytes(), "\x00")...)
	case batch.String:
		if native := strings.ToLower(c.Native); strings.HasPrefix(native, "char") || strings.HasPrefix(native, "bpchar") {
			return append(dst, bytes.TrimRight(v.Bytes(), " ")...)
		}
	}
	return append(dst, v.Bytes()...)
}

// plainDecimal writes a number without exponent and needless zeros.
func plainDecimal(s string) string {
	t, neg := strings.CutPrefix(strings.TrimPrefix(s, "+"), "-")
	for _, c := range t {
		if c != '.' && (c < '0' || c > '9') {
			return s
		}
	}
	whole, frac, _ := strings.Cut(t, ".")
	whole, frac = strings.TrimLeft(whole, "0"), strings.TrimRight(frac, "0")
	if whole == "" {
		whole = "0"
	}
	if frac != "" {
		whole += "." + frac
	}
	if neg && whole != "0" {
		whole = "-" + whole
	}
	return whole
}

func appendJSON(dst, text []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil || d.More() {
		return append(dst, text...)
	}
	return appendJSONValue(dst, v)
}

func appendJSONValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for n := range v {
			names = append(names, n)
		}
		slices.Sort(names)
		dst = append(dst, '{')
		for _, n := range names {
			dst = append(strconv.AppendQuote(dst, n), ':')
			dst = append(appendJSONValue(dst, v[n]), ',')
		}
		return append(dst, '}')
	case []any:
		dst = append(dst, '[')
		for _, e := range v {
			dst = append(appendJSONValue(dst, e), ',')
		}
		return append(dst, ']')
	case json.Number:
		if strings.ContainsAny(string(v), "eE") {
			if f, err := v.Float64(); err == nil {
				return append(dst, plainDecimal(strconv.FormatFloat(f, 'f', -1, 64))...)
			}
		}
		return append(dst, plainDecimal(string(v))...)
	case string:
		return strconv.AppendQuote(dst, v)
	case bool:
		return strconv.AppendBool(dst, v)
	}
	return append(dst, "null"...)
}

// shown is a value for people, cut short.
func shown(c *batch.Column, v *batch.Value) string {
	const most = 80
	if !v.Has() {
		return strings.ToUpper(v.State.String())
	}
	text, ok := batch.AppendText(nil, c, v)
	if !ok {
		data := v.Bytes()
		if _, raw, is := v.Raw(); is {
			data = raw
		}
		cut := data[:min(len(data), most/2)]
		s := "0x" + strings.ToUpper(hexOf(cut))
		if len(cut) < len(data) {
			s += "… (" + strconv.Itoa(len(data)) + " bytes)"
		}
		return s
	}
	if len(text) > most {
		return strings.ToValidUTF8(string(text[:most]), "") + "… (" + strconv.Itoa(len(text)) + " bytes)"
	}
	return string(text)
}

func hexOf(p []byte) string {
	const digits = "0123456789abcdef"
	out := make([]byte, 0, 2*len(p))
	for _, b := range p {
		out = append(out, digits[b>>4], digits[b&15])
	}
	return string(out)
}

// keyText is a key for people: its values with commas between them.
func keyText(s *batch.Schema, key []byte) string {
	vals, err := s.KeyValues(key)
	if err != nil {
		return "0x" + hexOf(key)
	}
	var parts []string
	for i, k := range s.Key {
		parts = append(parts, shown(&s.Columns[k], &vals[i]))
	}
	return strings.Join(parts, ",")
}
