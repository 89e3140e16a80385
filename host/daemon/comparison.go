package daemon

import (
	"context"

	"github.com/datalink-go/datalink/host/config"
	"github.com/datalink-go/datalink/host/mapping"
	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/host/supervisor"
	"github.com/datalink-go/datalink/host/verify"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/wire"
)

// comparison is what a verification needs of a task's running connectors. Done gives
// back what was started for it: transforms of its own, since those of the pipeline
// serve the stream.
func (c *connectors) comparison(ctx context.Context, tables []string) (cfg *verify.Config, done func(), err error) {
	if err := c.able(reader, c.task.Reader.Plugin.Name, manifest.CanDiscover, manifest.CanReadRange, manifest.CanReadKeys); err != nil {
		return nil, nil, err
	}
	cfg = &verify.Config{Source: alongside{c}, Stream: c.pipe.Beside, Estimate: c.estimates(ctx)}
	if len(tables) > 0 {
		p, err := config.ParsePatterns(tables)
		if err != nil {
			return nil, nil, err
		}
		cfg.Wants = p.Match
	}
	ws, done, err := c.mappers(ctx)
	if err != nil {
		return nil, nil, err
	}
	scans := false
	for i := range ws {
		if c.able(ws[i].Name, "", manifest.CanScan) == nil {
			ws[i].Target = readBack{c, ws[i].Name}
			scans = true
		}
	}
	if !scans {
		done()
		return nil, nil, sdk.Faultf(sdk.CodeUnimplemented, "no writer of task %s has the ability %q: what its target holds cannot be read back", c.task.Name, manifest.CanScan).
			Suggest("compare by hand, or take the tables anew: datalink task snapshot %s --table …", c.task.Name)
	}
	cfg.Writers = ws
	return cfg, done, nil
}

// mappers makes, for each writer, what rows go through on their way to it.
func (c *connectors) mappers(ctx context.Context) (out []verify.Writer, done func(), err error) {
	own := &connectors{s: c.s, task: c.task, ex: c.ex, quiet: c.quiet, log: c.log, levels: map[string]manifest.Level{}, facets: map[string]manifest.Facet{}, clients: map[string]*supervisor.Client{}}
	done = own.endTransforms
	for i := range c.task.Writers {
		w := &c.task.Writers[i]
		var stages []pipeline.Stage
		for k := range c.task.Transforms {
			st, err := own.transform(ctx, &c.task.Transforms[k])
			if err != nil {
				done()
				return nil, nil, err
			}
			stages = append(stages, st)
		}
		if naming := c.task.Naming(has(c.facets[w.Name], manifest.FlatNames)); naming != mapping.SameNames || len(w.Mappings) > 0 {
			st, err := mapping.New(w.Mappings, naming)
			if err != nil {
				done()
				return nil, nil, err
			}
			stages = append(stages, st)
		}
		out = append(out, verify.Writer{Name: w.Name, Mapper: pipeline.NewMapper(stages)})
	}
	return out, done, nil
}

// endTransforms ends what mappers has started.
func (c *connectors) endTransforms() {
	for _, p := range c.stages {
		p.Close()
	}
	for _, m := range c.modules {
		_ = m.Close(context.Background())
	}
	for _, i := range c.images {
		_ = i.Close()
	}
}

// able says what a connector lacks.
func (c *connectors) able(instance, plugin string, abilities ...string) error {
	for _, a := range abilities {
		if !has(c.facets[instance], a) {
			return sdk.Faultf(sdk.CodeUnimplemented, "plugin %s lacks the ability %q in this configuration: rows cannot be read for themselves", plugin, a)
		}
	}
	return nil
}

// estimates asks the reader how large it believes tables to be.
func (c *connectors) estimates(ctx context.Context) func(string) uint64 {
	a, err := c.snapshot(ctx, &wire.SnapshotRequest{})
	if err != nil {
		return nil
	}
	by := map[string]uint64{}
	for _, t := range a.Tables {
		by[t.Table] = max(t.Rows, t.Estimate)
	}
	return func(table string) uint64 { return by[table] }
}

func (c *connectors) client(instance string) (*supervisor.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cl := c.clients[instance]; cl != nil && !c.killed {
		return cl, nil
	}
	return nil, sdk.Faultf(sdk.CodeUnavailable, "connector %s is being started", instance).Retry()
}

// alongside reads rows by the task's own reader, beside its stream.
type alongside struct{ c *connectors }

// Tables implements verify.Source.
func (a alongside) Tables(ctx context.Context) ([]*batch.Schema, error) {
	cl, err := a.c.client(reader)
	if err != nil {
		return nil, err
	}
	var out []*batch.Schema
	err = cl.Discover(ctx, func(s *batch.Schema) error {
		out = append(out, s)
		return nil
	})
	return out, err
}

// ReadRange implements verify.Source.
func (a alongside) ReadRange(ctx context.Context, q *wire.RangeRequest) (*wire.RangeReply, error) {
	cl, err := a.c.client(reader)
	if err != nil {
		return nil, err
	}
	return cl.ReadRange(ctx, q)
}

// ReadKeys implements verify.Source.
func (a alongside) ReadKeys(ctx context.Context, q *wire.KeysRequest) (*wire.RangeReply, error) {
	cl, err := a.c.client(reader)
	if err != nil {
		return nil, err
	}
	return cl.ReadKeys(ctx, q)
}

// readBack reads rows of a target by its writer.
type readBack struct {
	c      *connectors
	writer string
}

// Scan implements verify.Target.
func (b readBack) Scan(ctx context.Context, q *wire.RangeRequest) (*wire.RangeReply, error) {
	cl, err := b.c.client(b.writer)
	if err != nil {
		return nil, err
	}
	return cl.Scan(ctx, q)
}
