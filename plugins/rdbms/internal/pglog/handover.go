package pglog

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgcat"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgscan"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/scan"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// handover is the snapshot that comes before the stream goes on.
type handover struct {
	tables []*pgcat.Table // that lack a complete snapshot
	at     lsn            // to be taken when the stream has got there
	step   uint64         // chunks so far, of all points

	create  bool   // the slot is to be made, and its snapshot used
	horizon uint64 // transactions below it must have ended before a snapshot counts

	src      *pgscan.Source
	snapshot string // as pg_current_snapshot prints it; "" = that of the slot
	until    lsn    // transactions that commit behind it are not in the snapshot
	run      *scan.Run
	reg      *batch.Registry
	byName   map[string]*pgcat.Table
}

// due reports whether chunks are to be read before anything else of the log.
func (h *handover) due(here lsn) bool {
	return (h.create || len(h.tables) > 0 || h.run != nil) && here >= h.at
}

func (h *handover) close() {
	if h.run != nil {
		h.run.Close()
		h.run = nil
	}
	if h.src != nil {
		h.src.Close()
		h.src = nil
	}
}

// pending reports whether a snapshot is still to come or under way.
func (r *Reader) pending() bool { return len(r.snap.tables) > 0 || r.snap.run != nil }

// chunk delivers the next chunk of the snapshot as a transaction of its own.
func (r *Reader) chunk(ctx context.Context, out *batch.Builder) error {
	h := &r.snap
	if h.create {
		if err := r.createSlot(ctx); err != nil {
			return err
		}
		h.create = false
		if len(h.tables) == 0 {
			r.moved = true
			return nil
		}
	}
	if h.run == nil {
		if err := r.beginSnapshot(ctx); err != nil {
			return err
		}
	}
	c, err := h.run.Next(ctx)
	switch {
	case errors.Is(err, io.EOF):
		return r.handedOver()
	case err != nil:
		return err
	}
	if err := r.deliver(out, c); err != nil {
		return err
	}
	if c.Last && h.byName[c.Table.Schema.Name()] == h.tables[len(h.tables)-1] {
		return r.handedOver()
	}
	return nil
}

// handedOver ends the snapshot.
func (r *Reader) handedOver() error {
	r.snap.close()
	r.snap.tables = nil
	for i := range r.points {
		// From here on a new writer has what the others have.
		r.points[i].zero = false
	}
	r.cfg.Log.Info("snapshot is complete", "position", r.here.String(), "chunks", r.snap.step/2)
	return r.openWindows()
}

// beginSnapshot takes the snapshot and starts to read.
func (r *Reader) beginSnapshot(ctx context.Context) error {
	h := &r.snap
	if h.src == nil {
		src, text, err := r.visibleSnapshot(ctx)
		if err != nil {
			return err
		}
		h.src, h.snapshot = src, text
		rows, err := r.ask(ctx, "SELECT pg_current_wal_insert_lsn()")
		if err != nil {
			return err
		}
		if h.until, err = parseLSN(string(rows[0][0])); err != nil {
			return err
		}
	}
	if r.here.lsn == h.at {
		r.here.step = h.step
	} else {
		h.step = r.here.step
	}
	h.reg, h.byName = batch.NewRegistry(), map[string]*pgcat.Table{}
	var jobs []scan.Job
	for _, t := range h.tables {
		r.nextID++
		r.versions[t.OID]++
		s := t.Schema(r.nextID, r.versions[t.OID], r.source())
		st := pgscan.TableOf(t, s, "")
		it := r.items[t.OID]
		if it == nil || !st.Ordered || len(s.Key) == 0 || !sameColumns(it.Columns, columnsOf(t)) || it.Namespace != t.Namespace || it.Table != t.Name {
			// What was read of it under another layout or in an order that cannot be told
			// from the keys is read again, so that all of the table has one snapshot.
			it = &tableItem{Namespace: t.Namespace, Table: t.Name, Columns: columnsOf(t), version: versionOf(it)}
			r.items[t.OID] = it
		}
		if err := h.reg.Add(s); err != nil {
			return err
		}
		h.byName[s.Name()] = t
		jobs = append(jobs, scan.Job{Table: st, Lo: slices.Clone(it.Hi)})
	}
	h.run = scan.Start(h.src, jobs, scan.Options{Parallel: r.cfg.Parallel, Rows: r.cfg.ChunkRows, Bytes: r.cfg.ChunkBytes})
	return nil
}

