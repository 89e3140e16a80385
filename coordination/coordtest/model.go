package coordtest

import (
	"errors"
	"fmt"

	"pgregory.net/rapid"

	"github.com/datalink-go/datalink/coordination"
)

var modelChecks = []Check{{"model/random calls", randomCalls}}

// model is what the store should hold for one task.
type model struct {
	holder *coordination.Status // nil = none
	epoch  uint64
	batch  uint64
	state  string
	starts int
}

// execution is a handle that some session once got; most of them are stale.
type execution struct {
	session int
	status  coordination.Status
}

// randomCalls makes random calls by several sessions and compares with a model.
func randomCalls(t T, fresh New) {
	rapid.Check(t, func(r *rapid.T) {
		b := setUp(wrap{T: t, r: r}, fresh)
		defer b.Subject.Close()
		sessions := make([]coordination.Session, 3)
		for i := range sessions {
			sessions[i] = b.join(fmt.Sprintf("w%d", i))
		}
		var m model
		var known []execution
		owns := func(e execution) bool {
			return m.holder != nil && m.holder.ExecutionID == e.status.ExecutionID && m.holder.Epoch == e.status.Epoch &&
				m.holder.Session == sessions[e.session].ID()
		}
		judge := func(op string, e execution, err error) bool {
			own := owns(e)
			switch {
			case own && err != nil:
				r.Fatalf("%s by the owner: got %v", op, err)
			case !own && !errors.Is(err, coordination.ErrFenced):
				r.Fatalf("%s by %s, not the owner: got %v, want ErrFenced", op, e.status.ExecutionID, err)
			}
			return own
		}
		pick := func(r *rapid.T) execution {
			if len(known) == 0 {
				r.Skip("no execution yet")
			}
			return known[len(known)-1-rapid.IntRange(0, min(3, len(known)-1)).Draw(r, "back")]
		}
		r.Repeat(map[string]func(*rapid.T){
			"take": func(r *rapid.T) {
				i, above := rapid.IntRange(0, 2).Draw(r, "session"), rapid.Uint64Range(0, 20).Draw(r, "above")
				st, err := sessions[i].Take(b.ctx, coordination.Take{Task: "orders", ExecutionID: newID(), Above: above, State: "taking"})
				if m.holder != nil {
					if !errors.Is(err, coordination.ErrHeld) {
						r.Fatalf("take of a held task: got %v", err)
					}
					return
				}
				if err != nil || st.Epoch <= m.epoch || st.Epoch <= above {
					r.Fatalf("take above %d: got epoch %d, %v, want more than %d", above, st.Epoch, err, m.epoch)
				}
				m.holder, m.epoch, m.state = &st, st.Epoch, "taking"
				m.starts++
				known = append(known, execution{i, st})
			},
			"raise": func(r *rapid.T) {
				e, above := pick(r), rapid.Uint64Range(0, 50).Draw(r, "above")
				st, err := sessions[e.session].Raise(b.ctx, e.status.Owner(), above)
				if judge("raise", e, err) {
					if st.Epoch <= m.epoch || st.Epoch <= above {
						r.Fatalf("raise above %d and %d: got %d", m.epoch, above, st.Epoch)
					}
					m.holder, m.epoch = &st, st.Epoch
					known = append(known, execution{e.session, st})
				}
			},
			"save": func(r *rapid.T) {
				e, n := pick(r), rapid.Uint64Range(1, 1000).Draw(r, "batch")
				err := sessions[e.session].Save(b.ctx, e.status.Owner(), coordination.Step{Writer: "w", Points: []coordination.Point{{BatchNo: n}}})
				if judge("save", e, err) {
					m.batch = n
				}
			},
			"state": func(r *rapid.T) {
				e, s := pick(r), rapid.SampledFrom([]string{"running", "draining"}).Draw(r, "state")
				if judge("state", e, sessions[e.session].SetState(b.ctx, e.status.Owner(), s, "")) {
					m.state = s
				}
			},
			"release": func(r *rapid.T) {
				e := pick(r)
				err := sessions[e.session].Release(b.ctx, e.status.Owner())
				switch {
				case m.holder == nil || m.holder.ExecutionID == e.status.ExecutionID:
					if err != nil {
						r.Fatalf("release: got %v", err)
					}
					m.holder = nil
				case !errors.Is(err, coordination.ErrFenced):
					r.Fatalf("release of another's: got %v, want ErrFenced", err)
				}
			},
			"expire": func(r *rapid.T) {
				i := rapid.IntRange(0, 2).Draw(r, "session")
				id := sessions[i].ID()
				if err := b.Expire(b.ctx, id); err != nil {
					r.Fatalf("expire: %v", err)
				}
				if m.holder != nil && m.holder.Session == id {
					m.holder = nil
				}
				sessions[i] = b.join(fmt.Sprintf("w%d", i))
			},
			"": func(r *rapid.T) {
				got := b.status()
				switch {
				case (got == nil) != (m.holder == nil):
					r.Fatalf("status: got %+v, want %+v", got, m.holder)
				case got != nil && (got.ExecutionID != m.holder.ExecutionID || got.Epoch != m.epoch || got.State != m.state):
					r.Fatalf("status: got %+v, want %s, epoch %d, state %q", got, m.holder.ExecutionID, m.epoch, m.state)
				}
				p := b.progress("w")
				if m.batch > 0 && (len(p.Points) != 1 || p.Points[0].BatchNo != m.batch) || m.batch == 0 && len(p.Points) > 0 {
					r.Fatalf("progress: got %+v, want batch %d", p.Points, m.batch)
				}
				starts := 0
				for _, k := range kinds(b.journal(), "") {
					if k == string(coordination.EntryStarted) {
						starts++
					}
				}
				if starts != m.starts {
					r.Fatalf("journal: got %d started entries, want %d", starts, m.starts)
				}
			},
		})
	})
}

// wrap reports to rapid and takes directories and context from the test.
type wrap struct {
	T
	r *rapid.T
}

func (w wrap) Helper()                         { w.r.Helper() }
func (w wrap) Fatalf(f string, a ...any)       { w.r.Fatalf(f, a...) }
func (w wrap) Errorf(f string, a ...any)       { w.r.Errorf(f, a...) }
func (w wrap) Fatal(a ...any)                  { w.r.Fatal(a...) }
func (w wrap) Error(a ...any)                  { w.r.Error(a...) }
func (w wrap) Failed() bool                    { return w.r.Failed() }
func (w wrap) Logf(format string, args ...any) { w.r.Logf(format, args...) }
