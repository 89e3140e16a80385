package poll

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"maps"
	"slices"
	"time"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/scan"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

var (
	_ sdk.Reader     = (*Reader)(nil)
	_ sdk.Discoverer = (*Reader)(nil)
	_ sdk.Releaser   = (*Reader)(nil)
)

// Config configures a Reader.
type Config struct {
	Column   string            // that grows
	Columns  map[string]string // by namespace.table, where it is another one
	Interval time.Duration     // between two looks while nothing comes
	Overlap  time.Duration     // of a column of times: how far back is read again
	Numbers  int64             // the same of a column of numbers
	Rows     int               // of a transaction at most
	Bytes    int
}

// Reader reads the rows that have come or changed.
type Reader struct {
	Positions
	cfg    Config
	db     scan.Database
	seed   maphash.Seed
	tables []*table
	points []place
	here   place
	turn   int       // table to be looked at next
	idle   int       // tables in a row that had nothing
	next   time.Time // not before
}

// table is a table in two guises: as it is delivered, and with the column in front
// of its key, by which it is read.
type table struct {
	schema *batch.Schema
	by     *scan.Table
	seen   map[uint64]bool // rows within the overlap, as they were
}

// New returns a reader of the database.
func New(db scan.Database, cfg Config) *Reader {
	return &Reader{Positions: positions, cfg: cfg, db: db, seed: maphash.MakeSeed()}
}

// Check implements sdk.Connector.
func (r *Reader) Check(ctx context.Context) ([]sdk.Finding, error) {
	found, err := r.db.Check(ctx)
	if err != nil {
		return found, err
	}
	tables, err := r.db.Tables(ctx)
	if err != nil {
		return found, nil // said already
	}
	found = slices.DeleteFunc(found, func(f sdk.Finding) bool { return f.Severity == sdk.Warning })
	for _, t := range tables {
		if _, err := r.table(t); err != nil {
			f := sdk.AsFault(err)
			found = append(found, sdk.Finding{Severity: sdk.Error, Subject: t.Schema.Name(), Message: f.Message, Advice: f.Suggestion})
		}
	}
	return found, nil
}

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

func (r *Reader) table(t *scan.Table) (*table, error) {
	name := t.Schema.Name()
	column := r.cfg.Column
	if c := r.cfg.Columns[name]; c != "" {
		column = c
	}
	at := t.Schema.Column(column)
	switch {
	case column == "" || at < 0:
		return nil, sdk.Faultf(sdk.CodeInvalidConfig, "table %s has no column %q to be polled by", name, column).Suggest("name a time of change or a growing number in pollColumn, or for this table in pollColumns")
	case len(t.Schema.Key) == 0:
		return nil, sdk.Faultf(sdk.CodeInvalidConfig, "table %s has no key: rows that are read again could not be told from new ones", name).Suggest("add a primary key, or leave the table out")
	}
	for _, k := range append([]int{at}, t.Schema.Key...) {
		switch c := &t.Schema.Columns[k]; c.Type {
		case batch.Enum, batch.Set, batch.JSON, batch.Float32, batch.Float64, batch.Bit, batch.Array, batch.Native, batch.Geometry, batch.Vector:
			return nil, sdk.Faultf(sdk.CodeInvalidConfig, "table %s cannot be polled: column %s of type %s has no order that can be gone on with", name, c.Name, c.Native).Suggest("poll by another column, or leave the table out")
		}
	}
	by := *t
	s := *t.Schema
	s.Key, s.PrimaryKey = []int{at}, false
	for _, k := range t.Schema.Key {
		if k != at {
			s.Key = append(s.Key, k)
		}
	}
	by.Schema = &s
	return &table{schema: t.Schema, by: &by}, nil
}

