package reader

import (
	"context"
	"strconv"

	"github.com/datalink-go/datalink/plugins/mysql/internal/schema"
	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
	"github.com/datalink-go/datalink/plugins/mysql/internal/snapshot"
	"github.com/datalink-go/datalink/sdk/batch"
)

// beside is the reader as snapshots see it.
type beside struct{ r *Reader }

var _ snapshot.Source = beside{}

// Dial connects to the server that the stream is read from.
func (b beside) Dial(ctx context.Context) (*server.Conn, error) {
	l := b.r.live
	c, err := server.Dial(ctx, l.cfg, *l.address.Load())
	if err != nil {
		return nil, unreachable([]error{err})
	}
	return c, nil
}

// Position is the place of the stream, with a step of the snapshot.
func (b beside) Position(step uint64) []byte {
	l := b.r.live
	if step > 0 {
		l.step = step
		return b.r.mark(nil)
	}
	return b.r.markWhole(nil)
}

// Wants says of tables by their names alone whether they are read: it does not
// look at the stream.
func (b beside) Wants(db, table string) bool {
	r := b.r
	if !r.filter.wants(db, table) || bookkeeping[table] {
		return false
	}
	if base, role := schema.Online(table); role != schema.NoRole && r.cfg.OnlineChanges != "off" {
		return !r.filter.wants(db, base) || r.filter.names(db, table)
	}
	return true
}

// mark appends the place after the last whole transaction, and the steps of a
// snapshot there, as positions have it.
func (r *Reader) mark(dst []byte) []byte {
	dst = r.markWhole(dst)
	if l := r.live; l != nil && l.step > 0 {
		dst = strconv.AppendUint(append(dst, '~'), l.step, 10)
	}
	return dst
}

// startWeaving makes the snapshot that goes with the stream: of all tables at the
// first start, of tables that were added, of those that are asked for.
func (r *Reader) startWeaving(state []batch.StateItem) error {
	l := r.live
	l.stopWeaving()
	w := snapshot.New(snapshot.Config{Options: r.cfg.Snapshot, All: r.start.snapshot, Step: l.step, SourceName: r.source()}, beside{r}, r.log)
	if err := w.Restore(state); err != nil {
		return err
	}
	w.Start(context.Background()) // until it is closed
	l.weaver = w
	l.woven.Store(w)
	return nil
}

func (l *live) stopWeaving() {
	if l.weaver != nil {
		l.woven.Store(nil)
		if l.unask != nil {
			l.unask()
		}
		l.weaver.Close()
		l.weaver = nil
	}
}

// weave hands over what the snapshot has ready, between two transactions. It
// reports what may be done then.
func (r *Reader) weave(out *batch.Builder) (snapshot.Next, error) {
	l := r.live
	before, open := out.Len(), l.next == snapshot.More
	here := r.reached()
	next, err := l.weaver.Weave(l.ctx, out, snapshot.Place{Server: l.name, File: here.name(), Offset: here.off, GTID: l.gtidSet()})
	if out.Len() > before || open {
		r.tx.passed = false // what was appended tells the place
	}
	l.next = next
	return next, err
}

// noteRow lets the snapshot see a row that was appended.
func (r *Reader) noteRow(s *batch.Schema, out *batch.Builder) {
	if l := r.live; l != nil && l.weaver != nil && l.weaver.Active() {
		l.weaver.Row(s, out)
	}
}

// noteChange lets the snapshot see that a table is another one from here on.
func (r *Reader) noteChange(names ...schema.Name) {
	if l := r.live; l != nil && l.weaver != nil && l.weaver.Active() {
		for _, n := range names {
			l.weaver.Changed(n.Database, n.Table)
		}
	}
}
