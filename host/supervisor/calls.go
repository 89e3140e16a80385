package supervisor

import (
	"context"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/wire"
)

// Configure makes the instance. Role, limits, task and name come from Config.
// Problems in the reply are those of the configuration; nothing was made then.
func (c *Client) Configure(ctx context.Context, config []byte, logLevel string, failPoints ...string) (*wire.ConfigureReply, error) {
	var a wire.ConfigureReply
	err := c.call(ctx, wire.Configure, &wire.ConfigureRequest{
		Role: string(c.cfg.Role), Task: c.cfg.Task, Name: c.cfg.Instance, Config: config,
		Limits: c.cfg.Limits, LogLevel: logLevel, FailPoints: failPoints,
	}, &a)
	if err != nil || len(a.Problems) > 0 {
		return &a, err
	}
	if is := c.manifest.Roles[c.cfg.Role].Level; string(is) != a.Level {
		return nil, sdk.Faultf(sdk.CodeRefused, "plugin %s: it described the level %q and was configured as %q", c.cfg.Image.Name, is, a.Level)
	}
	return &a, checkLimits(c.cfg.Image.Name, c.cfg.Limits, a.Limits)
}

// Check looks at the connector's store.
func (c *Client) Check(ctx context.Context) ([]sdk.Finding, error) {
	var a wire.CheckReply
	err := c.call(ctx, wire.Check, &wire.CheckRequest{}, &a)
	return a.Findings, err
}

// Discover lists the tables of the connector's store.
func (c *Client) Discover(ctx context.Context, out func(*batch.Schema) error) error {
	after := ""
	for {
		var a wire.DiscoverReply
		if err := c.call(ctx, wire.Discover, &wire.DiscoverRequest{After: after}, &a); err != nil {
			return err
		}
		for _, def := range a.Schemas {
			s, err := batch.DecodeSchema(def)
			if err != nil {
				return err
			}
			if err := out(s); err != nil {
				return err
			}
			after = s.Name()
		}
		if !a.More || len(a.Schemas) == 0 {
			return nil
		}
	}
}

// Release removes what the task left in the connector's store.
func (c *Client) Release(ctx context.Context, taskUID string) error {
	return c.call(ctx, wire.Release, &wire.ReleaseRequest{TaskUID: taskUID}, &wire.Empty{})
}

// Ping asks for a sign of life.
func (c *Client) Ping(ctx context.Context) error {
	return c.call(ctx, wire.Ping, &wire.Empty{}, &wire.Empty{})
}

// ReadRange reads a part of a table; see sdk.RangeReader.
func (c *Client) ReadRange(ctx context.Context, r *wire.RangeRequest) (*wire.RangeReply, error) {
	var a wire.RangeReply
	return &a, c.call(ctx, wire.ReadRange, r, &a)
}

// ReadKeys reads single rows; see sdk.KeyReader.
func (c *Client) ReadKeys(ctx context.Context, r *wire.KeysRequest) (*wire.RangeReply, error) {
	var a wire.RangeReply
	return &a, c.call(ctx, wire.ReadKeys, r, &a)
}

// Snapshot asks for tables beside the stream; see sdk.Snapshotter.
func (c *Client) Snapshot(ctx context.Context, q *wire.SnapshotRequest) (*wire.SnapshotReply, error) {
	var a wire.SnapshotReply
	return &a, c.call(ctx, wire.Snapshot, q, &a)
}

// Scan reads back a part of a target's table; see sdk.TargetScanner.
func (c *Client) Scan(ctx context.Context, r *wire.RangeRequest) (*wire.RangeReply, error) {
	var a wire.RangeReply
	return &a, c.call(ctx, wire.Scan, r, &a)
}
