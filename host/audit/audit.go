package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/sdk/manifest"
)

// Store is the part of a coordination store that the audit needs.
type Store interface {
	UID() string
	Append(ctx context.Context, e coordination.Entry) error
	Journal(ctx context.Context, taskUID string) ([]coordination.Entry, error)
	AddOverlap(ctx context.Context, o coordination.Overlap) error
	Overlap(ctx context.Context, id string) (coordination.Overlap, error)
	Overlaps(ctx context.Context) ([]coordination.Overlap, error)
	Resolve(ctx context.Context, overlapID string, r coordination.Resolution) error
	Workers(ctx context.Context) ([]coordination.Worker, error)
	Forgotten(ctx context.Context) ([]coordination.Forgotten, error)
}

// Config of an Auditor. Store is required.
type Config struct {
	Store     Store
	LockSince time.Time     // when this process got the lock of its data directory
	TCP       time.Duration // TCP user time-out of the connectors; 0 = 30 s, negative = none
	Now       func() time.Time
	Notify    func(coordination.Overlap) // for counters and alert channels; nil = nobody
	Log       *slog.Logger
}

// Auditor keeps the audit of the tasks of one process.
type Auditor struct{ cfg Config }

// New makes an Auditor.
func New(cfg Config) *Auditor {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	switch {
	case cfg.TCP == 0:
		cfg.TCP = 30 * time.Second
	case cfg.TCP < 0:
		cfg.TCP = 0
	}
	if cfg.LockSince.IsZero() {
		cfg.LockSince = cfg.Now()
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Auditor{cfg: cfg}
}

// Writer is a target of the task that begins.
type Writer struct {
	Name  string
	Level manifest.Level
}

func fenced(writers []Writer) bool {
	for _, w := range writers {
		if w.Level != manifest.LevelTransactional && w.Level != manifest.LevelVersioned {
			return false
		}
	}
	return true
}

// VerdictOf is what late writes can have done to targets of these levels.
func VerdictOf(writers []Writer) coordination.Verdict {
	if fenced(writers) {
		return coordination.Harmless
	}
	return coordination.PossiblyDirty
}

func (a *Auditor) evidence(ctx context.Context, self coordination.Place) (Evidence, error) {
	ev := Evidence{Self: self, LockSince: a.cfg.LockSince, TCP: a.cfg.TCP, Now: a.cfg.Now()}
	var err error
	if ev.Workers, err = a.cfg.Store.Workers(ctx); err != nil {
		return ev, fmt.Errorf("audit: workers: %w", err)
	}
	if ev.Forgotten, err = a.cfg.Store.Forgotten(ctx); err != nil {
		return ev, fmt.Errorf("audit: forgotten workers: %w", err)
	}
	return ev, nil
}

// Predecessors closes the executions that came before self and have no end, and
// records a suspected overlap with each that is not proven dead. It reports
// whether some are left for Settle.
func (a *Auditor) Predecessors(ctx context.Context, self coordination.Status, writers []Writer) (left bool, err error) {
	journal, err := a.cfg.Store.Journal(ctx, self.TaskUID)
	if err != nil {
		return false, fmt.Errorf("audit: journal: %w", err)
	}
	ev, err := a.evidence(ctx, self.Place)
	if err != nil {
		return false, err
	}
	for _, e := range History(journal) {
		if e.Started.ExecutionID == self.ExecutionID {
			break // later ones are nobody's predecessors here
		}
		if e.Gone() {
			continue
		}
		more, err := a.predecessor(ctx, &e, self, writers, ev)
		if err != nil {
			return false, err
		}
		left = left || more
	}
	return left, nil
}

func (a *Auditor) predecessor(ctx context.Context, e *Execution, self coordination.Status, writers []Writer, ev Evidence) (left bool, err error) {
	id := e.Started.ExecutionID
	if !e.Closed() {
		lost := coordination.Entry{
			Kind: coordination.EntryLost, Task: self.Task, TaskUID: self.TaskUID, ExecutionID: id, Epoch: e.Epoch,
			At: ev.Now, Reason: "its successor found no end", By: self.ExecutionID,
		}
		if err := a.cfg.Store.Append(ctx, lost); err != nil {
			return false, fmt.Errorf("audit: close execution %s as lost: %w", id, err)
		}
		a.cfg.Log.Warn("execution without an end is closed as lost", "task", self.Task, "execution", id, "worker", e.Started.Worker)
	}
	p := Judge(e, ev)
	if p.Reason != "" && !p.Pending {
		return false, a.dead(ctx, e, self.ExecutionID, p)
	}
	if p.Pending && fenced(writers) {
		return true, nil // its process is gone, and what is on its way is refused
	}
	return true, a.suspect(ctx, e, self, writers, p, ev.Now)
}

func (a *Auditor) dead(ctx context.Context, e *Execution, by string, p Proof) error {
	err := a.cfg.Store.Append(ctx, coordination.Entry{
		Kind: coordination.EntryDead, Task: e.Started.Task, TaskUID: e.Started.TaskUID, ExecutionID: e.Started.ExecutionID, Epoch: e.Epoch,
		At: a.cfg.Now(), Reason: p.Reason, By: by,
	})
	if err != nil {
		return fmt.Errorf("audit: execution %s is dead: %w", e.Started.ExecutionID, err)
	}
	return nil
}

func (a *Auditor) suspect(ctx context.Context, e *Execution, self coordination.Status, writers []Writer, p Proof, now time.Time) error {
	o := coordination.Overlap{
		Task: self.Task, TaskUID: self.TaskUID, Cause: coordination.CauseUnproven,
		Late:  a.party(&e.Started, e.Epoch),
		Owner: coordination.Party{ExecutionID: self.ExecutionID, Epoch: self.Epoch, Worker: self.Worker, Host: self.Host, StoreUID: a.cfg.Store.UID(), TaskUID: self.TaskUID},
		By:    self.ExecutionID, At: now, From: e.LastSeen(), To: now,
		Verdict: VerdictOf(writers), Open: !fenced(writers),
		Detail: "nothing proves that it is dead",
	}
	if p.Pending {
		o.Detail = fmt.Sprintf("%s; what it sent may be on its way until %s", p.Reason, p.At.UTC().Format(time.RFC3339))
	}
	for _, w := range writers {
		ow := coordination.OverlapWriter{Name: w.Name, Level: string(w.Level)}
		for _, m := range e.Positions() {
			if m.Writer == w.Name {
				ow.From = m.Position
				break
			}
		}
		o.Writers = append(o.Writers, ow)
	}
	if o.Open {
		o.Done = fmt.Sprintf("the record stays open until the execution is proven dead; then compare: datalink verify %s --repair", self.Task)
	} else {
		o.Done = "nothing: every target refuses or outranks its late writes"
	}
	return a.record(ctx, o)
}

func (a *Auditor) party(e *coordination.Entry, epoch uint64) coordination.Party {
	return coordination.Party{ExecutionID: e.ExecutionID, Epoch: epoch, Worker: e.Worker, Host: e.Host, StoreUID: a.cfg.Store.UID(), TaskUID: e.TaskUID}
}

// record creates an overlap record; one that is there already stays.
func (a *Auditor) record(ctx context.Context, o coordination.Overlap) error {
	o.ID = ID(o.Late.ExecutionID, o.Owner.ExecutionID, o.Cause)
	o.Certain = o.Cause.Certain()
	if _, err := a.cfg.Store.Overlap(ctx, o.ID); err == nil {
		return nil
	} else if !errors.Is(err, coordination.ErrNotFound) {
		return fmt.Errorf("audit: overlap %s: %w", o.ID, err)
	}
	if err := a.cfg.Store.AddOverlap(ctx, o); err != nil {
		return fmt.Errorf("audit: record overlap %s: %w", o.ID, err)
	}
	a.cfg.Log.Warn("overlap of two executions recorded", "id", o.ID, "task", o.Task, "cause", string(o.Cause), "certain", o.Certain,
		"late", o.Late.ExecutionID, "owner", o.Owner.ExecutionID, "verdict", string(o.Verdict))
	if a.cfg.Notify != nil {
		a.cfg.Notify(o)
	}
	return nil
}

// ID is the id of the record about two executions: the same for the same finding.
func ID(late, owner string, cause coordination.Cause) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(strings.Join([]string{"datalink overlap", late, owner, string(cause)}, "\x00"))).String()
}

