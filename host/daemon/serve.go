package daemon

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/host/api"
	"github.com/datalink-go/datalink/host/config"
	"github.com/datalink-go/datalink/host/task"
	"github.com/datalink-go/datalink/sdk"
)

// Bounds of the pause before a task that failed is started again.
const (
	minPause = time.Second
	maxPause = 5 * time.Minute
	// steady is how long a run counts as one that had recovered.
	steady = time.Minute
)

// keeper is what Serve knows of one task.
type keeper struct {
	def      coordination.Definition
	failed   int       // runs in a row
	until    time.Time // of the pause
	reason   string    // of the pause, or why it is not started at all
	hopeless uint64    // definition version that can never run; 0 = none
	ended    uint64    // definition version whose source has ended; 0 = none
	begun    time.Time
	takeOver bool // at the next start
	running  bool // until finished has judged its end; longer than it is among Node.runs
}

// keepers are guarded by their own lock: commands look at them too.
type keepers struct {
	mu   sync.Mutex
	all  map[string]*keeper
	busy map[string]bool // under maintenance: not to be started
	wake chan struct{}
}

func newKeepers() *keepers {
	return &keepers{all: map[string]*keeper{}, busy: map[string]bool{}, wake: make(chan struct{}, 1)}
}

func (k *keepers) poke() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// takeOver lets the next start of a task claim targets that others have claimed.
func (k *keepers) takeOver(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all[name] == nil {
		k.all[name] = &keeper{}
	}
	k.all[name].takeOver = true
}

// waiting says how a task is that is wanted and not running, and why; "" where that
// is not known here.
func (n *Node) waiting(name string) (state, reason string) {
	n.keepers.mu.Lock()
	defer n.keepers.mu.Unlock()
	k := n.keepers.all[name]
	switch {
	case k == nil || k.reason == "":
		return "", ""
	case k.ended != 0:
		return "ended", k.reason
	case k.hopeless != 0:
		return "failed", k.reason
	}
	return "back-off", k.reason
}

// nudge lets the task's worker look again after an operator changed something.
func (n *Node) nudge(ctx context.Context, name string, to api.Change) error {
	if n.board != nil {
		return n.order(ctx, name, to)
	}
	n.refresh(name, to)
	return nil
}

// refresh forgets why a task that is this worker's did not run.
func (n *Node) refresh(name string, to api.Change) {
	n.keepers.mu.Lock()
	if k := n.keepers.all[name]; k != nil {
		k.failed, k.until, k.hopeless, k.ended, k.reason = 0, time.Time{}, 0, 0, ""
	}
	n.keepers.mu.Unlock()
	if to == api.Restart {
		n.mu.Lock()
		r := n.runs[name]
		n.mu.Unlock()
		if r != nil {
			r.stop("restarted by an operator")
		}
	}
	n.keepers.poke()
}

// Serve runs all tasks that are wanted until ctx ends, and stops them then. A task
// that failed is started again after a growing pause; one whose source has ended
// or whose file is wrong waits for a change.
func (n *Node) Serve(ctx context.Context) error {
	if n.board != nil {
		return n.serveCluster(ctx)
	}
	n.serving.Store(true)
	defer n.serving.Store(false)
	for {
		changed, err := n.store.Watch(ctx, "")
		if err != nil {
			if ctx.Err() != nil {
				break
			}
			return err
		}
		next, err := n.balance(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-n.keepers.wake:
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			break
		}
	}
	n.stopAll()
	return nil
}

func (n *Node) stopAll() {
	n.mu.Lock()
	runs := make([]*run, 0, len(n.runs))
	for _, r := range n.runs {
		runs = append(runs, r)
	}
	n.mu.Unlock()
	for _, r := range runs {
		r.stop("the daemon ends")
	}
	for _, r := range runs {
		<-r.done
	}
}

// balance starts and stops runs as the definitions say, and returns when to look
// again at the latest.
func (n *Node) balance(ctx context.Context) (time.Duration, error) {
	defs, err := n.store.Tasks(ctx)
	if err != nil {
		return 0, err
	}
	next := time.Minute
	there := map[string]bool{}
	for _, d := range defs {
		there[d.Name] = true
		if wait := n.keep(d); wait > 0 {
			next = min(next, wait)
		}
	}
	n.keepers.mu.Lock()
	for name := range n.keepers.all {
		if !there[name] {
			delete(n.keepers.all, name)
		}
	}
	n.keepers.mu.Unlock()
	return next, nil
}

