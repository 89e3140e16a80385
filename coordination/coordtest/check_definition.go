package coordtest

import (
	"context"
	"slices"

	"github.com/datalink-go/datalink/coordination"
)

var definitionChecks = []Check{
	{"definition/round trip", definitionRoundTrip},
	{"definition/change is conditional", definitionConditional},
	{"definition/invalid is refused", definitionInvalid},
	{"definition/delete", definitionDelete},
	{"definition/watch", definitionWatch},
}

func definitionRoundTrip(t T, fresh New) {
	b := setUp(t, fresh)
	if b.UID() == "" {
		t.Fatalf("store uid: got none")
	}
	if b.task.UID == "" || b.task.Version != 1 {
		t.Fatalf("created: got uid %q version %d, want a uid and 1", b.task.UID, b.task.Version)
	}
	other := b.create("a-first")
	if other.UID == b.task.UID {
		t.Fatalf("two tasks share the uid %s", other.UID)
	}
	got, err := b.Task(b.ctx, "orders")
	b.ok("read", err)
	if !got.CreatedAt.Equal(b.task.CreatedAt) || got.Spec != "task: orders" || got.Desired != coordination.Running || got.UID != b.task.UID {
		t.Fatalf("read: got %+v, want %+v", got, b.task)
	}
	all, err := b.Tasks(b.ctx)
	b.ok("list", err)
	var names []string
	for _, d := range all {
		names = append(names, d.Name)
	}
	if !slices.Equal(names, []string{"a-first", "orders"}) {
		t.Fatalf("list: got %q, want a-first, orders", names)
	}
	_, err = b.CreateTask(b.ctx, coordination.Definition{Name: "orders", Desired: coordination.Paused})
	b.is("create again", err, coordination.ErrExists)
	_, err = b.Task(b.ctx, "none")
	b.is("read what is not there", err, coordination.ErrNotFound)
}

func definitionConditional(t T, fresh New) {
	b := setUp(t, fresh)
	d := b.task
	d.Desired = coordination.Paused
	next, err := b.UpdateTask(b.ctx, d)
	b.ok("update", err)
	if next.Version != 2 || next.UID != d.UID || next.Desired != coordination.Paused {
		t.Fatalf("update: got %+v, want version 2 of the same uid, paused", next)
	}
	d.Spec = "task: late"
	_, err = b.UpdateTask(b.ctx, d)
	b.is("update of an old version", err, coordination.ErrVersion)
	if got, _ := b.Task(b.ctx, "orders"); got.Spec != "task: orders" || got.Version != 2 {
		t.Fatalf("after the refusal: got %+v, want it unchanged", got)
	}
	b.is("delete of an old version", b.DeleteTask(b.ctx, "orders", 1), coordination.ErrVersion)
	s := b.join("w1")
	_, err = s.Take(b.ctx, coordination.Take{Task: "orders", Version: 1, ExecutionID: newID()})
	b.is("take for an old version", err, coordination.ErrVersion)
	_, err = s.Take(b.ctx, coordination.Take{Task: "orders", Version: 2, ExecutionID: newID()})
	b.ok("take for the version that is there", err)
}

func definitionInvalid(t T, fresh New) {
	b := setUp(t, fresh)
	for _, d := range []coordination.Definition{
		{Name: "", Desired: coordination.Running},
		{Name: "Upper", Desired: coordination.Running},
		{Name: "a/b", Desired: coordination.Running},
		{Name: "fine", Desired: "walking"},
		{Name: "fine", Desired: coordination.Running, Spec: "\xff"},
	} {
		_, err := b.CreateTask(b.ctx, d)
		b.is("create "+d.Name, err, coordination.ErrInvalid)
	}
}

func definitionDelete(t T, fresh New) {
	b := setUp(t, fresh)
	s := b.join("w1")
	st := b.take(s)
	b.ok("save", s.Save(b.ctx, st.Owner(), coordination.Step{Writer: "w", Points: []coordination.Point{point(0, 1)}}))
	b.is("delete of a running task", b.DeleteTask(b.ctx, "orders", 1), coordination.ErrHeld)
	b.ok("release", s.Release(b.ctx, st.Owner()))
	b.ok("delete", b.DeleteTask(b.ctx, "orders", 1))
	_, err := b.Task(b.ctx, "orders")
	b.is("read after delete", err, coordination.ErrNotFound)
	_, err = s.Take(b.ctx, coordination.Take{Task: "orders", ExecutionID: newID()})
	b.is("take after delete", err, coordination.ErrNotFound)
	if p := b.progress("w"); len(p.Points) != 0 {
		t.Fatalf("progress after delete: got %+v, want none", p)
	}
	if len(b.journal()) == 0 {
		t.Fatalf("the journal went with the task")
	}
	if again := b.create("orders"); again.UID == b.task.UID {
		t.Fatalf("created again with the uid of the deleted one")
	}
}

func definitionWatch(t T, fresh New) {
	b := setUp(t, fresh)
	s := b.join("w1")
	watch := func(name string) <-chan struct{} {
		c, err := b.Watch(b.ctx, name)
		b.ok("watch", err)
		return c
	}
	one, all, other := watch("orders"), watch(""), watch("other")
	d := b.task
	d.Desired = coordination.Paused
	_, err := b.UpdateTask(b.ctx, d)
	b.ok("update", err)
	b.fires("definition changed", one)
	b.fires("definition changed, watch of all", all)
	one = watch("orders")
	st := b.take(s)
	b.fires("taken", one)
	one = watch("orders")
	b.ok("state", s.SetState(b.ctx, st.Owner(), "running", ""))
	b.fires("state changed", one)
	one = watch("orders")
	b.ok("release", s.Release(b.ctx, st.Owner()))
	b.fires("released", one)
	b.quiet("watch of another task", other)
	ctx, cancel := context.WithCancel(b.ctx)
	ended, err := b.Watch(ctx, "other")
	b.ok("watch", err)
	cancel()
	b.fires("context ended", ended)
	b.ok("close", b.Close())
	b.fires("store closed", other)
	b.fires("session ended with the store", s.Lost())
	if _, err := b.Tasks(b.ctx); err == nil {
		t.Fatalf("tasks of a closed store: got no error")
	}
	b.ok("close again", b.Close())
}
