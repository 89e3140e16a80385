package coordtest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/datalink-go/datalink/coordination"
)

// Mutant is a store with one promise broken, and a check that must fail on it.
type Mutant struct {
	Name   string
	Check  string
	broken func(*mutant)
}

// Mutants returns all of them.
func Mutants() []Mutant {
	return []Mutant{
		{"a task is taken from its holder", "take/held by another", func(m *mutant) { m.steal = true }},
		{"many sessions have one task", "take/one of many at once", func(m *mutant) { m.steal = true }},
		{"any node is replaced", "take/replaces nothing else", func(m *mutant) { m.replaceAny = true }},
		{"epochs stand still", "take/epochs rise", func(m *mutant) { m.epochStuck = true }},
		{"a raise ignores what the target holds", "raise/above what a target holds", func(m *mutant) { m.raiseBlind = true }},
		{"a raise ignores what the target holds, after a restore", "restore/epochs rise above the targets", func(m *mutant) { m.raiseBlind = true }},
		{"a raise ignores ownership", "raise/checks ownership", func(m *mutant) { m.unconditional = true }},
		{"writes ignore their condition", "write/refused for a stale execution", func(m *mutant) { m.unconditional = true }},
		{"writes ignore the epoch", "write/refused for a wrong epoch", func(m *mutant) { m.unconditional = true }},
		{"writes of a lost session pass", "write/refused with a lost session", func(m *mutant) { m.unconditional = true }},
		{"random calls find that writes ignore their condition", "model/random calls", func(m *mutant) { m.unconditional = true }},
		{"random calls find that epochs stand still", "model/random calls", func(m *mutant) { m.epochStuck = true }},
		{"a step is stored in part", "write/step is whole", func(m *mutant) { m.torn = true }},
		{"dead letters are lost", "write/dead letters", func(m *mutant) { m.torn = true }},
		{"a release deletes another's node", "release/only its own node", func(m *mutant) { m.releaseAny = true }},
		{"the loss of a session is kept secret", "session/ended from outside", func(m *mutant) { m.silent = true }},
		{"a fenced execution may not report", "session/fenced may report", func(m *mutant) { m.mute = true }},
		{"an end is stored twice", "session/fenced may report", func(m *mutant) { m.twice = true }},
		{"the journal is out of order", "journal/order", func(m *mutant) { m.shuffled = true }},
		{"starts are missing in the journal", "take/status and journal in one step", func(m *mutant) { m.noStart = true }},
		{"a change of a definition ignores the version", "definition/change is conditional", func(m *mutant) { m.anyVersion = true }},
		{"overlap records are lost", "overlap/created once", func(m *mutant) { m.noAudit = true }},
	}
}

// RunMutants runs for each mutant the check that must fail on it.
func RunMutants(t *testing.T, fresh New) {
	checks := map[string]Check{}
	for _, c := range Checks() {
		checks[c.Name] = c
	}
	for _, m := range Mutants() {
		t.Run(m.Name, func(t *testing.T) {
			c, ok := checks[m.Check]
			if !ok {
				t.Fatalf("no check is called %q", m.Check)
			}
			r := &recorder{TB: t, T: t}
			done := make(chan struct{})
			go func() { // a failing check ends its goroutine
				defer close(done)
				c.Run(r, func(t T) Subject {
					s := fresh(t)
					store := &mutant{Store: s.Store, sessions: map[string]*mutantSession{}}
					m.broken(store)
					s.Store = store
					if snapshot := s.Snapshot; snapshot != nil {
						s.Snapshot = func(ctx context.Context) func(context.Context) coordination.Store {
							restore := snapshot(ctx)
							return func(ctx context.Context) coordination.Store {
								store := &mutant{Store: restore(ctx), sessions: map[string]*mutantSession{}}
								m.broken(store)
								return store
							}
						}
					}
					return s
				})
			}()
			<-done
			switch {
			case r.skipped():
				t.Skipf("optional: check %q does not run on this store", m.Check)
			case !r.Failed():
				t.Fatalf("check %q passed although %s", m.Check, m.Name)
			default:
				t.Logf("red as it must be: %s", r.first())
			}
		})
	}
}

// mutant wraps a store and breaks what its flags say.
type mutant struct {
	coordination.Store
	steal, replaceAny, epochStuck, raiseBlind, unconditional, torn, releaseAny bool
	silent, mute, twice, shuffled, noStart, anyVersion, noAudit                bool

	mu       sync.Mutex
	sessions map[string]*mutantSession
	extra    []coordination.Entry
}

type mutantSession struct {
	coordination.Session
	m *mutant
}

func (m *mutant) Join(ctx context.Context, w coordination.Worker) (coordination.Session, error) {
	s, err := m.Store.Join(ctx, w)
	if err != nil {
		return nil, err
	}
	x := &mutantSession{s, m}
	m.mu.Lock()
	m.sessions[s.ID()] = x
	m.mu.Unlock()
	return x, nil
}

