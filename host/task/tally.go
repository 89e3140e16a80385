package task

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/host/audit"
	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
)

// tally notes what a run did, for the audit, and passes all of it on.
type tally struct {
	pipeline.Observer // next
	now               func() time.Time
	progressed        func()

	mu      sync.Mutex
	read    sdk.Position
	lastOK  time.Time
	tables  map[string]bool
	written map[string]uint64
	acked   map[string]sdk.Position
	refused map[string]uint64
	format  func(sdk.Position) string
}

func newTally(next pipeline.Observer, now func() time.Time, progressed func()) *tally {
	return &tally{
		Observer: next, now: now, progressed: progressed,
		tables: map[string]bool{}, written: map[string]uint64{}, acked: map[string]sdk.Position{}, refused: map[string]uint64{},
	}
}

// Read implements pipeline.Observer.
func (t *tally) Read(records, bytes int, last sdk.Position, committed int64) {
	t.mu.Lock()
	t.read = last
	t.mu.Unlock()
	t.Observer.Read(records, bytes, last, committed)
}

// Acked implements pipeline.Observer.
func (t *tally) Acked(writer string, counts []pipeline.Count, committed int64, last sdk.Position) {
	t.mu.Lock()
	t.lastOK = t.now()
	t.written[writer]++
	if !last.IsZero() {
		t.acked[writer] = last
	}
	for _, c := range counts {
		t.tables[c.Table] = true
	}
	t.mu.Unlock()
	t.progressed()
	t.Observer.Acked(writer, counts, committed, last)
}

// claimed notes where the writers are before the run.
func (t *tally) claimed(writer string, c *sdk.Claimed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c == nil || len(c.Points) == 0 {
		return
	}
	for _, p := range c.Points {
		if p.Lane != sdk.WriterLane && !p.Position.IsZero() {
			t.acked[writer] = p.Position
			return
		}
	}
}

// marks are the positions to show.
func (t *tally) marks() []coordination.Mark {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []coordination.Mark
	for _, w := range slices.Sorted(maps.Keys(t.acked)) {
		out = append(out, coordination.Mark{Writer: w, Position: t.shown(t.acked[w])})
	}
	return out
}

// shown is a position with its text where there is one.
func (t *tally) shown(p sdk.Position) coordination.Position {
	out := toStore(p)
	if t.format != nil && !p.IsZero() {
		out.Text = t.format(p)
	}
	return out
}

// texts sets how positions are printed, while the reader still lives; what is
// asked for later is remembered from now.
func (t *tally) texts(format func(sdk.Position) string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := map[string]string{}
	for _, p := range append(slices.Collect(maps.Values(t.acked)), t.read) {
		if !p.IsZero() {
			known[string(p.Source)+"\x00"+strconv.FormatUint(p.Ordinal, 10)] = format(p)
		}
	}
	t.format = func(p sdk.Position) string { return known[string(p.Source)+"\x00"+strconv.FormatUint(p.Ordinal, 10)] }
}

// refuse notes that a target refused a write.
func (t *tally) refuse(writer string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refused[writer]++
}

// report fills in what the audit wants to know.
func (t *tally) report(l *audit.Late) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.LastOK = t.lastOK
	l.Tables = slices.Sorted(maps.Keys(t.tables))
	for _, w := range l.Levels {
		ow := coordination.OverlapWriter{
			Name: w.Name, Level: string(w.Level), Written: t.written[w.Name], Refused: t.refused[w.Name],
			From: t.shown(t.acked[w.Name]), To: t.shown(t.read),
		}
		l.Writers = append(l.Writers, ow)
	}
}
