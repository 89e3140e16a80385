package coordtest

import (
	"errors"
	"slices"
	"sync"

	"github.com/datalink-go/datalink/coordination"
)

var takeChecks = []Check{
	{"take/status and journal in one step", takeAtomic},
	{"take/held by another", takeHeld},
	{"take/asked again", takeAgain},
	{"take/executionId is used once", takeUsed},
	{"take/epochs rise", takeEpochs},
	{"take/replaces a dead node of its own place", takeReplace},
	{"take/replaces nothing else", takeReplaceRefused},
	{"take/one of many at once", takeConcurrent},
	{"raise/above what a target holds", raiseAbove},
	{"raise/checks ownership", raiseOwned},
	{"restore/epochs rise above the targets", restoreEpochs},
}

func takeAtomic(t T, fresh New) {
	b := setUp(t, fresh)
	s := b.join("w1")
	st := b.take(s)
	got := b.status()
	if got == nil || got.ExecutionID != st.ExecutionID || got.Epoch != st.Epoch || got.Worker != "w1" || got.PID != 7 ||
		got.Place != place("w1") || got.StartedAt.IsZero() || got.State != "taking" || got.TaskUID != b.task.UID || got.Session != s.ID() {
		t.Fatalf("status node: got %+v, want that of the take %+v", got, st)
	}
	j := b.journal()
	if len(j) != 1 || j[0].Kind != coordination.EntryStarted || j[0].ExecutionID != st.ExecutionID || j[0].Epoch != st.Epoch ||
		j[0].Place != place("w1") || j[0].Worker != "w1" || j[0].At.IsZero() {
		t.Fatalf("journal: got %+v, want one entry started of %s", j, st.ExecutionID)
	}
	b.ok("save", s.Save(b.ctx, st.Owner(), coordination.Step{Writer: "w", Points: []coordination.Point{point(0, 3)}}))
	b.ok("release", s.Release(b.ctx, st.Owner()))
	next := b.take(s)
	j = b.journal()
	last := j[len(j)-1]
	if last.ExecutionID != next.ExecutionID || len(last.Positions) != 1 || last.Positions[0].Position.Ordinal != 3 {
		t.Fatalf("started entry: got %+v, want the position that was stored", last)
	}
}

func takeHeld(t T, fresh New) {
	b := setUp(t, fresh)
	s1, s2 := b.join("w1"), b.join("w2")
	st := b.take(s1)
	for _, s := range []coordination.Session{s2, s1} {
		_, err := s.Take(b.ctx, coordination.Take{Task: "orders", ExecutionID: newID()})
		var held *coordination.HeldError
		if !errors.As(err, &held) || held.Status.ExecutionID != st.ExecutionID || held.Status.Worker != "w1" {
			t.Fatalf("take of a held task: got %v, want a HeldError that names %s", err, st.ExecutionID)
		}
	}
	if got := b.status(); got == nil || got.ExecutionID != st.ExecutionID || got.Epoch != st.Epoch {
		t.Fatalf("status after the refusal: got %+v, want %+v", got, st)
	}
	if j := b.journal(); len(j) != 1 {
		t.Fatalf("journal after the refusal: got %q, want one entry", kinds(j, ""))
	}
}

func takeAgain(t T, fresh New) {
	b := setUp(t, fresh)
	s := b.join("w1")
	req := coordination.Take{Task: "orders", ExecutionID: newID()}
	first, err := s.Take(b.ctx, req)
	b.ok("take", err)
	again, err := s.Take(b.ctx, req)
	b.ok("take again after a lost answer", err)
	if again.Epoch != first.Epoch || len(b.journal()) != 1 {
		t.Fatalf("take again: got epoch %d and %d entries, want %d and 1", again.Epoch, len(b.journal()), first.Epoch)
	}
}

func takeUsed(t T, fresh New) {
	b := setUp(t, fresh)
	s := b.join("w1")
	st := b.take(s)
	b.ok("release", s.Release(b.ctx, st.Owner()))
	_, err := s.Take(b.ctx, coordination.Take{Task: "orders", ExecutionID: st.ExecutionID})
	b.is("take with an executionId that ran before", err, coordination.ErrExists)
	if got := b.status(); got != nil {
		t.Fatalf("status after the refusal: got %+v, want none", got)
	}
	_, err = s.Take(b.ctx, coordination.Take{Task: "orders", ExecutionID: "7"})
	b.is("take with an executionId that is no UUID", err, coordination.ErrInvalid)
}

