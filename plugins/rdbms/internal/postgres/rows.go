package postgres

import (
	"encoding/binary"

	"github.com/datalink-go/datalink/sdk/batch"
)

// rowset gathers rows for one statement, column by column, each column as a binary
// array (array_recv in arrayfuncs.c).
type rowset struct {
	p     *plan
	op    opText
	mask  string
	set   []int // columns that are written
	find  []int // columns that rows are found by
	cols  []array
	at    []int32 // the changes, by their place in the segment
	bytes int
}

type array struct {
	elem  uint32
	buf   []byte
	nulls bool
}

// arrayHeader is dimensions, flags, element type, length, lower bound.
const arrayHeader = 20

func (r *rowset) reset(p *plan, op opText, mask string) {
	r.p, r.op, r.mask = p, op, mask
	r.set, r.find = p.params(op, places(mask))
	n := len(r.set) + len(r.find)
	if cap(r.cols) < n {
		r.cols = append(r.cols[:cap(r.cols)], make([]array, n-cap(r.cols))...)
	}
	r.cols = r.cols[:n]
	for k := range r.cols {
		a := &r.cols[k]
		a.nulls = false
		a.elem = r.wire(k).elem
		if a.buf == nil {
			a.buf = make([]byte, arrayHeader, 4096)
		}
		a.buf = a.buf[:arrayHeader]
	}
	r.at, r.bytes = r.at[:0], 0
}

// column returns the place in the schema of the k-th parameter.
func (r *rowset) column(k int) int {
	if k < len(r.set) {
		return r.set[k]
	}
	return r.find[k-len(r.set)]
}

func (r *rowset) wire(k int) *wire { return &r.p.cols[r.column(k)].wire }

// null appends NULL to the k-th parameter.
func (r *rowset) null(k int) {
	a := &r.cols[k]
	a.buf = append(a.buf, 0xff, 0xff, 0xff, 0xff)
	a.nulls = true
}

// value appends a value to the k-th parameter.
func (r *rowset) value(k int, v *batch.Value) *misfit {
	a := &r.cols[k]
	if v.State == batch.Null {
		r.null(k)
		return nil
	}
	i := r.column(k)
	from := len(a.buf)
	a.buf = append(a.buf, 0, 0, 0, 0)
	var bad *misfit
	if v.State == batch.Raw {
		name, data, _ := v.Raw()
		a.buf, bad = raw(a.buf, r.p.cols[i].info, &r.p.cols[i].wire, name, data)
	} else {
		a.buf, bad = r.p.cols[i].wire.enc(a.buf, &r.p.schema.Columns[i], r.p.cols[i].info, v)
	}
	if bad != nil {
		a.buf = a.buf[:from]
		return bad
	}
	binary.BigEndian.PutUint32(a.buf[from:], uint32(len(a.buf)-from-4))
	return nil
}

// encoded appends bytes that are encoded already.
func (r *rowset) encoded(k int, b []byte) {
	a := &r.cols[k]
	a.buf = binary.BigEndian.AppendUint32(a.buf, uint32(len(b)))
	a.buf = append(a.buf, b...)
}

// undo takes back what a row has put into the first n parameters.
func (r *rowset) undo(n int) {
	for k := range n {
		a := &r.cols[k]
		at := arrayHeader
		for range r.at {
			at = next(a.buf, at)
		}
		a.buf = a.buf[:at]
	}
}

// next returns where the element behind the one at a place begins.
func next(buf []byte, at int) int {
	if l := int32(binary.BigEndian.Uint32(buf[at:])); l > 0 {
		return at + 4 + int(l)
	}
	return at + 4
}

// done ends a row.
func (r *rowset) done(at int32) { r.at = append(r.at, at) }

// size is the bytes that the arrays hold.
func (r *rowset) size() int {
	n := 0
	for k := range r.cols {
		n += len(r.cols[k].buf)
	}
	return n
}

// values returns the parameters, good until the next reset.
func (r *rowset) values(dst [][]byte) [][]byte {
	for k := range r.cols {
		a := &r.cols[k]
		h := a.buf[:arrayHeader]
		flags := uint32(0)
		if a.nulls {
			flags = 1
		}
		binary.BigEndian.PutUint32(h, 1)
		binary.BigEndian.PutUint32(h[4:], flags)
		binary.BigEndian.PutUint32(h[8:], a.elem)
		binary.BigEndian.PutUint32(h[12:], uint32(len(r.at)))
		binary.BigEndian.PutUint32(h[16:], 1)
		dst = append(dst, a.buf)
	}
	return dst
}

// oids are the types of the parameters.
func (r *rowset) oids() []uint32 {
	out := make([]uint32, len(r.cols))
	for k := range r.cols {
		out[k] = elements[r.cols[k].elem].array
	}
	return out
}
