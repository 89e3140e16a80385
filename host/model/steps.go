package model

import (
	"fmt"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/host/task"
	"github.com/datalink-go/datalink/sdk"
)

// next is one step that is possible.
type next struct {
	label string
	w     world
}

// steps lists all that can happen in a world.
func (c *Config) steps(w *world) []next {
	var out []next
	try := func(label string, f func(*world) bool) {
		v := *w
		if f(&v) {
			out = append(out, next{label, v})
		}
	}
	for i := range c.Workers {
		name := string(rune('A' + i))
		p := &w.workers[i]
		if !p.alive {
			try(name+" starts", func(v *world) bool { return c.start(v, i) })
			continue
		}
		if c.Crash > 0 && w.crash > 0 {
			try(name+" crashes", func(v *world) bool { v.crash--; v.end(i); return true })
		}
		if !p.expired && w.expire > 0 && p.st.epoch > 0 {
			try("the session of "+name+" expires", func(v *world) bool {
				v.expire--
				v.workers[i].expired = true
				if v.owner == v.workers[i].exec {
					v.owner, v.ownerEpoch = 0, 0
				}
				return true
			})
		}
		if p.expired && !p.told {
			try(name+" learns that its session has ended", func(v *world) bool {
				v.workers[i].told = true
				c.event(v, i, task.Event{Kind: task.EvLost})
				return true
			})
		}
		if w.stops > 0 && p.st.in(task.Running) {
			try(name+" is asked to stop", func(v *world) bool {
				v.stops--
				c.event(v, i, task.Event{Kind: task.EvStop, Want: task.Ended})
				return true
			})
		}
		if p.timer {
			try(name+" tries again", func(v *world) bool {
				v.workers[i].timer = false
				c.event(v, i, task.Event{Kind: task.EvTimer})
				return true
			})
		}
		if p.n > 0 {
			out = c.slow(out, w, i, name)
		}
	}
	for i := range w.nFlight {
		f := w.flights[i]
		try(fmt.Sprintf("%s of execution %d arrives", f, f.exec), func(v *world) bool { return c.arrive(v, i) })
	}
	for e := uint8(1); e <= w.execs; e++ {
		if w.dead&(w.lost|w.unclear)&^w.proven&(1<<e) != 0 && !w.flying(e) {
			try(fmt.Sprintf("execution %d is proven dead", e), func(v *world) bool { v.proven |= 1 << e; return true })
		}
	}
	return out
}

// flying reports whether something that an execution sent may still arrive.
func (w *world) flying(exec uint8) bool {
	for i := range w.nFlight {
		if w.flights[i].exec == exec {
			return true
		}
	}
	return false
}

func (c *Config) start(w *world, i int) bool {
	first := true
	for e := uint8(1); e <= w.execs; e++ {
		first = first && w.by(e) != i
	}
	if !first {
		if w.again == 0 {
			return false
		}
		w.again--
	}
	if w.execs+1 >= maxExecs {
		return false
	}
	w.execs++
	w.workers[i] = worker{alive: true, exec: w.execs, st: pack(task.State{})}
	w.runs[w.execs] = uint8(i)
	c.event(w, i, task.Event{Kind: task.EvStart})
	return true
}

func (w *world) by(exec uint8) int { return int(w.runs[exec]) }

// end takes a worker's process away; what it sent stays.
func (w *world) end(i int) {
	p := &w.workers[i]
	w.dead |= 1 << p.exec
	if p.owes && !p.expired {
		p.owes = false // it had no time to tell
	}
	if w.owner == p.exec { // the node stays until the session expires, which costs nothing here
		w.owner, w.ownerEpoch = 0, 0
	}
	*p = worker{}
}

// event feeds the worker's machine and performs the quick effects.
func (c *Config) event(w *world, i int, e task.Event) {
	p := &w.workers[i]
	st, fx := task.Step(p.st.unpack(), e)
	p.st = pack(st)
	for _, f := range fx {
		switch f.Kind {
		case task.DoShow, task.DoGrace, task.DoStop:
		case task.DoAbort:
			p.aborted = true
		case task.DoKill:
			p.aborted = true
			w.hangUp(p)
		case task.DoTimer:
			p.timer = true
		case task.DoFinish:
			if p.owes {
				w.fail("execution %d ended without a record of its refused write", p.exec)
			}
			w.end(i)
			return
		default:
			p.todo[p.n] = do{place(effects, f.Kind), uint8(f.Epoch), f.Unclear}
			p.n++
		}
	}
	// What concerns nobody else is no step of its own: there are enough without.
	if p.n == 1 && p.todo[0].is(task.DoStart) && !p.aborted {
		p.done()
		c.event(w, i, task.Event{Kind: task.EvStarted})
	}
	if p.n == 1 && p.todo[0].is(task.DoRun) && !p.aborted && !p.opened {
		p.opened = true
		c.event(w, i, task.Event{Kind: task.EvOpened})
	}
}

