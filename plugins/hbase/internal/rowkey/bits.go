package rowkey

import (
	"encoding/binary"
	"math"

	"github.com/datalink-go/datalink/sdk/batch"
)

// bitsOf undoes appendOrdered for types of fixed width. Floats come as the bits of
// a float64.
func bitsOf(t batch.Type, d []byte) uint64 {
	switch t {
	case batch.Int8:
		return uint64(int64(int8(d[0] ^ 0x80)))
	case batch.Uint16, batch.Year:
		return uint64(binary.BigEndian.Uint16(d))
	case batch.Int16:
		return uint64(int64(int16(binary.BigEndian.Uint16(d) ^ 0x8000)))
	case batch.Uint32:
		return uint64(binary.BigEndian.Uint32(d))
	case batch.Int32, batch.Date:
		return uint64(int64(int32(binary.BigEndian.Uint32(d) ^ 0x80000000)))
	case batch.Uint64:
		return binary.BigEndian.Uint64(d)
	case batch.Int64, batch.Time, batch.DateTime, batch.Timestamp:
		return binary.BigEndian.Uint64(d) ^ 1<<63
	case batch.Float32:
		b := binary.BigEndian.Uint32(d)
		b ^= uint32(int32(^b)>>31) | 1<<31
		return math.Float64bits(float64(math.Float32frombits(b)))
	case batch.Float64:
		b := binary.BigEndian.Uint64(d)
		return b ^ (uint64(int64(^b)>>63) | 1<<63)
	}
	return uint64(d[0])
}
