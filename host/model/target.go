package model

import (
	"fmt"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/host/task"
	"github.com/datalink-go/datalink/sdk"
)

type stepper = func(label string, f func(v *world, p *worker) bool)

// connect opens a session.
func (w *world) connect(p *worker) bool {
	if int(w.nSession)+1 >= len(w.sessions) {
		return false
	}
	w.nSession++
	p.conn = w.nSession
	return true
}

// kill ends a session: its open transaction is rolled back, its lock is free, and
// what it sent before is not taken any more.
func (w *world) kill(s uint8) {
	if s == 0 {
		return
	}
	w.sessions[s] = session{dead: true}
	if w.lock == s {
		w.lock = 0
	}
	if w.holder == s {
		w.holder = 0
	}
}

// hangUp closes a worker's end of its connection. The target notices at once or
// when what is under way has arrived.
func (w *world) hangUp(p *worker) {
	p.pipe, p.opened = idle, false
	if p.conn != 0 && !w.sent(p.conn) {
		w.kill(p.conn)
	}
	p.conn = 0
}

func (w *world) sent(s uint8) bool {
	for i := range w.nFlight {
		if w.flights[i].session == s {
			return true
		}
	}
	return false
}

// send puts a packet on its way.
func (w *world) send(p *worker, kind pipe) bool {
	if w.nFlight == maxFlights {
		return false
	}
	w.flights[w.nFlight] = packet{session: p.conn, kind: kind, exec: p.exec, epoch: p.st.epoch, claim: p.claimNo, batch: p.batch + 1, tx: p.pos + 1}
	w.nFlight++
	p.pipe = kind
	return true
}

func (w *world) drop(i uint8) packet {
	f := w.flights[i]
	copy(w.flights[i:], w.flights[i+1:w.nFlight])
	w.nFlight--
	w.flights[w.nFlight] = packet{}
	return f
}

// String names what a packet carries.
func (f packet) String() string {
	return map[pipe]string{
		fencing: fmt.Sprintf("the fence of transaction %d", f.tx), writing: fmt.Sprintf("transaction %d with its commit", f.tx),
		noting: fmt.Sprintf("the note of schema change %d", f.tx), altering: fmt.Sprintf("schema change %d", f.tx),
	}[f.kind]
}

// sender is the live worker that waits for the session's answer.
func (w *world) sender(f *packet) *worker {
	for i := range w.workers {
		if p := &w.workers[i]; p.alive && p.exec == f.exec && p.conn == f.session {
			return p
		}
	}
	return nil
}

// arrive lets the target work on a packet. False: it waits for a lock.
func (c *Config) arrive(w *world, i uint8) bool {
	f := w.flights[i]
	if c.Level == Idempotent {
		w.drop(i)
		w.row = f.tx
		if p := w.sender(&f); p != nil {
			p.pipe = saving
		}
		return true
	}
	s := &w.sessions[f.session]
	if s.dead {
		w.drop(i)
		if p := w.sender(&f); p != nil {
			p.pipe = broken
		}
		return true
	}
	fence := f.kind == fencing || f.kind == noting || f.kind == writing && !s.open
	if fence && w.holder != 0 && w.holder != f.session {
		return false
	}
	w.drop(i)
	p := w.sender(&f)
	gone := p == nil // it hung up: its session ends when this is done
	if fence {
		ok := w.rowEpoch == f.epoch && w.rowExec == f.exec && w.rowClaim == f.claim && w.rowBatch == f.batch-1
		switch {
		case !ok && c.Without != Fence:
			if p != nil {
				p.pipe, p.owes = idle, true
				p.claimed = refused
			}
			if gone {
				w.kill(f.session)
			}
			return true
		case f.kind == fencing && gone:
			w.kill(f.session)
			return true
		case f.kind == fencing:
			w.holder, s.open, s.next = f.session, true, f
			p.pipe = fenced
			return true
		}
	}
	switch f.kind {
	case noting:
		w.rowBatch, w.rowNote = f.batch, f.tx
		if p != nil {
			p.pipe, p.batch = noted, f.batch
		}
	case altering:
		w.tables++
		w.apply(f.tx)
		if p != nil {
			p.pipe = altered
		}
	case writing:
		if !(f.tx == c.DDL) {
			w.apply(f.tx)
		}
		if f.tx < w.rowPos {
			w.fail("the position at the target goes from %d back to %d", w.rowPos, f.tx)
		}
		w.rowBatch, w.rowPos, w.rowNote = f.batch, f.tx, 0
		if w.holder == f.session {
			w.holder = 0
		}
		s.open, s.next = false, packet{}
		if p != nil {
			p.pipe, p.batch, p.pos, p.ddl = idle, f.batch, f.tx, false
		}
	}
	if gone {
		w.kill(f.session)
	}
	return true
}

