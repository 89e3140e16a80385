package task

import (
	"fmt"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/sdk"
)

// Step says what follows when event e comes in state s. It is pure. Events that
// mean nothing in a phase (the outcome of something that was aborted) leave the
// state as it is.
func Step(s State, e Event) (State, []Effect) {
	if s.Phase.Final() {
		return s, nil
	}
	switch e.Kind {
	case EvStart:
		if s.Phase != New {
			return s, nil
		}
		s.Phase = Waiting
		return s, []Effect{{Kind: DoLook}}
	case EvStop:
		return stop(s, e)
	case EvLost:
		return lose(s, "the session with the coordination store has ended", false)
	case EvDeadline:
		return lose(s, "the coordination store has not answered for too long to be sure of the task, and a target is only idempotent", true)
	}
	switch s.Phase {
	case Waiting:
		return waiting(s, e)
	case Taking:
		return taking(s, e)
	case Retrying:
		switch {
		case e.Kind == EvTimer:
			s.Phase, s.Started, s.Opened, s.Reason, s.Fault = Starting, true, false, "", nil
			return s, []Effect{{Kind: DoShow}, {Kind: DoStart}}
		case e.Kind == EvFault && e.Fault.Code == sdk.CodeFenced: // a write to the store beside it
			return fault(s, e)
		}
	case Starting, Claiming, Opening, Running, Draining:
		return live(s, e)
	case Closing:
		return closing(s, e)
	}
	return s, nil
}

// waiting: nothing is owned yet.
func waiting(s State, e Event) (State, []Effect) {
	switch e.Kind {
	case EvFree:
		s.Phase, s.Reason = Taking, ""
		return s, []Effect{{Kind: DoTake}}
	case EvHeld:
		s.Reason = e.Text
	case EvTimer:
		return s, []Effect{{Kind: DoLook}}
	case EvFault:
		return again(s, e)
	}
	return s, nil
}

func taking(s State, e Event) (State, []Effect) {
	switch e.Kind {
	case EvTaken:
		s.Epoch, s.Tries = e.Epoch, 0
		if s.Lost { // the node went with the session
			return begin(s, Fenced)
		}
		if s.Goal != "" {
			return begin(s, s.Goal)
		}
		s.Phase, s.Started = Starting, true
		return s, []Effect{{Kind: DoShow}, {Kind: DoStart}}
	case EvHeld:
		if s.Lost {
			return finish(s, Fenced)
		}
		if s.Goal != "" {
			return finish(s, s.Goal)
		}
		s.Phase, s.Reason = Waiting, e.Text
		return s, []Effect{{Kind: DoLook}}
	case EvTimer:
		return s, []Effect{{Kind: DoTake}}
	case EvFault:
		if s.Lost {
			return finish(s, Fenced)
		}
		if s.Goal != "" && !retryable(e.Fault) {
			return finish(s, s.Goal)
		}
		return again(s, e) // with the same executionId: the take may have happened
	}
	return s, nil
}

// again repeats what the store did not answer, as long as that makes sense.
func again(s State, e Event) (State, []Effect) {
	s.Fault, s.Reason = e.Fault, e.Fault.Error()
	if s.Tries++; !retryable(e.Fault) || s.Tries >= s.Limits.tries() {
		return finish(s, Failed)
	}
	return s, []Effect{{Kind: DoTimer, Try: s.Tries}}
}

