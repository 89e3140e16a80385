package pglog

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgcat"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgout"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgscan"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/scan"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// visible is a snapshot as pg_current_snapshot prints it: which transactions are
// in it. Only the low 32 bits count, which is what the log has.
type visible struct {
	min, max uint32
	open     []uint32
}

func parseVisible(s string) (visible, error) {
	part := strings.Split(s, ":")
	if len(part) != 3 {
		return visible{}, fmt.Errorf("%q is no snapshot", s)
	}
	num := func(t string) (uint32, error) {
		v, err := strconv.ParseUint(t, 10, 64)
		return uint32(v), err
	}
	var v visible
	var err error
	if v.min, err = num(part[0]); err != nil {
		return v, err
	}
	if v.max, err = num(part[1]); err != nil {
		return v, err
	}
	for _, t := range strings.Split(part[2], ",") {
		if t == "" {
			continue
		}
		x, err := num(t)
		if err != nil {
			return v, err
		}
		v.open = append(v.open, x)
	}
	return v, nil
}

// older compares ids of transactions, which wrap around.
func older(a, b uint32) bool { return int32(a-b) < 0 }

// has reports whether a transaction that has committed is in the snapshot.
func (v *visible) has(xid uint32) bool {
	return older(xid, v.max) && (older(xid, v.min) || !slices.Contains(v.open, xid))
}

// window are the chunks of a table that were read ahead of the stream: under which
// snapshots, by range. A change whose transaction is in the snapshot of its row's
// range is in the chunk already. That is decided by membership: transactions
// become visible in another order than they commit in the log.
type window struct {
	ranges  []windowRange
	singles map[string]*windowRange // rows that were read for themselves
}

type windowRange struct {
	lo, hi []byte
	snap   visible
	inLog  bool // read at the place where the stream begins: nothing of it is ahead
}

func (w *windowRange) has(xid uint32) bool { return !w.inLog && w.snap.has(xid) }

// all tells whether all ranges, or none, have the transaction.
func (w *window) all(xid uint32) (all, none bool) {
	all, none = true, true
	for i := range w.ranges {
		if w.ranges[i].has(xid) {
			none = false
		} else {
			all = false
		}
	}
	// Rows that were read for themselves are looked up by their keys.
	return all, none && len(w.singles) == 0
}

// at finds the range of a key.
func (w *window) at(s *batch.Schema, key []byte) (*windowRange, error) {
	if r := w.singles[string(key)]; r != nil {
		return r, nil
	}
	for i := range w.ranges {
		r := &w.ranges[i]
		if len(r.hi) == 0 {
			return r, nil
		}
		c, err := scan.Compare(s, key, r.hi)
		if err != nil {
			return nil, err
		}
		if c <= 0 {
			return r, nil
		}
	}
	return nil, fmt.Errorf("a key lies behind the last chunk")
}

// windowed delivers a change of a table that has a window, unless a chunk has it.
func (r *Reader) windowed(ctx context.Context, out *batch.Builder, rel *relation, op byte, index uint64) error {
	if r.cfg.Switches.MemberOff {
		return r.emit(out, rel, op, index)
	}
	all, none := rel.win.all(r.tx.xid)
	switch {
	case all:
		return nil
	case none:
		return r.emit(out, rel, op, index)
	}
	e, err := r.keys(rel, op)
	if err != nil {
		return err
	}
	now, err := rel.win.at(rel.schema, e.Key)
	if err != nil {
		return r.corrupt(err)
	}
	old := now
	if len(e.OldKey) > 0 {
		if old, err = rel.win.at(rel.schema, e.OldKey); err != nil {
			return r.corrupt(err)
		}
	}
	inNow, inOld := now.has(r.tx.xid), old.has(r.tx.xid)
	switch {
	case inNow && inOld:
		return nil
	case !inNow && !inOld:
		return r.emit(out, rel, op, index)
	case inNow:
		// The chunk of the new key has the row, that of the old key has it too.
		vals, err := rel.schema.KeyValues(e.OldKey)
		if err != nil {
			return err
		}
		return r.emitDelete(out, rel, vals, index)
	}
	// The row left its chunk before that was read, for one that was read earlier.
	whole := true
	for i := range r.rowMsg.New {
		if f := &r.rowMsg.New[i]; f.Kind == 'u' {
			if r.rowMsg.OldKey || i >= len(r.rowMsg.Old) {
				whole = false
			} else {
				*f = r.rowMsg.Old[i]
			}
		}
	}
	if !whole {
		return r.single(ctx, out, rel, e.Key, index)
	}
	r.rowMsg.Old = r.rowMsg.Old[:0]
	return r.emit(out, rel, pgout.Insert, index)
}