func (w *world) fail(format string, args ...any) {
	if w.broken == "" {
		w.broken = fmt.Sprintf(format, args...)
	}
}

// done takes the slow effect at work off the list.
func (p *worker) done() {
	copy(p.todo[:], p.todo[1:p.n])
	p.n--
	p.todo[p.n] = do{}
	p.claimed, p.repair = 0, 0
}

var (
	away   = sdk.Faultf(sdk.CodeUnavailable, "no answer")
	behind = sdk.Faultf(sdk.CodeFenced, "another execution claimed")
)

// slow performs one step of the slow effect at work.
func (c *Config) slow(out []next, w *world, i int, name string) []next {
	step := func(label string, f func(v *world, p *worker) bool) {
		v := *w
		if f(&v, &v.workers[i]) {
			out = append(out, next{name + " " + label, v})
		}
	}
	answer := func(v *world, e task.Event) bool {
		v.workers[i].done()
		c.event(v, i, e)
		return true
	}
	fault := func(v *world, f *sdk.Fault, cause coordination.Cause) bool {
		return answer(v, task.Event{Kind: task.EvFault, Fault: f, Cause: cause})
	}
	p := &w.workers[i]
	at := p.todo[0]
	switch effects[at.kind] {
	case task.DoAudit, task.DoStart, task.DoClaim, task.DoRaise, task.DoRun:
		if p.aborted {
			step("gives "+string(effects[at.kind])+" up", func(v *world, p *worker) bool {
				f := away
				if p.claimed == refused { // its pipeline says why it failed
					f = behind
				}
				v.hangUp(p)
				return fault(v, f, "")
			})
			return out
		}
	}
	switch effects[at.kind] {
	case task.DoLook:
		step("sees no owner", func(v *world, p *worker) bool { return v.owner == 0 && answer(v, task.Event{Kind: task.EvFree}) })
	case task.DoTake:
		step("takes the task", func(v *world, p *worker) bool {
			switch {
			case p.expired:
				p.told = true
				c.event(v, i, task.Event{Kind: task.EvLost})
				return !v.workers[i].alive || fault(v, away, "")
			case v.owner != 0:
				return answer(v, task.Event{Kind: task.EvHeld})
			}
			v.epoch++
			v.owner, v.ownerEpoch = p.exec, v.epoch
			v.started |= 1 << p.exec
			return answer(v, task.Event{Kind: task.EvTaken, Epoch: uint64(v.epoch)})
		})
	case task.DoAudit:
		step("closes its predecessors", func(v *world, p *worker) bool {
			open := v.started &^ v.ended &^ v.lost &^ (1 << p.exec)
			v.lost |= open
			v.suspected |= (open | v.unclear) &^ v.proven
			p.done()
			return true
		})
	case task.DoClaim:
		c.claim(step, answer)
	case task.DoRaise:
		step("raises the epoch", func(v *world, p *worker) bool {
			if v.owner != p.exec {
				return fault(v, behind, coordination.CauseStore)
			}
			v.epoch = max(v.epoch, at.epoch) + 1
			v.ownerEpoch = v.epoch
			return answer(v, task.Event{Kind: task.EvRaised, Epoch: uint64(v.epoch)})
		})
	case task.DoRun:
		c.write(w, i, step, answer, fault)
	case task.DoClose:
		step("closes its connectors", func(v *world, p *worker) bool {
			p.aborted = false
			v.hangUp(p)
			return answer(v, task.Event{Kind: task.EvClosed})
		})
	case task.DoOverlap:
		step("records the overlap", func(v *world, p *worker) bool {
			if v.epoch == p.st.epoch && v.rowEpoch <= p.st.epoch {
				v.fail("execution %d recorded an overlap as certain, and no other ever ran beside it", p.exec)
			}
			p.owes = false
			v.certain |= 1 << p.exec
			p.done()
			return true
		})
	case task.DoEnd:
		step("writes its end", func(v *world, p *worker) bool {
			v.ended |= 1 << p.exec
			if at.unclear && c.Level == Idempotent {
				v.unclear |= 1 << p.exec
			}
			return answer(v, task.Event{Kind: task.EvWritten})
		})
	case task.DoRelease:
		step("releases the task", func(v *world, p *worker) bool {
			switch {
			case v.owner == p.exec:
				v.owner, v.ownerEpoch = 0, 0
			case v.owner != 0 && c.Without == Conditional:
				v.fail("execution %d deleted the status node of execution %d", p.exec, v.owner)
			case v.owner != 0:
				return fault(v, behind, "")
			}
			return answer(v, task.Event{Kind: task.EvReleased})
		})
	}
	return out
}
