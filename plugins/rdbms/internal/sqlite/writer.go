package sqlite

import (
	"context"
	"errors"
	"sync"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/ledger"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

var (
	_ sdk.TransactionalWriter = (*Writer)(nil)
	_ sdk.TargetScanner       = (*Writer)(nil)
	_ sdk.Releaser            = (*Writer)(nil)
	_ sdk.Discoverer          = (*Writer)(nil)
)

// Writer writes to one SQLite file. Begin, Settle and Prepare are safe for
// concurrent use: they wait for one another.
type Writer struct {
	cfg Config

	// turn holds one token: who has it may use everything below.
	turn    chan struct{}
	conn    *conn
	spoiled bool // the file was overwritten in place: this process touches it no more
	session *ledger.Session
	plans   map[*batch.Schema]*plan
	names   map[string]string // folded name of a target table to the name it is written with

	closed    chan struct{}
	closeOnce sync.Once

	// atCommit, where a test sets it, runs before and after COMMIT. An error
	// stands for an answer that was lost at that moment.
	atCommit func(committed bool) error
}

// New returns a Writer of the file. It touches nothing yet.
func New(cfg Config) (*Writer, error) {
	cfg = cfg.withDefaults()
	if cfg.Path == "" {
		return nil, sdk.Faultf(sdk.CodeInvalidConfig, "url names no file").Suggest("sqlite:///absolute/path or sqlite://relative/path")
	}
	w := &Writer{cfg: cfg, turn: make(chan struct{}, 1), closed: make(chan struct{})}
	w.turn <- struct{}{}
	w.forget()
	return w, nil
}

// Lanes returns how many lanes the writer wants where the task does not say.
func (w *Writer) Lanes() int32 { return w.cfg.Lanes }

var errClosed = errors.New("sqlite writer is closed")

// take waits for the turn; give hands it on.
func (w *Writer) take(ctx context.Context) error {
	select {
	case <-w.closed:
		return errClosed
	default:
	}
	select {
	case <-w.turn:
		return nil
	case <-w.closed:
		return errClosed
	case <-ctx.Done():
		return w.fault("waiting for the transaction of another lane", ctx.Err())
	}
}

func (w *Writer) give() { w.turn <- struct{}{} }

// forget drops what is known of the target's tables.
func (w *Writer) forget() {
	for _, p := range w.plans {
		p.close()
	}
	w.plans = map[*batch.Schema]*plan{}
	w.names = map[string]string{}
}

// connect returns the pinned connection, or a new one where there is none or
// other files stand at the path. Only a claim may create the file.
func (w *Writer) connect(ctx context.Context, mode string) (*conn, error) {
	old := w.conn
	if old != nil && !w.spoiled {
		switch old.place() {
		case samePlace:
			return old, nil
		case otherLog:
			w.spoiled = true
		}
	}
	if w.spoiled {
		// Closing the connection would write its log over what is in the file now, and
		// a new one in this process would share its index of that log.
		return nil, sdk.Faultf(sdk.CodeTargetWentBack, "target %s: the file was overwritten, or its log %s-wal removed, while it was open", w.cfg.Path, w.cfg.Path).
			Suggest("restart the task; to put a copy in place, stop the task or move the copy over the file")
	}
	c, err := open(ctx, &w.cfg, mode)
	// The old connection goes after the new one holds its locks: the last one to
	// close writes its log into the file and removes it.
	w.disconnect()
	if err != nil {
		if old != nil && code(err)&0xff == rcCantOpen {
			return nil, sdk.Faultf(sdk.CodeTargetWentBack, "target %s: the file is gone: %v", w.cfg.Path, err).Suggest("put it back, or restart the task to start over")
		}
		return nil, w.fault("open", err)
	}
	w.conn = c
	return c, nil
}

func (w *Writer) disconnect() {
	w.forget()
	if w.conn != nil && !w.spoiled && w.conn.place() != otherLog {
		w.conn.close()
	}
	w.conn = nil
}

// begin opens a transaction that holds SQLite's only write lock.
func (w *Writer) begin(ctx context.Context, mode, doing string) (*conn, error) {
	c, err := w.connect(ctx, mode)
	if err != nil {
		return nil, err
	}
	err = c.exec(ctx, "BEGIN IMMEDIATE")
	if err != nil && busy(err) {
		return nil, sdk.Faultf(sdk.CodeUnavailable, "%s in %s: another process holds the write lock for longer than busyTimeout (%s); %s: %v",
			doing, w.cfg.Path, w.cfg.BusyTimeout, w.lastClaimant(ctx, c), err).
			Retry().Suggest("end the process that holds it, or raise busyTimeout")
	}
	if err != nil {
		// The driver answers with the context's error also where BEGIN took effect.
		w.rollback(c)
		return nil, w.fault(doing, err)
	}
	return c, nil
}

// lastClaimant says who claimed the file last. Readers wait for nobody.
func (w *Writer) lastClaimant(ctx context.Context, c *conn) string {
	rows, err := c.query(ctx, "SELECT task, writer, execution_id, epoch, updated_at FROM datalink_progress ORDER BY updated_at DESC LIMIT 1")
	if err != nil || len(rows) == 0 {
		return "no task has claimed it yet"
	}
	r := rows[0]
	return "the last to write was execution " + text(r[2]) + " of task " + text(r[0]) + ", writer " + text(r[1]) + ", epoch " + text(r[3]) + ", at " + text(r[4])
}

// rollback ends an open transaction. A connection that cannot even do that is
// given up; closing it rolls back.
func (w *Writer) rollback(c *conn) {
	err := c.exec(context.Background(), "ROLLBACK")
	if err != nil && code(err)&0xff != rcError { // rcError: no transaction is active
		w.disconnect()
	}
}

// claimed checks that the claim is still in force, inside a transaction.
func (w *Writer) claimed(c *conn, doing string) error {
	if w.session == nil {
		return sdk.Faultf(sdk.CodeInternal, "%s in %s before a claim", doing, w.cfg.Path)
	}
	s := w.session
	row, err := readRow(c, s.Task, s.Writer, sdk.WriterLane)
	if err != nil {
		return w.fault(doing, err)
	}
	if sw := w.cfg.Switches; s.Holds(row) || row != nil && (sw.EpochOff || sw.ClaimOff && row.Execution == s.Execution) {
		return nil
	}
	f := s.Refusal(sdk.WriterLane, 0, row)
	f.Message = doing + " refused: " + f.Message
	return f
}

// Close gives the connection up. A transaction that is still open is rolled
// back; it waits for its caller no longer than ctx.
func (w *Writer) Close(ctx context.Context) error {
	w.closeOnce.Do(func() { close(w.closed) })
	select {
	case <-w.turn:
		w.disconnect()
		w.session = nil
		w.turn <- struct{}{}
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