// Open begins where the least of the points stands.
func (r *Reader) Open(ctx context.Context, _ sdk.Execution, points []sdk.Point, _ []batch.StateItem) error {
	r.points, r.tables, r.here, r.turn, r.idle, r.next = nil, nil, place{at: map[string][]byte{}}, 0, 0, time.Time{}
	for i := range points {
		p := place{at: map[string][]byte{}}
		if !points[i].Position.IsZero() {
			var err error
			if p, err = r.Place(points[i].Position); err != nil {
				return err
			}
		}
		r.points = append(r.points, p)
	}
	if len(r.points) > 0 {
		least := slices.MinFunc(r.points, func(a, b place) int { return cmp.Compare(a.step, b.step) })
		r.here = place{least.step, maps.Clone(least.at)}
	}
	tables, err := r.db.Tables(ctx)
	if err != nil {
		return err
	}
	for _, t := range tables {
		pt, err := r.table(t)
		if err != nil {
			return err
		}
		r.tables = append(r.tables, pt)
	}
	if len(r.tables) == 0 {
		return sdk.Faultf(sdk.CodeInvalidConfig, "no table matches").Suggest("name tables as namespace.table")
	}
	return nil
}

// Next looks at one table after the other.
func (r *Reader) Next(ctx context.Context, out *batch.Builder) error {
	if len(r.tables) == 0 {
		return sdk.Faultf(sdk.CodeInternal, "the reader was not opened")
	}
	for !out.Full() && ctx.Err() == nil {
		if r.idle >= len(r.tables) {
			if !out.Empty() {
				return nil
			}
			if err := r.wait(ctx); err != nil {
				return err
			}
		}
		t := r.tables[r.turn]
		n, err := r.look(ctx, t, out)
		if err != nil {
			if d, ok := ctx.Deadline(); ok && time.Until(d) < 50*time.Millisecond {
				<-ctx.Done() // the deadline was that of a connection before it was ctx's
			}
			if ctx.Err() != nil || !out.Empty() {
				break // what is there goes first; the next look says it again
			}
			return err
		}
		if n > 0 {
			r.idle = 0
			continue // there may be more
		}
		r.turn = (r.turn + 1) % len(r.tables)
		if r.idle++; r.idle == len(r.tables) {
			r.next = time.Now().Add(r.cfg.Interval)
		}
	}
	if out.Empty() {
		return ctx.Err()
	}
	return nil
}

