package audit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/coordination/embedded"
	"github.com/datalink-go/datalink/host/audit"
	"github.com/datalink-go/datalink/sdk/manifest"
)

var (
	sql   = []audit.Writer{{Name: "w", Level: manifest.LevelTransactional}}
	hbase = []audit.Writer{{Name: "w", Level: manifest.LevelVersioned}}
	plain = []audit.Writer{{Name: "w", Level: manifest.LevelTransactional}, {Name: "p", Level: manifest.LevelIdempotent}}
)

// rig is a store with executions that ran in places of their own.
type rig struct {
	t     *testing.T
	store *embedded.Store
	task  coordination.Definition
	now   time.Time
	joins int
}

func (g *rig) Now() time.Time      { return g.now }
func (g *rig) Boot() time.Duration { return time.Duration(g.now.UnixNano()) }

func newRig(t *testing.T) *rig {
	t.Helper()
	g := &rig{t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	var err error
	if g.store, err = embedded.Open(t.Context(), embedded.Config{Dir: t.TempDir(), NoSync: true, Clock: g}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.store.Close() })
	if g.task, err = g.store.CreateTask(t.Context(), coordination.Definition{Name: "orders", Desired: coordination.Running}); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *rig) ok(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

// take runs the task in a place; the status node goes at once, as if the session
// had ended.
func (g *rig) take(worker string, p coordination.Place) coordination.Status {
	g.t.Helper()
	g.joins++
	x, err := g.store.Join(g.t.Context(), coordination.Worker{ID: worker, Place: p})
	g.ok(err)
	st, err := x.Take(g.t.Context(), coordination.Take{Task: "orders", ExecutionID: uuid.Must(uuid.NewV7()).String()})
	g.ok(err)
	g.ok(x.Mark(g.t.Context(), st.Owner(), []coordination.Mark{{Writer: "w", Position: coordination.Position{Text: "at " + worker}}}))
	g.ok(x.Close(g.t.Context()))
	g.now = g.now.Add(time.Minute)
	return st
}

func (g *rig) auditor(notify func(coordination.Overlap)) *audit.Auditor {
	return audit.New(audit.Config{Store: g.store, LockSince: g.now, Now: g.Now, Notify: notify})
}

func (g *rig) kinds(execution string) string {
	j, err := g.store.Journal(g.t.Context(), g.task.UID)
	g.ok(err)
	var out []string
	for _, e := range j {
		if e.ExecutionID == execution && e.Kind != coordination.EntryMark {
			out = append(out, string(e.Kind))
		}
	}
	return strings.Join(out, " ")
}

func (g *rig) overlaps() []coordination.Overlap {
	o, err := g.store.Overlaps(g.t.Context())
	g.ok(err)
	return o
}

func at(host, boot, lock, process string) coordination.Place {
	return coordination.Place{Host: host, BootID: boot, LockID: lock, Process: process, Held: true}
}

func TestPredecessors(t *testing.T) {
	self := at("h1", "b1", "L1", "9@9")
	for name, tt := range map[string]struct {
		place   coordination.Place
		before  func(g *rig, st coordination.Status)
		writers []audit.Writer
		kinds   string
		left    bool
		records int
		open    bool
		verdict coordination.Verdict
	}{
		"ended":                      {place: at("h2", "b2", "L2", "1@1"), before: ended, writers: plain, kinds: "started ended"},
		"ended, write under way":     {place: at("h2", "b2", "L2", "1@1"), before: unanswered, writers: plain, kinds: "started ended", left: true, records: 1, open: true, verdict: coordination.PossiblyDirty},
		"same lock, fenced target":   {place: at("h1", "b1", "L1", "1@1"), writers: sql, kinds: "started lost", left: true},
		"same lock, plain target":    {place: at("h1", "b1", "L1", "1@1"), writers: plain, kinds: "started lost", left: true, records: 1, open: true, verdict: coordination.PossiblyDirty},
		"other boot":                 {place: at("h1", "b0", "L9", "1@1"), writers: plain, kinds: "started lost dead"},
		"forgotten":                  {place: at("h2", "b2", "L2", "1@1"), before: forgotten, writers: plain, kinds: "started lost dead"},
		"other host, fenced target":  {place: at("h2", "b2", "L2", "1@1"), writers: sql, kinds: "started lost", left: true, records: 1, verdict: coordination.Harmless},
		"other host, versioned":      {place: at("h2", "b2", "L2", "1@1"), writers: hbase, kinds: "started lost", left: true, records: 1, verdict: coordination.Harmless},
		"other host, plain target":   {place: at("h2", "b2", "L2", "1@1"), writers: plain, kinds: "started lost", left: true, records: 1, open: true, verdict: coordination.PossiblyDirty},
		"same process":               {place: self, writers: sql, kinds: "started lost", left: true, records: 1, verdict: coordination.Harmless},
		"nothing known of its place": {place: coordination.Place{DataDir: "/d"}, writers: sql, kinds: "started lost", left: true, records: 1, verdict: coordination.Harmless},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			old := g.take("w1", tt.place)
			if tt.before != nil {
				tt.before(g, old)
			}
			heir := g.take("w2", self)
			var told []coordination.Overlap
			a := g.auditor(func(o coordination.Overlap) { told = append(told, o) })
			for range 2 { // a second call adds nothing
				left, err := a.Predecessors(t.Context(), heir, tt.writers)
				g.ok(err)
				if left != tt.left {
					t.Errorf("left: got %v, want %v", left, tt.left)
				}
			}
			if got := g.kinds(old.ExecutionID); got != tt.kinds {
				t.Errorf("journal: got %q, want %q", got, tt.kinds)
			}
			o := g.overlaps()
			if len(o) != tt.records || len(told) != tt.records {
				t.Fatalf("records: got %d, told of %d, want %d", len(o), len(told), tt.records)
			}
			if tt.records == 0 {
				return
			}
			x := o[0]
			if x.Cause != coordination.CauseUnproven || x.Certain || x.Verdict != tt.verdict || x.IsOpen() != tt.open || x.Late.ExecutionID != old.ExecutionID ||
				x.Owner.ExecutionID != heir.ExecutionID || x.Writers[0].From.Text != "at w1" || x.Done == "" {
				t.Errorf("record: got %+v", x)
			}
		})
	}
}