func versionOf(it *tableItem) uint64 {
	if it == nil {
		return 0
	}
	return it.version
}

func columnsOf(t *pgcat.Table) []itemColumn {
	var out []itemColumn
	for i := range t.Columns {
		c := &t.Columns[i]
		out = append(out, itemColumn{Name: c.Name, Num: c.Num, Type: c.Type, Mod: c.Mod})
	}
	return out
}

// deliver appends a chunk: its rows, the range they are all of, and how far the
// table has got.
func (r *Reader) deliver(out *batch.Builder, c *scan.Chunk) error {
	h := &r.snap
	s := c.Table.Schema
	t := h.byName[s.Name()]
	low := r.here.append(nil)
	// The place inside of a chunk has an odd step, so that it is none inside of a
	// transaction of the log that begins there.
	p := r.here
	p.step++
	if err := out.BeginTx(batch.Tx{Begins: true, Start: p.append(nil), Committed: time.Now().UnixMicro(), ID: "chunk " + strconv.FormatUint(h.step/2+1, 10)}); err != nil {
		return err
	}
	keyless := len(s.Key) == 0
	if keyless && c.First {
		if err := out.Truncate(s); err != nil {
			return err
		}
	}
	keys, err := c.Copy(out, h.reg)
	if err != nil {
		return err
	}
	if !keyless {
		high := place{lsn: max(h.until, r.here.lsn), system: r.here.system, timeline: r.here.timeline}
		if err := out.KeyRange(s, &batch.KeyRange{Lo: c.Lo, Hi: c.Hi, Low: low, High: high.append(nil), Last: c.Last, Keys: keys}); err != nil {
			return err
		}
	}
	it := *r.items[t.OID]
	if !keyless {
		it.Hi = c.Hi
	}
	g := itemRange{Hi: c.Hi, Snapshot: h.snapshot}
	if h.snapshot != "" {
		g.Until = h.until.String()
	}
	it.Ranges = slices.Clone(it.Ranges)
	if n := len(it.Ranges); n > 0 && it.Ranges[n-1].Snapshot == g.Snapshot {
		it.Ranges[n-1] = g
	} else {
		it.Ranges = append(it.Ranges, g)
	}
	if it.Done = c.Last; it.Done {
		it.Hi = nil
	}
	if !keyless || c.Last {
		item, err := r.stateItem(t.OID, &it)
		if err != nil {
			return err
		}
		if err := out.StateItem(item); err != nil {
			return err
		}
	}
	phase := "running"
	if c.Last {
		phase = "done"
	}
	r.asked.note(s.Name(), phase, c.Rows)
	h.step += 2
	r.here.step = h.step
	return out.EndTx(true, nil, r.here.append(nil))
}

// visibleSnapshot takes a snapshot that has every transaction that was delivered.
// The log may deliver one before the server shows it.
func (r *Reader) visibleSnapshot(ctx context.Context) (*pgscan.Source, string, error) {
	h := &r.snap
	limit, cancel := context.WithTimeout(ctx, r.cfg.OpenWait)
	defer cancel()
	ready := func(text string) bool {
		v, err := parseVisible(text)
		if err == nil && (r.cfg.Switches.VisibleOff || !older(v.min, uint32(h.horizon))) {
			return true
		}
		r.waited.Add(1)
		return false
	}
	src, text, err := pgscan.Begin(limit, r.srv, ready, pauseABit)
	if err != nil && limit.Err() != nil && ctx.Err() == nil {
		return nil, "", r.openTransactions(ctx)
	}
	return src, text, err
}

// pauseABit is how long the next snapshot is waited for.
func pauseABit(ctx context.Context) error {
	t := time.NewTimer(50 * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// openTransactions names what a snapshot waits for.
func (r *Reader) openTransactions(ctx context.Context) error {
	rows, err := r.ask(ctx, `SELECT pid, usename, application_name, state, now() - xact_start FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid() ORDER BY xact_start LIMIT 1`)
	who := "a prepared transaction or one that was not found"
	if err == nil && len(rows) > 0 {
		x := rows[0]
		who = "pid " + string(x[0]) + " of user " + string(x[1]) + " (" + string(x[2]) + ", " + string(x[3]) + ") for " + string(x[4])
	}
	return sdk.Faultf(sdk.CodeUnavailable, "the snapshot waits for transactions that were open when it was asked for: %s", who).Retry().
		Suggest("end that transaction; SELECT * FROM pg_prepared_xacts shows prepared ones")
}
