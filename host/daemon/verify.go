package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/datalink-go/datalink/host/api"
	"github.com/datalink-go/datalink/host/config"
	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/host/task"
	"github.com/datalink-go/datalink/host/verify"
	"github.com/datalink-go/datalink/sdk"
)

// verifyFolder holds the state of each task's last verification: on the board of a
// cluster, so that it goes on wherever the task runs, else in the data directory.
const verifyFolder = "verify"

// Orders to the worker of a task.
const (
	verifyOrder = "verify"
	cancelOrder = "verify-cancel"
)

// verifications are those that run here, one a task.
type verifications struct {
	mu  sync.Mutex
	all map[string]*verification
}

type verification struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
}

var errCancelled = errors.New("cancelled by an operator")

// Verify implements api.Backend.
func (n *Node) Verify(ctx context.Context, name string, q api.VerifyQuery) (*verify.State, error) {
	d, _, err := n.stored(ctx, name)
	if err != nil {
		return nil, err
	}
	s, err := n.verification(ctx, name)
	if err != nil {
		return nil, err
	}
	if s != nil && s.TaskUID != d.UID {
		s = nil // of another task of this name
	}
	switch q.Action {
	case "":
		if s == nil {
			return nil, api.Errorf(api.Usage, "task %s was not verified yet: `datalink verify %s`", name, name)
		}
		return s, nil
	case "cancel":
		if s == nil || s.Phase != verify.Running {
			return nil, api.Errorf(api.Usage, "task %s is not being verified", name)
		}
		return n.cancelVerification(ctx, name, s)
	case "resume":
		if s == nil || s.Phase == verify.Done {
			return nil, api.Errorf(api.Usage, "task %s has no verification that was cut short: `datalink verify %s` begins one", name, name)
		}
		s.Phase, s.Reason, s.EndedAt = verify.Running, "", time.Time{}
		if q.MaxRowsPerSecond > 0 {
			s.MaxRowsPerSecond = q.MaxRowsPerSecond
		}
	case "start":
		if s != nil && s.Phase == verify.Running && n.verifying(name) {
			return nil, api.Errorf(api.CheckFailed, "task %s is being verified (%.0f %%): `datalink verify %s --cancel` ends that", name, s.Percent, name)
		}
		if _, err := config.ParsePatterns(q.Tables); err != nil {
			return nil, api.Errorf(api.Usage, "--table: %w", err)
		}
		s = &verify.State{
			Task: name, TaskUID: d.UID, ID: newToken(), Phase: verify.Running, Tables: q.Tables, Repair: q.Repair,
			MaxRowsPerSecond: q.MaxRowsPerSecond, StartedAt: time.Now().UTC(),
		}
	default:
		return nil, api.Errorf(api.Usage, "action %q: expected start, resume or cancel", q.Action)
	}
	n.mu.Lock()
	r := n.runs[name]
	n.mu.Unlock()
	if r == nil && n.board == nil {
		return nil, api.Errorf(api.CheckFailed, "task %s does not run: `datalink task resume %s` lets it run, then ask again", name, name)
	}
	if err := n.keepVerification(ctx, s); err != nil {
		return nil, err
	}
	if r == nil {
		return s, n.order(ctx, name, verifyOrder)
	}
	n.beginVerification(r)
	return s, nil
}

