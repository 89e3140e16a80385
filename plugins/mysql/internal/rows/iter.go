package rows

import (
	"fmt"
	"math/bits"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/jsonb"
	"github.com/datalink-go/datalink/sdk/batch"
)

// StmtEnd is the flag of the last row event of a statement.
const StmtEnd = 1

// DummyTable is the table id of a row event that holds no rows and only ends a
// statement.
const DummyTable = 0xFFFFFF

// Iter walks the rows of one event. Its buffers are kept from event to event.
type Iter struct {
	l       *Layout
	kind    batch.Kind
	b       []byte
	full    []byte // of rows, for messages
	partial bool
	images  [2]image
	sides   int
	first   int
	scratch []byte
	inflate []byte
	before  [][]byte // partial updates: where the JSON values of the before image lie
	docs    jsonb.Editor
}

// image is the set of columns that the images of one side have.
type image struct {
	present []byte
	count   int
	all     bool
}

// Open begins with the rows of an event of that type, under l. The rows are
// views of body.
func (it *Iter) Open(t binlog.Type, f *binlog.Format, l *Layout, body []byte) error {
	it.l = l
	fail := func(msg string, args ...any) error {
		return fmt.Errorf("%w: %s event of %s: %s", ErrCorrupt, t, l.Schema.Name(), fmt.Sprintf(msg, args...))
	}
	_, n, err := TableID(t, f, body)
	if err != nil {
		return err
	}
	r := reader{b: body[n+2:]}
	compressed := false
	it.partial = false
	switch t {
	case binlog.WriteRowsV0, binlog.WriteRowsV1, binlog.WriteRowsV2, binlog.WriteRowsCompressed, binlog.WriteRowsV2Compr:
		it.kind, it.first, it.sides = batch.Insert, 1, 1
	case binlog.DeleteRowsV0, binlog.DeleteRowsV1, binlog.DeleteRowsV2, binlog.DeleteRowsCompr, binlog.DeleteRowsV2Compr:
		it.kind, it.first, it.sides = batch.Delete, 0, 1
	default:
		it.kind, it.first, it.sides = batch.Update, 0, 2
		it.partial = t == binlog.PartialUpdateRows
	}
	switch t {
	case binlog.WriteRowsV2, binlog.UpdateRowsV2, binlog.DeleteRowsV2, binlog.PartialUpdateRows,
		binlog.WriteRowsV2Compr, binlog.UpdateRowsV2Compr, binlog.DeleteRowsV2Compr:
		// Extra data (partition ids, NDB information) changes nothing about the rows.
		n := int(r.uint16())
		if n < 2 {
			return fail("extra data of %d bytes", n)
		}
		r.bytes(n - 2)
	}
	compressed = t >= binlog.WriteRowsCompressed && t <= binlog.DeleteRowsV2Compr
	width := r.lenenc()
	if !r.bad && width != uint64(len(l.cols)) {
		return fail("%d columns, its table map has %d", width, len(l.cols))
	}
	nb := (len(l.cols) + 7) / 8
	for i := range it.sides {
		im := &it.images[it.first+i]
		im.present = r.bytes(nb)
		if r.bad {
			break
		}
		im.count = 0
		for k, b := range im.present {
			if rest := len(l.cols) - 8*k; rest < 8 {
				b &= 1<<rest - 1
			}
			im.count += bits.OnesCount8(b)
		}
		im.all = im.count == len(l.cols)
	}
	if r.bad {
		return fail("its head is cut off")
	}
	it.b = r.b
	if compressed {
		if it.inflate, err = binlog.Inflate(r.b, it.inflate); err != nil {
			return fail("%v", err)
		}
		it.b = it.inflate
	}
	it.full = it.b
	return nil
}

// More reports whether rows are left.
func (it *Iter) More() bool { return len(it.b) > 0 }

// Layout returns the layout of the rows.
func (it *Iter) Layout() *Layout { return it.l }

