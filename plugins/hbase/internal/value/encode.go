package value

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"

	"github.com/datalink-go/datalink/sdk/batch"
)

// Encoding says how values become bytes.
type Encoding string

// The encodings.
const (
	Text    Encoding = "text"
	Binary  Encoding = "binary"
	Phoenix Encoding = "phoenix"
)

// Fits reports an error if the encoding has no form for the column's type.
func Fits(e Encoding, c *batch.Column) error {
	switch c.Type {
	case batch.Array, batch.Map, batch.Interval, batch.TimeTZ:
		return fmt.Errorf("column %s: there is no %s form of %s", c.Name, e, c.Type)
	}
	if e == Phoenix {
		switch c.Type {
		case batch.Decimal, batch.Time:
			return fmt.Errorf("column %s: %s is not among the types that are written as Phoenix does", c.Name, c.Type)
		}
	}
	return nil
}

// Append appends the bytes of a value that is Present or Raw.
func Append(dst []byte, e Encoding, c *batch.Column, v *batch.Value) ([]byte, error) {
	if v.State == batch.Raw {
		_, data, _ := v.Raw()
		return append(dst, data...), nil
	}
	if e != Text {
		out, ok, err := appendBinary(dst, e == Phoenix, c, v)
		if ok || err != nil {
			return out, err
		}
	}
	if out, ok := batch.AppendText(dst, c, v); ok {
		return out, nil
	}
	return append(dst, v.Bytes()...), nil
}

// appendBinary appends the fixed forms; false: the type is text in both.
func appendBinary(dst []byte, phoenix bool, c *batch.Column, v *batch.Value) ([]byte, bool, error) {
	var flip uint64
	if phoenix {
		flip = 1
	}
	n := v.Int64()
	switch c.Type {
	case batch.Bool:
		if n != 0 && !phoenix {
			n = -1 // Bytes.toBytes(true)
		}
		return append(dst, byte(n)), true, nil
	case batch.Int8:
		return append(dst, byte(n)^byte(flip<<7)), true, nil
	case batch.Int16, batch.Uint8, batch.Year:
		if c.Type == batch.Year || c.Type == batch.Uint8 {
			n = int64(v.Uint64())
		}
		return binary.BigEndian.AppendUint16(dst, uint16(n)^uint16(flip<<15)), true, nil
	case batch.Int32, batch.Uint16:
		return binary.BigEndian.AppendUint32(dst, uint32(n)^uint32(flip<<31)), true, nil
	case batch.Int64, batch.Uint32, batch.Uint64:
		if c.Type == batch.Uint64 && v.Uint64() > math.MaxInt64 {
			return dst, false, fmt.Errorf("column %s: %d does not fit a signed 64-bit number", c.Name, v.Uint64())
		}
		return binary.BigEndian.AppendUint64(dst, uint64(n)^flip<<63), true, nil
	case batch.Float32:
		b := math.Float32bits(float32(v.Float64()))
		if phoenix {
			b = (b ^ (uint32(int32(b)>>31) | 1<<31)) + 1
		}
		return binary.BigEndian.AppendUint32(dst, b), true, nil
	case batch.Float64:
		b := math.Float64bits(v.Float64())
		if phoenix {
			b = (b ^ (uint64(int64(b)>>63) | 1<<63)) + 1
		}
		return binary.BigEndian.AppendUint64(dst, b), true, nil
	case batch.Decimal:
		out, err := appendBigDecimal(dst, c, v.Bytes())
		return out, true, err
	case batch.Timestamp:
		switch n {
		case batch.ZeroTimestamp, batch.NegInfTimestamp, batch.InfinityTimestamp:
			return dst, false, fmt.Errorf("column %s: a timestamp that is no instant", c.Name)
		}
		if phoenix {
			return appendPhoenixTimestamp(dst, n), true, nil
		}
		return binary.BigEndian.AppendUint64(dst, uint64(n)), true, nil
	case batch.DateTime, batch.Date:
		if !phoenix {
			return dst, false, nil
		}
		var d batch.Civil
		if c.Type == batch.Date {
			d.Year, d.Month, d.Day = batch.UnpackDate(int32(n))
		} else {
			d = batch.UnpackDateTime(n)
		}
		if d.Month == 0 || d.Day == 0 {
			return dst, false, fmt.Errorf("column %s: a date without month or day", c.Name)
		}
		at := time.Date(d.Year, time.Month(d.Month), d.Day, d.Hour, d.Minute, d.Second, d.Mic*1000, time.UTC).UnixMicro()
		if c.Type == batch.Date {
			return binary.BigEndian.AppendUint64(dst, uint64(at/1000)^1<<63), true, nil
		}
		return appendPhoenixTimestamp(dst, at), true, nil
	}
	return dst, false, nil
}

// appendPhoenixTimestamp writes milliseconds with the sign turned, then the
// nanoseconds below them.
func appendPhoenixTimestamp(dst []byte, micros int64) []byte {
	ms, rest := micros/1000, micros%1000
	if rest < 0 {
		ms, rest = ms-1, rest+1000
	}
	dst = binary.BigEndian.AppendUint64(dst, uint64(ms)^1<<63)
	return binary.BigEndian.AppendUint32(dst, uint32(rest*1000))
}

// appendBigDecimal writes what Bytes.toBytes(BigDecimal) does.
func appendBigDecimal(dst []byte, c *batch.Column, text []byte) ([]byte, error) {
	whole, frac, _ := strings.Cut(string(text), ".")
	n, ok := new(big.Int).SetString(whole+frac, 10)
	if !ok {
		return dst, fmt.Errorf("column %s: %s has no binary form", c.Name, text)
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(frac)))
	return append(dst, twosComplement(n)...), nil
}

// twosComplement is BigInteger.toByteArray.
func twosComplement(n *big.Int) []byte {
	if n.Sign() >= 0 {
		b := n.Bytes()
		if len(b) == 0 || b[0]&0x80 != 0 {
			b = append([]byte{0}, b...)
		}
		return b
	}
	size := len(new(big.Int).Add(n, big.NewInt(1)).Bytes())
	if size == 0 {
		size = 1
	}
	m := new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*size)))
	b := m.FillBytes(make([]byte, size))
	if b[0]&0x80 == 0 {
		b = append([]byte{0xff}, b...)
	}
	return b
}
