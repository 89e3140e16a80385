package share

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
)

const (
	// ringSize is what a subscriber can be behind.
	ringSize = 16 << 20
	// largest is the largest event that goes through the ring.
	largest = ringSize / 2
	// Patience is how long a subscriber may hold the ring up before it is cut off,
	// counted since it had caught up last.
	Patience = time.Second
	// told is how many bytes come into the ring before subscribers are woken, where
	// more have arrived.
	told = 64 << 10
)

// Source is the dump of a server from a place on, from which a relay takes.
type Source struct {
	Server string // its UUID
	Conn   *server.Conn
	Scan   *binlog.Scanner
	File   string
	Offset int64
	Period time.Duration // of heartbeats
}

// Relay hands a dump to subscribers.
type Relay struct {
	src    Source
	lis    *net.UnixListener
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu    sync.Mutex
	moved *sync.Cond
	ring  *ring
	subs  map[*subscriber]struct{}
	stuck bool // read waits for a subscriber
	ended error
}

type subscriber struct {
	conn *net.UnixConn
	task string
	pos  int64
	held time.Duration // how long it has held the ring up
	gone bool
}

// Serve begins to relay. It takes over the listener and the connection.
func Serve(lis *net.UnixListener, src Source) *Relay {
	ctx, cancel := context.WithCancel(context.Background())
	r := &Relay{src: src, lis: lis, cancel: cancel, ring: newRing(ringSize, place{src.File, src.Offset}), subs: map[*subscriber]struct{}{}}
	r.moved = sync.NewCond(&r.mu)
	src.Conn.NoWait(true)
	r.group.Go(func() { r.end(r.read(ctx)) })
	r.group.Go(r.accept)
	return r
}

// Close ends the relay and waits for it.
func (r *Relay) Close() {
	r.end(net.ErrClosed)
	r.group.Wait()
}

// Err returns why the relay has ended, nil while it runs.
func (r *Relay) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

// end lets the name go, the connection, and all subscribers.
func (r *Relay) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		return
	}
	r.ended = err
	r.cancel()
	_ = r.lis.Close()
	_ = r.src.Conn.Close()
	for s := range r.subs {
		r.cut(s)
	}
	r.moved.Broadcast()
}