func (r *Reader) wait(ctx context.Context) error {
	t := time.NewTimer(time.Until(r.next))
	defer t.Stop()
	select {
	case <-t.C:
		r.idle = 0
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// look delivers what is new of a table: first what has come late, then what lies
// behind the place.
func (r *Reader) look(ctx context.Context, t *table, out *batch.Builder) (int, error) {
	if err := r.db.Begin(ctx); err != nil {
		return 0, err
	}
	s, err := r.db.Open(ctx)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	name := t.schema.Name()
	lo := r.here.at[name]
	late := 0
	if lo != nil {
		if where, ok, err := r.overlap(t, lo); err != nil {
			return 0, err
		} else if ok {
			if late, err = r.late(ctx, s, t, where, lo, out); err != nil {
				return 0, err
			}
		}
	}
	rows, err := r.rows(ctx, s, t.by, lo, nil, r.cfg.Rows)
	if err != nil {
		return 0, err
	}
	for len(rows) > 0 {
		// A transaction ends where one of the points stands in this table.
		n := len(rows)
		for _, p := range r.points {
			k := p.at[name]
			if i := slices.IndexFunc(rows, func(e batch.Event) bool { return bytes.Equal(e.Key, k) }); i >= 0 && i+1 < n {
				n = i + 1
			}
		}
		if err := r.deliver(out, t, rows[:n], bytes.Clone(rows[n-1].Key)); err != nil {
			return 0, err
		}
		late += n
		rows = rows[n:]
	}
	return late, nil
}

// rows reads rows into memory, at most most.
func (r *Reader) rows(ctx context.Context, s scan.Session, by *scan.Table, lo, hi []byte, most int) ([]batch.Event, error) {
	b := batch.NewBuilder(batch.Limits{})
	if err := b.BeginTx(batch.Tx{Begins: true}); err != nil {
		return nil, err
	}
	where := *by
	column := by.Schema.Columns[by.Schema.Key[0]].Name
	where.Where = and(by.Where, quoted(by, column)+" IS NOT NULL")
	err := s.Rows(ctx, &where, lo, hi, b, func() error {
		if most > 0 && (b.Len() >= most || b.Size() >= r.cfg.Bytes) {
			return scan.ErrEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, scan.ErrEnough) {
		return nil, err
	}
	if err := b.EndTx(true, nil, nil); err != nil {
		return nil, err
	}
	data, err := b.Finish()
	if err != nil {
		return nil, err
	}
	reg := batch.NewRegistry()
	if err := reg.Add(by.Schema); err != nil {
		return nil, err
	}
	var blk batch.Block
	if err := blk.Decode(data, reg, batch.Limits{}); err != nil {
		return nil, err
	}
	out := make([]batch.Event, blk.Len())
	for i := range out {
		if err := blk.Event(i, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func and(a, b string) string {
	if a == "" {
		return b
	}
	return "(" + a + ") AND " + b
}

// deliver appends rows as a transaction; to is the place after them, nil where they
// lie behind it.
func (r *Reader) deliver(out *batch.Builder, t *table, rows []batch.Event, to []byte) error {
	after := place{at: r.here.at}
	tx := batch.Tx{Begins: true, Start: r.here.Append(nil, 0), Committed: time.Now().UnixMicro(), ID: t.schema.Name()}
	if to != nil {
		after.at = maps.Clone(r.here.at)
		after.at[t.schema.Name()] = to
		tx.Covers = r.cover(t, to)
	}
	after.step = r.step(&after, tx.Covers)
	if err := out.BeginTx(tx); err != nil {
		return err
	}
	var vals []batch.Value
	for i := range rows {
		var err error
		if vals, err = rows[i].After.Values(vals); err != nil {
			return err
		}
		if err := out.BeginRow(batch.Read, t.schema); err != nil {
			return err
		}
		out.BeginImage(batch.AfterImage)
		for k := range vals {
			out.PutValue(&vals[k])
		}
		out.EndImage()
		if err := out.EndRow(); err != nil {
			return err
		}
		if t.seen == nil {
			t.seen = map[uint64]bool{}
		}
		t.seen[maphash.Bytes(r.seed, rows[i].After.Data())] = true
	}
	r.here = after
	return out.EndTx(true, nil, after.Append(nil, 0))
}

// cover are the points that have the rows of a table up to a place.
func (r *Reader) cover(t *table, to []byte) []batch.Cover {
	var out []batch.Cover
	for i, p := range r.points {
		k := p.at[t.schema.Name()]
		if k == nil || p.step <= r.here.step {
			continue
		}
		if t.holds(to, k) {
			out = append(out, batch.Cover{Point: i})
		}
	}
	return out
}

// holds reports whether a place is at or before another one. Among rows of one
// value it may say no where the order of their keys is the server's secret: then
// they come twice.
func (t *table) holds(to, k []byte) bool {
	if bytes.Equal(to, k) {
		return true
	}
	first := *t.by.Schema
	first.Key = first.Key[:1]
	a, err1 := t.by.Schema.KeyValues(to)
	b, err2 := t.by.Schema.KeyValues(k)
	if err1 != nil || err2 != nil {
		return false
	}
	c, err := scan.CompareValues(&first, a[:1], b[:1])
	if err == nil && c == 0 && t.by.Ordered {
		c, err = scan.CompareValues(t.by.Schema, a, b)
		return err == nil && c <= 0
	}
	return err == nil && c < 0
}

// step is the number of the position after a transaction: below that of the points
// that have it, above that of all others.
func (r *Reader) step(after *place, covers []batch.Cover) uint64 {
	next := r.here.step + stride
	for i, p := range r.points {
		if p.step <= r.here.step || slices.ContainsFunc(covers, func(c batch.Cover) bool { return c.Point == i }) {
			continue
		}
		next = max(next, p.step+stride)
	}
	for _, c := range covers {
		p := &r.points[c.Point]
		switch {
		case maps.EqualFunc(p.at, after.at, bytes.Equal):
			return p.step
		case next >= p.step:
			next = min(next, r.here.step+max(1, (p.step-r.here.step)/64))
		}
	}
	return next
}

// Durable is no news to a source without a log.
func (r *Reader) Durable(context.Context, sdk.Position) error { return nil }

// Release has nothing to remove.
func (r *Reader) Release(context.Context, string) error { return nil }

// Close ends the connections.
func (r *Reader) Close(context.Context) error {
	r.db.Close()
	return nil
}