// Settle looks again at executions that were closed as lost and not proven dead.
// Those that are proven dead now get their entry, and the open records about
// them are closed. It reports whether some are left.
func (a *Auditor) Settle(ctx context.Context, self coordination.Status) (left bool, err error) {
	journal, err := a.cfg.Store.Journal(ctx, self.TaskUID)
	if err != nil {
		return false, fmt.Errorf("audit: journal: %w", err)
	}
	ev, err := a.evidence(ctx, self.Place)
	if err != nil {
		return false, err
	}
	var overlaps []coordination.Overlap
	for _, e := range History(journal) {
		if e.Started.ExecutionID == self.ExecutionID {
			break
		}
		if e.Dead != nil || e.Lost == nil && e.Gone() || !e.Closed() {
			continue
		}
		p := Judge(&e, ev)
		if p.Reason == "" || p.Pending {
			left = true
			continue
		}
		if err := a.dead(ctx, &e, self.ExecutionID, p); err != nil {
			return false, err
		}
		if overlaps == nil {
			if overlaps, err = a.cfg.Store.Overlaps(ctx); err != nil {
				return false, fmt.Errorf("audit: overlaps: %w", err)
			}
		}
		if err := a.close(ctx, overlaps, &e, self, p); err != nil {
			return false, err
		}
	}
	return left, nil
}

func (a *Auditor) close(ctx context.Context, overlaps []coordination.Overlap, e *Execution, self coordination.Status, p Proof) error {
	for i := range overlaps {
		o := &overlaps[i]
		if o.Late.ExecutionID != e.Started.ExecutionID || !o.IsOpen() {
			continue
		}
		r := coordination.Resolution{
			ID: ID(o.ID, self.ExecutionID, "closed"), At: a.cfg.Now(), By: self.ExecutionID, Closes: true,
			What: fmt.Sprintf("proven dead: %s; keys written between %s and %s may hold its late writes: datalink verify %s --repair",
				p.Reason, o.From.UTC().Format(time.RFC3339), p.At.UTC().Format(time.RFC3339), o.Task),
		}
		if err := a.cfg.Store.Resolve(ctx, o.ID, r); err != nil {
			return fmt.Errorf("audit: close overlap %s: %w", o.ID, err)
		}
	}
	return nil
}