func (n *Node) cancelVerification(ctx context.Context, name string, s *verify.State) (*verify.State, error) {
	n.verifications.mu.Lock()
	v := n.verifications.all[name]
	n.verifications.mu.Unlock()
	if v != nil {
		v.cancel(errCancelled)
		select {
		case <-v.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return n.verification(ctx, name)
	}
	n.mu.Lock()
	here := n.runs[name] != nil
	n.mu.Unlock()
	if n.board != nil && !here {
		return s, n.order(ctx, name, cancelOrder)
	}
	s.Phase, s.Reason, s.EndedAt = verify.Cancelled, errCancelled.Error(), time.Now().UTC()
	return s, n.keepVerification(ctx, s)
}

// verifyOrdered does what another worker was asked for.
func (n *Node) verifyOrdered(name, order string) {
	if order == cancelOrder {
		n.verifications.mu.Lock()
		v := n.verifications.all[name]
		n.verifications.mu.Unlock()
		if v != nil {
			v.cancel(errCancelled)
		}
		return
	}
	n.mu.Lock()
	r := n.runs[name]
	n.mu.Unlock()
	if r != nil {
		n.beginVerification(r)
	}
}

func (n *Node) verifying(name string) bool {
	n.verifications.mu.Lock()
	defer n.verifications.mu.Unlock()
	return n.verifications.all[name] != nil
}

// beginVerification starts the verification that the store says is under way, if it
// is not at work. It returns at once.
func (n *Node) beginVerification(r *run) {
	name := r.task.Name
	n.verifications.mu.Lock()
	defer n.verifications.mu.Unlock()
	if n.verifications.all[name] != nil {
		return
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	v := &verification{cancel: cancel, done: make(chan struct{})}
	n.verifications.all[name] = v
	go func() {
		select {
		case <-r.done:
			cancel(errors.New("the task's run has ended"))
		case <-v.done:
		}
	}()
	go func() {
		defer func() {
			n.verifications.mu.Lock()
			delete(n.verifications.all, name)
			n.verifications.mu.Unlock()
			cancel(nil)
			close(v.done)
		}()
		if err := n.runVerification(ctx, r); err != nil {
			n.log.Warn("verification", "task", name, "cause", err)
		}
	}()
}

// verifyTries bounds how often a verification is begun again without a chunk done.
const verifyTries = 8

func (n *Node) runVerification(ctx context.Context, r *run) error {
	s, err := n.verification(ctx, r.task.Name)
	if err != nil || s == nil || s.Phase != verify.Running || s.TaskUID != r.def.UID {
		return err
	}
	n.log.Info("verification begins or goes on", "task", s.Task, "id", s.ID, "percent", s.Percent)
	for tries := 0; ; {
		before := chunks(s)
		err = n.verifyOnce(ctx, r, s)
		if err == nil || ctx.Err() != nil || !passing(err) {
			break
		}
		if tries++; chunks(s) > before {
			tries = 0
		}
		if tries >= verifyTries {
			break
		}
		n.log.Info("verification is begun again where it was", "task", s.Task, "cause", err)
		select {
		case <-time.After(time.Duration(tries+1) * 500 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	switch {
	case err == nil:
		s.Phase = verify.Done
	case errors.Is(context.Cause(ctx), errCancelled):
		s.Phase, s.Reason = verify.Cancelled, errCancelled.Error()
	case ctx.Err() != nil:
		return n.keepVerification(last, s) // the next run of the task goes on
	default:
		s.Phase, s.Reason = verify.Failed, err.Error()
	}
	s.EndedAt = time.Now().UTC()
	if err := n.keepVerification(last, s); err != nil {
		return err
	}
	n.log.Info("verification has ended", "task", s.Task, "id", s.ID, "phase", string(s.Phase), "differences", s.Differences(), "unsettled", s.Unsettled(), "reason", s.Reason)
	return nil
}

func chunks(s *verify.State) (n uint64) {
	for i := range s.Results {
		n += s.Results[i].Chunks
	}
	return n
}

// passing reports whether an error may be gone in a moment.
func passing(err error) bool {
	f := sdk.AsFault(err)
	return errors.Is(err, pipeline.ErrDied) || f.Retryable || f.Code == sdk.CodeUnavailable || f.Code == sdk.CodeDeadline
}

func (n *Node) verifyOnce(ctx context.Context, r *run, s *verify.State) error {
	c, err := r.connectors(ctx)
	if err != nil {
		return err
	}
	cfg, done, err := c.comparison(ctx, s.Tables)
	if err != nil {
		return err
	}
	defer done()
	cfg.Log = n.log.With("task", s.Task)
	cfg.NoSettle = switched("verify-no-settle")
	cfg.Save = n.keepVerification
	return verify.Run(ctx, *cfg, s)
}

// connectors returns those that run, once the pipeline does.
func (r *run) connectors(ctx context.Context) (*connectors, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		r.mu.Lock()
		c, phase := r.live, r.state.Phase
		r.mu.Unlock()
		if c != nil && phase == task.Running {
			return c, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// verification reads the state of a task's last verification, nil where there is none.
func (n *Node) verification(ctx context.Context, name string) (*verify.State, error) {
	var data []byte
	var err error
	if n.board != nil {
		data, err = n.board.Note(ctx, verifyFolder, name)
	} else if data, err = os.ReadFile(n.verifyFile(name)); errors.Is(err, os.ErrNotExist) {
		data, err = nil, nil
	}
	if err != nil || data == nil {
		return nil, err
	}
	s := new(verify.State)
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("state of the verification of task %s: %w", name, err)
	}
	return s, nil
}

func (n *Node) verifyFile(name string) string {
	return filepath.Join(n.cfg.DataDir, verifyFolder, name+".json")
}

// keepVerification stores the state as a whole.
func (n *Node) keepVerification(ctx context.Context, s *verify.State) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if n.board != nil {
		return n.board.Put(ctx, verifyFolder, s.Task, data)
	}
	path := n.verifyFile(s.Task)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
