package rows

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"unicode/utf8"

	"github.com/datalink-go/datalink/plugins/mysql/internal/decimal"
	"github.com/datalink-go/datalink/plugins/mysql/internal/jsonb"
	"github.com/datalink-go/datalink/sdk/batch"
)

// ErrPartial is wrapped when the log has a difference and not what it applies to.
var ErrPartial = errors.New("value is not in the log")

// ErrLabel is wrapped when an ENUM or SET value is beyond the known labels.
var ErrLabel = errors.New("label is not known")

var errCut = fmt.Errorf("%w: cut off", ErrCorrupt)

// length returns the size of the value at the head of b, its length bytes
// counted.
func (c *column) length(b []byte) (int, error) {
	if c.op < opText || c.op == opEnum || c.op == opSet {
		if len(b) < c.size {
			return 0, errCut
		}
		return c.size, nil
	}
	if len(b) < c.size {
		return 0, errCut
	}
	var n int
	switch c.size {
	case 1:
		n = int(b[0])
	case 2:
		n = int(binary.LittleEndian.Uint16(b))
	case 3:
		n = int(b[0]) | int(b[1])<<8 | int(b[2])<<16
	default:
		n = int(binary.LittleEndian.Uint32(b))
	}
	if n > len(b)-c.size {
		return 0, fmt.Errorf("%w: %d bytes announced, %d are left", ErrCorrupt, n, len(b)-c.size)
	}
	return c.size + n, nil
}

