package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/host/api"
	"github.com/datalink-go/datalink/host/config"
)

// parse reads task files and checks that their plugins are installed. Errors are
// of kind Usage.
func (n *Node) parse(files []api.File) ([]*config.Task, error) {
	tasks, err := parseFiles(files)
	if err != nil {
		return nil, err
	}
	if missing := n.plugins.Missing(tasks); len(missing) > 0 {
		return nil, api.As(api.Usage, missing)
	}
	return tasks, nil
}

func parseFiles(files []api.File) ([]*config.Task, error) {
	in := make([]config.Text, len(files))
	for i, f := range files {
		in[i] = config.Text{File: f.Name, Data: []byte(f.Text)}
	}
	tasks, err := config.ParseAll(in...)
	return tasks, api.As(api.Usage, err)
}

// Apply implements api.Backend: it creates tasks and changes those that are there.
func (n *Node) Apply(ctx context.Context, files []api.File) ([]api.Applied, error) {
	tasks, err := n.parse(files)
	if err != nil {
		return nil, err
	}
	var out []api.Applied
	for _, t := range tasks {
		action, d, err := n.define(ctx, t)
		if err != nil {
			return out, err
		}
		out = append(out, api.Applied{Task: t.Name, Action: action, Desired: string(d.Desired)})
	}
	return out, nil
}

// define stores a task and says what that changed.
func (n *Node) define(ctx context.Context, t *config.Task) (string, coordination.Definition, error) {
	have, err := n.store.Task(ctx, t.Name)
	switch {
	case errors.Is(err, coordination.ErrNotFound):
		d, err := n.store.CreateTask(ctx, coordination.Definition{Name: t.Name, Spec: t.Spec, Group: t.Group, Needs: n.plugins.needs(t), Desired: coordination.Running})
		return "created", d, err
	case err != nil:
		return "", have, err
	}
	needs := n.plugins.needs(t)
	if have.Spec == t.Spec && have.Group == t.Group && slices.Equal(have.Needs, needs) {
		return "unchanged", have, nil
	}
	have.Spec, have.Group, have.Needs = t.Spec, t.Group, needs
	d, err := n.store.UpdateTask(ctx, have)
	return "changed", d, err
}

// stored reads a task's definition and parses it.
func (n *Node) stored(ctx context.Context, name string) (coordination.Definition, *config.Task, error) {
	d, err := n.store.Task(ctx, name)
	if errors.Is(err, coordination.ErrNotFound) {
		return d, nil, n.noTask(ctx, name)
	}
	if err != nil {
		return d, nil, err
	}
	tasks, err := config.Parse("task "+name, []byte(d.Spec))
	if err != nil {
		return d, nil, api.As(api.Usage, err)
	}
	return d, tasks[0], nil
}

func (n *Node) noTask(ctx context.Context, name string) error {
	var names []string
	if all, err := n.store.Tasks(ctx); err == nil {
		for _, d := range all {
			names = append(names, d.Name)
		}
	}
	if len(names) == 0 {
		return api.Errorf(api.Usage, "task %q: found no task at all in %s, expected one that was applied", name, n.cfg.DataDir)
	}
	return api.Errorf(api.Usage, "task %q: not found, expected one of %s", name, strings.Join(names, ", "))
}

