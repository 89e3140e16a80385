package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Unit is the weight of a task that does nothing. Rates add to it.
const Unit = 10

// Worker is a worker as Assign sees it.
type Worker struct {
	ID     string
	Groups []string
	// Has are the plugins it can start: NAME, and NAME@SHA256 for each digest.
	Has map[string]bool
	// Away: it is not there, but is waited for; it keeps what it has and gets
	// nothing more.
	Away bool
	// Leaving: it hands over all it has.
	Leaving bool
}

// Task is a task as Assign sees it.
type Task struct {
	Name    string
	Group   string
	Needs   []string // in the form of Worker.Has
	Weight  int      // Unit at least
	Settled bool     // it is not to be moved for balance now
}

// Input is all that an assignment follows from.
type Input struct {
	Workers []Worker
	Tasks   []Task
	Plan    map[string]string // task → worker, as it is
	// Even lists groups whose load is to be made as even as can be, whatever is
	// settled.
	Even map[string]bool
}

// Plan is an assignment.
type Plan struct {
	Place    map[string]string // task → worker
	Unplaced map[string]string // task → why
}

// slack is the unevenness that is not worth a move, as a part of the mean load.
const slackPart = 10

// loaded is a worker with what it has so far.
type loaded struct {
	*Worker
	load  int
	tasks []*Task // movable ones
}

// Assign places tasks: who can stay stays, the others go where least is to do, then
// load is evened out by single moves. The result does not depend on the order of
// workers and tasks.
func Assign(in Input) Plan {
	p := Plan{Place: make(map[string]string, len(in.Tasks)), Unplaced: map[string]string{}}
	ws := make([]*loaded, len(in.Workers))
	for i := range in.Workers {
		ws[i] = &loaded{Worker: &in.Workers[i]}
	}
	slices.SortFunc(ws, func(a, b *loaded) int { return strings.Compare(a.ID, b.ID) })
	by := make(map[string]*loaded, len(ws))
	for _, w := range ws {
		by[w.ID] = w
	}
	e := &eligible{workers: ws, by: map[string]*choice{}}
	tasks := make([]*Task, len(in.Tasks))
	for i := range in.Tasks {
		tasks[i] = &in.Tasks[i]
	}
	slices.SortFunc(tasks, func(a, b *Task) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(a.Name, b.Name))
	})
	var homeless []*Task
	for _, t := range tasks {
		w := by[in.Plan[t.Name]]
		switch {
		case w != nil && (w.Away || !w.Leaving && e.of(t).may[w.ID]):
			p.Place[t.Name] = w.ID
			w.load += t.Weight
			if !w.Away && (!t.Settled || in.Even[t.Group]) {
				w.tasks = append(w.tasks, t)
			}
		default:
			homeless = append(homeless, t)
		}
	}
	for _, t := range homeless {
		c := e.of(t)
		if len(c.workers) == 0 {
			if w := by[in.Plan[t.Name]]; w != nil && w.Leaving {
				p.Place[t.Name] = w.ID // until it is gone: nobody else can have it
			}
			p.Unplaced[t.Name] = c.why
			continue
		}
		least := c.workers[0]
		for _, w := range c.workers[1:] {
			if w.load < least.load {
				least = w
			}
		}
		p.Place[t.Name] = least.ID
		least.load += t.Weight
		least.tasks = append(least.tasks, t)
	}
	even(in, e, ws, p)
	return p
}

// even moves single tasks from fuller to emptier workers as long as that is worth it.
func even(in Input, e *eligible, ws []*loaded, p Plan) {
	var live []*loaded
	total := 0
	for _, w := range ws {
		if !w.Away && !w.Leaving {
			live = append(live, w)
			total += w.load
		}
	}
	if len(live) < 2 {
		return
	}
	slack := total / len(live) / slackPart
	for range 4 * len(in.Tasks) { // each move lessens the sum of squares; the bound is for peace of mind
		slices.SortFunc(live, func(a, b *loaded) int { return cmp.Or(cmp.Compare(b.load, a.load), strings.Compare(a.ID, b.ID)) })
		if !moveOne(in, e, live, slack, p) {
			return
		}
	}
}

// moveOne makes the first move that is worth it, from the fullest on; live is in
// falling order of load.
func moveOne(in Input, e *eligible, live []*loaded, slack int, p Plan) bool {
	for _, from := range live {
		for i := len(live) - 1; i >= 0; i-- {
			to := live[i]
			gap := from.load - to.load
			if gap <= Unit {
				break // the others are fuller still
			}
			best := -1
			for k, t := range from.tasks {
				s := slack
				if in.Even[t.Group] {
					s = 0
				}
				if gap > t.Weight+s && (best < 0 || t.Weight > from.tasks[best].Weight) && e.of(t).may[to.ID] {
					best = k
				}
			}
			if best < 0 {
				continue
			}
			t := from.tasks[best]
			from.tasks = slices.Delete(from.tasks, best, best+1)
			to.tasks = append(to.tasks, t)
			from.load -= t.Weight
			to.load += t.Weight
			p.Place[t.Name] = to.ID
			return true
		}
	}
	return false
}

// eligible answers which workers may have a task; tasks of one group with the same
// needs share the answer.
type eligible struct {
	workers []*loaded
	by      map[string]*choice
}

type choice struct {
	workers []*loaded
	may     map[string]bool
	why     string // there is none
}

func (e *eligible) of(t *Task) *choice {
	key := t.Group + "\x00" + strings.Join(t.Needs, "\x00")
	if c := e.by[key]; c != nil {
		return c
	}
	c := &choice{may: map[string]bool{}}
	inGroup, lacks := 0, ""
	for _, w := range e.workers {
		if w.Away || w.Leaving || !slices.Contains(w.Groups, t.Group) {
			continue
		}
		inGroup++
		if miss := slices.IndexFunc(t.Needs, func(n string) bool { return !w.Has[n] }); miss >= 0 {
			lacks = fmt.Sprintf("worker %s has no plugin %s", w.ID, t.Needs[miss])
			continue
		}
		c.workers = append(c.workers, w)
		c.may[w.ID] = true
	}
	switch {
	case len(c.workers) > 0:
	case inGroup == 0:
		c.why = fmt.Sprintf("no worker of group %q is there to run it", t.Group)
	default:
		c.why = fmt.Sprintf("no worker of group %q can run it: %s; install it there", t.Group, lacks)
	}
	e.by[key] = c
	return c
}