func takeEpochs(t T, fresh New) {
	b := setUp(t, fresh)
	s := b.join("w1")
	var last uint64
	for i := range 5 {
		if i == 3 {
			b.ok("close", s.Close(b.ctx))
			s = b.join("w1")
		}
		st := b.take(s)
		if st.Epoch <= last {
			t.Fatalf("take %d: got epoch %d after %d, want a greater one", i, st.Epoch, last)
		}
		last = st.Epoch
		b.ok("release", s.Release(b.ctx, st.Owner()))
	}
	st, err := s.Take(b.ctx, coordination.Take{Task: "orders", ExecutionID: newID(), Above: 1000})
	b.ok("take above 1000", err)
	if st.Epoch != 1001 {
		t.Fatalf("take above 1000: got epoch %d, want 1001", st.Epoch)
	}
}

func takeReplace(t T, fresh New) {
	b := setUp(t, fresh)
	if b.Abandon == nil {
		t.Skip("optional: the subject cannot leave the nodes of a dead process")
	}
	home := place("home")
	s1 := b.joinAt("w1", home)
	st := b.take(s1)
	b.Abandon(s1.ID())
	home.Process = "9@200"
	s2 := b.joinAt("w2", home)
	_, err := s2.Take(b.ctx, coordination.Take{Task: "orders", ExecutionID: newID()})
	b.is("take without naming the dead node", err, coordination.ErrHeld)
	_, err = s2.Take(b.ctx, coordination.Take{Task: "orders", ExecutionID: newID(), Replace: newID()})
	b.is("take naming another execution", err, coordination.ErrHeld)
	next, err := s2.Take(b.ctx, coordination.Take{Task: "orders", ExecutionID: newID(), Replace: st.ExecutionID})
	b.ok("take that replaces the dead node", err)
	if next.Epoch <= st.Epoch {
		t.Fatalf("replacing take: got epoch %d after %d", next.Epoch, st.Epoch)
	}
	if got := b.status(); got == nil || got.ExecutionID != next.ExecutionID {
		t.Fatalf("status: got %+v, want %s", got, next.ExecutionID)
	}
}

func takeReplaceRefused(t T, fresh New) {
	mine := place("a")
	mine.Process = "9@200"
	for name, theirs := range map[string]coordination.Place{
		"other host":      {Host: "host-2", BootID: "boot-1", LockID: "a", Held: true, Process: "7@100"},
		"other boot":      {Host: "host-1", BootID: "boot-2", LockID: "a", Held: true, Process: "7@100"},
		"other directory": {Host: "host-1", BootID: "boot-1", LockID: "b", Held: true, Process: "7@100"},
		"lock not held":   {Host: "host-1", BootID: "boot-1", LockID: "a", Process: "7@100"},
		"host unknown":    {BootID: "boot-1", LockID: "a", Held: true, Process: "7@100"},
		"process unknown": {Host: "host-1", BootID: "boot-1", LockID: "a", Held: true},
		"same process":    mine,
		"nothing known":   {DataDir: "/data/a"},
	} {
		b := setUp(t, fresh)
		s1, s2 := b.joinAt("w1", theirs), b.joinAt("w2", mine)
		st := b.take(s1)
		_, err := s2.Take(b.ctx, coordination.Take{Task: "orders", ExecutionID: newID(), Replace: st.ExecutionID})
		b.is("replace a live node: "+name, err, coordination.ErrHeld)
		if got := b.status(); got == nil || got.ExecutionID != st.ExecutionID {
			t.Fatalf("%s: status after the refusal: got %+v, want %s", name, got, st.ExecutionID)
		}
	}
}

// takeConcurrent lets sessions race for the task; each winner writes, checks that
// it is alone and releases.
func takeConcurrent(t T, fresh New) {
	b := setUp(t, fresh)
	const workers, rounds = 6, 12
	var mu sync.Mutex
	running, epochs, wins := 0, []uint64{}, 0
	var wg sync.WaitGroup
	for w := range workers {
		s := b.join(string('a' + rune(w)))
		wg.Go(func() {
			for wins := 0; wins < rounds; {
				changed, err := b.Watch(b.ctx, "orders")
				if err != nil {
					b.Errorf("watch: %v", err)
					return
				}
				st, err := s.Take(b.ctx, coordination.Take{Task: "orders", ExecutionID: newID()})
				if errors.Is(err, coordination.ErrHeld) {
					<-changed
					continue
				}
				if err != nil {
					b.Errorf("take: %v", err)
					return
				}
				wins++
				mu.Lock()
				running++
				if running != 1 {
					b.Errorf("%d executions at once", running)
				}
				epochs = append(epochs, st.Epoch)
				mu.Unlock()
				if err := s.Save(b.ctx, st.Owner(), coordination.Step{Writer: "w", Points: []coordination.Point{point(0, 1)}}); err != nil {
					b.Errorf("save of the owner: %v", err)
				}
				mu.Lock()
				running--
				mu.Unlock()
				if err := s.Release(b.ctx, st.Owner()); err != nil {
					b.Errorf("release of the owner: %v", err)
				}
			}
		})
	}
	wg.Wait()
	wins = len(epochs)
	if !slices.IsSorted(epochs) || len(slices.Compact(slices.Clone(epochs))) != wins {
		t.Fatalf("epochs in order of the takes: got %v, want each greater than the one before", epochs)
	}
	if n := len(b.journal()); n != workers*rounds {
		t.Fatalf("journal: got %d started entries, want %d", n, workers*rounds)
	}
}

