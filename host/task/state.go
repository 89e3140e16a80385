package task

import (
	"fmt"
	"strings"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/sdk"
)

// Phase is where in its life cycle a task is on this worker.
type Phase string

// The phases. The last four are final.
const (
	New      Phase = ""
	Waiting  Phase = "waiting"  // another execution has the task, or the store does not answer
	Taking   Phase = "taking"   // the store was asked for it
	Starting Phase = "starting" // connectors are being started and checked
	Claiming Phase = "claiming" // targets are being claimed
	Opening  Phase = "opening"  // the reader is being opened at the targets' progress
	Running  Phase = "running"
	Draining Phase = "draining" // reading has stopped, what was read is being written
	Closing  Phase = "closing"  // connectors are being closed, then the task is given up
	Retrying Phase = "retrying" // a retryable fault; the task is kept meanwhile
	Ended    Phase = "ended"    // the source has ended, or a stop was asked for
	Paused   Phase = "paused"
	Failed   Phase = "failed"
	Fenced   Phase = "fenced" // another execution owns the task or may own it
)

// Final reports whether nothing follows.
func (p Phase) Final() bool { return p == Ended || p == Paused || p == Failed || p == Fenced }

// State is all that Step knows of a task.
type State struct {
	Phase   Phase
	Goal    Phase // while Closing: what follows; else Ended or Paused once a stop was asked for
	Reason  string
	Fault   *sdk.Fault // that led to Failed, Fenced or Retrying
	Epoch   uint64     // 0 = not taken
	Raises  int        // since the last opening
	Tries   int        // faults in a row without progress
	Closed  bool       // while Closing: the connectors are gone
	Written bool       // while Closing: the end is in the journal
	Opened  bool       // the reader opened in this try
	Started bool       // connectors may live
	Lost    bool       // the session, or the certainty about it
	Killed  bool
	Told    bool // a refused write is in the audit
	Unclear bool // a write was given up before it was answered
	Limits  Limits
}

// Limits bound what is tried again.
type Limits struct {
	Tries  int // faults in a row without progress; 0 = 20
	Raises int // above what targets hold, in a row; 0 = 8
}

func (l Limits) tries() int {
	if l.Tries == 0 {
		return 20
	}
	return l.Tries
}

func (l Limits) raises() int {
	if l.Raises == 0 {
		return 8
	}
	return l.Raises
}

// EventKind is what happened.
type EventKind string

// The events. The first four come from outside, the others are the outcomes of
// effects.
const (
	EvStart    EventKind = "start"    // the task is to run here
	EvStop     EventKind = "stop"     // Want says whether it is Ended or Paused then
	EvLost     EventKind = "lost"     // the session has ended
	EvDeadline EventKind = "deadline" // the lease is no longer certain and a target is only idempotent
	EvFree     EventKind = "free"     // no status node, or one that may be replaced
	EvHeld     EventKind = "held"     // by another; Text says by whom
	EvTaken    EventKind = "taken"    // Epoch
	EvStarted  EventKind = "started"
	EvClaimed  EventKind = "claimed" // all writers
	EvHigher   EventKind = "higher"  // a target of this store and task holds Epoch
	EvRaised   EventKind = "raised"  // Epoch
	EvOpened   EventKind = "opened"
	EvProgress EventKind = "progress" // something became durable
	EvEnd      EventKind = "end"      // the source has ended, all is written
	EvDrained  EventKind = "drained"  // reading was stopped, all is written
	EvFault    EventKind = "fault"    // an effect was in vain: Fault, Cause where it shows an overlap
	EvGrace    EventKind = "grace"    // the grace period is over
	EvClosed   EventKind = "closed"   // all connectors are gone
	EvWritten  EventKind = "written"  // the end is in the journal
	EvReleased EventKind = "released"
	EvTimer    EventKind = "timer" // the back-off is over
)

// Event is one thing that happened.
type Event struct {
	Kind  EventKind
	Epoch uint64
	Want  Phase
	Text  string
	Fault *sdk.Fault
	Cause coordination.Cause
}

// String is the form that transcripts have.
func (e Event) String() string {
	var b strings.Builder
	b.WriteString(string(e.Kind))
	if e.Epoch != 0 {
		fmt.Fprintf(&b, " %d", e.Epoch)
	}
	if e.Want != "" {
		fmt.Fprintf(&b, " %s", e.Want)
	}
	if e.Cause != "" {
		fmt.Fprintf(&b, " cause=%s", e.Cause)
	}
	if e.Fault != nil {
		fmt.Fprintf(&b, " %s %q", e.Fault.Code, e.Fault.Message)
	}
	if e.Text != "" {
		fmt.Fprintf(&b, " %q", e.Text)
	}
	return b.String()
}

// EffectKind is what is to be done.
type EffectKind string

// The effects. Those marked † take time and are done one after the other, in
// order; the others at once.
const (
	DoLook    EffectKind = "look"    // † read the status node; wait for a change while it is held
	DoTake    EffectKind = "take"    // †
	DoAudit   EffectKind = "audit"   // † close predecessors
	DoStart   EffectKind = "start"   // † start and check the connectors
	DoClaim   EffectKind = "claim"   // † every writer
	DoRaise   EffectKind = "raise"   // † the epoch above Epoch
	DoRun     EffectKind = "run"     // † the pipeline, until it returns
	DoStop    EffectKind = "stop"    // reading
	DoAbort   EffectKind = "abort"   // cancel what is being done
	DoGrace   EffectKind = "grace"   // start the grace period
	DoKill    EffectKind = "kill"    // cancel, and kill every connector's process group
	DoClose   EffectKind = "close"   // † close the connectors
	DoOverlap EffectKind = "overlap" // † record it; Text is the cause
	DoEnd     EffectKind = "end"     // † append "ended"; Text is the reason
	DoRelease EffectKind = "release" // †
	DoTimer   EffectKind = "timer"   // after the back-off of try Try
	DoShow    EffectKind = "show"    // the phase, in the status node
	DoFinish  EffectKind = "finish"  // nothing follows
)

// Effect is one thing to do.
type Effect struct {
	Kind    EffectKind
	Epoch   uint64
	Try     int
	Text    string
	Unclear bool // of DoEnd: see State
}

// String is the form that transcripts have.
func (e Effect) String() string {
	s := string(e.Kind)
	if e.Epoch != 0 {
		s += fmt.Sprintf(" %d", e.Epoch)
	}
	if e.Try != 0 {
		s += fmt.Sprintf(" try %d", e.Try)
	}
	if e.Text != "" {
		s += fmt.Sprintf(" %q", e.Text)
	}
	if e.Unclear {
		s += " unclear"
	}
	return s
}
