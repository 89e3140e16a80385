package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func workers(ids ...string) []Worker {
	var out []Worker
	for _, id := range ids {
		out = append(out, Worker{ID: id, Groups: []string{"g"}})
	}
	return out
}

func tasks(n int) []Task {
	var out []Task
	for i := range n {
		out = append(out, Task{Name: fmt.Sprintf("t%05d", i), Group: "g", Weight: Unit})
	}
	return out
}

func counts(p Plan) map[string]int {
	out := map[string]int{}
	for _, w := range p.Place {
		out[w]++
	}
	return out
}

func moved(before, after map[string]string) (n int) {
	for t, w := range before {
		if after[t] != w {
			n++
		}
	}
	return n
}

func TestAssign(t *testing.T) {
	three := Assign(Input{Workers: workers("a", "b", "c"), Tasks: tasks(1000)})
	if c := counts(three); max(c["a"], c["b"], c["c"])-min(c["a"], c["b"], c["c"]) > 1 {
		t.Fatalf("from nothing: got %v, want an even plan", c)
	}
	t.Run("a worker more gets its share, nothing else moves", func(t *testing.T) {
		p := Assign(Input{Workers: workers("a", "b", "c", "d"), Tasks: tasks(1000), Plan: three.Place})
		if n := moved(three.Place, p.Place); n != counts(p)["d"] || n < 200 || n > 250 {
			t.Errorf("moved %d, d has %d, want about a quarter and all of them to d", n, counts(p)["d"])
		}
	})
	t.Run("a worker less moves its own tasks alone", func(t *testing.T) {
		p := Assign(Input{Workers: workers("a", "b"), Tasks: tasks(1000), Plan: three.Place})
		if n := moved(three.Place, p.Place); n != counts(three)["c"] {
			t.Errorf("moved %d, c had %d", n, counts(three)["c"])
		}
	})
	t.Run("a worker that is waited for keeps its tasks and gets none", func(t *testing.T) {
		ws := append(workers("a", "b"), Worker{ID: "c", Away: true})
		p := Assign(Input{Workers: ws, Tasks: tasks(1100), Plan: three.Place})
		if n := moved(three.Place, p.Place); n != 0 || counts(p)["c"] != counts(three)["c"] {
			t.Errorf("moved %d, c has %d, want 0 and %d", n, counts(p)["c"], counts(three)["c"])
		}
	})
	t.Run("digests decide", func(t *testing.T) {
		ws := workers("a", "b")
		ws[1].Has = map[string]bool{"x": true, "x@1": true}
		ts := []Task{{Name: "t", Group: "g", Needs: []string{"x@1"}}, {Name: "u", Group: "g", Needs: []string{"x@2"}}, {Name: "v", Group: "h"}}
		p := Assign(Input{Workers: ws, Tasks: ts, Plan: map[string]string{"t": "a"}})
		want := Plan{Place: map[string]string{"t": "b"}, Unplaced: map[string]string{
			"u": `no worker of group "g" can run it: worker b has no plugin x@2; install it there`,
			"v": `no worker of group "h" is there to run it`,
		}}
		if d := cmp.Diff(want, p); d != "" {
			t.Errorf("plan (-want +got):\n%s", d)
		}
	})
	t.Run("load counts, not number", func(t *testing.T) {
		ts := tasks(9)
		ts[0].Weight = 8 * Unit
		p := Assign(Input{Workers: workers("a", "b"), Tasks: ts})
		if c := counts(p); c["a"]*c["b"] != 8 {
			t.Errorf("got %v, want the heavy one alone", c)
		}
	})
}

// anyInput draws workers, tasks and a plan before.
func anyInput(r *rapid.T) Input {
	in := Input{Plan: map[string]string{}, Even: map[string]bool{}}
	groups := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"g", "h"}), 1, 2, rapid.ID[string])
	for i := range rapid.IntRange(0, 6).Draw(r, "workers") {
		w := Worker{ID: fmt.Sprintf("w%d", i), Groups: groups.Draw(r, "groups"), Has: map[string]bool{}}
		for _, n := range []string{"p", "q"} {
			w.Has[n] = rapid.IntRange(0, 3).Draw(r, n) > 0
		}
		switch rapid.IntRange(0, 9).Draw(r, "how") {
		case 0:
			w.Away = true
		case 1:
			w.Leaving = true
		}
		in.Workers = append(in.Workers, w)
	}
	for i := range rapid.IntRange(0, 40).Draw(r, "tasks") {
		t := Task{Name: fmt.Sprintf("t%d", i), Group: rapid.SampledFrom([]string{"g", "h"}).Draw(r, "group"), Weight: Unit << rapid.IntRange(0, 3).Draw(r, "weight")}
		if rapid.IntRange(0, 3).Draw(r, "needs") == 0 {
			t.Needs = []string{rapid.SampledFrom([]string{"p", "q"}).Draw(r, "plugin")}
		}
		t.Settled = rapid.IntRange(0, 4).Draw(r, "settled") == 0
		in.Tasks = append(in.Tasks, t)
		if at := rapid.IntRange(-1, 7).Draw(r, "at"); at >= 0 {
			in.Plan[t.Name] = fmt.Sprintf("w%d", at)
		}
	}
	return in
}

