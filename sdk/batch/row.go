package batch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

// BeginRow opens a row event. BeginImage follows for each image the kind has,
// the before image first, then one Put for each column in order, EndImage, and
// at last EndRow.
func (b *Builder) BeginRow(k Kind, s *Schema) error {
	if !b.inTx || b.inRow || !k.IsRow() {
		return fmt.Errorf("%w: BeginRow(%s) with transaction open: %t, row open: %t", ErrMisuse, k, b.inTx, b.inRow)
	}
	if b.schema != s {
		if err := b.Define(s); err != nil {
			return err
		}
		b.use(s)
	}
	b.header(k, s)
	b.inRow, b.err = true, nil
	b.spans[0], b.spans[1] = b.spans[0][:0], b.spans[1][:0]
	return nil
}

func (b *Builder) use(s *Schema) {
	b.schema = s
	if b.info = b.infos[s]; b.info != nil {
		return
	}
	b.info = &schemaInfo{key: make([]int, len(s.Columns)), nBitmap: (len(s.Columns) + 7) / 8}
	for i := range b.info.key {
		b.info.key[i] = -1
	}
	for place, col := range s.Key {
		b.info.key[col] = place
	}
	b.infos[s] = b.info
}

// BeginImage opens one image of the row.
func (b *Builder) BeginImage(side Side) {
	if !b.inRow || b.inImage {
		b.fail("BeginImage out of order")
		return
	}
	flag := byte(eventBefore)
	if side == AfterImage {
		flag = eventAfter
	}
	if b.buf[b.event+1]&flag != 0 || side == BeforeImage && b.buf[b.event+1]&eventAfter != 0 {
		b.fail("BeginImage out of order")
		return
	}
	b.buf[b.event+1] |= flag
	b.side, b.inImage, b.col = side, true, 0
	b.imageAt = len(b.buf)
	b.buf = append(b.buf, 0, 0, 0, 0, imageNull)
	for range b.info.nBitmap {
		b.buf = append(b.buf, 0)
	}
	if n := len(b.schema.Key); n > 0 {
		b.spans[side] = grow(b.spans[side], n)
		clear(b.spans[side])
	}
}

// EndImage closes the image.
func (b *Builder) EndImage() {
	if !b.inImage {
		b.fail("EndImage without BeginImage")
		return
	}
	b.inImage = false
	if b.col != len(b.schema.Columns) {
		b.fail(fmt.Sprintf("%d values for the %d columns of %s", b.col, len(b.schema.Columns), b.schema.Name()))
		return
	}
	binary.LittleEndian.PutUint32(b.buf[b.imageAt:], uint32(len(b.buf)-b.imageAt-4))
	b.imageFlags[b.side] = b.buf[b.imageAt+4]
}

// EndRow closes the row: it adds the key bytes and returns the first error since
// BeginRow, in which case the row is dropped.
func (b *Builder) EndRow() error {
	if !b.inRow {
		return fmt.Errorf("%w: EndRow without BeginRow", ErrMisuse)
	}
	if b.err == nil && b.inImage {
		b.fail("EndRow with an open image")
	}
	if b.err == nil && !hasImages(Kind(b.buf[b.event]), b.buf[b.event+1]) {
		b.fail(fmt.Sprintf("%s of %s with the wrong images, flags %#x", Kind(b.buf[b.event]), b.schema.Name(), b.buf[b.event+1]))
	}
	if b.err == nil && len(b.schema.Key) > 0 {
		b.appendKeys()
	}
	if n := len(b.buf) - b.event; b.err == nil && n > b.limits.Record {
		b.err = fmt.Errorf("row of %s: %w", b.schema.Name(), tooLarge("record", n, b.limits.Record))
	}
	if b.err != nil {
		b.DropRow()
	}
	b.inRow = false
	return b.err
}

// LastKeys returns the key bytes of the row that EndRow closed last, and its old
// ones where an update changed them. They are valid until the next row; a row
// without a key leaves those of an earlier one.
func (b *Builder) LastKeys() (key, old []byte) {
	key = b.keyBuf[0]
	if b.buf[b.event+1]&eventOldKey != 0 {
		old = b.keyBuf[1]
	}
	return key, old
}

