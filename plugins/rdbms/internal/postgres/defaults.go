package postgres

import (
	"strings"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// defaultText is what rows that are there hold in a new column, as SQL: the
// column's default where it is a constant, else NULL or, where NULL is not
// allowed, the zero of the type.
func (w *Writer) defaultText(c *batch.Column) (string, error) {
	d := strings.TrimSpace(c.Default)
	if strings.EqualFold(d, "NULL") || strings.HasPrefix(strings.ToUpper(d), "NULL::") {
		d = ""
	}
	if d == "" {
		if c.Flags&batch.Nullable != 0 {
			return "NULL", nil
		}
		return w.zeroText(c)
	}
	v, quoted := unquoteSource(d)
	if !quoted && !plainNumber(d) && !strings.EqualFold(d, "true") && !strings.EqualFold(d, "false") {
		return "", sdk.Faultf(sdk.CodeRefused, "new column %s has the default %s, whose values in the rows that are there only the source knows", c.Name, c.Default).
			Suggest("add the column to the target by hand, fill it, then run once with ddl: ignore")
	}
	switch c.Type {
	case batch.Date, batch.DateTime, batch.Timestamp:
		if strings.HasPrefix(v, "0000") {
			return w.zeroText(c)
		}
	case batch.Bytes, batch.Bit, batch.Geometry, batch.Array, batch.Map, batch.Vector, batch.Native:
		return "", sdk.Faultf(sdk.CodeRefused, "new column %s of type %s has the default %s, which cannot be translated", c.Name, c.Type, c.Default).
			Suggest("add the column to the target by hand, fill it, then run once with ddl: ignore")
	}
	return literal(v) + "::" + typeOf(c), nil
}

func (w *Writer) zeroText(c *batch.Column) (string, error) {
	switch c.Type {
	case batch.Bool, batch.Int8, batch.Int16, batch.Int32, batch.Int64, batch.Uint8, batch.Uint16, batch.Uint32, batch.Uint64, batch.Year,
		batch.Float32, batch.Float64, batch.Decimal:
		if c.Type == batch.Bool {
			return "false", nil
		}
		return "0", nil
	case batch.String, batch.Set, batch.Bytes:
		return "''", nil
	case batch.JSON:
		return "'null'", nil // an empty text is no document
	case batch.Enum:
		if len(c.Values) > 0 {
			return literal(c.Values[0]), nil
		}
	case batch.Time:
		return "'00:00:00'", nil
	case batch.Date, batch.DateTime, batch.Timestamp:
		if w.cfg.OnUnfit == target.Null || w.cfg.OnUnfit == target.Truncate {
			return "NULL", nil // the zero date is none of PostgreSQL
		}
	}
	return "", sdk.Faultf(sdk.CodeRefused, "new column %s of type %s is NOT NULL: PostgreSQL has no value for what the rows that are there hold, or only the source knows it", c.Name, c.Type).
		Suggest("add the column to the target by hand, fill it, then run once with ddl: ignore")
}

// unquoteSource reads a string literal of the source: quotes are doubled or
// escaped by a backslash, a cast may follow.
func unquoteSource(d string) (string, bool) {
	if at := strings.LastIndex(d, "'::"); at > 0 {
		d = d[:at+1]
	}
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
