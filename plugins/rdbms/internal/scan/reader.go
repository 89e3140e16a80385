package scan

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

var (
	_ sdk.Reader     = (*Reader)(nil)
	_ sdk.Discoverer = (*Reader)(nil)
	_ sdk.Releaser   = (*Reader)(nil)
)

// Database is a Source whose tables can be listed.
type Database interface {
	Source
	// Begin makes ready for a run: where the database can, all sessions opened from
	// now on see one moment.
	Begin(ctx context.Context) error
	// Tables returns the tables to be read, sorted by name, with schema ids from 1.
	Tables(ctx context.Context) ([]*Table, error)
	// Check looks at the database and the rights of the user.
	Check(ctx context.Context) ([]sdk.Finding, error)
	Close()
}

// Reader copies the tables of a database once: rows as Read events, a Range after
// each chunk, then the end.
type Reader struct {
	Positions
	db     Database
	opt    Options
	points []place // zero step = nothing
	tables []*Table
	reg    *batch.Registry
	run    *Run
	here   place
	whole  bool // a table without a key is being delivered: one transaction
	next   uint64
	start  []byte
	ended  error
}

// NewReader returns a reader of the database.
func NewReader(db Database, opt Options) *Reader {
	return &Reader{Positions: positions, db: db, opt: opt}
}

// Check implements sdk.Connector.
func (r *Reader) Check(ctx context.Context) ([]sdk.Finding, error) { return r.db.Check(ctx) }

// Discover lists the tables.
func (r *Reader) Discover(ctx context.Context, out func(*batch.Schema) error) error {
	tables, err := r.db.Tables(ctx)
	if err != nil {
		return err
	}
	for _, t := range tables {
		if err := out(t.Schema); err != nil {
			return err
		}
	}
	return nil
}

// Open begins after the least of the points. Chunks end where the others stand, so
// that each of them can be said to be covered or not.
func (r *Reader) Open(ctx context.Context, _ sdk.Execution, points []sdk.Point, _ []batch.StateItem) error {
	r.stop()
	r.points, r.here, r.whole, r.ended = nil, place{}, false, nil
	for i := range points {
		p := points[i].Position
		if p.IsZero() {
			r.points = append(r.points, place{})
			continue
		}
		pl, err := r.Place(p)
		if err != nil {
			return err
		}
		r.points = append(r.points, pl)
	}
	if len(r.points) > 0 {
		r.here = slices.MinFunc(r.points, func(a, b place) int { return cmp.Compare(a.step, b.step) })
	}
	tables, err := r.db.Tables(ctx)
	if err != nil {
		return err
	}
	if len(tables) == 0 {
		return sdk.Faultf(sdk.CodeInvalidConfig, "no table matches").Suggest("name tables as namespace.table; datalink plugin discover lists them")
	}
	if err := r.db.Begin(ctx); err != nil {
		return err
	}
	r.tables, r.reg = tables, batch.NewRegistry()
	var jobs []Job
	for _, t := range tables {
		if err := r.reg.Add(t.Schema); err != nil {
			return err
		}
		name := t.Schema.Name()
		if r.here.table != "" && (name < r.here.table || name == r.here.table && r.here.key == nil) {
			continue
		}
		j := Job{Table: t}
		if name == r.here.table {
			j.Lo = r.here.key
		}
		for _, p := range r.ahead() {
			if p.table == name && p.key != nil {
				j.Stops = append(j.Stops, p.key)
			}
		}
		jobs = append(jobs, j)
	}
	r.run = Start(r.db, jobs, r.opt)
	return nil
}

// ahead are the points behind here, in order.
func (r *Reader) ahead() []place {
	var out []place
	for _, p := range r.points {
		if p.step > r.here.step {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b place) int { return cmp.Compare(a.step, b.step) })
	return slices.CompactFunc(out, func(a, b place) bool { return a.step == b.step })
}

