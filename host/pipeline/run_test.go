package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/datalink-go/datalink/sdk"
)

var quick = Backoff{Min: time.Millisecond, Max: 5 * time.Millisecond, Detach: 150 * time.Millisecond, Attempts: 50}

func writerOf(name string, t *target) WriterConfig {
	return WriterConfig{Name: name, Sink: &fakeSink{t}, Stores: true, Reopen: func(context.Context) (Sink, error) { return &fakeSink{t}, nil }}
}

func configOf(s *fakeSource, ws ...WriterConfig) Config {
	return Config{
		Execution: sdk.Execution{Task: "t"}, Backoff: quick, Writers: ws,
		Reader: ReaderConfig{Source: s, Reopen: func(context.Context) (Source, error) { return s, nil }},
	}
}

func numbered(txs, size int) history {
	var h history
	n := int64(0)
	for range txs {
		var tx []change
		for range size {
			tx = append(tx, change{n % 97, n})
			n++
		}
		h = append(h, tx)
	}
	return h
}

// flat returns the changes of a history in order: what a target without crashes
// has applied.
func flat(h history) []change {
	var out []change
	for _, tx := range h {
		out = append(out, tx...)
	}
	return out
}

type fataler interface{ Fatalf(string, ...any) }

func run(t fataler, cfg Config) (Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	res, err := Run(ctx, cfg)
	if ctx.Err() != nil {
		t.Fatalf("run did not end in time: %v", err)
	}
	return res, err
}

func check(t fataler, name string, tg *target, h history) {
	if d := cmp.Diff(flat(h), tg.applied, cmp.AllowUnexported(change{})); d != "" {
		t.Fatalf("%s: applied changes differ (-want +got):\n%s", name, d)
	}
}

func TestRunToTheEnd(t *testing.T) {
	h := numbered(500, 3)
	a, b := newTarget(), newTarget()
	res, err := run(t, configOf(&fakeSource{h: h, perRead: 60}, writerOf("a", a), writerOf("b", b)))
	if err != nil || !res.Ended {
		t.Fatalf("got %+v, %v", res, err)
	}
	check(t, "a", a, h)
	check(t, "b", b, h)
	if got := txOf(res.Points["a"][0].Position); got != len(h) {
		t.Fatalf("position after the run is %d, want %d", got, len(h))
	}
}

// Writers die before and after commits, the reader dies too, and each of three
// writers still applies each change exactly once.
func TestExactlyOnceUnderDeaths(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := numbered(rapid.IntRange(1, 60).Draw(rt, "txs"), rapid.IntRange(1, 5).Draw(rt, "size"))
		rng := rand.New(rand.NewSource(rapid.Int64().Draw(rt, "seed")))
		src := &fakeSource{h: h, perRead: rapid.IntRange(5, 40).Draw(rt, "per read"), dieAt: map[int]bool{rng.Intn(10): true}}
		cfg := configOf(src)
		var targets []*target
		for i := range rapid.IntRange(1, 3).Draw(rt, "writers") {
			tg := newTarget()
			r := rand.New(rand.NewSource(rng.Int63()))
			left := int32(4) // fewer than make a record look like poison
			tg.die = func(string) bool { return r.Intn(12) == 0 && atomic.AddInt32(&left, -1) >= 0 }
			targets = append(targets, tg)
			cfg.Writers = append(cfg.Writers, writerOf(fmt.Sprint("w", i), tg))
		}
		// The window holds any two blocks: it must be larger than a transaction that the sink does not split.
		cfg.Window = Window{Records: rapid.IntRange(90, 200).Draw(rt, "window")}
		if _, err := run(rt, cfg); err != nil {
			rt.Fatal(err)
		}
		for i, tg := range targets {
			check(rt, fmt.Sprint("w", i), tg, h)
		}
	})
}

// The same deaths without the skip apply changes twice: the check can fail.
func TestWithoutSkipChangesComeTwice(t *testing.T) {
	h := numbered(40, 2)
	a, b := newTarget(), newTarget()
	died := false
	a.die = func(when string) bool {
		if when == "after commit" && !died && a.point.BatchNo == 7 {
			died = true
			return true
		}
		return false
	}
	cfg := configOf(&fakeSource{h: h, perRead: 20}, writerOf("a", a), writerOf("b", b))
	cfg.NoSkip = true
	if _, err := run(t, cfg); err != nil {
		t.Fatal(err)
	}
	if len(a.applied) <= len(flat(h)) {
		t.Fatalf("%d changes applied of %d: the skip was off and nothing came twice", len(a.applied), len(flat(h)))
	}
	check(t, "b", b, h)
}