// apply writes a transaction's rows.
func (w *world) apply(tx uint8) {
	w.row = tx
	w.applied[w.nApplied] = tx
	w.nApplied++
	for i := range w.nApplied {
		if w.applied[i] != i+1 {
			w.fail("the target has applied %v", w.applied[:w.nApplied])
		}
	}
	if w.tables > 1 {
		w.fail("the schema change happened %d times", w.tables)
	}
}

// refused marks that the target refused a write: the next step tells Step.
const refused = 9

// claim: compare epochs, end the holders of the writer's lock, take the row.
func (c *Config) claim(step stepper, answer func(*world, task.Event) bool) {
	step("claims the target", func(v *world, p *worker) bool {
		if c.Level == Idempotent {
			p.pos = v.stored
			return answer(v, task.Event{Kind: task.EvClaimed})
		}
		e := p.st.epoch
		switch p.claimed {
		case 0: // connect and look
			if p.conn == 0 && !v.connect(p) {
				return false
			}
			if v.rowEpoch > e {
				return answer(v, task.Event{Kind: task.EvHigher, Epoch: uint64(v.rowEpoch)})
			}
			p.claimed = 1
			return true
		case 1: // the writer's lock
			if c.Without != Wait {
				if v.lock != p.conn {
					v.kill(v.lock)
				}
				if v.holder != p.conn {
					v.kill(v.holder)
				}
				v.lock = p.conn
			}
			p.claimed = 2
			return true
		}
		if v.sessions[p.conn].dead { // another claim ended ours
			p.conn = 0
			return answer(v, task.Event{Kind: task.EvFault, Fault: away})
		}
		if v.holder != 0 && v.holder != p.conn && c.Without != Wait {
			return false
		}
		if v.rowEpoch > e {
			return answer(v, task.Event{Kind: task.EvHigher, Epoch: uint64(v.rowEpoch)})
		}
		if v.rowEpoch == e && v.rowExec != p.exec && v.rowExec != 0 {
			return answer(v, task.Event{Kind: task.EvHigher, Epoch: uint64(v.rowEpoch)})
		}
		v.rowEpoch, v.rowExec = e, p.exec
		v.rowClaim++
		p.claimNo, p.batch, p.pos = v.rowClaim, v.rowBatch, v.rowPos
		p.ddl = v.rowNote != 0 && v.tables > 0
		return answer(v, task.Event{Kind: task.EvClaimed})
	})
}

// write is the pipeline: it reads transaction after transaction and writes each.
func (c *Config) write(w *world, i int, step stepper, answer func(*world, task.Event) bool, fault func(*world, *sdk.Fault, coordination.Cause) bool) {
	p := &w.workers[i]
	if p.claimed == refused {
		step("learns that its write is refused", func(v *world, p *worker) bool {
			p.claimed = 0
			v.hangUp(p)
			return fault(v, behind, "")
		})
		return
	}
	if c.Cut > 0 && w.cut > 0 && p.pipe != idle && p.conn != 0 && p.pipe != broken {
		step("loses its connection", func(v *world, p *worker) bool {
			v.cut--
			open := p.pipe == fenced // nothing more comes: rolled back
			if conn := p.conn; open || !v.sent(conn) {
				v.kill(conn)
			}
			p.conn, p.pipe = 0, broken
			return true
		})
	}
	if c.Level == Idempotent {
		c.upsert(w, i, step, answer, fault)
		return
	}
	ddl := p.pos+1 == c.DDL
	switch p.pipe {
	case idle:
		switch {
		case p.pos == c.Txs:
			step("has read all", func(v *world, p *worker) bool { v.hangUp(p); return answer(v, task.Event{Kind: task.EvEnd}) })
		case p.st.in(task.Draining):
			step("has drained", func(v *world, p *worker) bool { v.hangUp(p); return answer(v, task.Event{Kind: task.EvDrained}) })
		case ddl && p.ddl:
			step("goes on after the schema change", func(v *world, p *worker) bool { return v.send(p, writing) })
		case ddl:
			step("notes the schema change", func(v *world, p *worker) bool { return v.send(p, noting) })
		case c.Packet:
			step("sends a transaction", func(v *world, p *worker) bool { return v.send(p, writing) })
		default:
			step("sends a fence", func(v *world, p *worker) bool { return v.send(p, fencing) })
		}
	case fenced:
		step("sends the rest", func(v *world, p *worker) bool { return v.send(p, writing) })
	case noted:
		step("sends the schema change", func(v *world, p *worker) bool {
			if v.rowExec != p.exec || v.rowClaim != p.claimNo { // looked up under the lock that it holds
				p.owes, p.claimed = true, refused
				return true
			}
			return v.send(p, altering)
		})
	case altered:
		step("sends the position after it", func(v *world, p *worker) bool { return v.send(p, writing) })
	case broken:
		step("settles", func(v *world, p *worker) bool { return c.settle(v, p) })
	}
}

