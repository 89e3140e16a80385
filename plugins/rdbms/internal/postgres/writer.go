package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/ledger"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
)

var (
	_ target.Writer    = (*Writer)(nil)
	_ target.Rehearser = (*Writer)(nil)
)

// Writer writes to one database. Its methods are safe for concurrent use.
type Writer struct {
	cfg Config
	pg  *pgconn.Config

	mu    sync.Mutex
	claim *ledger.Session // in force; replaced, never changed
	lanes map[int32]*lane
	plans plans

	closed    chan struct{}
	closeOnce sync.Once
}

// lane is the session of a lane. Lane -1 prepares tables, settles and scans.
type lane struct {
	no   int32
	turn chan struct{} // holds one token: who has it may use s
	s    *session
}

// New returns a Writer of the database. It connects to nothing yet.
func New(cfg Config) (*Writer, error) {
	cfg = cfg.withDefaults()
	pg, err := cfg.parse()
	if err != nil {
		return nil, err
	}
	if err := checkName("schema", cfg.Schema); err != nil {
		return nil, err
	}
	w := &Writer{cfg: cfg, pg: pg, lanes: map[int32]*lane{}, closed: make(chan struct{})}
	w.plans.forget()
	return w, nil
}

// Lanes returns how many lanes the writer wants where the task does not say.
func (w *Writer) Lanes() int32 { return w.cfg.Lanes }

// place names the target in messages.
func (w *Writer) place() string {
	return fmt.Sprintf("database %s on %s:%d", w.pg.Database, w.pg.Host, w.pg.Port)
}

var errClosed = errors.New("postgres writer is closed")

func (w *Writer) session() *ledger.Session {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.claim
}

func (w *Writer) inForce(s *ledger.Session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.claim = s
}

// take waits for the lane's turn; give hands it on.
func (w *Writer) take(ctx context.Context, no int32) (*lane, error) {
	w.mu.Lock()
	l := w.lanes[no]
	if l == nil {
		l = &lane{no: no, turn: make(chan struct{}, 1)}
		l.turn <- struct{}{}
		w.lanes[no] = l
	}
	w.mu.Unlock()
	select {
	case <-w.closed:
		return nil, errClosed
	default:
	}
	select {
	case <-l.turn:
		return l, nil
	case <-w.closed:
		return nil, errClosed
	case <-ctx.Done():
		return nil, w.fault("waiting for a lane", ctx.Err())
	}
}

func (l *lane) give() { l.turn <- struct{}{} }

// drop gives the lane's session up.
func (l *lane) drop() {
	if l.s != nil {
		l.s.close()
		l.s = nil
	}
}

// dropAll gives all sessions up, those under way once they are done.
func (w *Writer) dropAll(ctx context.Context) error {
	w.mu.Lock()
	lanes := make([]*lane, 0, len(w.lanes))
	for _, l := range w.lanes {
		lanes = append(lanes, l)
	}
	w.mu.Unlock()
	for _, l := range lanes {
		select {
		case <-l.turn:
			l.drop()
			l.give()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// connected makes sure that the lane has a session that holds its lock.
func (w *Writer) connected(ctx context.Context, l *lane) (*session, error) {
	if l.s != nil && !l.s.closed() {
		return l.s, nil
	}
	l.drop()
	claim := w.session()
	if claim == nil {
		return nil, sdk.Faultf(sdk.CodeInternal, "lane %d of %s before a claim", l.no, w.place())
	}
	s, err := w.dial(ctx)
	if err != nil {
		return nil, err
	}
	if !w.cfg.Switches.LocksOff {
		if err := w.lockLane(ctx, s, claim, l.no); err != nil {
			s.close()
			return nil, err
		}
	}
	l.s = s
	return s, nil
}

// Close gives the sessions up. A transaction that is open is rolled back by the
// server; it is waited for no longer than ctx.
func (w *Writer) Close(ctx context.Context) error {
	w.closeOnce.Do(func() { close(w.closed) })
	w.inForce(nil)
	return w.dropAll(ctx)
}
