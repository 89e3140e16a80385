package delivery

// waits knows, for values that tie changes to one another, which items touched
// them last. It is the dispatcher's.
type waits struct {
	ties  map[uint64]*crossTie
	sweep int // size at which what is committed is dropped
	need  []uint64
}

// crossTie is who touched a value: the last exclusive touch, and those since then
// that share it. Counts are item numbers plus one.
type crossTie struct {
	lane   int32
	n      uint64
	shared [2][]uint64 // by mode and lane
}

// touch notes that item n of the lane has the touches, and adds to need what it
// must wait for.
func (w *waits) touch(touches []touch, lane int32, n uint64, lanes []*lane) {
	if w.ties == nil {
		w.ties = map[uint64]*crossTie{}
		w.sweep = 1 << 14
	}
	for _, t := range touches {
		c := w.ties[t.hash]
		if c == nil {
			c = &crossTie{}
			w.ties[t.hash] = c
		}
		if c.n > 0 && c.lane != lane {
			w.need[c.lane] = max(w.need[c.lane], c.n)
		}
		for m := range c.shared {
			if !t.mode.conflicts(shareA + mode(m)) {
				continue
			}
			for l, last := range c.shared[m] {
				if int32(l) != lane {
					w.need[l] = max(w.need[l], last)
				}
			}
		}
		if t.mode == exclusive {
			c.lane, c.n = lane, n+1
			c.shared = [2][]uint64{}
			continue
		}
		s := &c.shared[t.mode-shareA]
		if *s == nil {
			*s = make([]uint64, len(lanes))
		}
		(*s)[lane] = n + 1
	}
	if len(w.ties) > w.sweep {
		w.drop(lanes)
		w.sweep = max(1<<14, 2*len(w.ties))
	}
}

// drop forgets ties whose items are all committed.
func (w *waits) drop(lanes []*lane) {
	done := make([]uint64, len(lanes))
	for i, l := range lanes {
		done[i] = l.done.Load()
	}
	for h, c := range w.ties {
		live := c.n > done[c.lane]
		for m := range c.shared {
			for l, last := range c.shared[m] {
				live = live || last > done[l]
			}
		}
		if !live {
			delete(w.ties, h)
		}
	}
}

// take returns what is not committed of what was added to need, and empties it.
func (w *waits) take(self int32, lanes []*lane) []wait {
	var out []wait
	for l, n := range w.need {
		if n > 0 && int32(l) != self && n > lanes[l].done.Load() {
			out = append(out, wait{int32(l), n - 1})
		}
		w.need[l] = 0
	}
	return out
}