// LastWhole reports whether the row that EndRow closed last leaves nothing of a row
// open: it is a delete, or one of its images is complete.
func (b *Builder) LastWhole() bool {
	const part = imageAbsent | imageUnchanged
	flags := b.buf[b.event+1]
	if Kind(b.buf[b.event]) == Delete {
		return true
	}
	return flags&eventBefore != 0 && b.imageFlags[BeforeImage]&part == 0 || flags&eventAfter != 0 && b.imageFlags[AfterImage]&part == 0
}

// DropLast takes back the row that EndRow closed last. Its ordinal stays taken, so
// that those that follow have theirs whether it is taken back or not.
func (b *Builder) DropLast() {
	b.buf = b.buf[:b.event]
	b.starts = b.starts[:len(b.starts)-1]
}

// DropRow forgets the open row, as if BeginRow had not been called.
func (b *Builder) DropRow() {
	if !b.inRow {
		return
	}
	b.buf = b.buf[:b.event]
	b.starts = b.starts[:len(b.starts)-1]
	if !b.held {
		b.next--
	}
	b.inRow, b.inImage = false, false
}

// appendKeys writes the key of the row and, where it changed, the old one. A key
// column that the after image lacks is taken from the before image.
func (b *Builder) appendKeys() {
	before, after := b.spans[BeforeImage], b.spans[AfterImage]
	if b.buf[b.event+1]&eventBefore == 0 {
		before = nil
	}
	if b.buf[b.event+1]&eventAfter == 0 {
		after = nil
	}
	now, ok := b.key(&b.keyBuf[0], after, before)
	if !ok {
		b.err = fmt.Errorf("%w: row of %s: its images lack a value of the key", ErrMisuse, b.schema.Name())
		return
	}
	b.buf[b.event+1] |= eventKey
	b.buf = appendBytes(b.buf, now)
	if before == nil || after == nil {
		return
	}
	if old, ok := b.key(&b.keyBuf[1], before, nil); ok && !bytes.Equal(old, now) {
		b.buf[b.event+1] |= eventOldKey
		b.buf = appendBytes(b.buf, old)
	}
}

func (b *Builder) key(buf *[]byte, first, second []span) ([]byte, bool) {
	k := (*buf)[:0]
	for i := range b.schema.Key {
		var s span
		if first != nil {
			s = first[i]
		}
		if s.to == 0 && second != nil {
			s = second[i]
		}
		if s.to == 0 {
			return nil, false
		}
		if s.raw {
			k = append(k, rawKey[:]...)
		}
		k = append(k, b.buf[s.from:s.to]...)
	}
	*buf = k
	return k, true
}

func (b *Builder) fail(msg string) {
	if b.err == nil {
		b.err = fmt.Errorf("%w: %s", ErrMisuse, msg)
	}
}

// column checks that a value of one of the wanted shapes may come now.
func (b *Builder) column() *Column {
	if !b.inImage || b.col >= len(b.schema.Columns) {
		b.fail("value outside of an image, or more values than columns")
		return nil
	}
	return &b.schema.Columns[b.col]
}

// done notes where the value of the current column lies and goes on to the next.
func (b *Builder) done(from int) {
	if p := b.info.key[b.col]; p >= 0 {
		b.spans[b.side][p] = span{from: from, to: len(b.buf)}
	}
	b.col++
}

// PutInt writes the next column's value: Bool, Int*, Uint*, Date, Time, DateTime,
// Timestamp and Year. A value that the type does not hold is an error of the row.
func (b *Builder) PutInt(v int64) {
	c := b.column()
	if c == nil {
		return
	}
	if r := &ranges[c.Type]; v < r.lo || v > r.hi {
		b.fail(fmt.Sprintf("%d for column %s of type %s", v, c.Name, c.Type))
		return
	}
	b.putFixed(c.Type, uint64(v))
}