// read takes the dump into the ring.
func (r *Relay) read(ctx context.Context) error {
	var ev binlog.Event
	s, unsaid := r.src.Scan, 0
	for {
		err := s.Peek(&ev.Header)
		if err == nil && ev.Size > largest {
			if err := r.pass(ctx, &ev.Header); err != nil {
				return err
			}
			continue
		}
		if err == nil {
			err = s.Next(&ev)
		}
		if err == binlog.ErrWait {
			if unsaid > 0 {
				r.moved.Broadcast()
				unsaid = 0
			}
			if err = r.wait(ctx); err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		at, err := follow(s, &ev)
		if err != nil {
			return err
		}
		if err := r.take(&ev, s.Raw(), at); err != nil {
			return err
		}
		if unsaid += int(ev.Size); unsaid >= told {
			r.moved.Broadcast()
			unsaid = 0
		}
	}
}

// follow counts where in the log the events stand, and returns the place behind ev.
func follow(s *binlog.Scanner, ev *binlog.Event) (place, error) {
	made := ev.Flags&binlog.FlagArtificial != 0 || ev.Type == binlog.Heartbeat || ev.Type == binlog.HeartbeatV2
	switch {
	case ev.Type == binlog.Rotate && made:
		file, off, err := binlog.RotatePlace(ev.Body)
		if err != nil {
			return place{}, err
		}
		s.SetPlace(file, off)
	case made || ev.Type == binlog.FormatDescription && ev.Next == 0:
		s.SetPlace(s.Name(), ev.At)
	default:
		ev.End = binlog.EndOf(ev.Next, ev.End)
		ev.At = ev.End - int64(ev.Size)
		s.SetPlace(s.Name(), ev.End)
	}
	return place{s.Name(), s.Offset()}, nil
}

func (r *Relay) wait(ctx context.Context) error {
	err := r.src.Conn.Wait(ctx, r.src.Conn.LastRead().Add(3*r.src.Period), nil)
	if err != nil {
		return fmt.Errorf("wait for server %s: %w", r.src.Conn.Address, err)
	}
	return nil
}

// pass leaves an event out that is too large: all who need it are cut off.
func (r *Relay) pass(ctx context.Context, h *binlog.Header) error {
	r.mu.Lock()
	for s := range r.subs {
		r.cut(s)
	}
	r.ring.gap()
	r.mu.Unlock()
	for {
		err := r.src.Scan.Copy(h, io.Discard)
		if err == binlog.ErrWait {
			if err = r.wait(ctx); err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		break
	}
	s := r.src.Scan
	s.SetPlace(s.Name(), binlog.EndOf(h.Next, s.Offset()))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ring.gap() // nobody can have begun within it
	r.ring.seq++
	r.ring.at = place{s.Name(), s.Offset()}
	return nil
}

// take appends an event. It waits for subscribers that are a ring behind, and cuts
// off those whose time is up.
func (r *Relay) take(ev *binlog.Event, raw []byte, behind place) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	from := r.ring.room(packetHead + len(raw))
	for {
		if r.ended != nil {
			return r.ended
		}
		left, blocked := Patience, false
		for s := range r.subs {
			switch {
			case s.pos >= from:
			case s.held >= Patience:
				r.cut(s)
			default:
				blocked, left = true, min(left, Patience-s.held)
			}
		}
		if !blocked {
			break
		}
		begun := time.Now()
		t := time.AfterFunc(left, r.moved.Broadcast)
		r.moved.Broadcast() // they may not know of what they could take
		r.stuck = true
		r.moved.Wait()
		r.stuck = false
		t.Stop()
		for s := range r.subs {
			if s.pos < from {
				s.held += time.Since(begun)
			}
		}
	}
	r.ring.drop(from)
	r.ring.event(ev, raw)
	r.ring.at = behind
	return nil
}

// cut ends a subscription.
func (r *Relay) cut(s *subscriber) {
	if uncut && r.ended == nil {
		s.pos, s.held = r.ring.end, 0
		return
	}
	s.gone = true
	_ = s.conn.Close()
	delete(r.subs, s)
	r.moved.Broadcast()
}

func (r *Relay) accept() {
	for {
		c, err := r.lis.AcceptUnix()
		if err != nil {
			r.end(err)
			return
		}
		r.group.Go(func() { r.serve(c) })
	}
}

// serve answers one reader and hands it what follows.
func (r *Relay) serve(c *net.UnixConn) {
	defer c.Close()
	ask, err := readAsk(c)
	if err != nil || ask.Server != r.src.Server {
		return
	}
	s := &subscriber{conn: c, task: ask.Task}
	seq, ok := r.begin(s, place{ask.File, ask.Offset})
	answer := []byte{0, seq}
	if ok {
		answer[0] = 1
		defer r.leave(s)
	}
	if _, err := c.Write(answer); err != nil || !ok {
		return
	}
	// The reader says nothing more: what it sends or its end is the end.
	r.group.Go(func() {
		var b [1]byte
		_, _ = c.Read(b[:])
		r.leave(s)
	})
	buf := make([]byte, 256<<10)
	for {
		n, ok := r.next(s, buf)
		if !ok {
			return
		}
		if _, err := c.Write(buf[:n]); err != nil {
			return
		}
	}
}

// aheadWait is how long a reader waits that has read further than the relay.
const aheadWait = 100 * time.Millisecond

// begin finds the place and makes s a subscriber.
func (r *Relay) begin(s *subscriber, p place) (seq byte, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	until := time.Now().Add(aheadWait)
	t := time.AfterFunc(aheadWait, r.moved.Broadcast)
	defer t.Stop()
	for r.ended == nil {
		if s.pos, seq, ok = r.ring.find(p); ok {
			for o := range r.subs {
				if o.task == s.task {
					r.cut(o)
				}
			}
			r.subs[s] = struct{}{}
			return seq, true
		}
		if p.file == r.ring.at.file && p.off < r.ring.at.off || !time.Now().Before(until) {
			return 0, false
		}
		r.moved.Wait()
	}
	return 0, false
}

func (r *Relay) leave(s *subscriber) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !s.gone {
		s.gone = true
		_ = s.conn.Close()
		delete(r.subs, s)
		r.moved.Broadcast()
	}
}

// next waits for bytes and copies them.
func (r *Relay) next(s *subscriber, buf []byte) (int, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !s.gone && r.ended == nil && s.pos == r.ring.end {
		s.held = 0
		r.moved.Wait()
	}
	if s.gone || r.ended != nil {
		return 0, false
	}
	n := r.ring.read(buf, s.pos)
	s.pos += int64(n)
	if r.stuck {
		r.moved.Broadcast()
	}
	return n, true
}
