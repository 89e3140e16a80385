package cluster

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// State is what the leader remembers between two looks; a new leader begins with
// the zero value.
type State struct {
	Away  map[string]time.Time // since when a worker with tasks is not there
	Moved map[string]time.Time // when a task was last given to another worker
	Done  map[string]string    // group → rebalance request that was served
}

// View is what the leader sees.
type View struct {
	Now     time.Time
	Members []Present
	Tasks   []Task            // wanted ones; Settled is Step's
	Plan    map[string]string // task → worker
	Even    map[string]string // group → rebalance request
	Config  Config
}

// Present is a worker that is there.
type Present struct {
	ID      string
	Groups  []string
	Has     map[string]bool
	Leaving bool // by itself, or drained
}

// Config says how patient the leader is.
type Config struct {
	// Grace is how long a worker that is gone keeps its tasks, for a restart.
	Grace time.Duration
	// Settle is how long a task that moved is not moved again for balance.
	Settle time.Duration
}

// Outcome is what the leader does after a look.
type Outcome struct {
	Plan    Plan
	Changed []string      // workers whose tasks change, in order
	Next    time.Duration // look again after it at the latest; 0 = at the next change
}

// Step judges what the leader sees. It is pure.
func Step(s State, v View) (State, Outcome) {
	next := State{Away: map[string]time.Time{}, Moved: map[string]time.Time{}, Done: map[string]string{}}
	in := Input{Plan: v.Plan, Even: map[string]bool{}}
	there := map[string]bool{}
	for _, m := range v.Members {
		there[m.ID] = true
		in.Workers = append(in.Workers, Worker{ID: m.ID, Groups: m.Groups, Has: m.Has, Leaving: m.Leaving})
	}
	var wake []time.Time
	wanted := map[string]bool{}
	for _, t := range v.Tasks {
		wanted[t.Name] = true
		if w := v.Plan[t.Name]; w != "" && !there[w] {
			since, known := s.Away[w]
			if !known {
				since = v.Now
			}
			next.Away[w] = since
		}
	}
	for w, since := range next.Away {
		if until := since.Add(v.Config.Grace); v.Now.Before(until) {
			in.Workers = append(in.Workers, Worker{ID: w, Away: true})
			wake = append(wake, until)
		}
	}
	for g, id := range v.Even {
		next.Done[g] = id
		in.Even[g] = s.Done[g] != id
	}
	in.Tasks = slices.Clone(v.Tasks)
	for i := range in.Tasks {
		t := &in.Tasks[i]
		t.Weight = max(t.Weight, Unit)
		if at, ok := s.Moved[t.Name]; ok && v.Now.Before(at.Add(v.Config.Settle)) {
			next.Moved[t.Name] = at
			t.Settled = true
			wake = append(wake, at.Add(v.Config.Settle))
		}
	}
	out := Outcome{Plan: Assign(in)}
	changed := map[string]bool{}
	for name, w := range v.Plan {
		if out.Plan.Place[name] != w {
			changed[w] = true
		}
	}
	for name, w := range out.Plan.Place {
		if old := v.Plan[name]; old != w {
			changed[w] = true
			if old != "" {
				next.Moved[name] = v.Now
			}
		}
	}
	out.Changed = slices.Sorted(maps.Keys(changed))
	if len(wake) > 0 {
		first := slices.MinFunc(wake, func(a, b time.Time) int { return a.Compare(b) })
		out.Next = max(first.Sub(v.Now), time.Millisecond)
	}
	return next, out
}

// Of returns the tasks of a worker in a plan, by name.
func (p Plan) Of(worker string) []string {
	var out []string
	for name, w := range p.Place {
		if w == worker {
			out = append(out, name)
		}
	}
	slices.SortFunc(out, cmp.Compare[string])
	return out
}

// Weight is what a task weighs for its rate (records a second) and lag: in powers
// of two, so that small changes move nothing.
func Weight(rate float64, lag time.Duration) int {
	w := Unit
	for step := 1000.0; rate >= step && w < 64*Unit; step *= 2 {
		w *= 2
	}
	if lag > time.Minute && w < 64*Unit { // it will catch up as fast as it can
		w *= 2
	}
	return w
}

// Groups parts a worker's group setting.
func Groups(text string) []string {
	var out []string
	for g := range strings.SplitSeq(text, ",") {
		if g = strings.TrimSpace(g); g != "" {
			out = append(out, g)
		}
	}
	if len(out) == 0 {
		return []string{DefaultGroup}
	}
	return out
}

// DefaultGroup is the group of tasks and workers that name none.
const DefaultGroup = "default"
