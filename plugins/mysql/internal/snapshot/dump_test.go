package snapshot

import "fmt"

// dump describes the weaver for a test that hangs.
func (w *Weaver) dump() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := fmt.Sprintf("busy %d, exclude %t, listing %t, opening %d, pieces %d, used %d, now %t, open %t, held %t\n", w.busy, w.exclude, w.listing, len(w.opening), len(w.pieces), w.used, w.now != nil, w.open != nil, w.held != nil)
	for _, t := range w.order {
		out += fmt.Sprintf("%s %s planned %t planning %t begun %t exact %t whole %t rows %d touched %d noted %d failures %d stated %t\n", t.name, t.phase, t.planned, t.planning, t.begun, t.exact, t.whole, t.rows, len(t.touched), len(t.noted), t.failures, t.stated)
		for _, s := range t.spans {
			out += fmt.Sprintf("  span busy %t ended %t done %t lost %t\n", s.busy, s.ended, s.done, s.lost)
		}
		for _, v := range t.windows {
			out += fmt.Sprintf("  window cur %s high %s known %t closed %t pending %d void %t settled %t\n", v.cur, v.view.high, v.known, v.closed, v.pending, v.void.Load(), v.settled)
		}
	}
	return out
}
