package daemon

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
)

// Meter counts what a run does. It is a pipeline.Observer, safe for concurrent use.
type Meter struct {
	mu      sync.Mutex
	counts  Counts
	bytes   int64
	tables  map[[2]string]*TableCount // by writer and table
	writers map[string]*Outcomes
	last    sdk.Position
	commit  int64 // of the newest transaction read, µs
	stored  int64 // of the newest transaction stored, µs
	moved   time.Time
	restart int
	trouble map[string]string // by connector: why it was begun again, until it does something
	then    []pipeline.Observer
}

// Counts are records of a run.
type Counts struct {
	Read int64 `json:"read"`
	Outcomes
}

// Outcomes are what became of records, at all writers or at one.
type Outcomes struct {
	Filtered     int64 `json:"filtered"`
	Written      int64 `json:"written"`
	Skipped      int64 `json:"skipped"`
	DeadLettered int64 `json:"deadLettered"`
}

// TableCount is what a table at a writer's target got.
type TableCount struct {
	Writer   string `json:"writer,omitempty"`
	Name     string `json:"name"`
	Inserted int64  `json:"inserted"`
	Updated  int64  `json:"updated"`
	Deleted  int64  `json:"deleted"`
}

// NewMeter returns a Meter that passes on what it hears to the others.
func NewMeter(then ...pipeline.Observer) *Meter {
	return &Meter{tables: map[[2]string]*TableCount{}, writers: map[string]*Outcomes{}, trouble: map[string]string{}, moved: time.Now(), then: then}
}

var _ pipeline.Observer = (*Meter)(nil)

// Read implements pipeline.Observer.
func (m *Meter) Read(records, bytes int, last sdk.Position, committed int64) {
	m.mu.Lock()
	m.counts.Read += int64(records)
	m.bytes += int64(bytes)
	m.last, m.commit = last, max(m.commit, committed)
	if records > 0 {
		m.moved = time.Now()
		delete(m.trouble, reader)
	}
	m.mu.Unlock()
	for _, o := range m.then {
		o.Read(records, bytes, last, committed)
	}
}

// Filtered implements pipeline.Observer.
func (m *Meter) Filtered(writer string, records int) {
	m.mu.Lock()
	m.counts.Filtered += int64(records)
	if writer != "" {
		m.writer(writer).Filtered += int64(records)
	}
	m.mu.Unlock()
	for _, o := range m.then {
		o.Filtered(writer, records)
	}
}

func (m *Meter) writer(name string) *Outcomes {
	w := m.writers[name]
	if w == nil {
		w = &Outcomes{}
		m.writers[name] = w
	}
	return w
}

// Acked implements pipeline.Observer.
func (m *Meter) Acked(writer string, counts []pipeline.Count, committed int64, last sdk.Position) {
	m.mu.Lock()
	w := m.writer(writer)
	rows := int64(0)
	for _, c := range counts {
		t := m.tables[[2]string{writer, c.Table}]
		if t == nil {
			t = &TableCount{Writer: writer, Name: c.Table}
			m.tables[[2]string{writer, c.Table}] = t
		}
		t.Inserted += int64(c.Inserted)
		t.Updated += int64(c.Updated)
		t.Deleted += int64(c.Deleted)
		n := int64(c.Inserted + c.Updated + c.Deleted)
		w.Written += n
		m.counts.Written += n
		rows += n
	}
	m.stored = max(m.stored, committed)
	if rows > 0 { // a position alone may move for ever, where the task's own writes are in the source's log
		m.moved = time.Now()
	}
	delete(m.trouble, writer)
	m.mu.Unlock()
	for _, o := range m.then {
		o.Acked(writer, counts, committed, last)
	}
}

// Skipped implements pipeline.Observer.
func (m *Meter) Skipped(writer string, records int) {
	m.mu.Lock()
	m.counts.Skipped += int64(records)
	m.writer(writer).Skipped += int64(records)
	m.mu.Unlock()
	for _, o := range m.then {
		o.Skipped(writer, records)
	}
}

// DeadLettered implements pipeline.Observer.
func (m *Meter) DeadLettered(writer string, d sdk.DeadLetter) {
	m.mu.Lock()
	m.counts.DeadLettered++
	m.writer(writer).DeadLettered++
	m.mu.Unlock()
	for _, o := range m.then {
		o.DeadLettered(writer, d)
	}
}

// Restarted implements pipeline.Observer.
func (m *Meter) Restarted(name string, err error) {
	m.mu.Lock()
	m.restart++
	m.trouble[name] = err.Error()
	m.mu.Unlock()
	for _, o := range m.then {
		o.Restarted(name, err)
	}
}

// Reading is what a Meter shows at a moment.
type Reading struct {
	Counts   Counts
	Writers  map[string]Outcomes
	Bytes    int64
	Tables   []TableCount // by writer and name
	Last     sdk.Position
	Lag      time.Duration // between the newest transactions read and stored, by the source's clock
	Idle     time.Duration // since a row was read or stored
	Restarts int
	Trouble  string // connectors that were begun again and have done nothing since, and why; "" = none
}

// Reading returns the present state.
func (m *Meter) Reading() Reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := Reading{Counts: m.counts, Writers: map[string]Outcomes{}, Bytes: m.bytes, Last: m.last, Idle: time.Since(m.moved), Restarts: m.restart}
	if m.commit > m.stored {
		r.Lag = time.Duration(m.commit-m.stored) * time.Microsecond
	}
	for _, name := range slices.Sorted(maps.Keys(m.trouble)) {
		if r.Trouble != "" {
			r.Trouble += "; "
		}
		r.Trouble += name + " was begun again: " + m.trouble[name]
	}
	for name, w := range m.writers {
		r.Writers[name] = *w
	}
	for _, t := range m.tables {
		r.Tables = append(r.Tables, *t)
	}
	slices.SortFunc(r.Tables, func(a, b TableCount) int { return cmp.Or(cmp.Compare(a.Writer, b.Writer), cmp.Compare(a.Name, b.Name)) })
	return r
}