// live: the task is taken and connectors run.
func live(s State, e Event) (State, []Effect) {
	switch e.Kind {
	case EvProgress:
		s.Tries = 0
		return s, nil
	case EvGrace:
		if s.Goal == "" {
			return s, nil // of a close that is over
		}
		if s.Phase == Draining {
			s.Reason = "the grace period was over before all was written"
		}
		return kill(s, s.Goal)
	case EvFault:
		return fault(s, e)
	}
	switch s.Phase {
	case Starting:
		if e.Kind == EvStarted {
			s.Phase = Claiming
			return s, []Effect{{Kind: DoAudit}, {Kind: DoShow}, {Kind: DoClaim}}
		}
	case Claiming:
		switch e.Kind {
		case EvClaimed:
			s.Phase, s.Raises = Opening, 0
			return s, []Effect{{Kind: DoShow}, {Kind: DoRun}}
		case EvHigher:
			if s.Raises++; s.Raises > s.Limits.raises() {
				return fault(s, Event{Kind: EvFault, Fault: sdk.Faultf(sdk.CodeFenced,
					"a target holds a higher epoch (%d) than ours (%d) each time after we raised it, %d times now", e.Epoch, s.Epoch, s.Limits.raises()).
					Suggest("two copies of one coordination store seem to run this task: stop one of them")})
			}
			return s, []Effect{{Kind: DoRaise, Epoch: e.Epoch}}
		case EvRaised:
			s.Epoch = e.Epoch
			return s, []Effect{{Kind: DoClaim}}
		}
	case Opening:
		if e.Kind == EvOpened {
			s.Phase, s.Opened = Running, true
			return s, []Effect{{Kind: DoShow}}
		}
		return drained(s, e)
	case Running, Draining:
		return drained(s, e)
	}
	return s, nil
}

// drained: the pipeline has returned without a fault.
func drained(s State, e Event) (State, []Effect) {
	switch {
	case e.Kind == EvEnd && s.Goal == "":
		s.Reason = "the source has ended"
		return begin(s, Ended)
	case e.Kind == EvEnd || e.Kind == EvDrained && s.Goal != "":
		return begin(s, s.Goal)
	case e.Kind == EvDrained:
		return fault(s, Event{Kind: EvFault, Fault: sdk.Faultf(sdk.CodeInternal, "the pipeline stopped although nobody asked for it")})
	}
	return s, nil
}

// fault judges what went wrong while the task was owned.
func fault(s State, e Event) (State, []Effect) {
	f := e.Fault
	s.Unclear = s.Unclear || s.Opened
	asked := s.Goal // a stop was asked for
	if asked != "" && s.Phase != Draining {
		// What was being done was aborted for it; only a fence still matters.
		if f.Code != sdk.CodeFenced {
			return begin(s, asked)
		}
	}
	s.Fault, s.Reason = f, f.Error()
	if f.Code == sdk.CodeFenced {
		cause := e.Cause
		if cause == "" {
			cause = coordination.CauseFence
		}
		s.Told = true
		s, fx := begin(s, Fenced)
		return s, append([]Effect{{Kind: DoOverlap, Text: string(cause)}}, fx...)
	}
	if asked != "" {
		return begin(s, Failed)
	}
	if s.Tries++; retryable(f) && s.Tries < s.Limits.tries() {
		return begin(s, Retrying)
	}
	if retryable(f) {
		s.Reason = fmt.Sprintf("%d faults in a row without progress; the last: %s", s.Tries, s.Reason)
	}
	return begin(s, Failed)
}

// stop is asked for from outside.
func stop(s State, e Event) (State, []Effect) {
	want := e.Want
	if want != Paused {
		want = Ended
	}
	switch s.Phase {
	case New, Waiting:
		s.Reason = e.Text
		return finish(s, want)
	case Taking:
		if s.Goal == "" {
			s.Goal, s.Reason = want, e.Text
		}
		return s, nil // the take may have happened: its answer decides
	case Starting, Claiming, Opening:
		if s.Goal != "" {
			return s, nil
		}
		s.Goal, s.Reason = want, e.Text
		return s, []Effect{{Kind: DoAbort}, {Kind: DoGrace}}
	case Running:
		s.Phase, s.Goal, s.Reason = Draining, want, e.Text
		return s, []Effect{{Kind: DoShow}, {Kind: DoStop}, {Kind: DoGrace}}
	case Retrying:
		s.Reason, s.Closed = e.Text, true
		return begin(s, want)
	case Closing:
		if s.Goal == Retrying {
			s.Goal, s.Reason, s.Fault = want, e.Text, nil
		}
	}
	return s, nil
}

// lose: the task is another's, or may be.
func lose(s State, reason string, hard bool) (State, []Effect) {
	if s.Lost {
		return s, nil
	}
	s.Lost = true
	s.Unclear = s.Unclear || s.Opened && !s.Closed
	switch s.Phase {
	case New, Waiting:
		s.Reason = reason
		return finish(s, Fenced)
	case Taking:
		s.Reason = reason
		return s, nil
	case Closing:
		if s.Goal == Retrying {
			s.Goal, s.Reason = Fenced, reason
		}
		if hard && !s.Closed && !s.Killed {
			s.Killed = true
			return s, []Effect{{Kind: DoKill}}
		}
		return s, nil
	case Retrying:
		s.Reason, s.Closed = reason, true
		return begin(s, Fenced)
	}
	s.Reason = reason
	if hard {
		return kill(s, Fenced)
	}
	s, fx := begin(s, Fenced)
	return s, append([]Effect{{Kind: DoAbort}}, fx...)
}

