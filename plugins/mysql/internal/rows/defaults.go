package rows

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/plugins/mysql/internal/schema"
	"github.com/datalink-go/datalink/sdk/batch"
)

// fill is the value of a column that an INSERT under a minimal row image leaves
// out of the log: its constant default. The log has the values of defaults that
// are computed.
type fill struct {
	kind  fillKind
	num   int64
	float float64
	text  []byte
}

type fillKind uint8

const (
	fillUnknown fillKind = iota // stop
	fillAbsent                  // the target computes it, as the source does
	fillNull
	fillNum
	fillFloat
	fillText
)

var errDefault = errors.New("the default is not a constant that is known here")

func fillFor(bc *batch.Column, dc *schema.Column) fill {
	if dc == nil {
		return fill{}
	}
	if dc.Generated || dc.Virtual {
		return fill{kind: fillAbsent}
	}
	if dc.Default == "" || strings.EqualFold(dc.Default, "NULL") {
		if dc.NotNull {
			return fill{}
		}
		return fill{kind: fillNull}
	}
	s, quoted := literal(dc.Default)
	f, err := parseDefault(bc, s, quoted)
	if err != nil {
		return fill{}
	}
	return f
}

// literal undoes the quotes of a default as the statement has it.
func literal(s string) (text string, quoted bool) {
	if v, ok := schema.Literal(s); ok {
		return v, true
	}
	switch strings.ToUpper(s) {
	case "TRUE":
		return "1", false
	case "FALSE":
		return "0", false
	}
	if len(s) > 3 && (s[0] == 'b' || s[0] == 'B') && s[1] == '\'' {
		if v, err := strconv.ParseUint(s[2:len(s)-1], 2, 64); err == nil {
			return strconv.FormatUint(v, 10), false
		}
	}
	return s, false
}

func parseDefault(bc *batch.Column, s string, quoted bool) (fill, error) {
	switch bc.Type {
	case batch.Int8, batch.Int16, batch.Int32, batch.Int64:
		n, err := strconv.ParseInt(s, 10, 64)
		return fill{kind: fillNum, num: n}, err
	case batch.Uint8, batch.Uint16, batch.Uint32, batch.Uint64, batch.Year:
		n, err := strconv.ParseUint(s, 10, 64)
		return fill{kind: fillNum, num: int64(n)}, err
	case batch.Float32, batch.Float64:
		f, err := strconv.ParseFloat(s, 64)
		return fill{kind: fillFloat, float: f}, err
	case batch.Decimal:
		return decimalDefault(s, int(bc.Scale))
	case batch.Bit:
		n, err := strconv.ParseUint(s, 10, 64)
		b := make([]byte, (bc.Length+7)/8)
		for i := range b {
			b[len(b)-1-i] = byte(n >> (8 * i))
		}
		return fill{kind: fillText, text: b}, err
	case batch.Date, batch.DateTime, batch.Timestamp, batch.Time:
		return timeDefault(bc.Type, s)
	case batch.String, batch.Enum, batch.Set:
		if quoted || !strings.ContainsAny(s, "(_") {
			return fill{kind: fillText, text: []byte(s)}, nil
		}
	case batch.Bytes:
		if quoted && bc.Length > 0 && strings.HasPrefix(bc.Native, "varbinary") {
			return fill{kind: fillText, text: []byte(s)}, nil
		}
	}
	return fill{}, errDefault
}

// decimalDefault brings a number to the column's scale; one that would have to
// be rounded is left to a stop.
func decimalDefault(s string, scale int) (fill, error) {
	whole, frac, _ := strings.Cut(s, ".")
	neg := strings.HasPrefix(whole, "-")
	whole = strings.TrimLeft(strings.TrimLeft(whole, "+-"), "0")
	frac = strings.TrimRight(frac, "0")
	if len(frac) > scale || strings.Trim(whole+frac, "0123456789") != "" {
		return fill{}, errDefault
	}
	if whole == "" {
		whole = "0"
	}
	if neg && strings.Trim(whole+frac, "0") != "" {
		whole = "-" + whole
	}
	if scale > 0 {
		whole += "." + frac + strings.Repeat("0", scale-len(frac))
	}
	return fill{kind: fillText, text: []byte(whole)}, nil
}

func timeDefault(t batch.Type, s string) (fill, error) {
	var c batch.Civil
	clock := s
	if t != batch.Time {
		date, rest, _ := strings.Cut(s, " ")
		if n, err := fmt.Sscanf(date, "%d-%d-%d", &c.Year, &c.Month, &c.Day); n != 3 || err != nil || len(date) != 10 {
			return fill{}, errDefault
		}
		clock = rest
	}
	neg := strings.HasPrefix(clock, "-")
	if clock != "" {
		hms, frac, _ := strings.Cut(strings.TrimPrefix(clock, "-"), ".")
		if n, err := fmt.Sscanf(hms, "%d:%d:%d", &c.Hour, &c.Minute, &c.Second); n != 3 || err != nil {
			return fill{}, errDefault
		}
		if len(frac) > 6 {
			return fill{}, errDefault
		}
		c.Mic, _ = strconv.Atoi((frac + "000000")[:6])
	}
	switch t {
	case batch.Date:
		return fill{kind: fillNum, num: int64(batch.PackDate(c.Year, c.Month, c.Day))}, nil
	case batch.DateTime:
		return fill{kind: fillNum, num: c.Pack()}, nil
	case batch.Time:
		us := (int64(c.Hour)*3600+int64(c.Minute)*60+int64(c.Second))*1e6 + int64(c.Mic)
		if neg {
			us = -us
		}
		return fill{kind: fillNum, num: us}, nil
	}
	// A timestamp is in the time zone of the session that made the table.
	if c == (batch.Civil{}) {
		return fill{kind: fillNum, num: batch.ZeroTimestamp}, nil
	}
	return fill{}, errDefault
}

func (f *fill) put(out *batch.Builder) bool {
	switch f.kind {
	case fillAbsent:
		out.PutAbsent()
	case fillNull:
		out.PutNull()
	case fillNum:
		out.PutInt(f.num)
	case fillFloat:
		out.PutFloat(f.float)
	case fillText:
		out.PutBytes(f.text)
	default:
		return false
	}
	return true
}
