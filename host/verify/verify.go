package verify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/wire"
)

// Source is the task's own reader, beside its stream.
type Source interface {
	// Tables lists the tables that the task reads.
	Tables(ctx context.Context) ([]*batch.Schema, error)
	ReadRange(ctx context.Context, q *wire.RangeRequest) (*wire.RangeReply, error)
	ReadKeys(ctx context.Context, q *wire.KeysRequest) (*wire.RangeReply, error)
}

// Target is one of its writers.
type Target interface {
	Scan(ctx context.Context, q *wire.RangeRequest) (*wire.RangeReply, error)
}

// Stream is the task's pipeline; see pipeline.Beside.
type Stream interface {
	Watch(keys map[string][][]byte) *pipeline.Watch
	Await(ctx context.Context, p sdk.Position) error
	Write(ctx context.Context, writer string, high sdk.Position, fill func(*pipeline.Put) error) error
}

// Writer is a target with what rows go through on their way to it.
type Writer struct {
	Name   string
	Target Target // nil = only the rows that Rewrite makes go to it
	Mapper *pipeline.Mapper
}

// Config of a verification. Source, Stream and Writers are required.
type Config struct {
	Source  Source
	Stream  Stream
	Writers []Writer
	// Wants selects tables of the source by name; nil = all.
	Wants func(table string) bool
	// Estimate is how many rows a table of the source is believed to have; nil or 0 =
	// not known.
	Estimate func(table string) uint64
	// Save keeps the state; it is called about once a second and at the end. An
	// error ends the run.
	Save func(ctx context.Context, s *State) error
	Log  *slog.Logger

	ChunkRows int           // 0 = 1000
	Tries     int           // of a key whose row changes all the time; 0 = 12
	CatchUp   time.Duration // how long a target may take to catch up; 0 = 1 min

	// NoSettle takes what differs at the first look for different, for the test that
	// shows what looking again is good for.
	NoSettle bool
}

// Run compares, from where the state stands. It returns when all is compared, ctx
// ends, or something fails; the state says what was found in each case.
func Run(ctx context.Context, cfg Config, s *State) error {
	r, err := prepare(ctx, cfg)
	if err != nil {
		return err
	}
	r.state = s
	r.began = time.Now()
	if s.Results == nil {
		if cfg.Wants != nil && !slices.ContainsFunc(r.tables, func(t *batch.Schema) bool { return cfg.Wants(t.Name()) }) {
			return sdk.Faultf(sdk.CodeUnknownTable, "none of the %d tables that the task reads is meant", len(r.tables)).
				Suggest("name tables as the source has them, database.table; the reader's option tables says which are read")
		}
		r.plan()
	}
	for i := 0; i < len(s.Results); i++ { // it may grow
		if err := r.step(ctx, i); err != nil {
			return errors.Join(err, r.save(context.WithoutCancel(ctx), true))
		}
	}
	s.Percent = 100
	return nil
}

// runner is one run.
type runner struct {
	cfg    Config
	log    *slog.Logger
	tables []*batch.Schema // of the source, by place
	ws     []*target
	state  *State
	began  time.Time
	walked int // rows since then
	saved  time.Time
	buf    []byte
	vals   []batch.Value
}

// target is a writer and the tables that rows go to.
type target struct {
	Writer
	links map[uint32]*link // by schema id after the mappings
	named map[string][]*link
	first []*link // of each table of the source, as its layout leads to; nil = to none
	mixed []bool  // of each table of the source: its rows do not share an order and a table with the target
}

// link is rows of one table of the source in one table of the target.
type link struct {
	src    int
	schema *batch.Schema
	absent []bool // columns that the target lacks, nil = not known
}

func (l *link) name() string { return l.schema.Name() }

