package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/datalink-go/datalink/coordination"
)

// Session is a worker's membership: a connection of its own and its ephemeral nodes.
type Session struct {
	store  *Store
	link   *link
	id     string
	worker coordination.Worker
	wg     sync.WaitGroup

	mu      sync.Mutex
	locks   map[string]chan struct{} // by task uid: conditional calls come one at a time
	held    map[string]*held
	kept    map[string]*kept  // by path of the writer
	orphans map[string]orphan // takes without an answer, by task uid
}

var _ coordination.Session = (*Session)(nil)

// held is a status node of this session with the versions that conditions name.
type held struct {
	status  coordination.Status
	version int32 // of the status node
	epoch   int32 // of the epoch node: moved by each take and raise
	marked  bool  // the mark's node is there
}

type orphan struct {
	execution string
	since     time.Duration
}

// Join implements coordination.Store. A membership of this very data directory,
// whose process is gone, is replaced.
func (s *Store) Join(ctx context.Context, w coordination.Worker) (coordination.Session, error) {
	if w.ID == "" {
		return nil, fmt.Errorf("worker without an id: %w", coordination.ErrInvalid)
	}
	if w.Place == (coordination.Place{}) {
		w.Place = s.cfg.Place
	}
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Call)
	defer cancel()
	if _, err := s.current(ctx); err != nil { // closed, or another store by now
		return nil, err
	}
	l, err := newLink(ctx, &s.cfg, nil, nil)
	if err != nil {
		if outer.Err() != nil {
			return nil, outer.Err()
		}
		return nil, s.explain(ctx, "join as worker "+w.ID, err)
	}
	x := &Session{
		store: s, link: l, id: fmt.Sprintf("%#x", uint64(l.session())),
		locks: map[string]chan struct{}{}, held: map[string]*held{}, kept: map[string]*kept{}, orphans: map[string]orphan{},
	}
	w.Session, w.JoinedAt = x.id, s.now()
	x.worker = w
	if err := l.again(ctx, func() error { return x.register(ctx) }); err != nil {
		l.close()
		return nil, s.explain(ctx, "join as worker "+w.ID, err)
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		l.close()
		return nil, coordination.ErrClosed
	}
	s.sessions[x] = struct{}{}
	s.mu.Unlock()
	x.wg.Go(x.beat)
	return x, nil
}

func (x *Session) register(ctx context.Context) error {
	s := x.store
	path := s.path("workers", escaped(x.worker.ID))
	data, err := s.fits(path, x.worker)
	if err != nil {
		return err
	}
	op := s.createOp(path, data)
	op.Flags = zk.FlagEphemeral
	_, _, err = x.link.multi(ctx, op)
	if !errors.Is(err, zk.ErrNodeExists) {
		return named(path, err)
	}
	if err := x.link.sync(ctx); err != nil {
		return err
	}
	var have coordination.Worker
	ok, stat, err := get(ctx, x.link, path, &have)
	switch {
	case err != nil:
		return err
	case !ok:
		return errLost // went meanwhile: again
	case stat.EphemeralOwner == x.link.session():
		return nil // ours: the answer had been lost
	case !x.worker.Place.Succeeds(have.Place):
		return fmt.Errorf("worker %q: %w, on %s with pid %d since %s", x.worker.ID, coordination.ErrExists, have.Host, have.PID, have.JoinedAt.UTC().Format(time.RFC3339))
	}
	_, failed, err := x.link.multi(ctx, &zk.DeleteRequest{Path: path, Version: stat.Version}, op)
	if failed >= 0 {
		return errLost
	}
	return named(path, err)
}

// beat keeps the lease known and settles what was left open.
func (x *Session) beat() {
	every := max(x.link.timeout()/6, 20*time.Millisecond)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-x.link.over:
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*every)
		_ = x.link.sync(ctx) // moves the lease when it is answered
		x.reap(ctx)
		cancel()
		x.probe()
	}
}

// probe asks by another way whether the session lives when its connection has been
// away for long: servers that were put back to an older copy never take it back.
func (x *Session) probe() {
	l := x.link
	l.mu.Lock()
	silent := x.store.cfg.Clock.Boot() - l.sent
	up := l.up
	l.mu.Unlock()
	if up || silent < 2*l.timeout() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.timeout())
	defer cancel()
	other, err := newLink(ctx, &x.store.cfg, nil, nil)
	if err != nil {
		return
	}
	defer other.close()
	if err := other.sync(ctx); err != nil {
		return
	}
	r, err := read(ctx, other, x.store.path("workers", escaped(x.worker.ID)))
	if err == nil && (r == nil || r.stat.EphemeralOwner != l.session()) {
		l.end(errors.New("the session's nodes are gone"))
	}
}

// ID implements coordination.Session.
func (x *Session) ID() string { return x.id }

// Worker implements coordination.Session.
func (x *Session) Worker() coordination.Worker { return x.worker }

// Lease implements coordination.Session.
func (x *Session) Lease() coordination.Lease {
	x.link.mu.Lock()
	defer x.link.mu.Unlock()
	return coordination.Lease{Sent: x.link.sent, Timeout: x.link.granted}
}

// Lost implements coordination.Session.
func (x *Session) Lost() <-chan struct{} { return x.link.over }

// Close implements coordination.Session.
func (x *Session) Close(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		x.link.close()
		x.wg.Wait()
	}()
	x.store.mu.Lock()
	delete(x.store.sessions, x)
	x.store.mu.Unlock()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (x *Session) lostError(op string) error {
	return fmt.Errorf("%s: session %s of worker %q: %w", op, x.id, x.worker.ID, coordination.ErrSessionLost)
}

// do runs f on the session's connection, again while answers are lost, within the
// bounds of ctx and Config.Call.
func (x *Session) do(ctx context.Context, op string, f func(ctx context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	inner, cancel := context.WithTimeout(ctx, x.store.cfg.Call)
	defer cancel()
	err := x.link.again(inner, func() error { return f(inner) })
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errSession):
		return x.lostError(op)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return x.store.explain(inner, op, err)
}

// lock takes the turn of a task's conditional calls; the result gives it back.
func (x *Session) lock(ctx context.Context, taskUID string) (func(), error) {
	x.mu.Lock()
	c := x.locks[taskUID]
	if c == nil {
		c = make(chan struct{}, 1)
		x.locks[taskUID] = c
	}
	x.mu.Unlock()
	select {
	case c <- struct{}{}:
		return func() { <-c }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// knows returns what the session remembers of a task; nil = nothing.
func (x *Session) knows(taskUID string) *held {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.held[taskUID]
}

func (x *Session) remember(taskUID string, h *held) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if h == nil {
		delete(x.held, taskUID)
		return
	}
	x.held[taskUID] = h
	if o, ok := x.orphans[taskUID]; ok && o.execution == h.status.ExecutionID {
		delete(x.orphans, taskUID) // somebody asked for it
	}
}
