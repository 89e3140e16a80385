package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// pipe gathers statements and sends them together: none of them commits, and all
// answers are read before anything else is sent.
type pipe struct {
	t      *tx
	groups target.Groups
	b      *pgconn.Batch
	n      int // statements
	bytes  int

	base     int // changes in the segments before
	bad      []sdk.RecordError
	replaced int // values written as NULL or cut, by policy

	sets          []*rowset
	spare         []*rowset
	before, after []batch.Value
	maskBuf       []byte
	params        [][]byte
}

// Bytes that are sent together at most, but for one statement that is larger.
const pipeBytes = 4 << 20

func (x *pipe) reset(t *tx) {
	x.t = t
	x.drop()
	x.bad, x.base, x.replaced, x.sets = nil, 0, 0, x.sets[:0]
	held := 0
	for _, r := range x.spare {
		for k := range r.cols[:cap(r.cols)] {
			held += cap(r.cols[:cap(r.cols)][k].buf)
		}
	}
	if held > spareBytes {
		x.spare = nil
	}
}

// spareBytes is what a session keeps of its buffers from one transaction to the
// next.
const spareBytes = 8 << 20

// drop forgets what was not sent.
func (x *pipe) drop() { x.b, x.n, x.bytes = &pgconn.Batch{}, 0, 0 }

func (x *pipe) refuse(k int32, f *sdk.Fault) {
	x.bad = append(x.bad, sdk.RecordError{Index: x.base + int(k), Err: f})
}

func (x *pipe) errors() []sdk.RecordError {
	slices.SortStableFunc(x.bad, func(a, b sdk.RecordError) int { return a.Index - b.Index })
	return slices.CompactFunc(x.bad, func(a, b sdk.RecordError) bool { return a.Index == b.Index })
}

// set returns the set of rows for an operation and a mask.
func (x *pipe) set(p *plan, op opText, mask []byte) *rowset {
	for _, r := range x.sets {
		if r.p == p && r.op == op && r.mask == string(mask) {
			return r
		}
	}
	var r *rowset
	if n := len(x.spare); n > 0 {
		r, x.spare = x.spare[n-1], x.spare[:n-1]
	} else {
		r = &rowset{}
	}
	r.reset(p, op, string(mask))
	x.sets = append(x.sets, r)
	return r
}

// masked decodes what a change writes and says which columns that is.
func (x *pipe) masked(p *plan, c *sdk.Change, op opText) ([]byte, error) {
	x.maskBuf = x.maskBuf[:0]
	if op == deleteText {
		return x.maskBuf, nil
	}
	var err error
	if x.after, err = c.After.Values(x.after); err != nil {
		return nil, err
	}
	x.maskBuf = p.mask(x.maskBuf, x.after)
	if op == updateText && c.Op != sdk.Rekey {
		// The key stays what it is.
		for _, i := range p.key {
			x.maskBuf[i] = '-'
		}
	}
	return x.maskBuf, nil
}

// add puts a change into its set of rows. A value that the target cannot hold
// keeps the change out and is noted.
func (x *pipe) add(p *plan, c *sdk.Change, k int32, op opText) error {
	mask, err := x.masked(p, c, op)
	if err != nil {
		return err
	}
	_, err = x.fill(x.set(p, op, mask), c, k)
	return err
}

// one makes a set of a single change. False: it was refused, and that noted.
func (x *pipe) one(p *plan, c *sdk.Change, k int32, op opText) (*rowset, bool, error) {
	mask, err := x.masked(p, c, op)
	if err != nil {
		return nil, false, err
	}
	r := &rowset{}
	r.reset(p, op, string(mask))
	ok, err := x.fill(r, c, k)
	return r, ok, err
}

// fill appends the row of a change that masked has decoded.
func (x *pipe) fill(r *rowset, c *sdk.Change, k int32) (bool, error) {
	for n, i := range r.set {
		if !x.put(r, n, i, &x.after[i], k) {
			return false, nil
		}
	}
	if len(r.find) > 0 {
		keys, err := x.key(r.p, c)
		if err != nil {
			return false, err
		}
		for n, i := range r.find {
			if !x.put(r, len(r.set)+n, i, &keys[n], k) {
				return false, nil
			}
		}
	}
	r.done(k)
	return true, nil
}

