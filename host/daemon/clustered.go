package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/host/api"
	"github.com/datalink-go/datalink/host/cluster"
	"github.com/datalink-go/datalink/host/task"
)

// clustered is what a node knows of its cluster.
type clustered struct {
	mine  map[string]bool   // tasks that the plan gives to this worker
	holds map[string]string // tasks under another worker's hands, by task
	done  map[string]string // the order that was carried out last, by task
}

// reportEvery is how often a worker reports what has changed.
const reportEvery = 10 * time.Second

// settle is how long a task that moved is not moved again for balance.
const settle = 20 * time.Second

// markEvery is how often journals' marks move: a thousand tasks share the store.
func (n *Node) markEvery() time.Duration {
	if n.board != nil {
		return 30 * time.Second
	}
	return 0
}

// serveCluster runs the tasks that the plan gives to this worker until ctx ends,
// and hands them over then. An unreachable store changes nothing; a session that is
// lost is followed by a new one.
func (n *Node) serveCluster(ctx context.Context) error {
	n.serving.Store(true)
	defer n.serving.Store(false)
	for ctx.Err() == nil {
		session := n.current()
		member, cancel := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c := cluster.Coordinator{
				Store: n.board, Session: session.(cluster.Session), Log: n.log, Now: wallClock().Now,
				Config: cluster.Config{Grace: n.cfg.Cluster.RestartGrace, Settle: settle},
			}
			c.Run(member)
		}()
		n.member(member, session)
		if ctx.Err() != nil {
			n.leave(ctx, session)
		}
		cancel()
		<-ended
		if ctx.Err() == nil {
			n.log.Warn("the session with the coordination store has ended: this worker joins again", "session", session.ID())
			n.rejoin(ctx)
		}
	}
	n.stopAll()
	return nil
}

