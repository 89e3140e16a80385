package audit

import (
	"time"

	"github.com/datalink-go/datalink/coordination"
)

// Execution is what the journal tells of one execution.
type Execution struct {
	Started coordination.Entry
	Mark    *coordination.Entry // last one
	Ended   *coordination.Entry
	Lost    *coordination.Entry
	Dead    *coordination.Entry
	Epoch   uint64 // the last one it raised to
}

// Closed reports whether somebody said that it is over.
func (e *Execution) Closed() bool { return e.Ended != nil || e.Lost != nil }

// Gone reports whether it is certain that nothing of it lives.
func (e *Execution) Gone() bool {
	return e.Dead != nil || e.Ended != nil && !e.Ended.Unanswered
}

// Positions are the last ones that the journal knows of.
func (e *Execution) Positions() []coordination.Mark {
	switch {
	case e.Ended != nil && len(e.Ended.Positions) > 0:
		return e.Ended.Positions
	case e.Mark != nil:
		return e.Mark.Positions
	}
	return e.Started.Positions
}

// LastSeen is when the journal last heard of it.
func (e *Execution) LastSeen() time.Time {
	switch {
	case e.Ended != nil:
		return e.Ended.At
	case e.Mark != nil:
		return e.Mark.At
	}
	return e.Started.At
}

// History groups a journal by execution, in the order of their starts. Entries
// whose start was trimmed are left out.
func History(journal []coordination.Entry) []Execution {
	var out []Execution
	at := map[string]int{}
	for i := range journal {
		e := &journal[i]
		if e.Kind == coordination.EntryStarted {
			at[e.ExecutionID] = len(out)
			out = append(out, Execution{Started: *e, Epoch: e.Epoch})
			continue
		}
		n, ok := at[e.ExecutionID]
		if !ok {
			continue
		}
		x := &out[n]
		switch e.Kind {
		case coordination.EntryMark:
			x.Mark = e
		case coordination.EntryEnded:
			x.Ended = e
		case coordination.EntryLost:
			x.Lost = e
		case coordination.EntryDead:
			x.Dead = e
		case coordination.EntryRaised:
			x.Epoch = max(x.Epoch, e.Epoch)
		}
	}
	return out
}
