package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/datalink-go/datalink/host/api"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/wire"
)

// snapshotWait is how long a reader may take to have a request stored.
const snapshotWait = 30 * time.Second

// Snapshot implements api.Backend. The request goes to the reader of the task's
// run, which keeps it with its progress: what was accepted outlives any process.
func (n *Node) Snapshot(ctx context.Context, name string, q api.SnapshotQuery) (*api.Snapshot, error) {
	if _, _, err := n.stored(ctx, name); err != nil {
		return nil, err
	}
	n.mu.Lock()
	r := n.runs[name]
	n.mu.Unlock()
	if r == nil {
		return nil, api.Errorf(api.CheckFailed, "task %s does not run here: `datalink task resume %s` lets it run, then ask again", name, name)
	}
	r.mu.Lock()
	c := r.live
	r.mu.Unlock()
	if c == nil {
		return nil, api.Errorf(api.CheckFailed, "task %s is starting: ask again", name)
	}
	req := &wire.SnapshotRequest{Tables: q.Tables, Action: q.Action}
	ctx, cancel := context.WithTimeout(ctx, snapshotWait)
	defer cancel()
	a, err := c.snapshot(ctx, req)
	var f *sdk.Fault
	switch {
	case err == nil:
	case errors.As(err, &f) && f.Code == sdk.CodeUnimplemented:
		return nil, api.Errorf(api.CheckFailed, "task %s: its reader takes no snapshots while it runs (%s)", name, f.Message)
	case errors.As(err, &f) && f.Code == sdk.CodeUnknownTable:
		return nil, api.Errorf(api.Usage, "task %s: %w", name, err)
	default:
		return nil, api.Errorf(api.Failed, "task %s: %w", name, err)
	}
	out := &api.Snapshot{Task: name, Accepted: a.Accepted, Paused: a.Paused, RowsPerSecond: a.RowsPerSecond, Tables: []api.TableSnapshot{}}
	for _, t := range a.Tables {
		s := api.TableSnapshot{Table: t.Table, Phase: t.Phase, Rows: t.Rows, Estimate: t.Estimate}
		switch {
		case t.Phase == "done":
			s.Percent = 100
		case t.Estimate > 0:
			s.Percent = min(99, float64(t.Rows)*100/float64(t.Estimate))
		}
		out.Tables = append(out.Tables, s)
	}
	return out, nil
}

// snapshot asks the reader that is running.
func (c *connectors) snapshot(ctx context.Context, q *wire.SnapshotRequest) (*wire.SnapshotReply, error) {
	c.mu.Lock()
	cl, f := c.clients[reader], c.facets[reader]
	c.mu.Unlock()
	if cl == nil {
		return nil, sdk.Faultf(sdk.CodeUnavailable, "the reader is being started").Retry()
	}
	if !has(f, manifest.CanSnapshot) {
		return nil, sdk.Faultf(sdk.CodeUnimplemented, "plugin %s lacks the ability %q", c.task.Reader.Plugin.Name, manifest.CanSnapshot)
	}
	return cl.Snapshot(ctx, q)
}
