package sqlite

import (
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk/batch"
)

// load puts a stored value as the next value of out: the inverse of
// encoder.value. A BLOB in a column of another class is a raw value.
func load(out *batch.Builder, c *batch.Column, v driver.Value) error {
	switch v := v.(type) {
	case nil:
		out.PutNull()
		return nil
	case []byte:
		if classOf(c) == asBlob {
			out.PutBytes(v)
		} else {
			out.PutRaw(rawName(c), v)
		}
		return nil
	case int64:
		return loadNumber(out, c, uint64(v), v)
	case float64:
		if classOf(c) != asReal {
			return fmt.Errorf("a REAL in a column of type %s", c.Type)
		}
		out.PutFloat(v)
		return nil
	case string:
		return loadText(out, c, v)
	}
	return fmt.Errorf("a value of type %T", v)
}

func rawName(c *batch.Column) string {
	if c.Charset != "" {
		return c.Charset
	}
	return c.Native
}

func loadNumber(out *batch.Builder, c *batch.Column, u uint64, i int64) error {
	switch {
	case c.Type == batch.Bit && classOf(c) == asNumber:
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], u)
		out.PutBytes(b[8-(c.Length+7)/8:])
	case classOf(c) == asNumber:
		out.PutUint(u)
	case classOf(c) == asInteger:
		out.PutInt(i)
	case classOf(c) == asReal:
		out.PutFloat(float64(i))
	default:
		return fmt.Errorf("the integer %d in a column of type %s", i, c.Type)
	}
	return nil
}

func loadText(out *batch.Builder, c *batch.Column, s string) error {
	switch c.Type {
	case batch.Uint64, batch.Bit:
		u, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return err
		}
		return loadNumber(out, c, u, int64(u))
	case batch.Float32, batch.Float64:
		if s != "NaN" {
			return fmt.Errorf("the text %q in a column of type %s", s, c.Type)
		}
		out.PutFloat(math.NaN())
	case batch.Year:
		y, err := strconv.ParseUint(s, 10, 16)
		if err != nil {
			return err
		}
		out.PutUint(y)
	case batch.UUID:
		b, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
		if err != nil || len(b) != 16 {
			return fmt.Errorf("%q is no UUID", s)
		}
		out.PutBytes(b)
	case batch.Date, batch.DateTime, batch.Timestamp:
		v, err := target.ParseCivil(c.Type, s)
		if err != nil {
			return err
		}
		out.PutInt(v)
	case batch.Time:
		v, err := target.ParseClock(s)
		if err != nil {
			return err
		}
		out.PutInt(v)
	case batch.TimeTZ, batch.Interval:
		b, err := target.ParseParts(c.Type, s)
		if err != nil {
			return err
		}
		out.PutBytes(b)
	default:
		if classOf(c) != asText {
			return fmt.Errorf("the text %q in a column of type %s", s, c.Type)
		}
		out.PutString(s)
	}
	return nil
}
