package snapshot

import (
	"context"

	"github.com/datalink-go/datalink/plugins/mysql/internal/rows"
	"github.com/datalink-go/datalink/plugins/mysql/internal/schema"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Extract is rows that were read outside of the stream: Low is where the stream
// had come to, all of which they contain, and High the end of the log afterwards.
type Extract struct {
	Low, High Place
	Rest      []byte // key after which to go on; nil = the range was read to its end
}

// Single reads single ranges and keys of tables, for comparisons and repairs.
type Single struct {
	cfg Config
	src Source
}

// NewSingle returns a reader of single ranges and keys.
func NewSingle(cfg Config, src Source) *Single { return &Single{cfg.withDefaults(), src} }

// open takes a snapshot that sees what was delivered at cur.
func (r *Single) open(ctx context.Context, cur Place, want *batch.Schema) (*session, *rows.Selection, Extract, error) {
	s, err := dial(ctx, r.src, &r.cfg)
	if err != nil {
		return nil, nil, Extract{}, err
	}
	fail := func(err error) (*session, *rows.Selection, Extract, error) {
		_ = s.Close()
		return nil, nil, Extract{}, err
	}
	v, err := s.begin(ctx, cur, false)
	if err != nil {
		return fail(err)
	}
	def, err := s.definition(ctx, schema.Name{Database: want.Namespace, Table: want.Table})
	if err != nil {
		return fail(err)
	}
	if def == nil {
		return fail(sdk.Faultf(sdk.CodeUnknownTable, "table %s is not at the source", want.Name()))
	}
	sel, err := rows.NewSelection(def, rows.Options{Format: &s.format, ID: want.ID, Source: want.Source, Version: want.Version})
	if err != nil {
		return fail(err)
	}
	if !sel.UseSchema(want) {
		return fail(sdk.Faultf(sdk.CodeSchemaMismatch, "table %s has other columns now than those that were asked for", want.Name()).Retry())
	}
	return s, sel, Extract{Low: cur, High: v.high}, nil
}

// Range appends rows with lo < key <= hi to out, at most most (0 = as many as out
// takes), in the server's order.
func (r *Single) Range(ctx context.Context, cur Place, want *batch.Schema, lo, hi []byte, most int, out *batch.Builder) (Extract, error) {
	s, sel, x, err := r.open(ctx, cur, want)
	if err != nil {
		return x, err
	}
	defer s.Close()
	if len(want.Key) == 0 {
		return x, sdk.Faultf(sdk.CodeRefused, "table %s has no key: it has no ranges", want.Name())
	}
	bound := func(key []byte) (*mark, error) {
		if len(key) == 0 {
			return nil, nil
		}
		cur, err := sel.CursorOf(key)
		return &mark{Cursor: cur, Key: key}, err
	}
	after, err := bound(lo)
	if err != nil {
		return x, err
	}
	to, err := bound(hi)
	if err != nil {
		return x, err
	}
	if most <= 0 {
		most = r.cfg.ChunkRows
	}
	if err := out.BeginTx(batch.Tx{Begins: true}); err != nil {
		return x, err
	}
	n, last := 0, []byte(nil)
	phase := len(want.Key) - 1
	if after == nil {
		phase = 0
	}
	for ; phase >= 0 && n < most; phase-- {
		sql, err := chunkSQL(sel, after, to, phase, most-n)
		if err != nil {
			return x, err
		}
		err = selectRows(ctx, s.Conn, sql, sel, func(packet []byte) error {
			if err := sel.Append(out, packet); err != nil {
				return err
			}
			key, _ := out.LastKeys()
			n, last = n+1, append(last[:0], key...)
			return nil
		})
		if err != nil {
			return x, err
		}
	}
	if n >= most {
		x.Rest = last
	}
	return x, out.EndTx(true, nil, nil)
}

// Keys appends the rows that have one of the keys to out.
func (r *Single) Keys(ctx context.Context, cur Place, want *batch.Schema, keys [][]byte, out *batch.Builder) (Extract, error) {
	s, sel, x, err := r.open(ctx, cur, want)
	if err != nil {
		return x, err
	}
	defer s.Close()
	if err := out.BeginTx(batch.Tx{Begins: true}); err != nil {
		return x, err
	}
	for part := range chunked(keys, keysAtOnce) {
		if err := selectKeys(ctx, s, sel, part, func(packet []byte) error { return sel.Append(out, packet) }); err != nil {
			return x, err
		}
	}
	return x, out.EndTx(true, nil, nil)
}

// Schemas hands over the layout of each table that the source wants.
func (r *Single) Schemas(ctx context.Context, source string, out func(*batch.Schema) error) error {
	s, err := dial(ctx, r.src, &r.cfg)
	if err != nil {
		return err
	}
	defer s.Close()
	names, err := s.tables(ctx, r.src.Wants)
	if err != nil {
		return err
	}
	for i, n := range names {
		def, err := s.definition(ctx, n)
		if err != nil {
			return err
		}
		if def == nil {
			continue // dropped meanwhile, or a sequence
		}
		sel, err := rows.NewSelection(def, rows.Options{Format: &s.format, ID: uint32(i + 1), Source: source, Version: 1})
		if err != nil {
			return err
		}
		if err := out(sel.Schema); err != nil {
			return err
		}
	}
	return nil
}
