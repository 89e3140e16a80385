package coordtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/datalink-go/datalink/coordination"
)

// T is the part of testing.T that checks use.
type T interface {
	rapid.TB
	Context() context.Context
	TempDir() string
	Cleanup(func())
}

// Subject is a fresh store with its hooks.
type Subject struct {
	coordination.Store
	// Expire ends a session from outside.
	Expire func(ctx context.Context, session string) error
	// Abandon leaves the nodes of a session whose process is gone: the store does
	// not know it yet.
	Abandon func(session string)
	// Snapshot copies the store; the function it returns closes the store and
	// returns the copy, opened.
	Snapshot func(ctx context.Context) (restore func(ctx context.Context) coordination.Store)
}

// New makes a fresh subject, which t's Cleanup closes.
type New func(t T) Subject

// Check is one promise of a store.
type Check struct {
	Name string
	Run  func(t T, fresh New)
}

// Checks returns all checks.
func Checks() []Check {
	var out []Check
	for _, c := range [][]Check{definitionChecks, takeChecks, writeChecks, sessionChecks, recordChecks, modelChecks} {
		out = append(out, c...)
	}
	return out
}

// Run runs all checks.
func Run(t *testing.T, fresh New) {
	for _, c := range Checks() {
		t.Run(c.Name, func(t *testing.T) { c.Run(t, fresh) })
	}
}

// bench is a subject with one task and what the checks ask of it.
type bench struct {
	T
	Subject
	ctx  context.Context
	task coordination.Definition
}

func setUp(t T, fresh New) *bench {
	t.Helper()
	b := &bench{T: t, Subject: fresh(t), ctx: t.Context()}
	b.task = b.create("orders")
	return b
}

func (b *bench) create(name string) coordination.Definition {
	b.Helper()
	d, err := b.CreateTask(b.ctx, coordination.Definition{Name: name, Spec: "task: " + name, Desired: coordination.Running})
	b.ok("create task", err)
	return d
}

func (b *bench) ok(what string, err error) {
	b.Helper()
	if err != nil {
		b.Fatalf("%s: got %v, want no error", what, err)
	}
}

func (b *bench) is(what string, err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Fatalf("%s: got error %v, want %v", what, err, want)
	}
}

// place makes places that differ in their lock file.
func place(lock string) coordination.Place {
	return coordination.Place{Host: "host-1", BootID: "boot-1", DataDir: "/data/" + lock, LockID: lock, Held: true, Process: "7@100"}
}

func (b *bench) join(id string) coordination.Session {
	b.Helper()
	return b.joinAt(id, place(id))
}

func (b *bench) joinAt(id string, p coordination.Place) coordination.Session {
	b.Helper()
	s, err := b.Join(b.ctx, coordination.Worker{ID: id, PID: 7, Place: p})
	b.ok("join "+id, err)
	return s
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

func (b *bench) take(s coordination.Session) coordination.Status {
	b.Helper()
	st, err := s.Take(b.ctx, coordination.Take{Task: "orders", ExecutionID: newID(), State: "taking"})
	b.ok("take", err)
	return st
}

func (b *bench) status() *coordination.Status {
	b.Helper()
	st, err := b.Status(b.ctx, "orders")
	if errors.Is(err, coordination.ErrNotFound) {
		return nil
	}
	b.ok("status", err)
	return &st
}

func (b *bench) progress(writer string) coordination.Progress {
	b.Helper()
	p, err := b.Progress(b.ctx, b.task.UID, writer)
	b.ok("progress", err)
	return p
}

func (b *bench) journal() []coordination.Entry {
	b.Helper()
	j, err := b.Journal(b.ctx, b.task.UID)
	b.ok("journal", err)
	return j
}

// kinds returns the entries of one execution, or of all for "".
func kinds(j []coordination.Entry, execution string) []string {
	var out []string
	for _, e := range j {
		if execution == "" || e.ExecutionID == execution {
			out = append(out, string(e.Kind))
		}
	}
	return out
}

func at(n byte) coordination.Position {
	return coordination.Position{Format: "test", Version: 1, Source: []byte{n}, Ordinal: uint64(n), Text: "test:" + string('0'+n)}
}

func point(lane int32, n byte) coordination.Point {
	return coordination.Point{Lane: lane, BatchNo: uint64(n), Position: at(n)}
}

// fires waits for a channel that is to be closed.
func (b *bench) fires(what string, c <-chan struct{}) {
	b.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		b.Fatalf("%s: not told within %s", what, patience)
	}
}

func (b *bench) quiet(what string, c <-chan struct{}) {
	b.Helper()
	select {
	case <-c:
		b.Fatalf("%s: told, nothing has happened", what)
	default:
	}
}

// patience is how long a check waits for what must come. Mutants that stay silent
// cost as much.
const patience = 3 * time.Second
