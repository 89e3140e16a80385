package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/datalink-go/datalink/coordination"
)

// Late is what an execution has to tell when it learns that another owns its task.
type Late struct {
	Cause  coordination.Cause
	Self   coordination.Status
	Other  coordination.Party // as far as the fence or the store named it
	LastOK time.Time          // when a write was last acknowledged; zero = none was
	Detail string             // the message of the refusal
	Done   string
	Tables []string
	// Writers with their counts; From is the last acknowledged position, To the
	// last one read.
	Writers []coordination.OverlapWriter
	Levels  []Writer
}

// Late records a certain overlap in this process's own store, also where the
// other execution belongs to another store. What the own journal knows of the
// other execution is filled in.
func (a *Auditor) Late(ctx context.Context, l Late) error {
	now := a.cfg.Now()
	o := coordination.Overlap{
		Task: l.Self.Task, TaskUID: l.Self.TaskUID, Cause: l.Cause,
		Late:  coordination.Party{ExecutionID: l.Self.ExecutionID, Epoch: l.Self.Epoch, Worker: l.Self.Worker, Host: l.Self.Host, StoreUID: a.cfg.Store.UID(), TaskUID: l.Self.TaskUID},
		Owner: l.Other, By: l.Self.ExecutionID, At: now, From: l.LastOK, To: now,
		Tables: l.Tables, Writers: l.Writers, Verdict: VerdictOf(l.Levels), Done: l.Done, Detail: l.Detail,
	}
	if o.From.IsZero() {
		o.From = l.Self.StartedAt
	}
	journal, err := a.cfg.Store.Journal(ctx, l.Self.TaskUID)
	if err != nil {
		return fmt.Errorf("audit: journal: %w", err)
	}
	own := false
	for _, e := range History(journal) {
		own = own || e.Started.ExecutionID == l.Self.ExecutionID
		found := e.Started.ExecutionID == o.Owner.ExecutionID
		// Where nobody named the other, it is the last one that began after us.
		if !found && !(o.Owner.ExecutionID == "" && own && e.Started.ExecutionID != l.Self.ExecutionID) {
			continue
		}
		p := a.party(&e.Started, e.Epoch)
		if found {
			p.Epoch = max(p.Epoch, o.Owner.Epoch)
		}
		o.Owner, o.From = p, e.Started.At
		if found {
			break
		}
	}
	if o.Done == "" {
		o.Done = "the late execution was stopped"
	}
	return a.record(ctx, o)
}
