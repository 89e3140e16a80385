package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/host/api"
	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/wire"
)

func executionOf(d coordination.Definition, storeUID string) sdk.Execution {
	return sdk.Execution{Task: d.Name, TaskUID: d.UID, StoreUID: storeUID}
}

// maintain stops a task's run, does the work as an execution of its own, with
// every target claimed, and lets the task go on. The work replaces the pipeline.
func (n *Node) maintain(ctx context.Context, name string, work func(context.Context, pipeline.Config) error) error {
	d, t, err := n.stored(ctx, name)
	if err != nil {
		return err
	}
	if !n.keepers.hold(name) {
		return api.Errorf(api.Failed, "task %s is under maintenance by another command: try again", name)
	}
	defer n.keepers.free(name)
	free, err := n.grab(ctx, name)
	if err != nil {
		return err
	}
	defer free()
	if err := n.halt(ctx, name, "stopped for maintenance by an operator"); err != nil {
		return err
	}
	r, err := n.start(t, d, Options{
		Once: true, WaitHeld: 10*time.Second + n.grace(),
		Pipeline: func(ctx context.Context, cfg pipeline.Config) (pipeline.Result, error) {
			return pipeline.Result{Ended: true}, work(ctx, cfg)
		},
	})
	if err != nil {
		return err
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		r.stop("the command was interrupted")
		<-r.done
	}
	return r.result().Err
}

// hold keeps Serve from starting a task; false = somebody else holds it.
func (k *keepers) hold(name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.busy[name] {
		return false
	}
	k.busy[name] = true
	return true
}

func (k *keepers) free(name string) {
	k.mu.Lock()
	delete(k.busy, name)
	k.mu.Unlock()
	k.poke()
}

// sendTime bounds what an operator's command writes to a target.
const sendTime = time.Minute

// send hands requests to a writer, one after the other, and waits until each is
// durable.
func send(ctx context.Context, cfg *pipeline.Config, w *pipeline.WriterConfig, reqs ...*wire.WriteRequest) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	ex := cfg.Execution // each stream has a claim before it
	ex.Writer = w.Name
	c, err := w.Sink.Claim(ctx, ex)
	if err != nil {
		return err
	}
	w.Claimed = c
	st, err := w.Sink.Write(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	for i, q := range reqs {
		q.Seq, q.Attempt, q.Drain = uint64(i+1), 1, true
		if err := st.Send(q); err != nil {
			return err
		}
		for acked := uint64(0); acked < q.Seq; {
			a, err := st.Recv()
			switch {
			case err != nil:
				return err
			case a.Fault != nil:
				return a.Fault
			case len(a.Records) > 0:
				return &a.Records[0].Fault
			}
			acked = max(acked, a.Acked)
		}
	}
	if err := st.CloseSend(); err != nil {
		return err
	}
	for {
		a, err := st.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case a.Fault != nil:
			return a.Fault
		}
	}
}

// lanes says to the writer which of the points are its own.
func lanes(w *pipeline.WriterConfig) []int64 {
	out := []int64{}
	if w.Claimed != nil {
		for _, p := range w.Claimed.Points {
			if p.Lane != sdk.WriterLane {
				out = append(out, int64(p.Lane))
			}
		}
	}
	return out
}

func writerOf(cfg *pipeline.Config, name string) *pipeline.WriterConfig {
	for i := range cfg.Writers {
		if cfg.Writers[i].Name == name {
			return &cfg.Writers[i]
		}
	}
	return nil
}

// SetPosition implements api.Backend. It writes the position through a claim into
// every target, so that target and store agree.
func (n *Node) SetPosition(ctx context.Context, name, text string) ([]api.Position, error) {
	err := n.maintain(ctx, name, func(ctx context.Context, cfg pipeline.Config) error {
		p, err := cfg.Reader.Source.ParsePosition(text)
		if err != nil {
			return err
		}
		if p.Ordinal != 0 {
			return sdk.Faultf(sdk.CodeInvalidPosition, "position %q lies inside of a transaction, expected one between transactions", text)
		}
		for i := range cfg.Writers {
			if err := n.setPosition(ctx, &cfg, &cfg.Writers[i], p); err != nil {
				return fmt.Errorf("writer %s: %w", cfg.Writers[i].Name, err)
			}
			cfg.Observer.Acked(cfg.Writers[i].Name, nil, 0, p) // for the journal's mark
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	// A task whose source had ended, or that failed for its position, has a new one.
	if err := n.nudge(ctx, name, api.Resume); err != nil {
		return nil, err
	}
	return n.Position(ctx, name)
}

func (n *Node) setPosition(ctx context.Context, cfg *pipeline.Config, w *pipeline.WriterConfig, p sdk.Position) error {
	if !w.Stores {
		c, err := cfg.Progress.Load(ctx, w.Name)
		if err != nil {
			return err
		}
		saved := &pipeline.Saved{}
		for _, x := range c.Points {
			x.Position, x.BatchNo = p, x.BatchNo+1
			saved.Points = append(saved.Points, x)
		}
		if len(saved.Points) == 0 {
			saved.Points = []sdk.Point{{Writer: w.Name, Position: p, BatchNo: 1}}
		}
		return cfg.Progress.Save(ctx, w.Name, saved)
	}
	block, err := emptyTo(p)
	if err != nil {
		return err
	}
	return send(ctx, cfg, w, &wire.WriteRequest{Block: block, First: firstOf(w), Last: p, Lanes: lanes(w)})
}

func firstOf(w *pipeline.WriterConfig) sdk.Position {
	if w.Claimed == nil {
		return sdk.Position{}
	}
	for _, x := range w.Claimed.Points {
		if x.Lane != sdk.WriterLane {
			return x.Position
		}
	}
	return sdk.Position{}
}

// release lets every connector remove what the task left.
func (c *connectors) release(ctx context.Context, taskUID string) error {
	var errs []error
	for name, f := range c.facets {
		if !has(f, manifest.CanRelease) {
			continue
		}
		c.mu.Lock()
		cl := c.clients[name]
		c.mu.Unlock()
		if cl == nil {
			continue
		}
		if err := cl.Release(ctx, taskUID); err != nil {
			errs = append(errs, fmt.Errorf("release by %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