func TestPoisonStopsNamingTheRecord(t *testing.T) {
	h := numbered(20, 10)
	a := newTarget()
	a.poison[55] = true
	_, err := run(t, configOf(&fakeSource{h: h, perRead: 100}, writerOf("a", a)))
	if err == nil || !strings.Contains(err.Error(), "db.items, key (id=55)") || sdk.AsFault(err).Code != sdk.CodePoison {
		t.Fatalf("got %v, want a poison fault that names id=55", err)
	}
	check(t, "a", a, history{flat(h)[:55]})
}

func TestPoisonGoesToDeadLetters(t *testing.T) {
	h := numbered(40, 10) // keys come again after 97 changes
	a, b := newTarget(), newTarget()
	a.poison[55] = true
	wc := writerOf("a", a)
	wc.OnError = DeadLetterOnError
	if _, err := run(t, configOf(&fakeSource{h: h, perRead: 100}, wc, writerOf("b", b))); err != nil {
		t.Fatal(err)
	}
	var want []change
	letters := 0
	for _, c := range flat(h) {
		if c.id == 55 {
			letters++
			continue
		}
		want = append(want, c)
	}
	if d := cmp.Diff(want, a.applied, cmp.AllowUnexported(change{})); d != "" {
		t.Fatalf("applied (-want +got):\n%s", d)
	}
	if len(a.letters) != letters || a.letters[0].Fault.Code != sdk.CodePoison || a.letters[1].Fault.Code != sdk.CodeRefused {
		t.Fatalf("dead letters: %+v, want %d", a.letters, letters)
	}
	check(t, "b", b, h)
}

