package decimal

import "encoding/binary"

// digitBytes is how many bytes so many leading or trailing digits take; nine
// digits take four.
var digitBytes = [10]int{0, 1, 1, 2, 2, 3, 3, 4, 4, 4}

// Size is the size of a DECIMAL(prec, scale) in a row
// (strings/decimal.cc, decimal_bin_size).
func Size(prec, scale int) int {
	whole := prec - scale
	return whole/9*4 + digitBytes[whole%9] + scale/9*4 + digitBytes[scale%9]
}

// Append appends a DECIMAL as the server prints it: no zeros before the
// whole part, all digits of the scale.
func Append(dst, b []byte, prec, scale int) []byte {
	// The first bit is the sign, inverted; negative numbers are inverted as a whole.
	flip := uint32(0)
	if b[0]&0x80 == 0 {
		flip = 0xFFFFFFFF
		dst = append(dst, '-')
	}
	start := len(dst)
	zero := true
	pos := 0
	take := func(n int) uint32 {
		var v uint32
		switch n {
		case 1:
			v = uint32(b[pos])
		case 2:
			v = uint32(b[pos])<<8 | uint32(b[pos+1])
		case 3:
			v = uint32(b[pos])<<16 | uint32(b[pos+1])<<8 | uint32(b[pos+2])
		case 4:
			v = binary.BigEndian.Uint32(b[pos:])
		}
		if pos == 0 {
			v ^= 1 << (8*n - 1)
		}
		v ^= flip
		if n < 4 {
			v &= 1<<(8*n) - 1
		}
		pos += n
		return v
	}
	whole := prec - scale
	leading := true
	put := func(v uint32, digits int) {
		if v != 0 {
			zero = false
		}
		if leading {
			if v == 0 {
				return
			}
			leading = false
			digits = 1
			for p := uint32(10); p <= v && digits < 9; p *= 10 {
				digits++
			}
			if v >= 1e9 {
				digits = 10 // damaged, printed all the same
			}
		}
		at := len(dst)
		for range digits {
			dst = append(dst, '0')
		}
		for i := at + digits - 1; i >= at; i-- {
			dst[i] = byte('0' + v%10)
			v /= 10
		}
	}
	if n := whole % 9; n > 0 {
		put(take(digitBytes[n]), n)
	}
	for range whole / 9 {
		put(take(4), 9)
	}
	if leading {
		dst = append(dst, '0')
	}
	if scale > 0 {
		leading = false
		dst = append(dst, '.')
		for range scale / 9 {
			put(take(4), 9)
		}
		if n := scale % 9; n > 0 {
			put(take(digitBytes[n]), n)
		}
	}
	if zero && start > 0 && flip != 0 {
		// There is no negative zero.
		copy(dst[start-1:], dst[start:])
		dst = dst[:len(dst)-1]
	}
	return dst
}