// PutUint writes the next column's value of type Bool, Int*, Uint* or Year. A
// value that the type does not hold is an error of the row.
func (b *Builder) PutUint(v uint64) {
	c := b.column()
	if c == nil {
		return
	}
	if c.Type != Uint64 && (v > math.MaxInt64 || int64(v) > ranges[c.Type].hi) {
		b.fail(fmt.Sprintf("%d for column %s of type %s", v, c.Name, c.Type))
		return
	}
	b.putFixed(c.Type, v)
}

func (b *Builder) putFixed(t Type, v uint64) {
	from := len(b.buf)
	switch widths[t] {
	case 1:
		b.buf = append(b.buf, byte(v))
	case 2:
		b.buf = binary.LittleEndian.AppendUint16(b.buf, uint16(v))
	case 4:
		b.buf = binary.LittleEndian.AppendUint32(b.buf, uint32(v))
	default:
		b.buf = binary.LittleEndian.AppendUint64(b.buf, v)
	}
	b.done(from)
}

// PutFloat writes the next column's value of type Float32 or Float64.
func (b *Builder) PutFloat(v float64) {
	c := b.column()
	if c == nil {
		return
	}
	from := len(b.buf)
	switch c.Type {
	case Float32:
		b.buf = binary.LittleEndian.AppendUint32(b.buf, math.Float32bits(float32(v)))
	case Float64:
		b.buf = binary.LittleEndian.AppendUint64(b.buf, math.Float64bits(v))
	default:
		b.fail(fmt.Sprintf("float for column %s of type %s", c.Name, c.Type))
		return
	}
	b.done(from)
}

// PutBytes writes the next column's value of any type that PutInt and PutFloat
// do not take. UUID, Interval and TimeTZ must have their exact width.
func (b *Builder) PutBytes(p []byte) {
	if c := b.bytesColumn(len(p)); c != nil {
		from := len(b.buf)
		if c.Type.Width() == 0 {
			b.buf = binary.AppendUvarint(b.buf, uint64(len(p)))
		}
		b.buf = append(b.buf, p...)
		b.done(from)
	}
}

// PutString is PutBytes for a string.
func (b *Builder) PutString(p string) {
	if c := b.bytesColumn(len(p)); c != nil {
		from := len(b.buf)
		if c.Type.Width() == 0 {
			b.buf = binary.AppendUvarint(b.buf, uint64(len(p)))
		}
		b.buf = append(b.buf, p...)
		b.done(from)
	}
}

func (b *Builder) bytesColumn(n int) *Column {
	c := b.column()
	if c == nil {
		return nil
	}
	switch w := c.Type.Width(); {
	case w == 0, w == n && (c.Type == UUID || c.Type == Interval || c.Type == TimeTZ):
		return c
	}
	b.fail(fmt.Sprintf("%d bytes for column %s of type %s", n, c.Name, c.Type))
	return nil
}

// VarStart begins a value of a length-prefixed type that the caller appends
// itself to the returned slice and hands back to VarEnd:
//
//	b.VarEnd(appendDecimal(b.VarStart(), …))
func (b *Builder) VarStart() []byte {
	c := b.column()
	if c != nil && c.Type.Width() != 0 {
		b.fail(fmt.Sprintf("bytes for column %s of type %s", c.Name, c.Type))
	}
	b.varStart = len(b.buf)
	return append(b.buf, 0)
}

// VarEnd ends the value begun with VarStart.
func (b *Builder) VarEnd(buf []byte) {
	if b.err != nil {
		return
	}
	b.endVar(buf)
	b.done(b.varStart)
}

// endVar takes the buffer with the value appended and puts its length before it.
func (b *Builder) endVar(buf []byte) {
	b.buf = buf
	n := len(buf) - b.varStart - 1
	if n < 0x80 {
		b.buf[b.varStart] = byte(n)
	} else {
		var l [binary.MaxVarintLen64]byte
		k := binary.PutUvarint(l[:], uint64(n))
		b.buf = append(b.buf, l[:k-1]...)
		copy(b.buf[b.varStart+k:], b.buf[b.varStart+1:b.varStart+1+n])
		copy(b.buf[b.varStart:], l[:k])
	}
}