// prepare finds out which tables rows go to.
func prepare(ctx context.Context, cfg Config) (*runner, error) {
	if cfg.ChunkRows <= 0 {
		cfg.ChunkRows = 1000
	}
	if cfg.Tries <= 0 {
		cfg.Tries = 12
	}
	if cfg.CatchUp <= 0 {
		cfg.CatchUp = time.Minute
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	r := &runner{cfg: cfg, log: cfg.Log}
	var err error
	if r.tables, err = cfg.Source.Tables(ctx); err != nil {
		return nil, fmt.Errorf("tables of the source: %w", err)
	}
	for i, t := range r.tables {
		c := t.Clone()
		c.ID = uint32(i + 1)
		r.tables[i] = c
	}
	for _, w := range cfg.Writers {
		t := &target{Writer: w, links: map[uint32]*link{}, named: map[string][]*link{}, first: make([]*link, len(r.tables)), mixed: make([]bool, len(r.tables))}
		for i := range r.tables {
			if err := t.lead(ctx, i, r.tables[i]); err != nil {
				return nil, err
			}
		}
		for i := range r.tables {
			l := t.first[i]
			t.mixed[i] = l == nil || len(t.named[l.name()]) != 1 || !alike(r.tables[i], l.schema)
		}
		r.ws = append(r.ws, t)
	}
	return r, nil
}

// lead asks the mappings where rows of a table go.
func (t *target) lead(ctx context.Context, i int, s *batch.Schema) error {
	b := batch.NewBuilder(batch.Limits{})
	if err := b.Define(s); err != nil {
		return err
	}
	if err := b.Heartbeat(0); err != nil {
		return err
	}
	b.AppendTx(batch.Tx{Begins: true, Ends: true})
	data, err := b.Finish()
	if err != nil {
		return err
	}
	blk, err := t.Mapper.Run(ctx, data)
	if err != nil {
		return fmt.Errorf("layout of %s at writer %s: %w", s.Name(), t.Name, err)
	}
	for _, id := range blk.Definitions() {
		l := t.link(blk.Registry().Get(id), i)
		if t.first[i] == nil {
			t.first[i] = l
		}
	}
	return nil
}

func (t *target) link(s *batch.Schema, src int) *link {
	l := t.links[s.ID]
	if l == nil {
		l = &link{src: src, schema: s}
		t.links[s.ID] = l
		t.named[s.Name()] = append(t.named[s.Name()], l)
	}
	return l
}

// alike reports whether a range of the source's key is one of the target's, so that
// one walk finds what either side lacks.
func alike(s, t *batch.Schema) bool {
	if len(s.Key) == 0 || len(s.Key) != len(t.Key) {
		return false
	}
	for i := range s.Key {
		a, b := &s.Columns[s.Key[i]], &t.Columns[t.Key[i]]
		if a.Type != b.Type {
			return false
		}
		switch a.Type {
		case batch.Bool, batch.Int8, batch.Int16, batch.Int32, batch.Int64, batch.Uint8, batch.Uint16, batch.Uint32, batch.Year:
		default:
			return false
		}
	}
	return true
}

// plan lists the steps: each table of the source, then tables of the target whose
// extra rows these did not find.
func (r *runner) plan() {
	for _, w := range r.ws {
		if w.Target == nil {
			continue
		}
		later := map[string]bool{}
		var order []string
		for i, s := range r.tables {
			if r.cfg.Wants != nil && !r.cfg.Wants(s.Name()) {
				continue
			}
			t := Table{Writer: w.Name, Table: s.Name(), Side: "source", Phase: "pending"}
			if r.cfg.Estimate != nil {
				t.Estimate = r.cfg.Estimate(s.Name())
			}
			switch {
			case len(s.Key) == 0:
				t.Phase, t.Reason = "skipped", "the table has no key by which rows could be compared"
			case w.first[i] == nil:
				t.Phase, t.Reason = "skipped", "its rows go to no table of this writer"
			case w.mixed[i]:
				for _, l := range w.links {
					if l.src == i && !later[l.name()] {
						later[l.name()] = true
						order = append(order, l.name())
					}
				}
			}
			r.state.Results = append(r.state.Results, t)
		}
		for _, name := range order {
			r.state.Results = append(r.state.Results, Table{Writer: w.Name, Table: name, Side: "target", Phase: "pending"})
		}
	}
}

func (r *runner) step(ctx context.Context, i int) error {
	t := &r.state.Results[i]
	if t.Phase == "done" || t.Phase == "skipped" {
		return nil
	}
	var w *target
	for _, x := range r.ws {
		if x.Name == t.Writer {
			w = x
		}
	}
	if w == nil || w.Target == nil {
		t.Phase, t.Reason = "skipped", "the task has no such writer any more"
		return nil
	}
	t.Phase = "running"
	var err error
	if t.Side == "target" {
		err = r.walkTarget(ctx, w, i)
	} else {
		err = r.walkSource(ctx, w, i)
	}
	t = &r.state.Results[i] // it may have moved
	if err != nil {
		return fmt.Errorf("verify %s at writer %s: %w", t.Table, t.Writer, err)
	}
	if t.Phase == "running" {
		t.Phase, t.Cursor = "done", nil
	}
	return r.save(ctx, true)
}

// turn is called after each chunk: it keeps the state and the rate.
func (r *runner) turn(ctx context.Context, t *Table, cursor []byte, rows int) error {
	t.Cursor, t.Chunks = cursor, t.Chunks+1
	t.Rows += uint64(rows)
	r.walked += rows
	if err := r.save(ctx, false); err != nil {
		return err
	}
	if limit := r.state.MaxRowsPerSecond; limit > 0 {
		wait := time.Duration(float64(r.walked)/float64(limit)*float64(time.Second)) - time.Since(r.began)
		if wait > 0 {
			if err := r.save(ctx, false); err != nil {
				return err
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
		}
	}
	return ctx.Err()
}

func (r *runner) save(ctx context.Context, now bool) error {
	r.state.Percent = r.state.percent()
	if r.cfg.Save == nil || !now && time.Since(r.saved) < time.Second {
		return nil
	}
	r.saved = time.Now()
	return r.cfg.Save(ctx, r.state)
}

// addSum adds a row's sum to the table's, which says the same whatever the order is.
func (t *Table) addSum(h uint64) {
	have, _ := strconv.ParseUint(t.Checksum, 16, 64)
	t.Checksum = fmt.Sprintf("%016x", have+h)
}
