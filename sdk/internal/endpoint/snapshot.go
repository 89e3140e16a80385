package endpoint

import (
	"context"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/wire"
)

func snapshot(ctx context.Context, _ *Endpoint, in *instance, q *wire.SnapshotRequest) (*wire.SnapshotReply, error) {
	r, err := as[sdk.Snapshotter](in, wire.Snapshot, manifest.CanSnapshot)
	if err != nil {
		return nil, err
	}
	req := sdk.SnapshotRequest{Tables: q.Tables}
	switch q.Action {
	case "":
	case "pause":
		req.Pause = true
	case "resume":
		req.Resume = true
	default:
		return nil, sdk.Faultf(sdk.CodeUnimplemented, "call %s: action %q, this plugin knows pause and resume", wire.Snapshot, q.Action)
	}
	s, err := r.Snapshot(ctx, req)
	if err != nil {
		return nil, err
	}
	a := &wire.SnapshotReply{Accepted: s.Accepted, Paused: s.Paused, RowsPerSecond: uint64(s.RowsPerSecond)}
	for _, t := range s.Tables {
		a.Tables = append(a.Tables, wire.SnapshotTable(t))
	}
	return a, nil
}
