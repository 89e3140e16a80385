package batch

import (
	"encoding/hex"
	"strconv"
)

// AppendText appends a value as text: numbers in decimal, floats in the fewest
// digits that give them back, times as the source prints them, text as it is.
// Ok is false for values that have no such form (bytes, bits, geometries, raw
// and compound values): nothing is appended, Value.Bytes or Value.Raw has them.
// The value must be Present or Raw.
func AppendText(dst []byte, c *Column, v *Value) (out []byte, ok bool) {
	if v.State != Present {
		return dst, false
	}
	switch c.Type {
	case Bool, Uint8, Uint16, Uint32, Uint64, Year:
		return strconv.AppendUint(dst, v.Uint64(), 10), true
	case Int8, Int16, Int32, Int64:
		return strconv.AppendInt(dst, v.Int64(), 10), true
	case Float32:
		return strconv.AppendFloat(dst, v.Float64(), 'g', -1, 32), true
	case Float64:
		return strconv.AppendFloat(dst, v.Float64(), 'g', -1, 64), true
	case Date:
		return AppendDate(dst, int32(v.Int64())), true
	case Time:
		return AppendTime(dst, v.Int64(), int(c.Scale)), true
	case DateTime:
		return AppendDateTime(dst, v.Int64(), int(c.Scale)), true
	case Timestamp:
		return AppendTimestamp(dst, v.Int64(), int(c.Scale)), true
	case String, Decimal, JSON, Enum, Set, Inet:
		return append(dst, v.Bytes()...), true
	case UUID:
		return appendUUID(dst, v.Bytes()), true
	}
	return dst, false
}

func appendUUID(dst, u []byte) []byte {
	for i, part := range [][]byte{u[:4], u[4:6], u[6:8], u[8:10], u[10:16]} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, part)
	}
	return dst
}