// put appends the value in b, which has exactly its length.
func (it *Iter) put(out *batch.Builder, c *column, b []byte) error {
	switch c.op {
	case opInt8:
		out.PutInt(int64(int8(b[0])))
	case opUint8:
		out.PutUint(uint64(b[0]))
	case opInt16:
		out.PutInt(int64(int16(binary.LittleEndian.Uint16(b))))
	case opUint16:
		out.PutUint(uint64(binary.LittleEndian.Uint16(b)))
	case opInt24:
		out.PutInt(int64(int32(uint32(b[0])<<8|uint32(b[1])<<16|uint32(b[2])<<24) >> 8))
	case opUint24:
		out.PutUint(uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16)
	case opInt32:
		out.PutInt(int64(int32(binary.LittleEndian.Uint32(b))))
	case opUint32:
		out.PutUint(uint64(binary.LittleEndian.Uint32(b)))
	case opInt64:
		out.PutInt(int64(binary.LittleEndian.Uint64(b)))
	case opUint64:
		out.PutUint(binary.LittleEndian.Uint64(b))
	case opFloat32:
		out.PutFloat(float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	case opFloat64:
		out.PutFloat(math.Float64frombits(binary.LittleEndian.Uint64(b)))
	case opDecimal:
		out.VarEnd(decimal.Append(out.VarStart(), b, int(c.prec), int(c.scale)))
	case opYear:
		y := uint64(b[0])
		if y != 0 {
			y += 1900
		}
		out.PutUint(y)
	case opBit:
		out.PutBytes(b)
	case opDate:
		out.PutInt(int64(b[0]) | int64(b[1])<<8 | int64(b[2])<<16)
	case opTime:
		out.PutInt(oldTime(b))
	case opTime2:
		out.PutInt(time2(b, c.scale))
	case opDateTime:
		out.PutInt(oldDateTime(b))
	case opDateTime2:
		out.PutInt(dateTime2(b, c.scale))
	case opTimestamp:
		out.PutInt(timestamp(binary.LittleEndian.Uint32(b), 0))
	case opTimestamp2:
		out.PutInt(timestamp(binary.BigEndian.Uint32(b), micros(b[4:], c.scale)))
	case opText:
		it.text(out, c, b[c.size:])
	case opBytes:
		out.PutBytes(b[c.size:])
	case opPadded:
		dst := append(out.VarStart(), b[c.size:]...)
		for n := len(b) - c.size; n < int(c.meta); n++ {
			dst = append(dst, 0)
		}
		out.VarEnd(dst)
	case opEnum:
		return c.putEnum(out, b)
	case opSet:
		return c.putSet(out, b)
	case opJSON:
		dst, err := jsonb.AppendText(out.VarStart(), b[c.size:])
		if err != nil {
			return err
		}
		out.VarEnd(dst)
	case opGeometry:
		if v := b[c.size:]; len(v) < 9 {
			out.PutRaw("geometry", v) // the empty value that a non-strict server makes of NULL
		} else {
			out.PutBytes(v)
		}
	case opVector:
		if v := b[c.size:]; len(v)%4 != 0 {
			return fmt.Errorf("%w: vector of %d bytes", ErrCorrupt, len(v))
		} else {
			out.PutBytes(v)
		}
	case opUUID:
		var u [16]byte
		mariaUUID(&u, b[1:])
		out.PutBytes(u[:])
	case opInet4, opInet6:
		out.VarEnd(appendInet(out.VarStart(), b[1:], int(c.meta)))
	case opTextCompr, opBytesCompr:
		v, err := it.decompress(b[c.size:])
		if err != nil {
			return err
		}
		if c.op == opBytesCompr {
			out.PutBytes(v)
		} else {
			it.text(out, c, v)
		}
	}
	return nil
}

// text appends characters as UTF-8, or raw where they are not valid.
func (it *Iter) text(out *batch.Builder, c *column, v []byte) {
	switch {
	case c.utf8:
		if !c.valid(v) {
			out.PutRaw(c.name, v)
			return
		}
		out.PutBytes(v)
	case c.decode == nil:
		out.PutRaw(c.name, v)
	default:
		text, ok := c.decode(it.scratch[:0], v)
		if !ok {
			out.PutRaw(c.name, v)
			return
		}
		it.scratch = text
		out.PutBytes(text)
	}
}

func (c *column) valid(v []byte) bool {
	if c.ascii {
		for _, b := range v {
			if b >= utf8.RuneSelf {
				return false
			}
		}
		return true
	}
	return utf8.Valid(v)
}

func (c *column) putEnum(out *batch.Builder, b []byte) error {
	n := int(b[0])
	if c.size == 2 {
		n |= int(b[1]) << 8
	}
	switch {
	case c.labels == nil:
		out.VarEnd(strconv.AppendInt(out.VarStart(), int64(n), 10))
	case n == 0:
		out.PutString("")
	case n > len(c.labels):
		return fmt.Errorf("%w: enum index %d, the layout known here has %d labels", ErrLabel, n, len(c.labels))
	default:
		out.PutString(c.labels[n-1])
	}
	return nil
}

func (c *column) putSet(out *batch.Builder, b []byte) error {
	var v uint64
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	dst := out.VarStart()
	if c.labels == nil {
		out.VarEnd(strconv.AppendUint(dst, v, 10))
		return nil
	}
	if len(c.labels) < 64 && v>>len(c.labels) != 0 {
		return fmt.Errorf("%w: set bits %#x, the layout known here has %d labels", ErrLabel, v, len(c.labels))
	}
	first := true
	for i, l := range c.labels {
		if v&(1<<i) == 0 {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, l...)
	}
	out.VarEnd(dst)
	return nil
}

// appendInet appends an address as the server prints it. The log has lost
// trailing zeros, as with BINARY.
func appendInet(dst, b []byte, size int) []byte {
	var a [16]byte
	copy(a[:], b)
	if size == 4 {
		return netip.AddrFrom4([4]byte(a[:4])).AppendTo(dst)
	}
	ip := netip.AddrFrom16(a)
	zeros := true
	for _, x := range a[:12] {
		zeros = zeros && x == 0
	}
	if zeros && (a[12] != 0 || a[13] != 0) {
		// ::1.2.3.4: an address of IPv4 in the old compatible form.
		return netip.AddrFrom4([4]byte(a[12:])).AppendTo(append(dst, "::"...))
	}
	return ip.AppendTo(dst)
}

// mariaUUID puts the parts of a MariaDB UUID in order. Versions 1 to 5 are stored
// with the last part first, so that they sort by time; others as they stand
// (sql/sql_type_uuid.h).
func mariaUUID(dst *[16]byte, src []byte) {
	var b [16]byte
	copy(b[:], src)
	// Swapped, the version stands in byte 8 and the variant in byte 6.
	if b[6]&0x80 != 0 && b[8] > 0 && b[8] < 0x60 {
		copy(dst[0:4], b[12:16])
		copy(dst[4:6], b[10:12])
		copy(dst[6:8], b[8:10])
		copy(dst[8:10], b[6:8])
		copy(dst[10:16], b[0:6])
		return
	}
	*dst = b
}