// Next appends chunks until out is full.
func (r *Reader) Next(ctx context.Context, out *batch.Builder) error {
	if r.run == nil && r.ended == nil {
		return sdk.Faultf(sdk.CodeInternal, "the reader was not opened")
	}
	for r.ended == nil && !out.Full() && ctx.Err() == nil {
		c, err := r.run.Next(ctx)
		if err == nil {
			err = r.deliver(out, c)
		}
		if err != nil {
			if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				break
			}
			r.ended = err
		}
	}
	if r.ended != nil {
		return r.ended
	}
	if out.Empty() {
		return ctx.Err()
	}
	return nil
}

// step returns the number of the position after a chunk: that of a point which
// stands there, else one that leaves room for those that come before the next one.
func (r *Reader) step(to place) uint64 {
	ahead := r.ahead()
	if len(ahead) == 0 {
		return r.here.step + stride
	}
	p := ahead[0]
	if p.table == to.table && string(p.key) == string(to.key) && (p.key == nil) == (to.key == nil) {
		return p.step
	}
	room := p.step - r.here.step
	if room > stride {
		return r.here.step + stride
	}
	return r.here.step + max(1, room/64)
}

// deliver appends a chunk.
func (r *Reader) deliver(out *batch.Builder, c *Chunk) error {
	s := c.Table.Schema
	keyless := len(s.Key) == 0
	to := place{table: s.Name(), key: c.Hi}
	if c.Last {
		to.key = nil
	}
	tx := batch.Tx{Begins: !r.whole, Ordinal: r.next, Committed: time.Now().UnixMicro(), ID: s.Name()}
	if !r.whole {
		tx.Ordinal = 0
		r.start = r.here.Append(nil, 0)
	}
	tx.Start = r.start
	var step uint64
	if !keyless || c.Last {
		step = r.step(to)
	}
	for i, p := range r.points {
		if p.step >= step && step > 0 || keyless && p.step > r.here.step {
			tx.Covers = append(tx.Covers, batch.Cover{Point: i})
		}
	}
	if err := out.BeginTx(tx); err != nil {
		return err
	}
	if keyless && c.First {
		if err := out.Truncate(s); err != nil {
			return err
		}
	}
	keys, err := c.Copy(out, r.reg)
	if err != nil {
		return err
	}
	if keyless && !c.Last {
		// The table is one transaction, or it starts over.
		_, r.next = out.OpenTx()
		r.whole = true
		return out.EndTx(false, r.start, nil)
	}
	if !keyless {
		if err := out.KeyRange(s, &batch.KeyRange{Lo: c.Lo, Hi: c.Hi, Last: c.Last, Keys: keys}); err != nil {
			return err
		}
	}
	r.whole, r.next = false, 0
	to.step = step
	r.here = to
	return out.EndTx(true, nil, to.Append(nil, 0))
}

// Copy appends the rows of the chunk to an open transaction entry, and returns
// their keys. Reg has the schema of the table.
func (c *Chunk) Copy(out *batch.Builder, reg *batch.Registry) ([][]byte, error) {
	var blk batch.Block
	if err := blk.Decode(c.Block, reg, batch.Limits{}); err != nil {
		return nil, err
	}
	var keys [][]byte
	for i := range blk.Len() {
		var e batch.Event
		if err := blk.Event(i, &e); err != nil {
			return nil, err
		}
		if err := out.CopyEvent(&e); err != nil {
			return nil, err
		}
		if len(e.Key) > 0 {
			keys = append(keys, e.Key)
		}
	}
	return keys, nil
}

// Release has nothing to remove.
func (r *Reader) Release(context.Context, string) error { return nil }

// Durable is no news to a copy.
func (r *Reader) Durable(context.Context, sdk.Position) error { return nil }

// Close ends the connections.
func (r *Reader) Close(context.Context) error {
	r.stop()
	r.db.Close()
	return nil
}

func (r *Reader) stop() {
	if r.run != nil {
		r.run.Close()
		r.run = nil
	}
}
