package snapshot

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/datalink-go/datalink/plugins/mysql/internal/schema"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Weaver reads tables beside the stream and weaves their rows into it. Row,
// Changed, Moved and Weave are called by the goroutine that reads the stream; all
// other methods may be called from any.
type Weaver struct {
	cfg Config
	src Source
	log *slog.Logger

	active atomic.Bool
	ready  chan struct{}
	cancel context.CancelFunc
	crew   sync.WaitGroup
	limit  limiter

	mu      sync.Mutex
	cond    *sync.Cond
	tables  map[schema.Name]*table
	order   []*table
	parents map[schema.Name][]schema.Name
	opening []*window
	pieces  []*piece
	used    int // bytes of pieces
	busy    int // workers that have a job
	exclude bool
	paused  bool
	// pauseStated: the stream says whether reading is paused as it is.
	pauseStated bool
	listing     bool // the server's tables are not listed yet
	fault       error
	started     time.Time
	handed      uint64 // rows handed over since then
	requests    []*request
	ids         uint32 // of the next schema

	inquiries []*inquiry
	spare     []*batch.Builder
	failures  int // of listing, in a row

	// Of the reader's goroutine.
	number  uint64 // of changes noted
	version uint64 // of state items
	step    uint64
	here    uint64 // step of the last entry
	now     *piece // that is being handed over
	open    *entry // an entry that goes on with the next piece
	held    *window
	prev    Place // of the call of Weave before
}

// entry is an entry of the stream that is not ended.
type entry struct {
	start   []byte
	ordinal uint64
}

// New returns a weaver that reads nothing yet.
func New(cfg Config, src Source, log *slog.Logger) *Weaver {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	w := &Weaver{
		cfg: cfg.withDefaults(), src: src, log: log, ready: make(chan struct{}, 1), tables: map[schema.Name]*table{},
		ids: firstID, step: cfg.Step, listing: cfg.All, started: time.Now(), pauseStated: true,
	}
	w.cond = sync.NewCond(&w.mu)
	w.limit.perSecond = w.cfg.MaxRowsPerSecond
	return w
}

// firstID is the first id of schemas that snapshots make; the stream counts its
// own from 1.
const firstID = 1 << 30

// put adds a table, or replaces it.
func (w *Weaver) put(t *table) {
	if old := w.tables[t.name]; old != nil {
		for i := range w.order {
			if w.order[i] == old {
				w.order = append(w.order[:i], w.order[i+1:]...)
				break
			}
		}
	}
	w.tables[t.name] = t
	w.order = append(w.order, t)
	if t.phase != Done {
		w.active.Store(true)
	}
}

// Start begins to read.
func (w *Weaver) Start(ctx context.Context) {
	ctx, w.cancel = context.WithCancel(ctx)
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.cond.Broadcast()
	})
	if w.listing {
		w.active.Store(true)
	}
	for range w.cfg.Parallel {
		w.crew.Go(func() { w.worker(ctx) })
	}
}

// Close ends all connections and waits until they are closed.
func (w *Weaver) Close() {
	if w.cancel != nil {
		w.cancel()
		w.crew.Wait()
	}
}

// Active reports whether anything is left to be read. While it is, the reader
// calls Row, Changed and Weave.
func (w *Weaver) Active() bool { return w.active.Load() }

// Ready gets a token when Weave has something to do.
func (w *Weaver) Ready() <-chan struct{} { return w.ready }

func (w *Weaver) signal() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// find returns the table when its snapshot is under way or waits for its turn.
func (w *Weaver) find(n schema.Name) *table {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tables[n]
	if t == nil && w.listing && w.src.Wants(n.Database, n.Table) {
		t = newTable(n) // the list will have it
		w.put(t)
	}
	if t != nil && t.phase != Done {
		return t
	}
	return nil
}

// Row notes the row that was appended to out last. While a table without a key
// waits to be read its rows are taken back. So is an update that holds but a part
// of its row: the row may not be at the target yet, so that it is read by its key
// at the end.
func (w *Weaver) Row(s *batch.Schema, out *batch.Builder) {
	t := w.find(schema.Name{Database: s.Namespace, Table: s.Table})
	if t == nil {
		return
	}
	w.number++
	t.changes++
	if len(s.Key) == 0 {
		out.DropLast() // the rows are read as they are at a later place
		return
	}
	key, old := out.LastKeys()
	t.note(key, w.number)
	if old != nil {
		t.note(old, w.number)
	}
	if len(t.noted) > maxNoted {
		t.cancel()
	}
	if out.LastWhole() {
		return
	}
	out.DropLast()
	if !t.opened {
		return // nothing of the table was read before the change
	}
	t.touched[string(key)] = struct{}{}
	if old != nil {
		t.touched[string(old)] = struct{}{}
	}
	if t.stated = t.stated && len(t.touched) > 1; !t.stated {
		w.signal()
	}
}

// Changed says that a schema change or a truncation of a table went by.
func (w *Weaver) Changed(database, tab string) {
	n := schema.Name{Database: database, Table: tab}
	if t := w.find(n); t != nil {
		w.number++
		t.changes++
		t.cancel()
	}
}

// Created says that a table came into being in the stream: all of its rows come
// with it.
func (w *Weaver) Created(database, tab string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := schema.Name{Database: database, Table: tab}
	if !w.cfg.All || w.tables[n] != nil || !w.src.Wants(database, tab) {
		return
	}
	t := newTable(n)
	t.phase, t.planned = Done, true
	w.put(t)
	w.active.Store(true)
	w.signal()
}

// Renamed says that a table has another name from here on: what is done stays done,
// and a snapshot that is under way begins anew.
func (w *Weaver) Renamed(oldDatabase, oldTable, database, tab string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tables[schema.Name{Database: oldDatabase, Table: oldTable}]
	if t == nil || !w.src.Wants(database, tab) {
		return
	}
	to := newTable(schema.Name{Database: database, Table: tab})
	if to.asked = t.phase != Done; !to.asked {
		to.phase, to.planned, to.rows = Done, true, t.rows
	}
	t.cancel()
	t.phase, t.gone, t.stated = Done, true, false
	w.put(to)
	w.active.Store(true)
	w.cond.Broadcast()
	w.signal()
}

// Moved says that the stream comes from another server, or begins anew: what was
// read has no place in it.
func (w *Weaver) Moved() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.order {
		t.cancel()
	}
	w.cond.Broadcast()
}

// finish notes, after something was done, whether anything is left.
func (w *Weaver) finish() {
	left := w.listing || len(w.opening) > 0 || len(w.pieces) > 0 || w.now != nil || len(w.requests) > 0 || len(w.inquiries) > 0 || !w.pauseStated
	for _, t := range w.order {
		left = left || t.phase != Done || !t.stated || len(t.windows) > 0
	}
	w.active.Store(left)
}