func TestAssignProperties(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		in := anyInput(r)
		p := Assign(in)
		by := map[string]Worker{}
		for _, w := range in.Workers {
			by[w.ID] = w
		}
		may := func(t Task, w Worker) bool {
			return !w.Away && !w.Leaving && slices.Contains(w.Groups, t.Group) && !slices.ContainsFunc(t.Needs, func(n string) bool { return !w.Has[n] })
		}
		for _, x := range in.Tasks {
			w, placed := by[p.Place[x.Name]], p.Place[x.Name] != ""
			old, had := by[in.Plan[x.Name]]
			anybody := slices.ContainsFunc(in.Workers, func(w Worker) bool { return may(x, w) })
			switch {
			case placed && !may(x, w) && !(had && old.ID == w.ID && (old.Away || old.Leaving && !anybody)):
				r.Fatalf("task %+v is at %+v, which may not run it", x, w)
			case !placed && anybody:
				r.Fatalf("task %+v is nowhere although a worker may run it", x)
			case !placed && p.Unplaced[x.Name] == "":
				r.Fatalf("task %+v is nowhere, without a reason", x)
			case had && old.Away && w.ID != old.ID:
				r.Fatalf("task %+v was taken from a worker that is waited for", x)
			case had && x.Settled && may(x, old) && w.ID != old.ID:
				r.Fatalf("settled task %+v was moved for balance", x)
			}
		}
		again := in
		again.Plan = p.Place
		if n := moved(p.Place, Assign(again).Place); n != 0 {
			r.Fatalf("the plan of a plan moves %d tasks", n)
		}
		mixed := Input{Workers: slices.Clone(in.Workers), Tasks: slices.Clone(in.Tasks), Plan: in.Plan, Even: in.Even}
		rand.Shuffle(len(mixed.Workers), func(i, j int) { mixed.Workers[i], mixed.Workers[j] = mixed.Workers[j], mixed.Workers[i] })
		rand.Shuffle(len(mixed.Tasks), func(i, j int) { mixed.Tasks[i], mixed.Tasks[j] = mixed.Tasks[j], mixed.Tasks[i] })
		if d := cmp.Diff(p, Assign(mixed)); d != "" {
			r.Fatalf("another order gives another plan:\n%s", d)
		}
	})
}

func TestWeight(t *testing.T) {
	for _, tt := range []struct {
		rate float64
		lag  time.Duration
		want int
	}{{0, 0, 10}, {999, 0, 10}, {1000, 0, 20}, {2100, 0, 40}, {0, time.Hour, 20}, {1e9, time.Hour, 640}} {
		if got := Weight(tt.rate, tt.lag); got != tt.want {
			t.Errorf("rate %g, lag %s: got %d, want %d", tt.rate, tt.lag, got, tt.want)
		}
	}
}

// 10,000 tasks and 100 workers: from nothing, after a loss, with a worker more, and
// with nothing to do.
func BenchmarkAssign(b *testing.B) {
	var ids []string
	for i := range 100 {
		ids = append(ids, fmt.Sprintf("w%03d", i))
	}
	full := Assign(Input{Workers: workers(ids...), Tasks: tasks(10000)})
	for _, bb := range []struct {
		name string
		in   Input
	}{
		{"from nothing", Input{Workers: workers(ids...), Tasks: tasks(10000)}},
		{"nothing to do", Input{Workers: workers(ids...), Tasks: tasks(10000), Plan: full.Place}},
		{"a worker less", Input{Workers: workers(ids[1:]...), Tasks: tasks(10000), Plan: full.Place}},
		{"a worker more", Input{Workers: append(workers(ids...), workers("x")...), Tasks: tasks(10000), Plan: full.Place}},
		{"half of them empty", Input{Workers: workers(ids...), Tasks: tasks(10000), Plan: Assign(Input{Workers: workers(ids[:50]...), Tasks: tasks(10000)}).Place}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Assign(bb.in)
			}
			if took := b.Elapsed() / time.Duration(b.N); took > 100*time.Millisecond {
				b.Errorf("%s an assignment, the aim is 100 ms", took)
			}
		})
	}
}
