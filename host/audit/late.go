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
	if e := ownerOf(History(journal), l); e != nil {
		o.Owner, o.From = a.party(&e.Started, max(e.Epoch, l.Other.Epoch)), e.Started.At
	}
	if o.Done == "" {
		o.Done = "the late execution was stopped"
	}
	return a.record(ctx, o)
}

// ownerOf finds the execution that was named; where nobody named one, the last that
// began after the late one. Nil: the journal does not know it.
func ownerOf(history []Execution, l Late) *Execution {
	var found *Execution
	after := false
	for i := range history {
		e := &history[i]
		switch id := e.Started.ExecutionID; {
		case id == l.Self.ExecutionID:
			after = true
		case l.Other.ExecutionID == "" && after, l.Other.ExecutionID != "" && id == l.Other.ExecutionID:
			found = e
		}
	}
	return found
}
