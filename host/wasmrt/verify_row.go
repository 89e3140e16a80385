package wasmrt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/datalink-go/datalink/sdk/batch"
)

// row decodes every value and checks that the row has the images of its kind and
// the keys of its images.
func (v *Verifier) row(e *batch.Event) error {
	hasBefore, hasAfter := !e.Before.IsZero(), !e.After.IsZero()
	switch e.Kind {
	case batch.Delete:
		if !hasBefore || hasAfter {
			return fmt.Errorf("delete of %s with before image: %t, after image: %t", e.Schema.Name(), hasBefore, hasAfter)
		}
	case batch.Insert, batch.Read:
		if hasBefore || !hasAfter {
			return fmt.Errorf("%s of %s with before image: %t, after image: %t", e.Kind, e.Schema.Name(), hasBefore, hasAfter)
		}
	default:
		if !hasAfter {
			return fmt.Errorf("%s of %s without an after image", e.Kind, e.Schema.Name())
		}
	}
	var err error
	if hasBefore {
		if v.before, err = values(e.Before, v.before); err != nil {
			return err
		}
	}
	if hasAfter {
		if v.after, err = values(e.After, v.after); err != nil {
			return err
		}
	}
	return v.keys(e, hasBefore, hasAfter)
}

// values decodes an image and checks what the layout alone does not say.
func values(im batch.Image, dst []batch.Value) ([]batch.Value, error) {
	dst, err := im.Values(dst)
	if err != nil {
		return dst, err
	}
	cols := im.Schema().Columns
	for i := range dst {
		if dst[i].State != batch.Present {
			continue
		}
		ok := true
		switch cols[i].Type {
		case batch.String, batch.JSON, batch.Enum, batch.Set, batch.Inet:
			ok = utf8.Valid(dst[i].Bytes())
		case batch.Decimal:
			ok = isDecimal(dst[i].Bytes())
		case batch.Bool:
			ok = dst[i].Uint64() <= 1
		}
		if !ok {
			return dst, fmt.Errorf("row of %s, column %s: not a value of type %s", im.Schema().Name(), cols[i].Name, cols[i].Type)
		}
	}
	return dst, nil
}

func isDecimal(p []byte) bool {
	if len(p) > 0 && p[0] == '-' {
		p = p[1:]
	}
	if s := string(p); s == "NaN" || s == "Infinity" {
		return true
	}
	whole, fraction, point := bytes.Cut(p, []byte("."))
	return digits(whole) && (!point || digits(fraction))
}

func digits(p []byte) bool {
	for _, c := range p {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(p) > 0
}

// keys compares the key bytes with what batch.Builder makes of the images.
func (v *Verifier) keys(e *batch.Event, hasBefore, hasAfter bool) error {
	s := e.Schema
	if len(s.Key) == 0 {
		if len(e.Key)+len(e.OldKey) > 0 {
			return fmt.Errorf("row of %s has key bytes, the table has no key", s.Name())
		}
		return nil
	}
	first, second := v.after, v.before
	if !hasAfter {
		first = v.before
	}
	if !hasBefore {
		second = nil
	}
	var ok bool
	if v.key, ok = appendKey(v.key[:0], s, first, second); !ok || !bytes.Equal(v.key, e.Key) {
		return fmt.Errorf("row of %s: its key bytes are not those of its images", s.Name())
	}
	var old []byte
	if hasBefore && hasAfter {
		n := len(v.key)
		if v.key, ok = appendKey(v.key, s, v.before, nil); ok && !bytes.Equal(v.key[n:], v.key[:n]) {
			old = v.key[n:]
		}
	}
	if !bytes.Equal(old, e.OldKey) {
		return fmt.Errorf("row of %s: its old key bytes are not those of its before image", s.Name())
	}
	return nil
}

// appendKey appends the encoded values of the key columns, each from the first
// image that has it.
func appendKey(dst []byte, s *batch.Schema, first, second []batch.Value) ([]byte, bool) {
	for _, i := range s.Key {
		v := &first[i]
		if !v.Has() && second != nil {
			v = &second[i]
		}
		if !v.Has() {
			return dst, false
		}
		dst = appendValue(dst, s.Columns[i].Type, v)
	}
	return dst, true
}

func appendValue(dst []byte, t batch.Type, v *batch.Value) []byte {
	if name, data, raw := v.Raw(); raw {
		var l [binary.MaxVarintLen64]byte
		k := binary.PutUvarint(l[:], uint64(len(name)))
		dst = binary.AppendUvarint(dst, uint64(k+len(name)+len(data)))
		return append(append(append(dst, l[:k]...), name...), data...)
	}
	switch w := t.Width(); {
	case w == 0:
		return append(binary.AppendUvarint(dst, uint64(len(v.Bytes()))), v.Bytes()...)
	case v.Bytes() != nil: // fixed, but no number
		return append(dst, v.Bytes()...)
	case t == batch.Float32:
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(v.Float64())))
	default:
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], v.Uint64())
		return append(dst, n[:w]...)
	}
}