// kill ends everything at once.
func kill(s State, goal Phase) (State, []Effect) {
	s.Killed, s.Unclear = true, s.Unclear || s.Opened
	s, fx := begin(s, goal)
	return s, append([]Effect{{Kind: DoKill}}, fx...)
}

// begin starts closing for a goal.
func begin(s State, goal Phase) (State, []Effect) {
	s.Phase, s.Goal = Closing, goal
	if !s.Started || s.Closed {
		s.Closed, s.Tries = true, 0
		return giveUp(s)
	}
	fx := []Effect{{Kind: DoShow}}
	if !s.Killed {
		fx = append(fx, Effect{Kind: DoGrace})
	}
	return s, append(fx, Effect{Kind: DoClose})
}

func closing(s State, e Event) (State, []Effect) {
	switch e.Kind {
	case EvGrace:
		if s.Closed || s.Killed {
			return s, nil
		}
		s.Killed = true
		return s, []Effect{{Kind: DoKill}}
	case EvClosed:
		if s.Closed {
			return s, nil
		}
		s.Closed, s.Started = true, false
		if s.Goal == Retrying {
			s.Phase, s.Goal, s.Closed, s.Killed = Retrying, "", false, false
			return s, []Effect{{Kind: DoShow}, {Kind: DoTimer, Try: s.Tries}}
		}
		s.Tries = 0
		return giveUp(s)
	case EvWritten:
		s.Written, s.Tries = true, 0
		return s, []Effect{{Kind: DoRelease}}
	case EvReleased:
		return finish(s, s.Goal)
	case EvTimer:
		switch {
		case s.Written:
			return s, []Effect{{Kind: DoRelease}}
		case s.Closed:
			return giveUp(s)
		}
	case EvFault:
		if !s.Closed && s.Lost && !s.Told && e.Fault.Code == sdk.CodeFenced && e.Cause == "" {
			// The session went first, and still a target refused a write.
			s.Told = true
			return s, []Effect{{Kind: DoOverlap, Text: string(coordination.CauseFence)}}
		}
		if !s.Closed || e.Cause != "" {
			return s, nil // of what was aborted, or of a write beside it: the release tells
		}
		return unreleased(s, e)
	}
	return s, nil
}

// unreleased: the end could not be written, or the status node is another's.
func unreleased(s State, e Event) (State, []Effect) {
	if e.Fault.Code == sdk.CodeFenced {
		s.Fault, s.Reason = e.Fault, e.Fault.Error()
		overlap := Effect{Kind: DoOverlap, Text: string(coordination.CauseStatus)}
		s, fx := finish(s, Fenced)
		return s, append([]Effect{overlap}, fx...)
	}
	if s.Tries++; retryable(e.Fault) && s.Tries < s.Limits.tries() {
		return s, []Effect{{Kind: DoTimer, Try: s.Tries}}
	}
	s.Reason = fmt.Sprintf("%s; the task could not be given up: %s", s.Reason, e.Fault.Error())
	return finish(s, s.Goal)
}

func giveUp(s State) (State, []Effect) {
	reason := string(s.Goal)
	if s.Reason != "" {
		reason += ": " + s.Reason
	}
	return s, []Effect{{Kind: DoEnd, Text: reason, Unclear: s.Unclear}}
}

func finish(s State, goal Phase) (State, []Effect) {
	s.Phase, s.Goal = goal, ""
	return s, []Effect{{Kind: DoFinish}}
}

// retryable reports whether trying again may help without anybody doing something.
func retryable(f *sdk.Fault) bool {
	if f == nil {
		return false
	}
	switch f.Code {
	case sdk.CodeUnavailable, sdk.CodeDeadline, sdk.CodeInternal, sdk.CodeCommitUnknown:
		return true
	}
	return f.Retryable
}