func TestRefusedRecords(t *testing.T) {
	h := numbered(30, 10)
	for _, policy := range []Policy{StopOnError, DeadLetterOnError} {
		a := newTarget()
		a.refuse[13], a.refuse[14] = true, true
		wc := writerOf("a", a)
		wc.OnError = policy
		_, err := run(t, configOf(&fakeSource{h: h, perRead: 50}, wc))
		if policy == StopOnError {
			if err == nil || !strings.Contains(err.Error(), "id=13") {
				t.Fatalf("stop: got %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		numbers := map[uint64]bool{}
		for _, d := range a.letters {
			numbers[d.Number] = true
		}
		if len(a.letters) != 6 || len(numbers) != 6 {
			t.Fatalf("%d dead letters with %d numbers, want 6: keys 13 and 14, three times each", len(a.letters), len(numbers))
		}
	}
}

// Without the guard a later change overtakes the dead letter of its key.
func TestGuardKeepsOrder(t *testing.T) {
	h := history{{{1, 1}}, {{2, 2}}, {{1, 3}}}
	for _, off := range []bool{false, true} {
		a := newTarget()
		a.refuse[1], a.mends = true, true // the target is mended; the later change must still follow
		wc := writerOf("a", a)
		wc.OnError = DeadLetterOnError
		cfg := configOf(&fakeSource{h: h, perRead: 1}, wc)
		cfg.NoGuard = off
		if _, err := run(t, cfg); err != nil {
			t.Fatal(err)
		}
		if _, wrote := a.rows[1]; wrote != off {
			t.Fatalf("guard off: %t, later change written: %t: rows %v, applied %v, letters %d", off, wrote, a.rows, a.applied, len(a.letters))
		}
	}
}

// A writer that stays down while the window is full is detached, the other goes
// on, and both are whole once it is back.
func TestDetachedWriterIsServedByReopening(t *testing.T) {
	h := numbered(300, 2)
	a, b := newTarget(), newTarget()
	var down atomic.Bool
	a.die = func(string) bool {
		if a.point.BatchNo == 20 && down.CompareAndSwap(false, true) {
			a.mu.Lock()
			a.unusable = sdk.Faultf(sdk.CodeUnavailable, "down").Retry()
			a.mu.Unlock()
			return true
		}
		return false
	}
	src := &fakeSource{h: h, perRead: 10}
	cfg := configOf(src, writerOf("a", a), writerOf("b", b))
	cfg.Window = Window{Records: 60}
	cfg.Backoff.Attempts = 10000
	up := make(chan struct{})
	go func() {
		defer close(up)
		for {
			b.mu.Lock()
			all := txOf(b.point.Position) == len(h)
			b.mu.Unlock()
			if all {
				a.mu.Lock()
				a.unusable = nil
				a.mu.Unlock()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	if _, err := run(t, cfg); err != nil {
		t.Fatal(err)
	}
	<-up
	check(t, "a", a, h)
	check(t, "b", b, h)
	if src.opens < 2 {
		t.Fatalf("reader was opened %d times", src.opens)
	}
}

func TestSlowWriterStallsOnlyAtTheWindow(t *testing.T) {
	h := numbered(200, 1)
	a, b := newTarget(), newTarget()
	a.slow = make(chan struct{})
	cfg := configOf(&fakeSource{h: h, perRead: 10}, writerOf("a", a), writerOf("b", b))
	cfg.Window = Window{Records: 50}
	done := make(chan error, 1)
	go func() { _, err := Run(context.Background(), cfg); done <- err }()
	reach := func(n int) {
		for {
			b.mu.Lock()
			got := len(b.applied)
			b.mu.Unlock()
			if got >= n {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	reach(50)
	for range 5 {
		a.slow <- struct{}{}
	}
	reach(90)
	close(a.slow)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	check(t, "a", a, h)
}

func TestStopDrains(t *testing.T) {
	h := numbered(50, 2)
	a := newTarget()
	src := &fakeSource{h: h, perRead: 10, hold: make(chan struct{})}
	stop := make(chan struct{})
	cfg := configOf(src, writerOf("a", a))
	cfg.Stop = stop
	go func() {
		for {
			a.mu.Lock()
			n := len(a.applied)
			a.mu.Unlock()
			if n >= 40 {
				close(stop)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	res, err := run(t, cfg)
	if err != nil || res.Ended {
		t.Fatalf("got %+v, %v", res, err)
	}
	if got := txOf(res.Points["a"][0].Position); got*2 != len(a.applied) {
		t.Fatalf("position %d, %d changes applied", got, len(a.applied))
	}
}

func TestFencedEndsTheRun(t *testing.T) {
	a := newTarget()
	a.unusable = sdk.ErrFenced
	if _, err := run(t, configOf(&fakeSource{h: numbered(5, 1), perRead: 5}, writerOf("a", a))); !errors.Is(err, sdk.ErrFenced) {
		t.Fatalf("got %v", err)
	}
}

// memory is a progress store for writers that have none.
type memory struct {
	saved map[string]*sdk.Claimed
	saves int
}

func (m *memory) Load(_ context.Context, w string) (*sdk.Claimed, error) { return m.saved[w], nil }
func (m *memory) Reserve(_ context.Context, _ string, want uint64) (uint64, error) {
	return want, nil
}

func (m *memory) Save(_ context.Context, w string, s *Saved) error {
	if m.saved == nil {
		m.saved = map[string]*sdk.Claimed{}
	}
	m.saves++
	c := m.saved[w]
	if c == nil {
		c = &sdk.Claimed{}
	}
	c = &sdk.Claimed{Points: s.Points, DeadLetters: append(c.DeadLetters, s.SetAside...), State: append(c.State, s.State...)}
	m.saved[w] = c
	return nil
}

func TestProgressOfWritersWithoutStorage(t *testing.T) {
	h := numbered(100, 2)
	a, m := newTarget(), &memory{}
	a.refuse[5] = true
	wc := writerOf("a", a)
	wc.Stores, wc.OnError = false, DeadLetterOnError
	cfg := configOf(&fakeSource{h: h, perRead: 10}, wc)
	cfg.Progress = m
	if _, err := run(t, cfg); err != nil {
		t.Fatal(err)
	}
	if got := txOf(m.saved["a"].Points[0].Position); got != len(h) {
		t.Fatalf("saved position %d, want %d", got, len(h))
	}
	if len(m.saved["a"].DeadLetters) != 3 {
		t.Fatalf("saved dead letters: %+v", m.saved["a"].DeadLetters)
	}
	before := len(a.applied)
	if _, err := run(t, cfg); err != nil || len(a.applied) != before {
		t.Fatalf("second run: %v, %d changes applied", err, len(a.applied)-before)
	}
}

// Blocks end inside transactions, so that something is in flight for long:
// the bytes in flight must come down all the same.
func TestBytesInFlightComeBack(t *testing.T) {
	h := numbered(100, 13)
	a := newTarget()
	cfg := configOf(&fakeSource{h: h, perRead: 11}, writerOf("a", a))
	cfg.Window = Window{Bytes: 2048}
	if _, err := run(t, cfg); err != nil {
		t.Fatal(err)
	}
	check(t, "a", a, h)
}
