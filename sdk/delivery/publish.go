package delivery

// publish hands what is staged to the lanes. With now they are woken even where
// there is little.
func (d *dispatcher) publish(now bool) {
	r := d.run
	if d.staged == 0 && !d.runnable {
		return
	}
	r.mu.Lock()
	d.settle()
	big := false
	for _, l := range r.lanes {
		if len(l.staged) > 0 {
			if len(l.queue) == 0 {
				l.queue, l.staged = l.staged, l.queue
			} else {
				l.queue = append(l.queue, l.staged...)
			}
			l.staged = l.staged[:0]
		}
		if l.place.set {
			l.front, l.frontN = l.place, l.placeN
		}
		big = big || len(l.queue) >= r.cfg.Records
	}
	d.staged = 0
	wake := d.runnable && (now || big || len(r.lanes) > 1)
	if wake {
		r.version++
		d.runnable = false
	}
	r.mu.Unlock()
	if wake {
		r.cond.Broadcast()
	}
}