// keep brings one task to what its definition wants; a positive result is the rest
// of its pause.
func (n *Node) keep(d coordination.Definition) time.Duration {
	n.keepers.mu.Lock()
	defer n.keepers.mu.Unlock()
	k := n.keepers.all[d.Name]
	if k == nil || k.def.UID != "" && k.def.UID != d.UID { // another task of the same name
		k = &keeper{}
		n.keepers.all[d.Name] = k
	}
	n.mu.Lock()
	r := n.runs[d.Name]
	n.mu.Unlock()
	changed := k.def.Version != 0 && k.def.Spec != d.Spec
	if k.def.Spec != d.Spec {
		k.failed, k.until, k.hopeless, k.ended, k.reason = 0, time.Time{}, 0, 0, ""
	}
	k.def = d
	switch by := n.heldBy(d.Name); {
	case n.keepers.busy[d.Name]:
		return 0
	case by != "":
		if r != nil {
			r.stop("under maintenance at worker " + by)
		}
		k.reason = "under maintenance at worker " + by
		return 0
	case d.Desired == coordination.Paused:
		if r != nil {
			r.runner.Stop(task.Paused, "paused by an operator")
		}
		return 0
	case r != nil:
		if changed {
			r.stop("its definition changed")
		}
		return 0
	case k.running:
		return 0 // finished wakes Serve
	case k.hopeless == d.Version || k.ended == d.Version:
		return 0
	case time.Now().Before(k.until):
		return time.Until(k.until)
	}
	n.launch(k, d)
	return 0
}

// launch starts a run; keepers is locked.
func (n *Node) launch(k *keeper, d coordination.Definition) {
	tasks, err := config.Parse("task "+d.Name, []byte(d.Spec))
	if err != nil {
		k.hopeless, k.reason = d.Version, err.Error()
		n.log.Error("task cannot be started", "task", d.Name, "cause", err)
		return
	}
	r, err := n.start(tasks[0], d, Options{TakeOver: k.takeOver})
	k.takeOver = false
	if err != nil {
		k.failed++
		k.pause(err)
		return
	}
	k.begun, k.running = time.Now(), true
	go func() {
		<-r.done
		n.finished(k, d, r.result())
		n.keepers.poke()
	}()
}

// finished decides what follows the end of a run.
func (n *Node) finished(k *keeper, d coordination.Definition, res Result) {
	n.keepers.mu.Lock()
	defer n.keepers.mu.Unlock()
	k.running = false
	switch {
	case res.Err == nil:
		k.failed, k.reason = 0, ""
		if res.Outcome.Pipeline.Ended {
			k.ended, k.reason = d.Version, "the source has ended"
		}
		return
	case res.Outcome.Lost && n.board != nil:
		return // the plan says what follows
	case !n.yields(res) && lasting(res):
		k.hopeless, k.reason = d.Version, res.Err.Error()
		n.log.Error("task has failed and is not started again before an operator does something", "task", d.Name, "cause", res.Err)
		return
	}
	if time.Since(k.begun) > steady {
		k.failed = 0
	}
	k.failed++
	k.pause(res.Err)
	n.log.Warn("task has failed and is started again", "task", d.Name, "cause", res.Err, "pause", time.Until(k.until).Round(time.Millisecond))
}

// yields reports whether a run ended because another execution owns the task, which
// in a cluster is no end: the plan says where it runs.
func (n *Node) yields(res Result) bool {
	return n.board != nil && api.KindOf(res.Err) == api.Fenced
}

// lasting reports whether starting again makes no sense.
func lasting(res Result) bool {
	switch api.KindOf(res.Err) {
	case api.Usage, api.Fenced:
		return true
	}
	var f *sdk.Fault
	if errors.As(res.Err, &f) {
		switch f.Code {
		case sdk.CodeInvalidConfig, sdk.CodeRefused, sdk.CodeForeignClaim, sdk.CodeFenced, sdk.CodeTargetWentBack, sdk.CodeUnknownTable,
			sdk.CodeSchemaMismatch, sdk.CodeUnsupportedEvent, sdk.CodeCorruptSource, sdk.CodePositionPurged, sdk.CodePositionUnknown,
			sdk.CodeInvalidPosition, sdk.CodeUnauthorized:
			return true
		}
	}
	return false
}

// pause doubles from minPause to maxPause; the upper half is random.
func (k *keeper) pause(err error) {
	d := maxPause
	if k.failed < 10 {
		d = min(maxPause, minPause<<(k.failed-1))
	}
	k.until = time.Now().Add(d/2 + rand.N(d/2+1))
	k.reason = "starts again after a pause: " + err.Error()
}