// member follows the plan until ctx ends or the session is lost.
func (n *Node) member(ctx context.Context, session coordination.Session) {
	reported := time.Time{}
	var last string
	for ctx.Err() == nil {
		if r := n.report(); time.Since(reported) >= reportEvery || last == "" {
			if text := string(r); text != last {
				if err := session.(cluster.Session).Offer(ctx, cluster.ReportFolder, n.id, r); err != nil {
					n.log.Debug("report", "cause", err)
				} else {
					last = text
				}
			}
			reported = time.Now()
		}
		changed, next, err := n.follow(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, coordination.ErrSessionLost) {
			n.log.Warn("the plan cannot be read; what runs goes on", "cause", err)
			changed, next = nil, time.Second
		}
		if last == "" {
			next = min(next, time.Second)
		}
		timer := time.NewTimer(min(next, reportEvery))
		select {
		case <-ctx.Done():
		case <-session.Lost():
			timer.Stop()
			return
		case <-changed:
		case <-n.keepers.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// follow brings what runs here to what the plan says.
func (n *Node) follow(ctx context.Context) (changed <-chan struct{}, next time.Duration, err error) {
	known := slices.Sorted(maps.Keys(n.assigned()))
	topics := []coordination.Topic{{Folder: cluster.PlanFolder, Note: n.id}, {Folder: cluster.HoldFolder}, {Folder: cluster.OrderFolder}}
	for _, name := range known {
		topics = append(topics, coordination.Topic{Task: name})
	}
	if changed, err = n.board.Changes(ctx, topics...); err != nil {
		return nil, 0, err
	}
	names, err := cluster.Mine(ctx, n.board, n.id)
	if err != nil {
		return nil, 0, err
	}
	holds, err := n.board.Notes(ctx, cluster.HoldFolder)
	if err != nil {
		return nil, 0, err
	}
	mine, held := map[string]bool{}, map[string]string{}
	for _, name := range names {
		mine[name] = true
	}
	for _, h := range holds {
		if by := string(h.Value); by != n.id {
			held[h.Name] = by
		}
	}
	defs, err := n.board.Some(ctx, names)
	if err != nil {
		return nil, 0, err
	}
	n.mu.Lock()
	n.cluster.mine, n.cluster.holds = mine, held
	n.mu.Unlock()
	next = time.Minute
	if !slices.Equal(known, names) { // those that are new are not watched yet
		next = 0
	}
	for _, d := range defs {
		if wait := n.keep(d); wait > 0 {
			next = min(next, wait)
		}
	}
	n.dropOthers(mine)
	if err := n.obey(ctx, mine); err != nil {
		return nil, 0, err
	}
	return changed, next, nil
}

func (n *Node) assigned() map[string]bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.cluster.mine)
}

// heldBy says which other worker has a task under its hands.
func (n *Node) heldBy(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cluster.holds[name]
}

// dropOthers stops what the plan gives to other workers and forgets it.
func (n *Node) dropOthers(mine map[string]bool) {
	n.keepers.mu.Lock()
	defer n.keepers.mu.Unlock()
	for name := range n.keepers.all {
		if mine[name] || n.keepers.busy[name] {
			continue
		}
		n.mu.Lock()
		r := n.runs[name]
		n.mu.Unlock()
		if r != nil {
			r.stop("the task is given to another worker")
		} else if k := n.keepers.all[name]; !k.running {
			delete(n.keepers.all, name)
		}
	}
}

// obey carries out orders about tasks of this worker.
func (n *Node) obey(ctx context.Context, mine map[string]bool) error {
	orders, err := n.board.Notes(ctx, cluster.OrderFolder)
	if err != nil {
		return err
	}
	for _, o := range orders {
		var order cluster.Order
		if !mine[o.Name] || json.Unmarshal(o.Value, &order) != nil || n.cluster.done[o.Name] == order.ID {
			continue
		}
		n.cluster.done[o.Name] = order.ID
		if order.Do == string(api.TakeOver) {
			n.keepers.takeOver(o.Name)
		}
		if order.Do == verifyOrder || order.Do == cancelOrder {
			n.verifyOrdered(o.Name, order.Do)
		} else {
			n.refresh(o.Name, api.Change(order.Do))
		}
		if err := n.board.Remove(ctx, cluster.OrderFolder, o.Name); err != nil {
			return err
		}
	}
	return nil
}

// report is what this worker says of itself.
func (n *Node) report() []byte {
	r := cluster.Report{Plugins: n.plugins.has(), Tasks: map[string]int{}}
	n.mu.Lock()
	for name, x := range n.runs {
		x.mu.Lock()
		running := x.state.Phase == task.Running
		x.mu.Unlock()
		if running {
			reading := x.meter.Reading()
			if w := cluster.Weight(x.pace(reading.Counts.Read), reading.Lag); w > cluster.Unit {
				r.Tasks[name] = w
			}
		}
	}
	n.mu.Unlock()
	data, _ := json.Marshal(r) // of texts and numbers
	return data
}

// pace is the records a second since it was last asked.
func (r *run) pace(read int64) float64 {
	now := time.Now()
	before, at := r.paceRead, r.paceAt
	if at.IsZero() || now.Sub(at) >= reportEvery/2 {
		if !at.IsZero() {
			r.paceRate = (r.paceRate + float64(read-before)/now.Sub(at).Seconds()) / 2
		}
		r.paceRead, r.paceAt = read, now
	}
	return r.paceRate
}

// leave hands over what this worker has, one by one, before it ends. It gives up
// where nobody takes it.
func (n *Node) leave(ctx context.Context, session coordination.Session) {
	ctx = context.WithoutCancel(ctx)
	if !n.takers(ctx) {
		return
	}
	if err := session.(cluster.Session).Offer(ctx, cluster.LeavingFolder, n.id, []byte(`{}`)); err != nil {
		return
	}
	const patience = 10 * time.Second // without any progress
	fewer, since := -1, time.Now()
	for {
		changed, _, err := n.follow(ctx)
		if err != nil {
			return
		}
		n.mu.Lock()
		left := len(n.cluster.mine) + len(n.runs)
		n.mu.Unlock()
		if left == 0 || !n.takers(ctx) { // all of them may end at once
			return
		}
		if fewer < 0 || left < fewer {
			fewer, since = left, time.Now()
		}
		rest := patience + n.grace() - time.Since(since)
		if rest <= 0 {
			n.log.Warn("tasks could not be handed over and stop with this worker", "tasks", left)
			return
		}
		timer := time.NewTimer(min(rest, time.Second))
		select {
		case <-changed:
		case <-n.keepers.wake:
		case <-session.Lost():
			timer.Stop()
			return
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (n *Node) grace() time.Duration {
	if n.cfg.Grace > 0 {
		return n.cfg.Grace
	}
	return 30 * time.Second
}

// takers reports whether there are workers that do not leave, beside this one.
func (n *Node) takers(ctx context.Context) bool {
	all, err := n.store.Workers(ctx)
	if err != nil {
		return false
	}
	away := map[string]bool{n.id: true}
	for _, folder := range []string{cluster.LeavingFolder, cluster.DrainFolder} {
		notes, err := n.board.Notes(ctx, folder)
		if err != nil {
			return false
		}
		for _, x := range notes {
			away[x.Name] = true
		}
	}
	return slices.ContainsFunc(all, func(w coordination.Worker) bool { return !away[w.ID] })
}

// rejoin opens a new session. The executions of the old one end by themselves.
func (n *Node) rejoin(ctx context.Context) {
	for pause := 100 * time.Millisecond; ctx.Err() == nil; pause = min(2*pause, 5*time.Second) {
		x, err := n.store.Join(ctx, n.worker())
		if err == nil {
			n.mu.Lock()
			old := n.session
			n.session = x
			n.mu.Unlock()
			_ = old.Close(ctx)
			return
		}
		n.log.Warn("this worker cannot join", "cause", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// order lets the worker of a task do something, wherever it is.
func (n *Node) order(ctx context.Context, name string, to api.Change) error {
	data, err := json.Marshal(cluster.Order{Do: string(to), ID: newToken()})
	if err != nil {
		return err
	}
	return n.board.Put(ctx, cluster.OrderFolder, name, data)
}

// grab keeps all workers from running a task while it is under this one's hands.
func (n *Node) grab(ctx context.Context, name string) (free func(), err error) {
	if n.board == nil {
		return func() {}, nil
	}
	session := n.current().(cluster.Session)
	err = session.Offer(ctx, cluster.HoldFolder, name, []byte(n.id))
	if errors.Is(err, coordination.ErrExists) {
		return nil, api.Errorf(api.Failed, "task %s is under maintenance by a command at another worker: try again", name)
	}
	if err != nil {
		return nil, err
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
		defer cancel()
		if err := n.board.Remove(ctx, cluster.HoldFolder, name); err != nil {
			n.log.Warn("hold on a task could not be given back; it goes with this worker's session", "task", name, "cause", err)
		}
	}, nil
}
