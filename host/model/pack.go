package model

import (
	"slices"

	"github.com/datalink-go/datalink/host/task"
)

// life is a task.State without its texts, which decide nothing: small, and equal
// where the state is.
type life struct {
	phase, goal   uint8
	epoch         uint8
	raises, tries uint8
	flags         uint8
}

var phases = []task.Phase{
	task.New, task.Waiting, task.Taking, task.Starting, task.Claiming, task.Opening, task.Running, task.Draining,
	task.Closing, task.Retrying, task.Ended, task.Paused, task.Failed, task.Fenced,
}

var effects = []task.EffectKind{
	"", task.DoLook, task.DoTake, task.DoAudit, task.DoStart, task.DoClaim, task.DoRaise, task.DoRun, task.DoClose, task.DoOverlap, task.DoEnd, task.DoRelease,
}

var limits = task.Limits{Tries: 2, Raises: 2}

func place[T comparable](all []T, v T) uint8 {
	i := slices.Index(all, v)
	if i < 0 {
		panic("a phase or effect that the model does not know")
	}
	return uint8(i)
}

func pack(s task.State) life {
	l := life{phase: place(phases, s.Phase), goal: place(phases, s.Goal), epoch: uint8(s.Epoch), raises: uint8(s.Raises), tries: uint8(s.Tries)}
	for i, f := range []bool{s.Closed, s.Written, s.Opened, s.Started, s.Lost, s.Killed, s.Told, s.Unclear} {
		if f {
			l.flags |= 1 << i
		}
	}
	return l
}

func (l life) unpack() task.State {
	is := func(i int) bool { return l.flags&(1<<i) != 0 }
	return task.State{
		Phase: phases[l.phase], Goal: phases[l.goal], Epoch: uint64(l.epoch), Raises: int(l.raises), Tries: int(l.tries),
		Closed: is(0), Written: is(1), Opened: is(2), Started: is(3), Lost: is(4), Killed: is(5), Told: is(6), Unclear: is(7),
		Limits: limits,
	}
}

func (l life) in(p task.Phase) bool { return phases[l.phase] == p }
