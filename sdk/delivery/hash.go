package delivery

import (
	"encoding/binary"
	"math/bits"
)

// The hash decides which lane a row belongs to, and lanes outlive a process: it
// must stay as it is. A change of it is a change of the mapping.
const (
	hashA = 0x9E3779B97F4A7C15
	hashB = 0xD6E8FEB86659FD93
	hashC = 0xA0761D6478BD642F
)

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// hash of p with a seed.
func hash(seed uint64, p []byte) uint64 {
	h := mix(seed^hashC, uint64(len(p))^hashA)
	for len(p) >= 8 {
		h = mix(h^binary.LittleEndian.Uint64(p), hashB)
		p = p[8:]
	}
	if len(p) > 0 {
		var last [8]byte
		copy(last[:], p)
		h = mix(h^binary.LittleEndian.Uint64(last[:]), hashA)
	}
	return mix(h^hashC, hashB)
}

func hashString(seed uint64, s string) uint64 { return hash(seed, []byte(s)) }