// put appends one value, by policy where the target cannot hold it. False: the
// change was refused, and its row taken back.
func (x *pipe) put(r *rowset, n, i int, v *batch.Value, k int32) bool {
	bad := r.value(n, v)
	if bad == nil {
		return true
	}
	c := &r.p.cols[i]
	switch x.t.w.cfg.Choose(c.nullable && !c.inKey, bad.cut != nil && !c.inKey) {
	case target.SetNull:
		r.null(n)
		x.replaced++
		return true
	case target.Cut:
		r.encoded(n, bad.cut)
		x.replaced++
		return true
	}
	r.undo(n)
	x.refuse(k, x.t.unfit(r.p, i, bad))
	return false
}

// key returns the values of the key by which the row of a change is found: those
// of the image where it has them all, else those of the key bytes.
func (x *pipe) key(p *plan, c *sdk.Change) ([]batch.Value, error) {
	key, im := c.Key, c.Before
	if len(c.OldKey) > 0 {
		key = c.OldKey
	} else if c.Op == sdk.Patch || c.Op == sdk.Upsert {
		im = c.After
	}
	if !im.IsZero() && im.Schema() == p.schema {
		vals, err := im.Values(x.before)
		if err != nil {
			return nil, err
		}
		x.before = vals
		out := make([]batch.Value, 0, len(p.key))
		for _, i := range p.key {
			if vals[i].Has() {
				out = append(out, vals[i])
			}
		}
		if len(out) == len(p.key) {
			return out, nil
		}
	}
	return p.schema.KeyValues(key)
}

// send puts a set of rows into the pipe. An update says how many rows it found, so
// its answer is waited for.
func (x *pipe) send(ctx context.Context, r *rowset, seg []sdk.Change, read bool) error {
	defer func() { x.spare = append(x.spare, r) }()
	if len(r.at) == 0 {
		return nil
	}
	if read && len(r.at) >= copyRows && x.t.w.cfg.Bulk == BulkAuto && r.op == upsertText {
		return x.copy(ctx, r)
	}
	if r.op != updateText {
		return x.queue(ctx, r)
	}
	if err := x.flush(ctx); err != nil {
		return err
	}
	n, err := x.now(ctx, r)
	if err != nil || n == int64(len(r.at)) {
		return err
	}
	// Which of them have no row is found one by one: the others are written twice.
	for _, k := range r.at {
		replaced := x.replaced
		one, ok, err := x.one(r.p, &seg[k], k, updateText)
		x.replaced = replaced
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if n, err = x.now(ctx, one); err != nil {
			return err
		}
		if n > 0 {
			continue
		}
		if err := x.t.missing(ctx, r.p, seg, k); err != nil {
			return err
		}
	}
	return nil
}

// queue adds the statement of a set of rows.
func (x *pipe) queue(ctx context.Context, r *rowset) error {
	size := r.size()
	if x.n > 0 && x.bytes+size > pipeBytes {
		if err := x.flush(ctx); err != nil {
			return err
		}
	}
	name, err := x.prepared(ctx, r)
	if err != nil {
		return err
	}
	x.params = r.values(x.params[:0])
	x.b.ExecPrepared(name, x.params, binaryFormat, nil)
	x.n++
	x.bytes += size
	return nil
}

var binaryFormat = []int16{1}

// prepared makes the statement of a set. What the pipe holds goes first where
// statements have to be given up: it names them.
func (x *pipe) prepared(ctx context.Context, r *rowset) (string, error) {
	q := r.p.text(r.op, r.mask)
	s := x.t.s
	if name, ok := s.stmts[q]; ok {
		return name, nil
	}
	if len(s.stmts) >= maxStatements {
		if err := x.flush(ctx); err != nil {
			return "", err
		}
	}
	return s.prepared(ctx, q, r.oids())
}

// now runs the statement of a set at once and returns the count of rows.
func (x *pipe) now(ctx context.Context, r *rowset) (int64, error) {
	if len(r.at) == 0 {
		return 0, nil
	}
	name, err := x.prepared(ctx, r)
	if err != nil {
		return 0, err
	}
	x.t.w.cfg.Stats.Statements.Add(1)
	x.params = r.values(x.params[:0])
	res := x.t.s.pc.ExecPrepared(ctx, name, x.params, binaryFormat, nil).Read()
	return res.CommandTag.RowsAffected(), res.Err
}

// flush sends what the pipe holds and reads all answers.
func (x *pipe) flush(ctx context.Context) error {
	if x.n == 0 {
		return nil
	}
	b := x.b
	x.t.w.cfg.Stats.Statements.Add(uint64(x.n))
	x.drop()
	return x.t.s.pc.ExecBatch(ctx, b).Close()
}