// holder returns the session and the condition that do own the task.
func (m *mutant) holder(ctx context.Context, taskUID string) (*mutantSession, coordination.Owner, bool) {
	tasks, _ := m.Tasks(ctx)
	for _, d := range tasks {
		if st, err := m.Status(ctx, d.Name); d.UID == taskUID && err == nil {
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.sessions[st.Session], st.Owner(), m.sessions[st.Session] != nil
		}
	}
	return nil, coordination.Owner{}, false
}

func (x *mutantSession) Take(ctx context.Context, t coordination.Take) (coordination.Status, error) {
	st, err := x.Session.Take(ctx, t)
	var held *coordination.HeldError
	for errors.As(err, &held) && (x.m.steal || x.m.replaceAny && t.Replace == held.Status.ExecutionID) {
		if err := x.Session.Release(ctx, held.Status.Owner()); err != nil && !errors.Is(err, coordination.ErrFenced) {
			return st, err
		}
		st, err = x.Session.Take(ctx, t)
	}
	if x.m.epochStuck && err == nil {
		st.Epoch = 1
	}
	return st, err
}

// again repeats a refused conditional call in the owner's name.
func (x *mutantSession) again(ctx context.Context, o coordination.Owner, err error, f func(coordination.Session, coordination.Owner) error) error {
	if !x.m.unconditional || !errors.Is(err, coordination.ErrFenced) && !errors.Is(err, coordination.ErrSessionLost) {
		return err
	}
	if h, owner, ok := x.m.holder(ctx, o.TaskUID); ok {
		return f(h.Session, owner)
	}
	return nil
}

func (x *mutantSession) Raise(ctx context.Context, o coordination.Owner, above uint64) (st coordination.Status, err error) {
	if x.m.raiseBlind {
		above = 0
	}
	st, err = x.Session.Raise(ctx, o, above)
	err = x.again(ctx, o, err, func(s coordination.Session, o coordination.Owner) error {
		st, err = s.Raise(ctx, o, above)
		return err
	})
	return st, err
}

func (x *mutantSession) SetState(ctx context.Context, o coordination.Owner, state, reason string) error {
	f := func(s coordination.Session, o coordination.Owner) error { return s.SetState(ctx, o, state, reason) }
	return x.again(ctx, o, f(x.Session, o), f)
}

func (x *mutantSession) Save(ctx context.Context, o coordination.Owner, step coordination.Step) error {
	if x.m.torn {
		step.Items, step.SetAside = nil, nil
	}
	f := func(s coordination.Session, o coordination.Owner) error { return s.Save(ctx, o, step) }
	return x.again(ctx, o, f(x.Session, o), f)
}

func (x *mutantSession) Mark(ctx context.Context, o coordination.Owner, p []coordination.Mark) error {
	f := func(s coordination.Session, o coordination.Owner) error { return s.Mark(ctx, o, p) }
	return x.again(ctx, o, f(x.Session, o), f)
}

func (x *mutantSession) Release(ctx context.Context, o coordination.Owner) error {
	err := x.Session.Release(ctx, o)
	var fenced *coordination.FencedError
	if x.m.releaseAny && errors.As(err, &fenced) && fenced.Found != nil {
		return x.Session.Release(ctx, fenced.Found.Owner())
	}
	return err
}

func (x *mutantSession) Lost() <-chan struct{} {
	if x.m.silent {
		return nil
	}
	return x.Session.Lost()
}

func (m *mutant) Append(ctx context.Context, e coordination.Entry) error {
	if m.mute {
		if _, o, ok := m.holder(ctx, e.TaskUID); !ok || o.ExecutionID != e.ExecutionID {
			return &coordination.FencedError{Op: "append", Owner: o}
		}
	}
	if m.twice {
		e.Seq = 1000
		m.mu.Lock()
		m.extra = append(m.extra, e)
		m.mu.Unlock()
	}
	return m.Store.Append(ctx, e)
}

func (m *mutant) Journal(ctx context.Context, taskUID string) ([]coordination.Entry, error) {
	j, err := m.Store.Journal(ctx, taskUID)
	if m.shuffled {
		slices.SortFunc(j, func(a, b coordination.Entry) int { return slices.Compare([]byte(a.Kind), []byte(b.Kind)) })
	}
	if m.noStart {
		j = slices.DeleteFunc(j, func(e coordination.Entry) bool { return e.Kind == coordination.EntryStarted })
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return append(j, m.extra...), err
}

func (m *mutant) UpdateTask(ctx context.Context, d coordination.Definition) (coordination.Definition, error) {
	out, err := m.Store.UpdateTask(ctx, d)
	var v *coordination.VersionError
	if m.anyVersion && errors.As(err, &v) {
		d.Version = v.Have
		return m.Store.UpdateTask(ctx, d)
	}
	return out, err
}

func (m *mutant) AddOverlap(ctx context.Context, o coordination.Overlap) error {
	if m.noAudit {
		return nil
	}
	return m.Store.AddOverlap(ctx, o)
}
