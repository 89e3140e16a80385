package reader

import (
	"bytes"
	"context"
	"time"

	"github.com/datalink-go/datalink/plugins/mysql/internal/snapshot"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/manifest"
)

var (
	_ sdk.Snapshotter = (*Reader)(nil)
	_ sdk.RangeReader = (*Reader)(nil)
	_ sdk.KeyReader   = (*Reader)(nil)
	_ sdk.Narrowed    = (*Reader)(nil)
)

// Without says what readers of files cannot do: files hold changes only.
func (r *Reader) Without() []string {
	if r.live == nil {
		return []string{manifest.CanDiscover, manifest.CanSnapshot, manifest.CanReadRange, manifest.CanReadKeys}
	}
	return nil
}

// running returns what weaves snapshots into the stream.
func (r *Reader) running() (*snapshot.Weaver, error) {
	if r.live == nil {
		return nil, sdk.Faultf(sdk.CodeUnimplemented, "files hold changes only: rows are read from a server")
	}
	w := r.live.woven.Load()
	if w == nil {
		return nil, sdk.Faultf(sdk.CodeUnavailable, "the reader is not open").Retry()
	}
	return w, nil
}

// Snapshot implements sdk.Snapshotter.
func (r *Reader) Snapshot(ctx context.Context, q sdk.SnapshotRequest) (sdk.SnapshotStatus, error) {
	var out sdk.SnapshotStatus
	w, err := r.running()
	if err != nil {
		return out, err
	}
	if q.Pause || q.Resume {
		if err := w.Pause(ctx, q.Pause); err != nil {
			return out, err
		}
	}
	if len(q.Tables) > 0 {
		for _, t := range q.Tables {
			if _, err := newPattern(t); err != nil {
				return out, sdk.Faultf(sdk.CodeInvalidConfig, "table %q: %v", t, err).Suggest("name tables as database.table, with * and ?")
			}
		}
		if out.Accepted, err = w.Request(ctx, newFilter(q.Tables).wants); err != nil {
			return out, err
		}
	}
	s := w.Status()
	out.Paused, out.RowsPerSecond = s.Paused, s.RowsPerSecond
	for _, t := range s.Tables {
		out.Tables = append(out.Tables, sdk.TableSnapshot{Table: t.Table.String(), Phase: t.Phase, Rows: t.Rows, Estimate: t.Estimate})
	}
	return out, nil
}

// Durable tells the snapshot what every writer has stored.
func (r *Reader) Durable(_ context.Context, upTo sdk.Position) error {
	if r.live == nil {
		return nil // files are not pruned
	}
	if w := r.live.woven.Load(); w != nil {
		w.Durable(func(end []byte) bool {
			p := sdk.Position{Format: liveFormat, Version: liveVersion, Source: end}
			o, err := compareSpots(p, upTo)
			return err == nil && (o == sdk.Before || o == sdk.Equal)
		})
	}
	return nil
}

// placeWait bounds the wait for the stream to come to a place.
const placeWait = 30 * time.Second

// ReadRange implements sdk.RangeReader. High is where the stream is once it has
// delivered all that the rows may show.
func (r *Reader) ReadRange(ctx context.Context, q sdk.Range, out *batch.Builder) (sdk.Placed, error) {
	var rest []byte
	p, err := r.placed(ctx, func(s *snapshot.Single, cur snapshot.Place) (snapshot.Extract, error) {
		x, err := s.Range(ctx, cur, q.Schema, q.Lo, q.Hi, q.Rows, out)
		rest = x.Rest
		return x, err
	})
	if err == nil && rest != nil {
		p.Rest = sdk.Range{Schema: q.Schema, Lo: rest, Hi: bytes.Clone(q.Hi), Rows: q.Rows}
	}
	return p, err
}

// ReadKeys implements sdk.KeyReader.
func (r *Reader) ReadKeys(ctx context.Context, s *batch.Schema, keys [][]byte, out *batch.Builder) (sdk.Placed, error) {
	return r.placed(ctx, func(one *snapshot.Single, cur snapshot.Place) (snapshot.Extract, error) {
		return one.Keys(ctx, cur, s, keys, out)
	})
}

// placed reads rows between two places of the stream.
func (r *Reader) placed(ctx context.Context, read func(*snapshot.Single, snapshot.Place) (snapshot.Extract, error)) (sdk.Placed, error) {
	w, err := r.running()
	if err != nil {
		return sdk.Placed{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, placeWait)
	defer cancel()
	cur, low, err := w.Here(ctx, nil)
	if err != nil {
		return sdk.Placed{}, err
	}
	x, err := read(snapshot.NewSingle(snapshot.Config{Options: r.cfg.Snapshot}, beside{r}), cur)
	if err != nil {
		return sdk.Placed{}, err
	}
	_, high, err := w.Here(ctx, &x.High)
	if err != nil {
		return sdk.Placed{}, err
	}
	at := func(source []byte) sdk.Position {
		return sdk.Position{Format: liveFormat, Version: liveVersion, Source: source}
	}
	return sdk.Placed{Low: at(low), High: at(high)}, nil
}
