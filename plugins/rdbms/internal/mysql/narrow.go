package mysql

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/datalink-go/datalink/sdk/batch"
)

// textFits says why a text or bytes do not fit into a narrow column, "" where
// they do. What a charset other than utf8mb4 lacks the server refuses.
func (c *column) textFits(text []byte) string {
	switch c.to.base {
	case "char", "varchar":
		if n := utf8.RuneCount(text); n > c.to.n {
			return fmt.Sprintf("found %d characters", n)
		}
		if c.to.base == "char" && len(text) > 0 && text[len(text)-1] == ' ' {
			return "found a text that ends in a blank"
		}
	case "varbinary", "binary":
		if len(text) > c.to.n {
			return fmt.Sprintf("found %d bytes", len(text))
		}
	case "vector":
		if len(text) > 4*c.to.n {
			return fmt.Sprintf("found %d numbers", len(text)/4)
		}
	case "enum":
		for _, l := range c.to.labels {
			if l == string(text) {
				return ""
			}
		}
		return fmt.Sprintf("found %q", text)
	case "set":
		if len(text) == 0 {
			return ""
		}
		for _, w := range strings.Split(string(text), ",") {
			if !hasLabel(c.to.labels, w) {
				return fmt.Sprintf("found %q", w)
			}
		}
	default:
		if n, ok := textRoom[c.to.base]; ok && uint64(len(text)) > n {
			return fmt.Sprintf("found %d bytes", len(text))
		}
	}
	return ""
}

func hasLabel(labels []string, l string) bool {
	for _, x := range labels {
		if x == l {
			return true
		}
	}
	return false
}

// cuttable reports whether there is a nearest value that fits.
func (c *column) cuttable(v *batch.Value) bool {
	if v.State != batch.Present {
		return false
	}
	_, ok := c.appendCut(nil, v)
	return ok
}

// appendCut appends the nearest value that the column holds: numbers at the end of
// the range, texts cut off, digits behind the point left out.
func (c *column) appendCut(b []byte, v *batch.Value) ([]byte, bool) {
	switch c.source.Type {
	case batch.Int8, batch.Int16, batch.Int32, batch.Int64:
		s, ok := c.to.span()
		if !ok {
			return b, false
		}
		n := v.Int64()
		if n < s.lo {
			n = s.lo
		} else if n > 0 && uint64(n) > s.hi {
			n = int64(s.hi)
		}
		return strconv.AppendInt(b, n, 10), true
	case batch.Uint8, batch.Uint16, batch.Uint32, batch.Uint64:
		s, ok := c.to.span()
		if !ok {
			return b, false
		}
		return strconv.AppendUint(b, min(v.Uint64(), s.hi), 10), true
	case batch.Float32, batch.Float64:
		f := v.Float64()
		limit := math.MaxFloat64
		if c.to.base == "float" {
			limit = math.MaxFloat32
			if !math.IsInf(f, 0) && math.Abs(f) <= limit {
				f = float64(float32(f))
			}
		}
		if math.IsNaN(f) || c.to.base != "float" && c.to.base != "double" {
			return b, false
		}
		return strconv.AppendFloat(b, max(min(f, limit), -limit), 'e', -1, 64), true
	case batch.String:
		text := v.Bytes()
		switch c.to.base {
		case "varchar":
			at := 0
			for n := 0; n < c.to.n && at < len(text); n++ {
				_, size := utf8.DecodeRune(text[at:])
				at += size
			}
			return appendQuoted(b, text[:at]), true
		case "tinytext", "text", "mediumtext":
			n := min(len(text), int(textRoom[c.to.base]))
			for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
				n--
			}
			return appendQuoted(b, text[:n]), true
		}
	case batch.Bytes:
		n, ok := textRoom[c.to.base]
		if c.to.base == "varbinary" {
			n, ok = uint64(c.to.n), true
		}
		if ok {
			return appendQuoted(append(b, "_binary"...), v.Bytes()[:min(uint64(len(v.Bytes())), n)]), true
		}
	case batch.Decimal:
		text := string(v.Bytes())
		before, _ := digits(v.Bytes())
		if c.to.base != "decimal" || strings.HasSuffix(text, "N") || strings.HasSuffix(text, "y") || before > c.to.n-max(c.to.scale, 0) || c.to.unsigned && text[0] == '-' {
			return b, false
		}
		if at := strings.IndexByte(text, '.'); at >= 0 {
			text = text[:min(len(text), at+1+max(c.to.scale, 0))]
		}
		return append(b, strings.TrimSuffix(text, ".")...), true
	}
	return b, false
}
