package reader

import (
	"context"
	"errors"
	"time"

	"github.com/datalink-go/datalink/plugins/mysql/internal/catalog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// leap goes on at the end of the log where the position was purged and the
// configuration says so: all tables are then taken anew.
func (r *Reader) leap(ctx context.Context, c *server.Conn, err error) (cat *catalog.Catalog, at spot, failed error) {
	if !errors.Is(err, sdk.ErrPositionPurged) || r.cfg.OnPurged != "resnapshot" {
		return nil, at, err
	}
	l := r.live
	r.log.Warn("the position was purged at the source: going on at the end of its log, and taking all tables anew", "reason", err)
	if cat, at, failed = r.readCatalog(ctx, c, l.kind, r.filter.wants, 0); failed != nil {
		return nil, at, failed
	}
	l.set, l.dom, l.fresh = at.set, at.dom, false
	if at.kind == spotFile {
		r.here = at.file
	}
	l.follow(&r.here)
	clear(l.prepared)
	return cat, at, r.reconnect(ctx)
}

// anew is how far it is with taking all tables anew.
type anew uint8

const (
	anewNone  anew = iota
	anewBegun      // the state does not say so yet
	anewAsked      // the tables are asked for, which is not stored yet
)

// anewKey is the state item that says that all tables have to be taken anew. It
// goes out before the first position behind what was purged, and is dropped when
// the snapshots that it stands for have items of their own.
const anewKey = "anew"

// takeAnew asks for all tables. The stream stands still until that is stored.
func (r *Reader) takeAnew() {
	l := r.live
	asked := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	l.anew, l.asked, l.unask = anewBegun, asked, cancel
	w := l.weaver
	go func() {
		defer close(asked)
		for ctx.Err() == nil {
			_, err := w.Request(ctx, func(string, string) bool { return true })
			var f *sdk.Fault
			if err == nil || errors.As(err, &f) && f.Code == sdk.CodeUnknownTable {
				return // or there is no table
			}
			r.log.Warn("tables cannot be taken anew yet", "reason", err)
			_ = sleep(ctx, time.Second)
		}
	}()
}

// anewStep tells the state how far it is.
func (r *Reader) anewStep(out *batch.Builder) error {
	l := r.live
	item := batch.StateItem{Key: anewKey, Version: l.nextVersion(), Value: []byte("1")}
	switch l.anew {
	case anewBegun:
		l.anew = anewAsked
	default:
		select {
		case <-l.asked:
		default:
			return nil
		}
		l.anew = anewNone
		item.Deleted = true
	}
	if err := out.BeginTx(batch.Tx{Begins: true}); err != nil {
		return err
	}
	if err := out.StateItem(&item); err != nil {
		return err
	}
	return out.EndTx(true, nil, nil)
}

// mustTakeAnew reports whether an earlier run began to take all tables anew.
func mustTakeAnew(state []batch.StateItem) bool {
	for i := range state {
		if state[i].Key == anewKey && !state[i].Deleted {
			return true
		}
	}
	return false
}
