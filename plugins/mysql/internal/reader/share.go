package reader

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
	"github.com/datalink-go/datalink/plugins/mysql/internal/share"
)

// sharing is how a reader takes the log from the relay of its worker.
type sharing struct {
	relay  *share.Relay // that this reader runs; nil = another's, or none
	joined bool         // conn is of a relay
	since  time.Time    // when it joined
	behind place        // end of the server's log when the connection was begun
	next   time.Time    // when to ask for a relay again
	pause  time.Duration
}

const (
	// sharePause is the first pause after a relay could not be joined.
	sharePause = 500 * time.Millisecond
	// shareSteady is how long a reader stays with a relay until it counts as one
	// that keeps up.
	shareSteady = 10 * time.Second
)

// errAgain is an event of a relay that the position holds already.
var errAgain = errors.New("a transaction that the position holds came again")

// caughtUp reports whether the reader stands between two transactions, has read all
// that has arrived, and is behind the end that the log had when it connected. From
// there on a position holds exactly what lies before it in this server's log.
func (r *Reader) caughtUp() bool {
	l := r.live
	if r.tx.active || r.tx.open || len(r.levels) > 0 || l.gather.on || l.conn == nil || l.skipTo > 0 || r.scan.Buffered() > 0 {
		return false
	}
	var here place
	here.setName(r.scan.Name())
	here.off = r.scan.Offset()
	b := &l.sharing.behind
	return here.off <= math.MaxUint32 && here.base == b.base && here.order(b) >= 0
}

// share goes on with the relay of the worker, which it becomes where there is none.
// It reports whether it did.
func (r *Reader) share(ctx context.Context) bool {
	l := r.live
	s := &l.sharing
	if !r.cfg.Share || s.joined || time.Now().Before(s.next) || !r.caughtUp() {
		return false
	}
	err := r.join(ctx)
	if errors.Is(err, share.ErrNone) {
		if err = r.relay(ctx); err == nil {
			err = r.join(ctx)
		}
	}
	if err != nil {
		s.pause = min(max(2*s.pause, sharePause), 30*time.Second)
		s.next = time.Now().Add(s.pause)
		if ctx.Err() == nil {
			r.log.Info("the dump connection is not shared for now", "reason", err, "again", s.pause)
		}
		return false
	}
	return true
}

// join replaces the reader's connection by one of the relay.
func (r *Reader) join(ctx context.Context) error {
	l := r.live
	c, seq, err := share.Join(ctx, share.Name(l.name, l.cfg.User), share.Ask{Server: l.name, Task: l.uuid, File: r.scan.Name(), Offset: r.scan.Offset()})
	if err != nil {
		return err
	}
	conn := l.conn.Over(c)
	scan := binlog.NewStream(r.scan.Name(), stream{conn}, seq, int(r.cfg.MaxEvent))
	scan.SetPlace(r.scan.Name(), r.scan.Offset())
	scan.Format = r.scan.Format
	conn.NoWait(true)
	l.hangUp()
	l.conn, r.scan = conn, scan
	l.sharing.joined, l.sharing.since = true, time.Now()
	r.log.Info("the dump connection is shared", "relay", l.sharing.relay != nil)
	return nil
}

// relay makes this reader the one whose connection others share.
func (r *Reader) relay(ctx context.Context) error {
	l := r.live
	lis, err := share.Listen(share.Name(l.name, l.cfg.User))
	if err != nil {
		return err
	}
	src, err := r.relaySource(ctx)
	if err != nil {
		_ = lis.Close()
		return err
	}
	if old := l.sharing.relay; old != nil {
		old.Close() // it has ended: its name was free
	}
	l.sharing.relay = share.Serve(lis, src)
	return nil
}

// relaySource begins the dump that others share: by file and offset, since it is
// none of a task's positions that decides what comes.
func (r *Reader) relaySource(ctx context.Context) (src share.Source, err error) {
	l := r.live
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	c, err := server.Dial(ctx, l.cfg, l.addrs[l.turn])
	if err != nil {
		return src, err
	}
	defer func() {
		if err != nil {
			_ = c.Close()
		}
	}()
	f, err := learn(ctx, c)
	if err != nil {
		return src, err
	}
	if f.name != l.name {
		return src, fmt.Errorf("%s leads to server %s now, before to %s", c.Address, f.name, l.name)
	}
	src = share.Source{Server: l.name, Conn: c, File: r.scan.Name(), Offset: r.scan.Offset(), Period: l.period}
	from := spot{kind: spotFile, server: l.name}
	from.file.setName(src.File)
	from.file.off = src.Offset
	id, uuid := serverID(l.uuid + " relay")
	d := dump{from: from, id: id, uuid: uuid, period: l.period}
	if err := d.start(ctx, c); err != nil {
		return src, err
	}
	src.Scan = binlog.NewStream(src.File, stream{c}, 1, int(r.cfg.MaxEvent))
	src.Scan.SetPlace(src.File, src.Offset)
	return src, waitFor(ctx, c, l.period, func() error {
		var h binlog.Header
		return src.Scan.Peek(&h)
	})
}

// unshare notes that the connection to a relay is gone: the next is the reader's own.
func (l *live) unshare() {
	s := &l.sharing
	if !s.joined {
		return
	}
	s.joined = false
	if time.Since(s.since) > shareSteady {
		s.pause = 0
	}
	s.pause = min(max(2*s.pause, sharePause), 30*time.Second)
	s.next = time.Now().Add(s.pause)
}

// stopSharing ends the relay that this reader runs.
func (l *live) stopSharing() {
	if l.sharing.relay != nil {
		l.sharing.relay.Close()
	}
	l.sharing = sharing{}
}

// holds reports whether the position has a transaction.
func (l *live) holds(g *binlog.Group) bool {
	switch l.kind {
	case spotSet:
		return g.Number > 0 && l.set.Contains(l.sourceOf(g), g.Number)
	case spotDomains:
		return g.MariaDB && l.dom.Contains(domainsOf(g))
	}
	return false
}
