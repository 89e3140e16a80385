package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/host/api"
	"github.com/datalink-go/datalink/host/audit"
	"github.com/datalink-go/datalink/host/cluster"
)

// Workers implements api.Fleet.
func (n *Node) Workers(ctx context.Context) ([]api.Worker, error) {
	members, err := n.store.Workers(ctx)
	if err != nil {
		return nil, err
	}
	running := map[string]int{}
	defs, err := n.store.Tasks(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range defs {
		if st, err := n.store.Status(ctx, d.Name); err == nil {
			running[st.Worker]++
		}
	}
	by := map[string]*api.Worker{}
	var out []*api.Worker
	add := func(id string) *api.Worker {
		if w := by[id]; w != nil {
			return w
		}
		w := &api.Worker{ID: id, State: "gone", Groups: []string{}, Tasks: []string{}, Running: running[id]}
		by[id] = w
		out = append(out, w)
		return w
	}
	for _, m := range members {
		w := add(m.ID)
		w.State, w.Groups, w.Host, w.PID, w.JoinedAt = "active", cluster.Groups(m.Group), m.Host, m.PID, m.JoinedAt
	}
	if n.board != nil {
		if err := n.shared(ctx, add); err != nil {
			return nil, err
		}
	} else if w := by[n.id]; w != nil {
		w.Leader = true
		for _, d := range defs {
			w.Tasks = append(w.Tasks, d.Name)
		}
	}
	slices.SortFunc(out, func(a, b *api.Worker) int { return cmp.Compare(a.ID, b.ID) })
	all := make([]api.Worker, len(out))
	for i, w := range out {
		all[i] = *w
	}
	return all, nil
}

// shared fills in what the board says of workers.
func (n *Node) shared(ctx context.Context, add func(string) *api.Worker) error {
	place, _, _, err := cluster.PlanOf(ctx, n.board)
	if err != nil {
		return err
	}
	for name, id := range place {
		w := add(id)
		w.Tasks = append(w.Tasks, name)
		slices.Sort(w.Tasks)
	}
	for folder, state := range map[string]string{cluster.DrainFolder: "draining", cluster.LeavingFolder: "leaving"} {
		notes, err := n.board.Notes(ctx, folder)
		if err != nil {
			return err
		}
		for _, x := range notes {
			if w := add(x.Name); w.State == "active" {
				w.State = state
			}
		}
	}
	reports, err := n.board.Notes(ctx, cluster.ReportFolder)
	if err != nil {
		return err
	}
	for _, x := range reports {
		var r cluster.Report
		if json.Unmarshal(x.Value, &r) == nil {
			add(x.Name).Plugins = r.Plugins
		}
	}
	data, err := n.board.Note(ctx, coordination.LeaderFolder, coordination.LeaderNote)
	if err != nil || data == nil {
		return err
	}
	var l coordination.Leader
	if json.Unmarshal(data, &l) == nil {
		add(l.Worker).Leader = true
	}
	return nil
}

// alone refuses what makes sense among several workers only.
func (n *Node) alone(what string) error {
	if n.board != nil {
		return nil
	}
	return api.Errorf(api.Usage, "%s: this node is alone: its store is in %s; workers share one with `datalink serve --coordination zookeeper://…`", what, n.cfg.DataDir)
}

// known returns the workers, and refuses an id that nobody has or had.
func (n *Node) known(ctx context.Context, worker string) ([]api.Worker, error) {
	all, err := n.Workers(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, w := range all {
		if w.ID == worker {
			return all, nil
		}
		ids = append(ids, w.ID)
	}
	return nil, api.Errorf(api.Usage, "worker %q: not found, expected one of %s", worker, strings.Join(ids, ", "))
}

// Drain implements api.Fleet.
func (n *Node) Drain(ctx context.Context, worker string, on bool) ([]api.Worker, error) {
	if err := n.alone("worker drain"); err != nil {
		return nil, err
	}
	if _, err := n.known(ctx, worker); err != nil {
		return nil, err
	}
	var err error
	if on {
		err = n.board.Put(ctx, cluster.DrainFolder, worker, []byte("{}"))
	} else {
		err = n.board.Remove(ctx, cluster.DrainFolder, worker)
	}
	if err != nil {
		return nil, err
	}
	return n.Workers(ctx)
}

// Forget implements api.Fleet. A worker that is there cannot be forgotten.
func (n *Node) Forget(ctx context.Context, worker string) error {
	members, err := n.store.Workers(ctx)
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.ID == worker {
			return api.Errorf(api.Usage, "worker %s is alive (pid %d on %s): stop it, or drain it", worker, m.PID, m.Host)
		}
	}
	if !workerName.MatchString(worker) {
		return api.Errorf(api.Usage, "worker %q: expected an id of `datalink worker list` or of a task's journal", worker)
	}
	if err := n.store.Forget(ctx, coordination.Forgotten{Worker: worker, By: "operator at worker " + n.id}); err != nil {
		return err
	}
	if n.board == nil {
		return nil
	}
	return n.board.Remove(ctx, cluster.DrainFolder, worker)
}

// Groups implements api.Fleet.
func (n *Node) Groups(ctx context.Context) ([]api.Group, error) {
	members, err := n.store.Workers(ctx)
	if err != nil {
		return nil, err
	}
	defs, err := n.store.Tasks(ctx)
	if err != nil {
		return nil, err
	}
	waiting, err := n.waitingTasks(ctx)
	if err != nil {
		return nil, err
	}
	by := map[string]*api.Group{}
	group := func(name string) *api.Group {
		if by[name] == nil {
			by[name] = &api.Group{Name: name, Workers: []string{}, Waiting: map[string]string{}}
		}
		return by[name]
	}
	for _, m := range members {
		for _, g := range cluster.Groups(m.Group) {
			x := group(g)
			x.Workers = append(x.Workers, m.ID)
		}
	}
	for _, d := range defs {
		x := group(cmp.Or(d.Group, cluster.DefaultGroup))
		x.Tasks++
		if why, ok := waiting[d.Name]; ok {
			x.Waiting[d.Name] = why
		}
	}
	out := []api.Group{}
	for _, g := range by {
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b api.Group) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// waitingTasks are the tasks that no worker has, and why.
func (n *Node) waitingTasks(ctx context.Context) (map[string]string, error) {
	if n.board == nil {
		return nil, nil
	}
	_, waiting, _, err := cluster.PlanOf(ctx, n.board)
	return waiting, err
}

// Rebalance implements api.Fleet.
func (n *Node) Rebalance(ctx context.Context, group string) error {
	if err := n.alone("group rebalance"); err != nil {
		return err
	}
	all, err := n.Groups(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, g := range all {
		names = append(names, g.Name)
	}
	if !slices.Contains(names, group) {
		return api.Errorf(api.Usage, "group %q: not found, expected one of %s", group, strings.Join(names, ", "))
	}
	return n.board.Put(ctx, cluster.EvenFolder, group+" "+newToken(), []byte("{}"))
}

// TestAlert implements api.Fleet.
func (n *Node) TestAlert(ctx context.Context) ([]audit.Tested, error) {
	return n.alerts.Test(ctx, newToken()), nil
}