func ended(g *rig, st coordination.Status) {
	g.ok(g.store.Append(g.t.Context(), coordination.Entry{Kind: coordination.EntryEnded, TaskUID: st.TaskUID, ExecutionID: st.ExecutionID}))
}

// unanswered ends an execution a moment before its heir begins, with a write of
// which it does not know what became.
func unanswered(g *rig, st coordination.Status) {
	g.ok(g.store.Append(g.t.Context(), coordination.Entry{
		Kind: coordination.EntryEnded, Task: st.Task, TaskUID: st.TaskUID, ExecutionID: st.ExecutionID, Epoch: st.Epoch, At: g.now.Add(time.Minute), Unanswered: true,
	}))
}

func forgotten(g *rig, st coordination.Status) {
	g.ok(g.store.Forget(g.t.Context(), coordination.Forgotten{Worker: st.Worker, At: g.now}))
}

// A record about an unproven predecessor stays open until it is proven dead.
func TestSettle(t *testing.T) {
	for name, tt := range map[string]struct {
		place coordination.Place
		prove func(g *rig, old coordination.Status)
		by    string
	}{
		"TCP time-out passes":   {at("h1", "b1", "L1", "1@1"), func(g *rig, _ coordination.Status) { g.now = g.now.Add(30 * time.Second) }, "lock"},
		"operator forgets":      {at("h2", "b2", "L2", "1@1"), forgotten, "forgotten"},
		"its host boots":        {at("h2", "b2", "L2", "1@1"), boots, "boot id b3"},
		"it reports by itself":  {at("h2", "b2", "L2", "1@1"), ended, "its own end"},
		"two machines, no word": {at("h1", "b1", "L2", "1@1"), func(g *rig, _ coordination.Status) { g.now = g.now.Add(time.Hour) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			old := g.take("w1", tt.place)
			heir := g.take("w2", at("h1", "b1", "L1", "9@9"))
			a := g.auditor(nil)
			_, err := a.Predecessors(t.Context(), heir, plain)
			g.ok(err)
			left, err := a.Settle(t.Context(), heir)
			g.ok(err)
			if o := g.overlaps(); !left || len(o) != 1 || !o[0].IsOpen() {
				t.Fatalf("before the proof: left %v, got %+v, want one open record", left, o)
			}
			tt.prove(g, old)
			for range 2 {
				left, err = a.Settle(t.Context(), heir)
				g.ok(err)
			}
			o := g.overlaps()
			if tt.by == "" {
				if !left || !o[0].IsOpen() {
					t.Fatalf("without a proof: left %v, got %+v, want it open", left, o[0])
				}
				return
			}
			if left || o[0].IsOpen() || len(o[0].Resolutions) != 1 || !strings.Contains(o[0].Resolutions[0].What, tt.by) ||
				!strings.Contains(o[0].Resolutions[0].What, "datalink verify orders --repair") {
				t.Fatalf("after the proof: left %v, got %+v, want it closed by %q", left, o[0], tt.by)
			}
			if got := g.kinds(old.ExecutionID); !strings.Contains(got, "dead") {
				t.Errorf("journal: got %q, want dead in it", got)
			}
		})
	}
}