func raiseAbove(t T, fresh New) {
	b := setUp(t, fresh)
	s := b.join("w1")
	st := b.take(s)
	up, err := s.Raise(b.ctx, st.Owner(), 41)
	b.ok("raise", err)
	if up.Epoch != 42 || up.ExecutionID != st.ExecutionID {
		t.Fatalf("raise above 41: got epoch %d of %s, want 42 of %s", up.Epoch, up.ExecutionID, st.ExecutionID)
	}
	if got := b.status(); got == nil || got.Epoch != 42 {
		t.Fatalf("status: got %+v, want epoch 42", got)
	}
	up2, err := s.Raise(b.ctx, up.Owner(), 5)
	b.ok("raise above less than it has", err)
	if up2.Epoch <= 42 {
		t.Fatalf("raise above 5: got epoch %d, want more than 42", up2.Epoch)
	}
	b.is("save with the epoch of before", s.Save(b.ctx, st.Owner(), coordination.Step{Writer: "w"}), coordination.ErrFenced)
	b.ok("release with the epoch of before", s.Release(b.ctx, st.Owner()))
	if next := b.take(s); next.Epoch <= up2.Epoch {
		t.Fatalf("next take: got epoch %d after %d", next.Epoch, up2.Epoch)
	}
	if got := kinds(b.journal(), st.ExecutionID); !slices.Equal(got, []string{"started", "raised", "raised"}) {
		t.Fatalf("journal: got %q, want started, raised, raised", got)
	}
}

func raiseOwned(t T, fresh New) {
	b := setUp(t, fresh)
	s := b.join("w1")
	old := b.take(s)
	b.ok("release", s.Release(b.ctx, old.Owner()))
	_, err := s.Raise(b.ctx, old.Owner(), 9)
	b.is("raise without a status node", err, coordination.ErrFenced)
	s2 := b.join("w2")
	heir := b.take(s2)
	_, err = s.Raise(b.ctx, old.Owner(), 99)
	var fenced *coordination.FencedError
	if !errors.As(err, &fenced) || fenced.Found == nil || fenced.Found.ExecutionID != heir.ExecutionID {
		t.Fatalf("raise of an execution that was followed: got %v, want a FencedError that names %s", err, heir.ExecutionID)
	}
	if got := b.status(); got == nil || got.Epoch != heir.Epoch {
		t.Fatalf("status after the refusal: got %+v, want epoch %d", got, heir.Epoch)
	}
	b.ok("release", s2.Release(b.ctx, heir.Owner()))
	if next := b.take(s); next.Epoch > 99 {
		t.Fatalf("a refused raise lifted the epoch to %d", next.Epoch)
	}
}

// restoreEpochs puts back a store from before a number of executions, one of which
// claimed a target.
func restoreEpochs(t T, fresh New) {
	b := setUp(t, fresh)
	if b.Snapshot == nil {
		t.Skip("optional: the subject cannot put back an older copy")
	}
	s := b.join("w1")
	first := b.take(s)
	b.ok("release", s.Release(b.ctx, first.Owner()))
	restore := b.Snapshot(b.ctx)
	var target coordination.Status // what the target was claimed with
	for range 3 {
		target = b.take(s)
		b.ok("release", s.Release(b.ctx, target.Owner()))
	}
	uid := b.UID()
	b.Store = restore(b.ctx)
	if b.UID() != uid {
		t.Fatalf("uid of the copy: got %s, want %s", b.UID(), uid)
	}
	s = b.join("w2")
	st := b.take(s)
	if st.Epoch > target.Epoch {
		t.Fatalf("the copy gives epoch %d, the target holds %d: the check shows nothing", st.Epoch, target.Epoch)
	}
	up, err := s.Raise(b.ctx, st.Owner(), target.Epoch)
	b.ok("raise above the target", err)
	if up.Epoch <= target.Epoch {
		t.Fatalf("raise above %d: got %d", target.Epoch, up.Epoch)
	}
	b.ok("save with the new epoch", s.Save(b.ctx, up.Owner(), coordination.Step{Writer: "w", Points: []coordination.Point{point(0, 1)}}))
	b.ok("release", s.Release(b.ctx, up.Owner()))
	if next := b.take(s); next.Epoch <= up.Epoch {
		t.Fatalf("next take: got epoch %d after %d", next.Epoch, up.Epoch)
	}
}