// Next appends the next row to out, which has a transaction open. A row of a
// system-versioned table that concerns its past alone appends nothing.
func (it *Iter) Next(out *batch.Builder) error {
	kind, after := it.kind, []byte(nil)
	if it.l.rowEnd >= 0 {
		var err error
		if kind, after, err = it.versioned(); err != nil {
			return err
		}
		if kind == batch.KindInvalid {
			it.b = after
			return nil
		}
	}
	if err := out.BeginRow(kind, it.l.Schema); err != nil {
		return err
	}
	start := len(it.b)
	for i := range it.sides {
		side := batch.Side(it.first + i)
		if kind == batch.Delete && side == batch.AfterImage {
			break
		}
		if kind == batch.Insert && side == batch.BeforeImage {
			if err := it.pass(side); err != nil {
				out.DropRow()
				return err
			}
			continue
		}
		out.BeginImage(side)
		if err := it.image(out, side); err != nil {
			out.DropRow()
			return err
		}
		out.EndImage()
	}
	if len(it.b) == start {
		out.DropRow()
		return fmt.Errorf("%w: row of %s without bytes", ErrCorrupt, it.l.Schema.Name())
	}
	if after != nil {
		it.b = after
	}
	return out.EndRow()
}

func (it *Iter) image(out *batch.Builder, side batch.Side) error {
	im := &it.images[side]
	var diffs []byte // partial updates: a bit for each JSON column
	if it.partial && side == batch.AfterImage {
		n, k := binlog.LenEnc(it.b)
		if k == 0 {
			return it.cut("value options")
		}
		it.b = it.b[k:]
		if n&1 != 0 {
			nj := (it.l.nJSON + 7) / 8
			if nj > len(it.b) {
				return it.cut("value options")
			}
			diffs, it.b = it.b[:nj], it.b[nj:]
		}
	}
	nn := (im.count + 7) / 8
	if nn > len(it.b) {
		return it.cut("bitmap of NULLs")
	}
	nulls := it.b[:nn]
	b := it.b[nn:]
	if it.partial && side == batch.BeforeImage {
		it.before = it.before[:0]
		for range it.l.cols {
			it.before = append(it.before, nil)
		}
	}
	nth, json := 0, 0
	for i := range it.l.cols {
		c := &it.l.cols[i]
		diff := false
		if c.json {
			diff = diffs != nil && diffs[json>>3]&(1<<(json&7)) != 0
			json++
		}
		if !im.all && im.present[i>>3]&(1<<(i&7)) == 0 {
			if !c.skip {
				if err := it.absent(out, side, c); err != nil {
					return it.errorf(c, err)
				}
			}
			continue
		}
		null := nulls[nth>>3]&(1<<(nth&7)) != 0
		nth++
		if null {
			if !c.skip {
				out.PutNull()
			}
			continue
		}
		n, err := c.length(b)
		if err != nil {
			return it.errorf(c, err)
		}
		v := b[:n]
		b = b[n:]
		if it.partial && c.json && side == batch.BeforeImage {
			it.before[i] = v
		}
		if c.skip {
			continue
		}
		if diff {
			err = it.patch(out, c, i, v[c.size:])
		} else {
			err = it.put(out, c, v)
		}
		if err != nil {
			return it.errorf(c, err)
		}
	}
	it.b = b
	return nil
}

// absent is a column that the image leaves out. After images of updates hold
// what changed: all else keeps its value. A row that was inserted has the default
// there.
func (it *Iter) absent(out *batch.Builder, side batch.Side, c *column) error {
	switch {
	case side == batch.BeforeImage:
		out.PutAbsent()
	case it.kind == batch.Update:
		out.PutUnchanged()
	case !c.fill.put(out):
		return fmt.Errorf("%w: the row image leaves the column out (binlog_row_image is not FULL), and its default is no constant that a statement in the log gives", ErrPartial)
	}
	return nil
}

// patch applies the differences of a partial update to the document of the
// before image.
func (it *Iter) patch(out *batch.Builder, c *column, i int, diff []byte) error {
	if it.before[i] == nil {
		if len(diff) == 0 {
			out.PutUnchanged()
			return nil
		}
		return fmt.Errorf("%w: the log has only the differences of this JSON document and not the document before (binlog_row_value_options=PARTIAL_JSON needs binlog_row_image=FULL)", ErrPartial)
	}
	doc, err := it.docs.Apply(it.before[i][c.size:], diff)
	if err != nil {
		return err
	}
	out.VarEnd(append(out.VarStart(), doc...))
	return nil
}

func (it *Iter) cut(what string) error {
	return fmt.Errorf("%w: row of %s, %s: cut off at byte %d of %d", ErrCorrupt, it.l.Schema.Name(), what, len(it.full)-len(it.b), len(it.full))
}

func (it *Iter) errorf(c *column, err error) error {
	return fmt.Errorf("row of %s, column %s: %w", it.l.Schema.Name(), c.display, err)
}