// single delivers a row as it is now, where neither a chunk nor the log holds all
// of it. From here on it is a range of its own, under the snapshot it was read in.
func (r *Reader) single(ctx context.Context, out *batch.Builder, rel *relation, key []byte, index uint64) error {
	ready := func(text string) bool {
		v, err := parseVisible(text)
		return err == nil && v.has(r.tx.xid)
	}
	src, text, err := pgscan.Begin(ctx, r.srv, ready, pauseABit)
	if err != nil {
		return err
	}
	defer src.Close()
	rows, err := r.ask(ctx, "SELECT pg_current_wal_insert_lsn()")
	if err != nil {
		return err
	}
	until, err := parseLSN(string(rows[0][0]))
	if err != nil {
		return err
	}
	ses, err := src.Open(ctx)
	if err != nil {
		return err
	}
	defer ses.Close()
	b := batch.NewBuilder(batch.Limits{})
	if err := b.BeginTx(batch.Tx{Begins: true, Ordinal: index*slots + maxBefore}); err != nil {
		return err
	}
	if err := pgscan.Keys(ctx, ses, rel.scanTable(), [][]byte{key}, b); err != nil {
		return err
	}
	if err := b.EndTx(true, nil, nil); err != nil {
		return err
	}
	vis, err := parseVisible(text)
	if err != nil {
		return err
	}
	key = bytes.Clone(key)
	it := *r.items[rel.id]
	it.Singles = append(slices.Clone(it.Singles), itemRange{Hi: key, Snapshot: text, Until: until.String()})
	rel.item = &it
	rel.win.single(key, vis)
	r.win.until = max(r.win.until, until)
	if b.Len() == 0 {
		vals, err := rel.schema.KeyValues(key)
		if err != nil {
			return err
		}
		return r.emitDelete(out, rel, vals, index)
	}
	data, err := b.Finish()
	if err != nil {
		return err
	}
	reg := batch.NewRegistry()
	if err := reg.Add(rel.schema); err != nil {
		return err
	}
	var blk batch.Block
	var row batch.Event
	if err := blk.Decode(data, reg, batch.Limits{}); err != nil {
		return err
	}
	if err := blk.Event(0, &row); err != nil {
		return err
	}
	r.begin1(out)
	if err := r.ahead(out, rel, index); err != nil {
		return err
	}
	return out.CopyEvent(&row)
}

func (w *window) single(key []byte, snap visible) {
	if w.singles == nil {
		w.singles = map[string]*windowRange{}
	}
	w.singles[string(key)] = &windowRange{snap: snap}
}

// scanTable is the relation for package pgscan, as the log describes it.
func (rel *relation) scanTable() *scan.Table {
	t := &pgcat.Table{OID: rel.id, Namespace: rel.schema.Namespace, Name: rel.schema.Table, Kind: rel.kind}
	for i := range rel.columns {
		t.Columns = append(t.Columns, pgcat.Column{Name: rel.schema.Columns[i].Name, Read: rel.columns[i]})
	}
	return pgscan.TableOf(t, rel.schema, "")
}

// keys finds the keys of the change in r.rowMsg.
func (r *Reader) keys(rel *relation, op byte) (*batch.Event, error) {
	b := batch.NewBuilder(batch.Limits{})
	if err := b.BeginTx(batch.Tx{Begins: true}); err != nil {
		return nil, err
	}
	kind := map[byte]batch.Kind{pgout.Insert: batch.Insert, pgout.Update: batch.Update, pgout.Delete: batch.Delete}[op]
	if err := b.BeginRow(kind, rel.schema); err != nil {
		return nil, err
	}
	if err := r.images(b, rel, &r.rowMsg); err != nil {
		return nil, err
	}
	if err := b.EndRow(); err != nil {
		return nil, err
	}
	if err := b.EndTx(true, nil, nil); err != nil {
		return nil, err
	}
	data, err := b.Finish()
	if err != nil {
		return nil, err
	}
	var blk batch.Block
	var e batch.Event
	if err := blk.Decode(bytes.Clone(data), batch.NewRegistry(), batch.Limits{}); err != nil {
		return nil, err
	}
	return &e, blk.Event(0, &e)
}

