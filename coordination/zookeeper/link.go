package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// link is one connection object and its one session.
type link struct {
	cfg  *Config
	conn *zk.Conn
	over chan struct{} // closed when the session is known to have ended

	mu       sync.Mutex
	id       int64
	granted  time.Duration
	passwd   []byte
	wire     net.Conn // the last one
	up       bool
	turned   chan struct{} // closed when up or over changes
	ended    error         // why the session is over
	sent     time.Duration // of the last answered request that reached the leader
	onNode   func(path string)
	onChange func() // the connection was lost or is back
}

// newLink connects and waits for a session. onNode hears of each watched node that
// changed, in order with the answers; onChange of each loss and return of the
// connection. Neither may block.
func newLink(ctx context.Context, cfg *Config, onNode func(string), onChange func()) (*link, error) {
	l := &link{cfg: cfg, over: make(chan struct{}), turned: make(chan struct{}), onNode: onNode, onChange: onChange}
	began := cfg.Clock.Boot()
	l.mu.Lock() // events of the library wait until it is complete
	conn, _, err := zk.Connect(cfg.Servers, cfg.Timeout, zk.WithDialer(l.dial), zk.WithEventCallback(l.event),
		zk.WithHostProvider(&servers{}), zk.WithLogInfo(false), zk.WithLogger(library{cfg}))
	l.conn = conn
	l.mu.Unlock()
	if err != nil {
		return nil, err
	}
	err = l.ready(ctx)
	if err == nil && cfg.User != "" {
		_, err = call(ctx, l, func(c *zk.Conn) (struct{}, error) {
			return struct{}{}, c.AddAuth("digest", []byte(cfg.User+":"+cfg.Password))
		})
	}
	if err != nil {
		l.close()
		return nil, fmt.Errorf("connect to ZooKeeper at %v: %w", cfg.Servers, err)
	}
	l.answered(began)
	return l, nil
}

// library passes what the client library says to the log.
type library struct{ cfg *Config }

func (l library) Printf(format string, args ...any) {
	l.cfg.Log.Debug("zookeeper client", "says", fmt.Sprintf(format, args...))
}

// servers hands out the addresses in a random order. Names are resolved at each
// connect, so that a server may move.
type servers struct {
	mu    sync.Mutex
	all   []string
	next  int
	tried int
}

func (s *servers) Init(all []string) error {
	s.all = append([]string(nil), all...)
	rand.Shuffle(len(s.all), func(i, j int) { s.all[i], s.all[j] = s.all[j], s.all[i] })
	return nil
}

func (s *servers) Len() int { return len(s.all) }

func (s *servers) Next() (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	round := s.tried >= len(s.all)
	if round {
		s.tried = 0
	}
	addr := s.all[s.next%len(s.all)]
	s.next++
	s.tried++
	return addr, round
}

func (s *servers) Connected() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried = 0
}

func (l *link) session() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id
}

func (l *link) timeout() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.granted
}

func (l *link) isOver() bool {
	select {
	case <-l.over:
		return true
	default:
		return false
	}
}

func (l *link) connected(w net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wire = w
}

// greeted is called with a server's answer to the connect request.
func (l *link) greeted(session int64, timeout time.Duration, passwd []byte) {
	if session == 0 {
		l.end(zk.ErrSessionExpired)
		return
	}
	l.mu.Lock()
	other := l.id != 0 && l.id != session
	if !other {
		l.id, l.granted, l.passwd = session, timeout, append([]byte(nil), passwd...)
	}
	l.mu.Unlock()
	if other {
		l.end(fmt.Errorf("session %#x was followed by %#x", l.id, session))
	}
}

// event is the library's callback; it must not block.
func (l *link) event(e zk.Event) {
	switch e.State {
	case zk.StateExpired, zk.StateAuthFailed:
		l.end(zk.ErrSessionExpired)
	}
	switch {
	case e.Type == zk.EventSession && e.State == zk.StateHasSession:
		l.turn(true)
	case e.Type == zk.EventSession && e.State == zk.StateDisconnected:
		l.turn(false)
	case e.Path != "" && l.onNode != nil:
		l.onNode(e.Path)
	}
}

