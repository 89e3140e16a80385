package model

import (
	"hash/maphash"
	"slices"
)

// Result of a search.
type Result struct {
	States int
	Depth  int      // steps of the longest shortest path
	Broken string   // the promise that some interleaving breaks; "" = none
	Trace  []string // the shortest such interleaving
	Whole  bool     // all states within the bounds were seen
}

type hash [2]uint64

type origin struct {
	from  hash
	label string
}

// Search visits every state within the bounds, nearest first, until a promise is
// broken.
func Search(c Config) Result {
	if c.Limit == 0 {
		c.Limit = 20_000_000
	}
	seeds := [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	// A hash stands for a state: two of 64 bits make a clash as good as impossible.
	name := func(w *world) hash {
		return hash{maphash.Comparable(seeds[0], *w), maphash.Comparable(seeds[1], *w)}
	}
	begin := world{expire: c.Expire, crash: c.Crash, cut: c.Cut, stops: c.Stop, again: c.Again}
	root := name(&begin)
	seen := map[hash]origin{root: {}}
	level := []world{begin}
	r := Result{States: 1}
	for len(level) > 0 {
		var later []world
		for i := range level {
			w := &level[i]
			all := c.steps(w)
			if len(all) == 0 {
				c.settled(w)
			}
			if w.broken != "" {
				r.Broken, r.Trace = w.broken, trace(seen, name(w), root)
				if len(all) == 0 { // found at the end: it has the name of the state before
					unbroken := *w
					unbroken.broken = ""
					r.Trace = trace(seen, name(&unbroken), root)
				}
				return r
			}
			from := name(w)
			for _, n := range all {
				h := name(&n.w)
				if _, ok := seen[h]; ok {
					continue
				}
				seen[h] = origin{from, n.label}
				if r.States++; r.States >= c.Limit {
					return r
				}
				later = append(later, n.w)
			}
		}
		level = later
		r.Depth++
	}
	r.Whole = true
	return r
}

// settled checks a world in which nothing can move any more.
func (c *Config) settled(w *world) {
	for i := range w.workers {
		if w.workers[i].alive {
			w.fail("worker %c is stuck in phase %q, waiting for %q", 'A'+i, phases[w.workers[i].st.phase], effects[w.workers[i].todo[0].kind])
		}
	}
	if c.Level == Transactional && w.rowPos != w.pos() {
		w.fail("the target holds position %d and has applied %v", w.rowPos, w.applied[:w.nApplied])
	}
	if w.finished(c) && w.row != c.Txs && c.Txs != c.DDL {
		w.fail("the source's row is %d, the target's %d", c.Txs, w.row)
	}
}

func (w *world) pos() uint8 {
	if w.nApplied == 0 {
		return 0
	}
	if last := w.applied[w.nApplied-1]; w.rowNote != last {
		return last
	}
	return w.rowPos // a schema change that happened and is still noted
}

// finished reports whether some execution reached the end of the source.
func (w *world) finished(c *Config) bool {
	if c.Level == Idempotent {
		return w.stored == c.Txs
	}
	return w.rowPos == c.Txs
}

func trace(seen map[hash]origin, at, root hash) []string {
	var out []string
	for at != root {
		o, ok := seen[at]
		if !ok {
			return append(out, "(trace lost)")
		}
		out = append(out, o.label)
		at = o.from
	}
	slices.Reverse(out)
	return out
}
