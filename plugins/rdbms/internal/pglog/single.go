package pglog

import (
	"context"
	"sync"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgcat"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgscan"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/scan"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

var (
	_ sdk.RangeReader = (*Reader)(nil)
	_ sdk.KeyReader   = (*Reader)(nil)
)

// handed is what was handed over: how far, and the transactions that came last.
// A row that is read outside of the stream must show all of them, and the server
// may deliver a transaction before it shows it.
type handed struct {
	mu   sync.Mutex
	at   place
	xids [handedXIDs]uint32
	n    int
	// new ones are added by the goroutine of Next and published at its end
	fresh []uint32
}

const handedXIDs = 4096

// publish makes known what a call of Next has delivered.
func (h *handed) publish(at place) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = at
	for _, x := range h.fresh {
		h.xids[h.n%handedXIDs] = x
		h.n++
	}
	h.fresh = h.fresh[:0]
}

func (h *handed) take() (place, []uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at, append([]uint32(nil), h.xids[:min(h.n, handedXIDs)]...)
}

// extract opens a session whose snapshot has everything that was handed over.
func (r *Reader) extract(ctx context.Context, want *batch.Schema) (*pgscan.Source, scan.Session, *scan.Table, sdk.Placed, error) {
	at, xids := r.handed.take()
	var placed sdk.Placed
	ready := func(text string) bool {
		v, err := parseVisible(text)
		if err != nil {
			return false
		}
		for _, x := range xids {
			if !v.has(x) {
				return false
			}
		}
		return true
	}
	src, _, err := pgscan.Begin(ctx, r.srv, ready, pauseABit)
	if err != nil {
		return nil, nil, nil, placed, err
	}
	c, err := r.srv.Connect(ctx)
	if err != nil {
		src.Close()
		return nil, nil, nil, placed, err
	}
	defer pgcat.Close(c)
	rows, err := pgcat.Query(ctx, c, "SELECT pg_current_wal_insert_lsn()")
	var high lsn
	if err == nil {
		high, err = parseLSN(string(rows[0][0]))
	}
	var tables []*pgcat.Table
	if err == nil {
		tables, err = pgcat.NewCatalog().List(ctx, c, func(ns, name string) bool { return ns == want.Namespace && name == want.Table })
	}
	if err != nil {
		src.Close()
		return nil, nil, nil, placed, r.srv.Fault("read "+want.Name(), err)
	}
	if len(tables) == 0 {
		src.Close()
		return nil, nil, nil, placed, sdk.Faultf(sdk.CodeUnknownTable, "table %s is not at the source", want.Name())
	}
	s, err := src.Open(ctx)
	if err != nil {
		src.Close()
		return nil, nil, nil, placed, err
	}
	position := func(p place) sdk.Position {
		return sdk.Position{Format: positionFormat, Version: positionVersion, Source: p.append(nil)}
	}
	placed.Low = position(at)
	at.lsn, at.step = max(high, at.lsn), 0
	placed.High = position(at)
	return src, s, pgscan.TableOf(tables[0], want, ""), placed, nil
}

// ReadRange reads a part of a table outside of the stream.
func (r *Reader) ReadRange(ctx context.Context, q sdk.Range, out *batch.Builder) (sdk.Placed, error) {
	if len(q.Schema.Key) == 0 {
		return sdk.Placed{}, sdk.Faultf(sdk.CodeRefused, "table %s has no key: it has no ranges", q.Schema.Name()).Suggest("copy it as a whole")
	}
	src, s, t, placed, err := r.extract(ctx, q.Schema)
	if err != nil {
		return placed, err
	}
	defer src.Close()
	defer s.Close()
	most := q.Rows
	if most <= 0 {
		most = r.cfg.ChunkRows
	}
	// The key after which the rest begins is where that many rows end.
	hi, rest := q.Hi, false
	bound, err := s.Bound(ctx, t, q.Lo, q.Hi, most)
	if err != nil {
		return placed, err
	}
	if bound != nil && string(bound) != string(q.Hi) {
		hi, rest = bound, true
	}
	if err := out.BeginTx(batch.Tx{Begins: true}); err != nil {
		return placed, err
	}
	if err := s.Rows(ctx, t, q.Lo, hi, out, func() error { return nil }); err != nil {
		return placed, err
	}
	if rest {
		placed.Rest = sdk.Range{Schema: q.Schema, Lo: hi, Hi: q.Hi, Rows: q.Rows}
	}
	return placed, out.EndTx(true, nil, nil)
}

// ReadKeys reads single rows outside of the stream.
func (r *Reader) ReadKeys(ctx context.Context, want *batch.Schema, keys [][]byte, out *batch.Builder) (sdk.Placed, error) {
	src, s, t, placed, err := r.extract(ctx, want)
	if err != nil {
		return placed, err
	}
	defer src.Close()
	defer s.Close()
	if err := out.BeginTx(batch.Tx{Begins: true}); err != nil {
		return placed, err
	}
	const atOnce = 500
	for ; len(keys) > 0; keys = keys[min(atOnce, len(keys)):] {
		if err := pgscan.Keys(ctx, s, t, keys[:min(atOnce, len(keys))], out); err != nil {
			return placed, err
		}
	}
	return placed, out.EndTx(true, nil, nil)
}
