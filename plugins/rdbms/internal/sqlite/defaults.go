package sqlite

import (
	"context"
	"strings"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// bg is the context of statements inside a transaction: they wait for nothing.
var bg = context.Background()

// defaultText is what rows that are there hold in a new column, as SQL: the
// column's default where it is a constant, else NULL or, where NULL is not
// allowed, the zero of the type.
func defaultText(c *batch.Column) (string, error) {
	d := strings.TrimSpace(c.Default)
	if at := strings.LastIndex(d, "::"); at > 0 && !strings.Contains(d[at:], "'") {
		d = d[:at] // PostgreSQL prints the type of a constant
	}
	if strings.EqualFold(d, "NULL") {
		d = ""
	}
	if d == "" {
		if c.Flags&batch.Nullable != 0 {
			return "NULL", nil
		}
		return zeroText(c)
	}
	v, quoted := unquoteSource(d)
	if !quoted && !plainNumber(d) {
		return "", sdk.Faultf(sdk.CodeRefused, "new column %s has the default %s, whose values in the rows that are there only the source knows", c.Name, c.Default).
			Suggest("add the column to the target by hand, fill it, then run once with ddl: ignore")
	}
	switch classOf(c) {
	case asInteger, asNumber, asReal:
		if c.Type == batch.Bit && quoted || !plainNumber(v) {
			break
		}
		if classOf(c) == asNumber && len(v) >= 19 {
			return literal(v), nil
		}
		return v, nil
	case asText:
		switch c.Type {
		case batch.Decimal:
			return literal(padScale(v, int(c.Scale))), nil
		case batch.Time, batch.DateTime, batch.Timestamp:
			return literal(padScale(v, int(min(c.Scale, 6)))), nil
		}
		return literal(v), nil
	case asBlob:
		if c.Type == batch.Bytes && quoted {
			return "x'" + hexOf(v) + "'", nil
		}
	}
	return "", sdk.Faultf(sdk.CodeRefused, "new column %s of type %s has the default %s, which cannot be translated", c.Name, c.Type, c.Default).
		Suggest("add the column to the target by hand, fill it, then run once with ddl: ignore")
}

func zeroText(c *batch.Column) (string, error) {
	switch c.Type {
	case batch.Decimal:
		return literal(padScale("0", int(c.Scale))), nil
	case batch.String, batch.Set:
		return "''", nil
	case batch.JSON:
		return "'null'", nil // an empty text is no document
	case batch.Enum:
		if len(c.Values) > 0 {
			return literal(c.Values[0]), nil
		}
	case batch.Bytes:
		return "x''", nil
	case batch.Date:
		return "'0000-00-00'", nil
	case batch.Time:
		return literal(padScale("00:00:00", int(min(c.Scale, 6)))), nil
	case batch.DateTime, batch.Timestamp:
		return literal(padScale("0000-00-00 00:00:00", int(min(c.Scale, 6)))), nil
	case batch.Year:
		return "'0000'", nil
	}
	switch classOf(c) {
	case asInteger, asNumber:
		return "0", nil
	case asReal:
		return "0.0", nil
	}
	return "", sdk.Faultf(sdk.CodeRefused, "new column %s of type %s is NOT NULL without a default: what the rows that are there hold, only the source knows", c.Name, c.Type).
		Suggest("add the column to the target by hand, fill it, then run once with ddl: ignore")
}

// unquoteSource reads a string literal of the source: quotes are doubled or
// escaped by a backslash.
func unquoteSource(d string) (string, bool) {
	if len(d) < 2 || d[0] != '\'' || d[len(d)-1] != '\'' {
		return d, false
	}
	var b strings.Builder
	in := d[1 : len(d)-1]
	for i := 0; i < len(in); i++ {
		if i+1 < len(in) && (in[i] == '\'' && in[i+1] == '\'' || in[i] == '\\') {
			i++
		}
		b.WriteByte(in[i])
	}
	return b.String(), true
}

func plainNumber(s string) bool {
	t := strings.TrimPrefix(strings.TrimPrefix(s, "-"), "+")
	return t != "" && strings.Trim(t, "0123456789.") == "" && strings.Count(t, ".") <= 1 && t != "."
}

// padScale gives a decimal or time its stated count of fractional digits.
func padScale(v string, scale int) string {
	if scale <= 0 {
		return v
	}
	at := strings.IndexByte(v, '.')
	if at < 0 {
		v, at = v+".", len(v)
	}
	for len(v)-at-1 < scale {
		v += "0"
	}
	return v
}

func hexOf(s string) string {
	const digits = "0123456789abcdef"
	b := make([]byte, 0, 2*len(s))
	for i := range len(s) {
		b = append(b, digits[s[i]>>4], digits[s[i]&15])
	}
	return string(b)
}