// settle finds out on a new session what became of the last write.
func (c *Config) settle(w *world, p *worker) bool {
	if c.Without == Fence { // it would not look
		return w.connect(p) && func() bool { p.pipe = idle; p.batch, p.pos = w.rowBatch, w.rowPos; return true }()
	}
	if w.rowExec != p.exec || w.rowClaim != p.claimNo || w.rowEpoch != p.st.epoch {
		p.owes, p.claimed, p.pipe = true, refused, idle
		return true
	}
	for s := uint8(1); s <= w.nSession; s++ { // its own sessions before: ended, or waited for
		if w.lock == s && !w.sessions[s].dead {
			w.kill(s)
		}
	}
	if w.holder != 0 || !w.connect(p) {
		return false
	}
	w.lock = p.conn
	p.pipe, p.batch, p.pos = idle, w.rowBatch, w.rowPos
	p.ddl = w.rowNote != 0 && w.tables > 0
	return true
}

// upsert writes without a fence; the position goes to the store. An execution
// with an unproven predecessor writes the row again when that is proven dead.
func (c *Config) upsert(w *world, i int, step stepper, answer func(*world, task.Event) bool, fault func(*world, *sdk.Fault, coordination.Cause) bool) {
	p := &w.workers[i]
	open := (w.lost | w.unclear) &^ w.proven &^ (1 << p.exec)
	switch p.pipe {
	case idle:
		switch {
		case p.pos < c.Txs && p.st.in(task.Draining):
			step("has drained", func(v *world, p *worker) bool { v.hangUp(p); return answer(v, task.Event{Kind: task.EvDrained}) })
		case p.pos < c.Txs:
			step("sends a transaction", func(v *world, p *worker) bool { return (p.conn != 0 || v.connect(p)) && v.send(p, writing) })
		case c.Without == Repair:
			step("has read all", func(v *world, p *worker) bool { v.hangUp(p); return answer(v, task.Event{Kind: task.EvEnd}) })
		case open == 0 && p.repair == 1:
			step("has read all", func(v *world, p *worker) bool { v.hangUp(p); return answer(v, task.Event{Kind: task.EvEnd}) })
		case open == 0:
			step("repairs the row", func(v *world, p *worker) bool { v.row, p.repair = p.pos, 1; return true })
		}
	case saving:
		step("stores its position", func(v *world, p *worker) bool {
			if p.expired && c.Without != Conditional {
				p.told = true
				v.hangUp(p)
				c.event(v, i, task.Event{Kind: task.EvLost})
				return fault(v, away, "")
			}
			if v.owner != p.exec && c.Without != Conditional {
				p.owes = true
				v.hangUp(p)
				return fault(v, behind, coordination.CauseStore)
			}
			if p.pos+1 < v.stored {
				v.fail("the position in the store goes from %d back to %d", v.stored, p.pos+1)
			}
			p.pos++
			v.stored = p.pos
			p.pipe = idle
			return true
		})
	case broken:
		step("connects again", func(v *world, p *worker) bool { p.pipe = idle; return true })
	}
}