// Tasks implements api.Backend.
func (n *Node) Tasks(ctx context.Context) ([]api.Task, error) {
	defs, err := n.store.Tasks(ctx)
	if err != nil {
		return nil, err
	}
	waiting, err := n.waitingTasks(ctx)
	if err != nil {
		return nil, err
	}
	out := []api.Task{}
	for _, d := range defs {
		t, _, err := n.view(ctx, d, waiting)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// Task implements api.Backend.
func (n *Node) Task(ctx context.Context, name string) (*api.Task, error) {
	d, err := n.store.Task(ctx, name)
	if errors.Is(err, coordination.ErrNotFound) {
		return nil, n.noTask(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	waiting, err := n.waitingTasks(ctx)
	if err != nil {
		return nil, err
	}
	t, journal, err := n.view(ctx, d, waiting)
	if err != nil {
		return nil, err
	}
	t.Spec = d.Spec
	t.Executions = journal[max(0, len(journal)-20):]
	t.Positions, err = n.positions(ctx, d, journal)
	return &t, err
}

// view says how a task is: what runs here knows best, then the status node, then
// the journal.
func (n *Node) view(ctx context.Context, d coordination.Definition, waiting map[string]string) (api.Task, []coordination.Entry, error) {
	t := api.Task{
		Name: d.Name, UID: d.UID, Group: d.Group, Desired: string(d.Desired), Version: d.Version, CreatedAt: d.CreatedAt, UpdatedAt: d.UpdatedAt,
	}
	journal, err := n.store.Journal(ctx, d.UID)
	if err != nil {
		return t, nil, err
	}
	st, err := n.store.Status(ctx, d.Name)
	switch {
	case err == nil:
		t.State, t.Reason, t.ExecutionID, t.Epoch, t.Worker, t.StartedAt = st.State, st.Reason, st.ExecutionID, st.Epoch, st.Worker, st.StartedAt
	case !errors.Is(err, coordination.ErrNotFound):
		return t, nil, err
	default:
		t.State, t.Reason = "stopped", "no execution yet"
		if e := lastEntry(journal); e != nil {
			t.Reason, t.ExecutionID, t.Epoch = e.Reason, e.ExecutionID, e.Epoch
			if e.Kind == coordination.EntryStarted || e.Kind == coordination.EntryMark || e.Kind == coordination.EntryRaised {
				t.Reason = "the last execution has no end: its process died"
			}
		}
	}
	n.mu.Lock()
	r := n.runs[d.Name]
	n.mu.Unlock()
	if r != nil {
		r.mu.Lock()
		if r.state.Phase != "" {
			t.State, t.Reason = string(r.state.Phase), r.state.Reason
		}
		r.mu.Unlock()
		if t.Reason == "" {
			t.Reason = r.meter.Reading().Trouble
		}
	} else if state, reason := n.waiting(d.Name); state != "" && d.Desired == coordination.Running {
		t.State, t.Reason = state, reason
	}
	switch {
	case t.State != "stopped":
	case d.Desired == coordination.Paused:
		t.State = "paused"
	case waiting[d.Name] != "":
		t.State, t.Reason = "waiting", waiting[d.Name]
	case n.serving.Load():
		t.State, t.Reason = "starting", ""
	}
	return t, journal, nil
}

// lastEntry returns the newest entry of the newest execution that says how it is.
func lastEntry(journal []coordination.Entry) *coordination.Entry {
	for i := len(journal) - 1; i >= 0; i-- {
		if journal[i].Kind != coordination.EntryDead {
			return &journal[i]
		}
	}
	return nil
}

// Position implements api.Backend.
func (n *Node) Position(ctx context.Context, name string) ([]api.Position, error) {
	d, err := n.store.Task(ctx, name)
	if errors.Is(err, coordination.ErrNotFound) {
		return nil, n.noTask(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	journal, err := n.store.Journal(ctx, d.UID)
	if err != nil {
		return nil, err
	}
	return n.positions(ctx, d, journal)
}

// positions joins what the store keeps of writers without storage of their own
// with the newest marks of the journal.
func (n *Node) positions(ctx context.Context, d coordination.Definition, journal []coordination.Entry) ([]api.Position, error) {
	out := []api.Position{}
	writers, err := n.store.Writers(ctx, d.UID)
	if err != nil {
		return nil, err
	}
	for _, w := range writers {
		p, err := n.store.Progress(ctx, d.UID, w)
		if err != nil {
			return nil, err
		}
		for _, x := range p.Points {
			out = append(out, api.Position{Writer: w, Lane: x.Lane, BatchNo: x.BatchNo, Position: printed(x.Position), UpdatedAt: p.UpdatedAt})
		}
	}
	for _, m := range newestMarks(journal) {
		if !slices.ContainsFunc(out, func(p api.Position) bool { return p.Writer == m.Writer }) {
			out = append(out, api.Position{Writer: m.Writer, Lane: m.Lane, Position: printed(m.Position), UpdatedAt: m.at.UTC()})
		}
	}
	return out, nil
}

// printed is a position as its reader prints it, else its bytes where they are
// text.
func printed(p coordination.Position) string {
	text := p.Text
	if text == "" {
		if text = string(p.Source); strconv.Quote(text) != `"`+text+`"` {
			text = fmt.Sprintf("%s:%q", p.Format, p.Source)
		}
		if p.Ordinal != 0 {
			text += fmt.Sprintf("+%d", p.Ordinal)
		}
	}
	return text
}

// Change implements api.Backend.
func (n *Node) Change(ctx context.Context, name string, to api.Change) (*api.Task, error) {
	d, err := n.store.Task(ctx, name)
	if errors.Is(err, coordination.ErrNotFound) {
		return nil, n.noTask(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	want := coordination.Running
	switch to {
	case api.Pause:
		want = coordination.Paused
	case api.Resume, api.Restart:
	case api.TakeOver:
		if !n.serving.Load() {
			return nil, api.Errorf(api.Usage, "no daemon runs that could take over for task %s: use `datalink run FILE --take-over`", name)
		}
		if n.board == nil {
			n.keepers.takeOver(name)
		}
	default:
		return nil, api.Errorf(api.Usage, "change %q: expected pause, resume, restart or take-over", to)
	}
	if d.Desired != want {
		d.Desired = want
		if d, err = n.store.UpdateTask(ctx, d); err != nil {
			return nil, err
		}
	}
	if to != api.Pause {
		if err := n.nudge(ctx, name, to); err != nil {
			return nil, err
		}
	}
	return n.Task(ctx, name)
}

// Delete implements api.Backend. The task is stopped before; with release the
// connectors remove what it left at source and targets.
func (n *Node) Delete(ctx context.Context, name string, release bool) error {
	d, t, err := n.stored(ctx, name)
	if err != nil {
		return err
	}
	if d.Desired != coordination.Paused { // or the daemon would start it again
		d.Desired = coordination.Paused
		if d, err = n.store.UpdateTask(ctx, d); err != nil {
			return err
		}
	}
	if err := n.halt(ctx, name, "the task is deleted"); err != nil {
		return err
	}
	if release {
		if err := n.release(ctx, t, d); err != nil {
			return err
		}
	}
	if err := n.deleteIdle(ctx, d); err != nil {
		return err
	}
	n.metrics.forget(name)
	return nil
}

// deleteIdle deletes a task once the worker that has it, which may be another one,
// has given it up.
func (n *Node) deleteIdle(ctx context.Context, d coordination.Definition) error {
	ctx, cancel := context.WithTimeout(ctx, n.grace()+15*time.Second)
	defer cancel()
	for {
		changed, err := n.store.Watch(ctx, d.Name)
		if err != nil {
			return err
		}
		err = n.store.DeleteTask(ctx, d.Name, d.Version)
		if !errors.Is(err, coordination.ErrHeld) {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return err
		}
	}
}

// halt stops a run of this node and waits for its end.
func (n *Node) halt(ctx context.Context, name, reason string) error {
	n.mu.Lock()
	r := n.runs[name]
	n.mu.Unlock()
	if r == nil {
		return nil
	}
	r.stop(reason)
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("task %s does not stop: %w", name, ctx.Err())
	}
}

// release starts the connectors and lets them remove what the task left.
func (n *Node) release(ctx context.Context, t *config.Task, d coordination.Definition) error {
	s := n.starter()

	c, err := s.start(ctx, t, executionOf(d, n.store.UID()), true)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	return c.release(ctx, d.UID)
}

// Overlaps implements api.Backend.
func (n *Node) Overlaps(ctx context.Context) ([]coordination.Overlap, error) {
	all, err := n.store.Overlaps(ctx)
	if all == nil {
		all = []coordination.Overlap{}
	}
	return all, err
}

// Overlap implements api.Backend.
func (n *Node) Overlap(ctx context.Context, id string) (*coordination.Overlap, error) {
	o, err := n.store.Overlap(ctx, id)
	if errors.Is(err, coordination.ErrNotFound) {
		return nil, api.Errorf(api.Usage, "overlap %q: not found, expected an id of `datalink audit list`", id)
	}
	return &o, err
}