func boots(g *rig, _ coordination.Status) {
	_, err := g.store.Join(g.t.Context(), coordination.Worker{ID: "w3", Place: at("h2", "b3", "L5", "1@1")})
	g.ok(err)
}

func TestLate(t *testing.T) {
	g := newRig(t)
	late := g.take("w1", at("h1", "b1", "L1", "1@1"))
	heir := g.take("w2", at("h2", "b2", "L2", "1@1"))
	reg := prometheus.NewRegistry()
	m, err := audit.NewMetrics(reg)
	g.ok(err)
	a := g.auditor(m.Notify)
	report := audit.Late{
		Cause: coordination.CauseFence, Self: late, Other: coordination.Party{ExecutionID: heir.ExecutionID, Epoch: heir.Epoch},
		LastOK: g.now.Add(-time.Hour), Detail: "batch 7 refused", Tables: []string{"shop.orders"}, Levels: sql,
		Writers: []coordination.OverlapWriter{{Name: "w", Level: "transactional", Written: 6, Refused: 1}},
	}
	g.ok(a.Late(t.Context(), report))
	g.ok(a.Late(t.Context(), report))
	o := g.overlaps()
	if len(o) != 1 {
		t.Fatalf("records: got %d, want 1", len(o))
	}
	want := coordination.Overlap{
		ID: audit.ID(late.ExecutionID, heir.ExecutionID, coordination.CauseFence), Task: "orders", TaskUID: g.task.UID, Cause: coordination.CauseFence, Certain: true,
		Late:  coordination.Party{ExecutionID: late.ExecutionID, Epoch: 1, Worker: "w1", Host: "h1", StoreUID: g.store.UID(), TaskUID: g.task.UID},
		Owner: coordination.Party{ExecutionID: heir.ExecutionID, Epoch: 2, Worker: "w2", Host: "h2", StoreUID: g.store.UID(), TaskUID: g.task.UID},
		By:    late.ExecutionID, At: g.now, From: heir.StartedAt, To: g.now, Tables: report.Tables, Writers: report.Writers,
		Verdict: coordination.Harmless, Done: "the late execution was stopped", Detail: "batch 7 refused",
	}
	if d := cmp.Diff(want, o[0]); d != "" {
		t.Errorf("record (-want +got):\n%s", d)
	}
	got, err := reg.Gather()
	if err != nil || len(got) != 1 || got[0].Metric[0].Counter.GetValue() != 1 {
		t.Errorf("metrics: got %v, %v, want one overlap", got, err)
	}
}

// The other execution is of another store: all that is known is what the fence told.
func TestLateOfAnotherStore(t *testing.T) {
	g := newRig(t)
	late := g.take("w1", at("h1", "b1", "L1", "1@1"))
	other := coordination.Party{ExecutionID: "x", Epoch: 4, StoreUID: "s2", TaskUID: "t2"}
	g.ok(g.auditor(nil).Late(t.Context(), audit.Late{Cause: coordination.CauseFence, Self: late, Other: other, LastOK: g.now, Levels: plain}))
	o := g.overlaps()
	if len(o) != 1 || o[0].Owner != other || !o[0].From.Equal(g.now) || o[0].Verdict != coordination.PossiblyDirty {
		t.Fatalf("record: got %+v", o)
	}
}

// Where the store only said that the condition did not hold, the owner is the
// execution that began last.
func TestLateFindsTheOwner(t *testing.T) {
	g := newRig(t)
	late := g.take("w1", at("h1", "b1", "L1", "1@1"))
	g.take("w2", at("h2", "b2", "L2", "1@1"))
	last := g.take("w3", at("h3", "b3", "L3", "1@1"))
	g.ok(g.auditor(nil).Late(t.Context(), audit.Late{Cause: coordination.CauseStore, Self: late, Levels: sql}))
	if o := g.overlaps(); len(o) != 1 || o[0].Owner.ExecutionID != last.ExecutionID || o[0].Owner.Worker != "w3" {
		t.Fatalf("record: got %+v, want %s as owner", o, last.ExecutionID)
	}
}

func TestHistorySkipsTrimmedStarts(t *testing.T) {
	got := audit.History([]coordination.Entry{
		{Kind: coordination.EntryEnded, ExecutionID: "gone"},
		{Kind: coordination.EntryStarted, ExecutionID: "a", Epoch: 1},
		{Kind: coordination.EntryRaised, ExecutionID: "a", Epoch: 9},
		{Kind: coordination.EntryStarted, ExecutionID: "b", Epoch: 10},
		{Kind: coordination.EntryLost, ExecutionID: "a"},
	})
	if len(got) != 2 || got[0].Epoch != 9 || !got[0].Closed() || got[0].Gone() || got[1].Closed() {
		t.Fatalf("history: got %+v", got)
	}
}
