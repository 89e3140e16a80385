package mysql

import (
	"context"
	"errors"
	"sync"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/ledger"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

var (
	_ target.Writer    = (*Writer)(nil)
	_ target.Rehearser = (*Writer)(nil)
)

// Writer writes to one server. Begin and Settle of different lanes are safe for
// concurrent use; Claim, Prepare and Close have the writer for themselves.
type Writer struct {
	cfg  Config
	addr *address

	mu      sync.Mutex
	closed  bool
	srv     *server
	session *ledger.Session // the claim in force
	own     *session        // holds the writer's lock
	types   *dialect
	lanes   map[int32]*lane
	plans   map[*batch.Schema]*plan
	names   map[string]string // folded name of a target table to the name it is written with

	// atCommit, where a test sets it, runs before COMMIT is sent.
	atCommit func()
}

// lane is what one lane keeps from one transaction to the next.
type lane struct {
	no int32
	s  *session
	a  applier
}

// New returns a Writer of the server. It touches nothing yet.
func New(cfg Config) (*Writer, error) {
	cfg = cfg.withDefaults()
	if cfg.URL == nil {
		return nil, sdk.Faultf(sdk.CodeInvalidConfig, "url is missing").Suggest("%s", urlForm)
	}
	a, err := parseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	if cfg.Dial == nil {
		d := target.Dialer(cfg.NetworkTimeout)
		cfg.Dial = d
	}
	w := &Writer{cfg: cfg, addr: a}
	w.forget()
	return w, nil
}

// Lanes returns how many lanes the writer wants where the task does not say.
func (w *Writer) Lanes() int32 { return w.cfg.Lanes }

var errClosed = errors.New("mysql writer is closed")

func (w *Writer) open() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errClosed
	}
	return nil
}

// claimed returns the claim in force, nil before there is one.
func (w *Writer) claimed() *ledger.Session {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.session
}

// forget drops what is known of the target's tables.
func (w *Writer) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plans = map[*batch.Schema]*plan{}
	w.names = map[string]string{}
}

// drop closes all sessions and forgets the claim.
func (w *Writer) drop() {
	w.forget()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.own != nil {
		w.own.close()
	}
	for _, l := range w.lanes {
		if l.s != nil {
			l.s.close()
		}
	}
	w.own, w.session, w.lanes = nil, nil, map[int32]*lane{}
}

// lane returns the lane with a session that holds its lock.
func (w *Writer) lane(ctx context.Context, no int32) (*lane, error) {
	w.mu.Lock()
	l := w.lanes[no]
	if l == nil {
		l = &lane{no: no}
		w.lanes[no] = l
	}
	w.mu.Unlock()
	if l.s != nil && !l.s.dead {
		return l, nil
	}
	s, err := w.guarded(ctx, no, false)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		s.close()
		return nil, errClosed
	}
	l.s = s
	return l, nil
}

// ownSession returns the writer's session, which holds the writer's lock. A new
// one finds the claim in force after it got the lock.
func (w *Writer) ownSession(ctx context.Context) (*session, error) {
	if err := w.open(); err != nil {
		return nil, err
	}
	w.mu.Lock()
	s := w.own
	w.mu.Unlock()
	if s != nil && !s.dead {
		return s, nil
	}
	s, err := w.guarded(ctx, sdk.WriterLane, true)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.own = s
	return s, nil
}

// guarded opens a session for a lane or, with WriterLane, for the writer, and
// takes its lock. The session that held it before may be one of this writer whose
// connection was lost: it is ended where the claim is still in force.
func (w *Writer) guarded(ctx context.Context, no int32, auto bool) (*session, error) {
	x := w.claimed()
	if x == nil {
		return nil, sdk.Faultf(sdk.CodeInternal, "session at %s before a claim", w.addr.where())
	}
	s, err := w.connect(ctx, auto)
	if err != nil {
		return nil, w.fault("connect", err)
	}
	may := func(ctx context.Context) error { return w.inForce(ctx, s, no) }
	if !w.cfg.Switches.LocksOff {
		if err := w.lock(ctx, s, lockName(w.addr.database, x.Task, x.Writer, no), may); err != nil {
			s.close()
			return nil, err
		}
	}
	if err := may(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// inForce checks that the claim is still in force.
func (w *Writer) inForce(ctx context.Context, s *session, no int32) error {
	x, sw := w.claimed(), w.cfg.Switches
	row, err := w.readRow(ctx, s, no, false)
	if err == nil {
		err = s.exec(ctx, "ROLLBACK") // nothing of the read stays locked
	}
	if err != nil {
		return w.fault("session", err)
	}
	if x.Holds(row) || row != nil && (sw.EpochOff || sw.ClaimOff && row.Execution == x.Execution) {
		return nil
	}
	f := x.Refusal(no, 0, row)
	f.Message = "session refused: " + f.Message
	return f
}

// Close ends all sessions; the server rolls back what is open.
func (w *Writer) Close(context.Context) error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.drop()
	return nil
}
