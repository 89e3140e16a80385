package mysql

import (
	"database/sql/driver"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk/batch"
)

// selected is the expression that reads a column back: floats in all the digits
// of a double, bits as a number.
func selected(c *column) string {
	switch c.to.base {
	case "float":
		return "CAST(" + c.name + " AS DOUBLE)"
	case "bit":
		return c.name + "+0"
	}
	return c.name
}

// load puts a value of the text protocol as the next value of out: the inverse of
// appendPresent.
func load(out *batch.Builder, c *batch.Column, v driver.Value) error {
	var text string
	switch v := v.(type) {
	case nil:
		out.PutNull()
		return nil
	case []byte:
		text = string(v)
	case string:
		text = v
	case float64:
		text = strconv.FormatFloat(v, 'g', -1, 64)
	case float32:
		text = strconv.FormatFloat(float64(v), 'g', -1, 32)
	default:
		text = fmt.Sprint(v)
	}
	switch c.Type {
	case batch.Bool, batch.Int8, batch.Int16, batch.Int32, batch.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return err
		}
		out.PutInt(n)
	case batch.Uint8, batch.Uint16, batch.Uint32, batch.Uint64, batch.Year:
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return err
		}
		out.PutUint(n)
	case batch.Float32, batch.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return err
		}
		out.PutFloat(f)
	case batch.Bit:
		if c.Length == 0 || c.Length > 64 {
			out.PutBytes([]byte(text))
			return nil
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return err
		}
		b := make([]byte, (c.Length+7)/8)
		for i := range b {
			b[len(b)-1-i] = byte(n >> (8 * i))
		}
		out.PutBytes(b)
	case batch.Date, batch.DateTime, batch.Timestamp:
		n, err := target.ParseCivil(c.Type, text)
		if err != nil {
			return err
		}
		out.PutInt(n)
	case batch.Time:
		n, err := target.ParseClock(text)
		if err != nil {
			return err
		}
		out.PutInt(n)
	case batch.TimeTZ, batch.Interval:
		b, err := target.ParseParts(c.Type, text)
		if err != nil {
			return err
		}
		out.PutBytes(b)
	case batch.UUID:
		if len(text) == 16 {
			out.PutBytes([]byte(text))
			return nil
		}
		b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
		if err != nil || len(b) != 16 {
			return fmt.Errorf("%q is no UUID", text)
		}
		out.PutBytes(b)
	case batch.String, batch.Decimal, batch.JSON, batch.Enum, batch.Set, batch.Inet:
		out.PutString(text)
	default:
		out.PutBytes([]byte(text))
	}
	return nil
}