func (l *link) turn(up bool) {
	l.mu.Lock()
	if l.up == up {
		l.mu.Unlock()
		return
	}
	l.up = up
	close(l.turned)
	l.turned = make(chan struct{})
	l.mu.Unlock()
	if l.onChange != nil {
		l.onChange()
	}
}

// end marks the session as over and lets the library stop.
func (l *link) end(why error) {
	l.mu.Lock()
	if l.ended != nil {
		l.mu.Unlock()
		return
	}
	l.ended, l.up = why, false
	close(l.over)
	w := l.wire
	l.mu.Unlock()
	go func() {
		if w != nil {
			w.Close() // the library leaves it open after an expiry
		}
		l.conn.Close()
	}()
	if l.onChange != nil {
		l.onChange()
	}
}

// close ends the session at the servers, if they can be reached within a moment.
func (l *link) close() {
	l.mu.Lock()
	mine := l.ended == nil
	if mine {
		l.ended, l.up = errClosed, false
	}
	l.mu.Unlock()
	if mine {
		l.conn.Close()
		close(l.over)
	}
}

// ready waits until there is a connection with the session.
func (l *link) ready(ctx context.Context) error {
	for {
		l.mu.Lock()
		up, turned, ended := l.up, l.turned, l.ended
		l.mu.Unlock()
		switch {
		case ended != nil:
			return errSession
		case up:
			return nil
		}
		select {
		case <-turned:
		case <-l.over:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// answered notes that a request sent at that time was answered by way of the leader.
func (l *link) answered(sent time.Duration) {
	l.mu.Lock()
	l.sent = max(l.sent, sent)
	l.mu.Unlock()
}

var (
	errClosed  = errors.New("closed")
	errSession = errors.New("the ZooKeeper session has ended")
	errLost    = errors.New("the answer was lost") // the outcome is not known
)

// call runs one request of the library, which knows no context. A request that was
// abandoned may still take effect.
func call[T any](ctx context.Context, l *link, f func(*zk.Conn) (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	var zero T
	if err := ctx.Err(); err != nil {
		return zero, err
	}
	if l.isOver() {
		return zero, errSession
	}
	done := make(chan answer, 1)
	go func() {
		v, err := f(l.conn)
		done <- answer{v, err}
	}()
	select {
	case a := <-done:
		return a.v, l.judge(a.err)
	case <-l.over:
		return zero, errSession
	case <-ctx.Done():
		return zero, ctx.Err()
	}
}

// judge tells lost answers and ended sessions from answers.
func (l *link) judge(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrSessionExpired):
		l.end(err)
		return errSession
	case errors.Is(err, zk.ErrConnectionClosed), errors.Is(err, zk.ErrNoServer), errors.Is(err, zk.ErrClosing), errors.Is(err, zk.ErrSessionMoved),
		isNet(err):
		if l.isOver() {
			return errSession
		}
		return errLost
	}
	return err
}

// isNet recognizes what a failed write to the connection looks like.
func isNet(err error) bool {
	var n net.Error
	return errors.As(err, &n) || errors.Is(err, net.ErrClosed) || errors.Is(err, errOver)
}

// sync makes what follows see all that was committed before.
func (l *link) sync(ctx context.Context) error {
	sent := l.cfg.Clock.Boot()
	_, err := call(ctx, l, func(c *zk.Conn) (string, error) { return c.Sync(l.cfg.top()) })
	if err == nil {
		l.answered(sent)
	}
	return err
}

// multi runs operations as one; failed is the index of the one that refused, else -1.
func (l *link) multi(ctx context.Context, ops ...any) (res []zk.MultiResponse, failed int, err error) {
	sent := l.cfg.Clock.Boot()
	res, err = call(ctx, l, func(c *zk.Conn) ([]zk.MultiResponse, error) { return c.Multi(ops...) })
	if err == nil {
		l.answered(sent)
		return res, -1, nil
	}
	for i := range res {
		if res[i].Error != nil {
			return res, i, res[i].Error
		}
	}
	return nil, -1, err
}

// again repeats f while answers are lost, until ctx ends.
func (l *link) again(ctx context.Context, f func() error) error {
	for {
		err := f()
		if !errors.Is(err, errLost) {
			return err
		}
		select { // the library may not have noticed yet
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
		if err := l.ready(ctx); err != nil {
			return err
		}
	}
}
