package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/datalink-go/datalink/coordination"
)

const format = 1

// Store is an open store. It is safe for concurrent use.
type Store struct {
	cfg    Config
	uid    string
	mirror *mirror
	done   chan struct{}
	wg     sync.WaitGroup

	mu       sync.Mutex
	link     *link // for all that belongs to no session; replaced when its session is over
	dialing  chan struct{}
	sessions map[*Session]struct{}
	closed   bool
}

var _ coordination.Store = (*Store)(nil)

type metaValue struct {
	Format    int       `json:"format"`
	UID       string    `json:"uid"`
	CreatedAt time.Time `json:"createdAt"`
}

// Open connects to the ensemble and makes the top of the tree where it is not there.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, done: make(chan struct{}), sessions: map[*Session]struct{}{}}
	s.mirror = newMirror()
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Call)
	defer cancel()
	var err error
	if s.link, err = s.dial(ctx); err != nil {
		return nil, s.explain(ctx, "open the store", err)
	}
	if err := s.link.again(ctx, func() error { return s.prepare(ctx) }); err != nil {
		s.link.close()
		return nil, s.explain(ctx, "open the store", err)
	}
	s.wg.Go(s.attend)
	return s, nil
}

// attend replaces a connection that has been away for long, if another can be had:
// servers that were put back to an older copy refuse a client that has seen more.
func (s *Store) attend() {
	every := max(s.cfg.Timeout/2, 100*time.Millisecond)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for away := 0; ; {
		select {
		case <-s.done:
			return
		case <-tick.C:
		}
		s.mu.Lock()
		l := s.link
		s.mu.Unlock()
		l.mu.Lock()
		up := l.up
		l.mu.Unlock()
		if away++; up {
			away = 0
		}
		if away < 4 || l.isOver() {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Timeout)
		other, err := newLink(ctx, &s.cfg, nil, nil)
		cancel()
		if err == nil {
			other.close()
			l.end(errors.New("the servers take others and not this one")) // whoever comes next dials
			away = 0
		}
	}
}

func (s *Store) dial(ctx context.Context) (*link, error) {
	return newLink(ctx, &s.cfg, s.mirror.changed, s.mirror.reset)
}

var folders = []string{"definitions", "tasks", "overlaps", "forgotten", "workers", "board"}

// prepare makes the folders and reads who the store is.
func (s *Store) prepare(ctx context.Context) error {
	at := ""
	for part := range strings.SplitSeq(strings.TrimPrefix(s.cfg.Root, "/"), "/") {
		if part == "" {
			continue
		}
		at += "/" + part
		if err := s.ensure(ctx, at); err != nil {
			return err
		}
	}
	for _, f := range folders {
		if err := s.ensure(ctx, s.path(f)); err != nil {
			return err
		}
	}
	_, err := s.create(ctx, s.path("store"), metaValue{Format: format, UID: uuid.NewString(), CreatedAt: s.now()})
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return err
	}
	m, err := s.meta(ctx)
	if err != nil {
		return err
	}
	if m.Format != format {
		return fmt.Errorf("the store has format %d, this program reads format %d: use the program version that wrote it", m.Format, format)
	}
	s.uid = m.UID
	return nil
}

func (s *Store) meta(ctx context.Context) (m metaValue, err error) {
	if err := s.link.sync(ctx); err != nil {
		return m, err
	}
	ok, _, err := get(ctx, s.link, s.path("store"), &m)
	if err == nil && !ok {
		err = errors.New("the ensemble has no store any more")
	}
	return m, err
}

// ensure makes an empty node where there is none.
func (s *Store) ensure(ctx context.Context, path string) error {
	_, err := call(ctx, s.link, func(c *zk.Conn) (string, error) { return c.Create(path, nil, 0, s.cfg.acl()) })
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return named(path, err)
}

func (s *Store) create(ctx context.Context, path string, v any) (string, error) {
	data, err := encode(path, v)
	if err != nil {
		return "", err
	}
	p, err := call(ctx, s.link, func(c *zk.Conn) (string, error) { return c.Create(path, data, 0, s.cfg.acl()) })
	return p, named(path, err)
}

// UID implements coordination.Store.
func (s *Store) UID() string { return s.uid }

// Place is what Config said of this process.
func (s *Store) Place() coordination.Place { return s.cfg.Place }

func (s *Store) now() time.Time { return s.cfg.Clock.Now().UTC() }

// do runs f with a connection that lives, again while answers are lost, within the
// bounds of ctx and Config.Call.
func (s *Store) do(ctx context.Context, op string, f func(ctx context.Context, l *link) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	inner, cancel := context.WithTimeout(ctx, s.cfg.Call)
	defer cancel()
	for {
		l, err := s.current(inner)
		if err == nil {
			err = l.again(inner, func() error { return f(inner, l) })
		}
		if errors.Is(err, errSession) && inner.Err() == nil {
			continue // the store's own session: nothing depends on it
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return s.explain(inner, op, err)
	}
}

// explain says that the ensemble was not reached where that is the cause.
func (s *Store) explain(ctx context.Context, op string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		return fmt.Errorf("%s: ZooKeeper at %s did not answer within %s: check that a majority of its servers runs and can be reached",
			op, strings.Join(s.cfg.Servers, ","), s.cfg.Call)
	}
	return err
}

// current returns the store's connection, a new one where its session is over.
func (s *Store) current(ctx context.Context) (*link, error) {
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return nil, coordination.ErrClosed
		}
		l := s.link
		if !l.isOver() {
			s.mu.Unlock()
			return l, nil
		}
		if wait := s.dialing; wait != nil {
			s.mu.Unlock()
			select {
			case <-wait:
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		mine := make(chan struct{})
		s.dialing = mine
		s.mu.Unlock()
		err := s.redial(ctx)
		s.mu.Lock()
		s.dialing = nil
		s.mu.Unlock()
		close(mine)
		if err != nil {
			return nil, err
		}
	}
}

// redial replaces the connection and makes sure that it leads to the same store.
func (s *Store) redial(ctx context.Context) error {
	l, err := s.dial(ctx)
	if err != nil {
		return err
	}
	var m metaValue
	err = l.again(ctx, func() error {
		if err := l.sync(ctx); err != nil {
			return err
		}
		_, _, err := get(ctx, l, s.path("store"), &m)
		return err
	})
	if err == nil && m.UID != s.uid {
		err = fmt.Errorf("the ensemble holds store %q, expected %q: its data was lost or replaced; put back a copy, or start the workers anew", m.UID, s.uid)
	}
	s.mu.Lock()
	closed := s.closed
	if err == nil && !closed {
		s.link = l
	}
	s.mu.Unlock()
	if err != nil || closed {
		l.close()
		if err == nil {
			err = coordination.ErrClosed
		}
		return err
	}
	s.mirror.reset()
	return nil
}

// Close implements coordination.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	l := s.link
	var sessions []*Session
	for x := range s.sessions {
		sessions = append(sessions, x)
	}
	s.mu.Unlock()
	close(s.done)
	for _, x := range sessions {
		_ = x.Close(context.Background())
	}
	l.close()
	s.wg.Wait()
	s.mirror.close()
	return nil
}
