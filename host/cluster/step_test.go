package cluster

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

// story is a leader's looks, one after the other, with the plan carried along.
type story struct {
	t    testing.TB
	s    State
	v    View
	now  time.Time
	text strings.Builder
}

func newStory(t testing.TB, n int, workers ...string) *story {
	y := &story{t: t, now: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)}
	y.v = View{Config: Config{Grace: 15 * time.Second, Settle: time.Minute}, Plan: map[string]string{}, Even: map[string]string{}, Tasks: tasks(n)}
	for _, w := range workers {
		y.join(w)
	}
	return y
}

func (y *story) join(id string) {
	y.v.Members = append(y.v.Members, Present{ID: id, Groups: []string{"g"}})
}

func (y *story) gone(id string) {
	y.v.Members = slices.DeleteFunc(y.v.Members, func(m Present) bool { return m.ID == id })
}

func (y *story) leaving(id string, on bool) {
	for i := range y.v.Members {
		if y.v.Members[i].ID == id {
			y.v.Members[i].Leaving = on
		}
	}
}

// look lets time pass, looks and writes down what came of it.
func (y *story) look(after time.Duration, what string) Outcome {
	y.now = y.now.Add(after)
	y.v.Now = y.now
	before := y.v.Plan
	var out Outcome
	y.s, out = Step(y.s, y.v)
	fmt.Fprintf(&y.text, "+%s %s\n", after, what)
	var moves []string
	for _, name := range slices.Sorted(maps.Keys(out.Plan.Place)) {
		if w, old := out.Plan.Place[name], before[name]; w != old {
			moves = append(moves, fmt.Sprintf("%s %s→%s", name, cmp0(old), w))
		}
	}
	fmt.Fprintf(&y.text, "  changed %v next %s\n", out.Changed, out.Next)
	for _, m := range moves {
		fmt.Fprintf(&y.text, "  %s\n", m)
	}
	for _, name := range slices.Sorted(maps.Keys(out.Plan.Unplaced)) {
		fmt.Fprintf(&y.text, "  %s waits: %s\n", name, out.Plan.Unplaced[name])
	}
	y.v.Plan = out.Plan.Place
	return out
}

func cmp0(s string) string {
	if s == "" {
		return "·"
	}
	return s
}

func (y *story) check(name string) {
	y.t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(y.text.String()), 0o600); err != nil {
			y.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		y.t.Fatal(err)
	}
	if d := cmp.Diff(string(want), y.text.String()); d != "" {
		y.t.Errorf("%s (-want +got); -update rewrites it:\n%s", path, d)
	}
}

func TestTranscripts(t *testing.T) {
	t.Run("a worker restarts within the grace delay", func(t *testing.T) {
		y := newStory(t, 4, "a", "b")
		y.look(0, "two workers")
		y.gone("b")
		y.look(time.Second, "b is gone")
		y.look(10*time.Second, "still gone")
		y.join("b")
		y.look(time.Second, "b is back")
		y.check("restart")
	})
	t.Run("a worker stays away", func(t *testing.T) {
		y := newStory(t, 4, "a", "b")
		y.look(0, "two workers")
		y.gone("b")
		y.look(time.Second, "b is gone")
		y.look(15*time.Second, "the grace delay is over")
		y.join("b")
		y.look(time.Second, "b is back, its tasks have just moved")
		y.look(time.Minute, "they are settled")
		y.check("loss")
	})
	t.Run("rolling restart", func(t *testing.T) {
		y := newStory(t, 6, "a", "b", "c")
		y.look(0, "three workers")
		for _, w := range []string{"a", "b", "c"} {
			y.leaving(w, true)
			y.look(time.Second, w+" leaves")
			y.gone(w)
			y.look(time.Second, w+" is gone")
			y.join(w)
			y.look(time.Second, w+" is back")
			y.look(2*time.Minute, "later")
		}
		y.check("rolling")
	})
	t.Run("leader is followed by another", func(t *testing.T) {
		y := newStory(t, 4, "a", "b")
		y.look(0, "two workers")
		y.s = State{} // a new leader knows nothing
		if out := y.look(time.Second, "another leads"); len(out.Changed) != 0 {
			t.Errorf("a new leader changes %v", out.Changed)
		}
		y.check("leader")
	})
	t.Run("rebalance on request", func(t *testing.T) {
		y := newStory(t, 4, "a")
		y.look(0, "one worker")
		y.join("b")
		y.look(time.Second, "two")
		y.v.Tasks[0].Weight, y.v.Tasks[1].Weight = 4*Unit, 4*Unit
		y.look(time.Second, "two tasks become heavy; all have just moved")
		y.v.Even = map[string]string{"g": "1"}
		y.look(time.Second, "an operator asks")
		y.look(time.Second, "the request is served once")
		y.check("rebalance")
	})
}

// Whatever happens to workers: a task moves from a worker that is there and may run
// it only for balance, and within Settle at most once.
func TestStepProperties(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		y := newStory(t, rapid.IntRange(1, 30).Draw(r, "tasks"), "a", "b", "c")
		y.look(0, "begin")
		ids := []string{"a", "b", "c", "d", "e"}
		last := map[string]time.Time{}
		r.Repeat(map[string]func(*rapid.T){
			"join": func(r *rapid.T) {
				id := rapid.SampledFrom(ids).Draw(r, "id")
				if !slices.ContainsFunc(y.v.Members, func(m Present) bool { return m.ID == id }) {
					y.join(id)
				}
			},
			"gone":    func(r *rapid.T) { y.gone(rapid.SampledFrom(ids).Draw(r, "id")) },
			"leaving": func(r *rapid.T) { y.leaving(rapid.SampledFrom(ids).Draw(r, "id"), rapid.Bool().Draw(r, "on")) },
			"weight": func(r *rapid.T) {
				y.v.Tasks[rapid.IntRange(0, len(y.v.Tasks)-1).Draw(r, "task")].Weight = Unit << rapid.IntRange(0, 4).Draw(r, "weight")
			},
			"leader": func(*rapid.T) { y.s = State{}; clear(last) },
			"": func(r *rapid.T) {
				before := maps.Clone(y.v.Plan)
				live := map[string]bool{}
				for _, m := range y.v.Members {
					live[m.ID] = !m.Leaving
				}
				y.look(time.Duration(rapid.IntRange(1, 20).Draw(r, "seconds"))*time.Second, "")
				for name, w := range y.v.Plan {
					old := before[name]
					if old == "" || old == w {
						continue
					}
					if at, ok := last[name]; ok && live[old] && y.now.Sub(at) < y.v.Config.Settle {
						r.Fatalf("task %s moves from %s, which is there, %s after its last move", name, old, y.now.Sub(at))
					}
					last[name] = y.now
				}
				if len(y.v.Members) > 0 && slices.ContainsFunc(y.v.Members, func(m Present) bool { return !m.Leaving }) {
					for _, x := range y.v.Tasks {
						if y.v.Plan[x.Name] == "" {
							r.Fatalf("task %s is nowhere although there are workers", x.Name)
						}
					}
				}
			},
		})
	})
}