// PutNull makes the next column NULL.
func (b *Builder) PutNull() {
	c := b.column()
	if c == nil {
		return
	}
	if b.info.key[b.col] >= 0 {
		b.fail("NULL for the key column " + c.Name + " of " + b.schema.Name())
		return
	}
	b.buf[b.imageAt+5+b.bitmaps(imageNull)+(b.col>>3)] |= 1 << (b.col & 7)
	b.col++
}

// PutAbsent says that the source's log does not hold the next column.
func (b *Builder) PutAbsent() { b.mark(imageAbsent) }

// PutUnchanged says that the next column keeps the value the target has.
func (b *Builder) PutUnchanged() { b.mark(imageUnchanged) }

func (b *Builder) mark(flag byte) {
	if b.column() == nil {
		return
	}
	b.setBit(flag)
	b.col++
}

// PutRaw writes a value that is not of the column's type: bytes that are not
// valid in their charset, or a value outside the type's range. Name is the
// charset or native type; data is exact.
func (b *Builder) PutRaw(name string, data []byte) {
	c := b.column()
	if c == nil {
		return
	}
	if b.info.key[b.col] >= 0 && c.Type.Width() != 0 {
		b.fail("raw value for the key column " + c.Name + " of type " + c.Type.String() + " of " + b.schema.Name())
		return
	}
	b.setBit(imageRaw)
	from := len(b.buf)
	var l [binary.MaxVarintLen64]byte
	k := binary.PutUvarint(l[:], uint64(len(name)))
	b.buf = binary.AppendUvarint(b.buf, uint64(k+len(name)+len(data)))
	b.buf = append(b.buf, l[:k]...)
	b.buf = append(b.buf, name...)
	b.buf = append(b.buf, data...)
	place := b.info.key[b.col]
	b.done(from)
	if place >= 0 {
		b.spans[b.side][place].raw = true
	}
}

// PutValue writes a decoded value of a column with the same type.
func (b *Builder) PutValue(v *Value) {
	switch v.State {
	case Absent:
		b.PutAbsent()
	case Null:
		b.PutNull()
	case Unchanged:
		b.PutUnchanged()
	case Raw:
		name, data, _ := v.Raw()
		b.PutRaw(name, data)
	default:
		c := b.column()
		switch {
		case c == nil:
		case c.Type == Float32 || c.Type == Float64:
			b.PutFloat(v.Float64())
		case c.Type.Width() == 0 || v.bytes != nil:
			b.PutBytes(v.bytes)
		case c.Type == Uint64:
			b.PutUint(v.num)
		default:
			b.PutInt(int64(v.num))
		}
	}
}

// bitmaps returns how many bytes of bitmaps come before the one of flag.
func (b *Builder) bitmaps(flag byte) int {
	n, have := 0, b.buf[b.imageAt+4]
	for f := byte(1); f < flag; f <<= 1 {
		if have&f != 0 {
			n += b.info.nBitmap
		}
	}
	return n
}

// setBit sets the current column's bit in a bitmap of the image, which is put in
// when it is not there: rare, so the values behind it are moved.
func (b *Builder) setBit(flag byte) {
	at := b.imageAt + 5 + b.bitmaps(flag)
	if b.buf[b.imageAt+4]&flag == 0 {
		nb := b.info.nBitmap
		for range nb {
			b.buf = append(b.buf, 0)
		}
		copy(b.buf[at+nb:], b.buf[at:len(b.buf)-nb])
		clear(b.buf[at : at+nb])
		b.buf[b.imageAt+4] |= flag
		for i := range b.spans[b.side] {
			if s := &b.spans[b.side][i]; s.to != 0 {
				s.from += nb
				s.to += nb
			}
		}
	}
	b.buf[at+(b.col>>3)] |= 1 << (b.col & 7)
}