func (r *Reader) emitDelete(out *batch.Builder, rel *relation, key []batch.Value, index uint64) error {
	r.begin1(out)
	if rel.item != nil {
		if err := r.ahead(out, rel, index); err != nil {
			return err
		}
	}
	out.SetOrdinal(index*slots + maxBefore)
	if err := out.BeginRow(batch.Delete, rel.schema); err != nil {
		return err
	}
	out.BeginImage(batch.BeforeImage)
	for i := range rel.schema.Columns {
		if k := slices.Index(rel.schema.Key, i); k >= 0 {
			out.PutValue(&key[k])
		} else {
			out.PutAbsent()
		}
	}
	out.EndImage()
	return out.EndRow()
}

// truncated handles the truncation of a table that has a window; done says that
// nothing is left to do.
func (r *Reader) truncated(out *batch.Builder, rel *relation, index uint64) (done bool, err error) {
	all, none := rel.win.all(r.tx.xid)
	switch {
	case r.cfg.Switches.MemberOff || none:
		return false, nil
	case all:
		return true, nil
	}
	// The rows of the chunks that were read before it go; those after it are new.
	at := index * slots
	pos := r.here.append(nil)
	for i := range rel.win.ranges {
		w := &rel.win.ranges[i]
		if w.has(r.tx.xid) {
			continue
		}
		r.begin1(out)
		if at == index*slots+maxBefore {
			return true, sdk.Faultf(sdk.CodeUnsupportedEvent, "%s: truncation of %s while its snapshot was interrupted too often", r.tx.id, rel.name).Suggest("delete the task with --release and start it over")
		}
		out.SetOrdinal(at)
		if err := out.KeyRange(rel.schema, &batch.KeyRange{Lo: w.lo, Hi: w.hi, Low: pos, High: pos}); err != nil {
			return true, err
		}
		at++
	}
	return true, nil
}

// openWindows makes windows of the tables whose chunks were read ahead of here.
func (r *Reader) openWindows() error {
	r.closeWindows()
	for oid, it := range r.items {
		w := &window{}
		ahead := false
		var lo []byte
		for _, g := range it.Ranges {
			wr := windowRange{lo: lo, hi: g.Hi, inLog: g.Until == ""}
			lo = g.Hi
			if !wr.inLog {
				until, err := parseLSN(g.Until)
				if err != nil {
					return badState(it, err)
				}
				if wr.snap, err = parseVisible(g.Snapshot); err != nil {
					return badState(it, err)
				}
				if until > r.here.lsn {
					ahead = true
					r.win.until = max(r.win.until, until)
				}
			}
			w.ranges = append(w.ranges, wr)
		}
		for _, g := range it.Singles {
			vis, err := parseVisible(g.Snapshot)
			if err != nil {
				return badState(it, err)
			}
			until, err := parseLSN(g.Until)
			if err != nil {
				return badState(it, err)
			}
			if until > r.here.lsn {
				w.single(g.Hi, vis)
				r.win.until, ahead = max(r.win.until, until), true
			}
		}
		if ahead {
			r.windows[oid] = w
		}
	}
	for id, rel := range r.rels {
		rel.win = r.windows[id]
	}
	return nil
}

// closeWindows: nothing that comes is in a chunk.
func (r *Reader) closeWindows() {
	r.win.until = 0
	clear(r.windows)
	for _, rel := range r.rels {
		rel.win = nil
	}
}

func badState(it *tableItem, err error) error {
	return sdk.Faultf(sdk.CodeInvalidPosition, "reader state of table %s.%s: %v", it.Namespace, it.Table, err).Suggest("delete the task with --release, so that it starts over")
}
