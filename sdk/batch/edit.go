package batch

import (
	"encoding/binary"
	"fmt"
)

// EditRow appends the row of e with other values in some columns: faster than
// to decode and encode all of them. S is the schema of the output, whose columns
// have the types of the input's; edit tells for each column whether it is edited.
// For each value there is in such a column (neither NULL nor left out), f gets
// the value and appends the new one to dst; a raw value becomes one of the
// column's type. Columns of the key and of a fixed width cannot be edited.
func (b *Builder) EditRow(e *Event, s *Schema, edit []bool, f func(dst []byte, column int, v *Value) []byte) error {
	if !b.inTx || b.inRow || !e.Kind.IsRow() {
		return fmt.Errorf("%w: EditRow(%s) with transaction open: %t, row open: %t", ErrMisuse, e.Kind, b.inTx, b.inRow)
	}
	if err := editable(e.Schema, s, edit); err != nil {
		return err
	}
	if err := b.Define(s); err != nil {
		return err
	}
	b.header(e.Kind, s)
	b.buf[b.event+1] = e.raw[1]
	for _, im := range [...]Image{e.Before, e.After} {
		if im.IsZero() {
			continue
		}
		at := len(b.buf)
		b.buf = append(b.buf, 0, 0, 0, 0)
		if err := b.editImage(im, s, edit, f); err != nil {
			b.cutRow()
			return err
		}
		binary.LittleEndian.PutUint32(b.buf[at:], uint32(len(b.buf)-at-4))
	}
	if e.raw[1]&eventKey != 0 {
		b.buf = appendBytes(b.buf, e.Key)
	}
	if e.raw[1]&eventOldKey != 0 {
		b.buf = appendBytes(b.buf, e.OldKey)
	}
	if n := len(b.buf) - b.event; n > b.limits.Record {
		b.cutRow()
		return fmt.Errorf("row of %s: %w", s.Name(), tooLarge("record", n, b.limits.Record))
	}
	return nil
}

// cutRow forgets the event that was begun last.
func (b *Builder) cutRow() {
	b.inRow = true
	b.DropRow()
}

func editable(in, out *Schema, edit []bool) error {
	if len(in.Columns) != len(out.Columns) || len(edit) != len(out.Columns) {
		return fmt.Errorf("%w: EditRow of %s: %d columns in, %d out, %d told", ErrMisuse, in.Name(), len(in.Columns), len(out.Columns), len(edit))
	}
	for _, k := range out.Key {
		if edit[k] {
			return fmt.Errorf("%w: EditRow of %s: column %s is part of the key", ErrMisuse, in.Name(), out.Columns[k].Name)
		}
	}
	for i := range edit {
		if in != out && in.Columns[i].Type != out.Columns[i].Type || edit[i] && widths[out.Columns[i].Type] != 0 {
			return fmt.Errorf("%w: EditRow of %s: column %s of type %s, then %s", ErrMisuse, in.Name(), out.Columns[i].Name, in.Columns[i].Type, out.Columns[i].Type)
		}
	}
	return nil
}

// editImage walks the image once and copies what lies between edited values.
func (b *Builder) editImage(im Image, s *Schema, edit []bool, f func(dst []byte, column int, v *Value) []byte) error {
	data, nb := im.data, (len(s.Columns)+7)/8
	flags := data[0]
	pos := 1
	var maps [4][]byte
	for k := range maps {
		if flags&(1<<k) == 0 {
			continue
		}
		if len(data)-pos < nb {
			return im.corrupt("bitmaps", "cut off")
		}
		maps[k] = data[pos : pos+nb]
		pos += nb
	}
	if flags&^imageAll != 0 {
		return im.corrupt("flags", "unknown bits")
	}
	absent, null, unchanged, raw := maps[0], maps[1], maps[2], maps[3]
	special := flags&(imageAbsent|imageUnchanged|imageRaw) != 0
	at, copied := len(b.buf), 0
	rawMap := at + pos - nb // the last one
	cleared := false
	var v Value
	for i := range s.Columns {
		if bit(null, i) || special && (bit(absent, i) || bit(unchanged, i)) {
			continue
		}
		isRaw := special && bit(raw, i)
		if w := int(widths[s.Columns[i].Type]); w != 0 && !isRaw {
			pos += w
			if pos > len(data) {
				return im.corrupt(s.Columns[i].Name, "value cut off")
			}
			continue
		}
		start := pos
		l, k := uint64(0), 0
		if pos < len(data) && data[pos] < 0x80 {
			l, k = uint64(data[pos]), 1
		} else {
			l, k = binary.Uvarint(data[min(pos, len(data)):])
		}
		if k <= 0 || l > uint64(len(data)-pos-k) {
			return im.corrupt(s.Columns[i].Name, "value cut off")
		}
		pos += k + int(l)
		if !edit[i] {
			continue
		}
		v = Value{State: Present, bytes: data[pos-int(l) : pos : pos]}
		if isRaw {
			name, k := binary.Uvarint(v.bytes)
			if k <= 0 || name > uint64(len(v.bytes)-k) {
				return im.corrupt(s.Columns[i].Name, "raw name cut off")
			}
			v = Value{State: Raw, num: name, bytes: v.bytes[k:]}
		}
		b.buf = append(b.buf, data[copied:start]...)
		copied = pos
		b.varStart = len(b.buf)
		b.buf = append(b.buf, 0)
		b.endVar(f(b.buf, i, &v))
		if isRaw {
			b.buf[rawMap+i>>3] &^= 1 << (i & 7)
			cleared = true
		}
	}
	if pos != len(data) {
		return im.corrupt("end", fmt.Sprintf("%d bytes follow the last column", len(data)-pos))
	}
	b.buf = append(b.buf, data[copied:]...)
	if cleared && isZero(b.buf[rawMap:rawMap+nb]) {
		b.buf = append(b.buf[:rawMap], b.buf[rawMap+nb:]...)
		b.buf[at] &^= imageRaw
	}
	return nil
}

func isZero(p []byte) bool {
	for _, c := range p {
		if c != 0 {
			return false
		}
	}
	return true
}
