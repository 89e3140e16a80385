package delivery

import "github.com/datalink-go/datalink/sdk"

// relane changes the number of lanes where they all can stand at the place p:
// they drain under the old mapping, then the target is claimed again, which lays
// the progress out anew. A lane that covers transactions still to come is waited
// for.
func (d *dispatcher) relane(p place) error {
	r := d.run
	for _, l := range r.lanes {
		if !l.caught || p.mark.before(l.resume) {
			return nil
		}
	}
	if err := d.drain(); err != nil {
		return err
	}
	r.mu.Lock()
	if r.state != running {
		r.mu.Unlock()
		return nil // later
	}
	for _, l := range r.lanes {
		l.retired = true
	}
	r.mu.Unlock()
	r.cond.Broadcast()
	r.crew.Wait()
	c, err := r.e.target.Claim(r.ctx, r.e.ex)
	if err != nil {
		return err
	}
	if err := checkPoints(&c, r.e.ex); err != nil {
		return err
	}
	if n := len(c.Points); int32(n) != d.want {
		return sdk.Faultf(sdk.CodeInternal, "claim of task %s, writer %s: %d lanes although all stood at one position, expected %d", r.e.ex.Task, r.e.ex.Writer, n, d.want)
	}
	lanes := r.newLanes(c.Points)
	for _, l := range lanes {
		if !samePosition(l.point.Position, p.pos) {
			return sdk.Faultf(sdk.CodeTargetWentBack, "lane %d is at position %q after all lanes came to %q", l.no, l.point.Position.Source, p.pos.Source)
		}
		l.caught, l.free, l.at, l.resume = true, true, p.mark, p.mark
	}
	// What the points covered lies behind; their lanes are gone.
	for i := range d.points {
		d.points[i] = -2
	}
	d.relaned, d.want, d.coversAny, d.waits = true, 0, false, waits{}
	r.mu.Lock()
	r.lanes, r.moved = lanes, true
	r.mu.Unlock()
	r.news.Broadcast()
	for _, l := range lanes {
		r.crew.Go(l.work)
	}
	return nil
}
