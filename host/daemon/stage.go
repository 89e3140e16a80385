package daemon

import (
	"context"
	"errors"
	"slices"

	"github.com/datalink-go/datalink/host/config"
	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/host/supervisor"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// scoped lets a stage see only the tables that its patterns select.
type scoped struct {
	pipeline.Stage
	tables config.Patterns
}

// Schema implements pipeline.Stage.
func (s scoped) Schema(ctx context.Context, in *batch.Schema) (*batch.Schema, error) {
	if !s.tables.Match(in.Name()) {
		return in, nil
	}
	return s.Stage.Schema(ctx, in)
}

// Reset implements what package pipeline looks for.
func (s scoped) Reset() {
	if r, ok := s.Stage.(interface{ Reset() }); ok {
		r.Reset()
	}
}

// transformDeaths is how many processes one call may kill.
const transformDeaths = 3

// revived is a transform in a process that may die: it is started again, told the
// schemas, and asked again. Transforms are pure, so that asking twice is no harm.
type revived struct {
	plugin *supervisor.Plugin
	client *supervisor.Client
	name   string
	known  []*batch.Schema
}

// Schema implements pipeline.Stage.
func (r *revived) Schema(ctx context.Context, in *batch.Schema) (out *batch.Schema, err error) {
	err = r.try(ctx, func(s pipeline.Stage) error {
		out, err = s.Schema(ctx, in)
		return err
	})
	if err == nil {
		r.known = slices.DeleteFunc(r.known, func(s *batch.Schema) bool { return s.ID == in.ID })
		r.known = append(r.known, in)
	}
	return out, err
}

// Apply implements pipeline.Stage.
func (r *revived) Apply(ctx context.Context, block []byte, schemas []uint32) (out []byte, err error) {
	err = r.try(ctx, func(s pipeline.Stage) error {
		out, err = s.Apply(ctx, block, schemas)
		return err
	})
	return out, err
}

// Reset forgets the schemas of the reader's last opening.
func (r *revived) Reset() { r.known = nil }

func (r *revived) try(ctx context.Context, call func(pipeline.Stage) error) error {
	for n := 1; ; n++ {
		err := r.once(ctx, call)
		if err == nil || !errors.Is(err, pipeline.ErrDied) || ctx.Err() != nil {
			return err
		}
		r.client = nil
		if n == transformDeaths {
			return sdk.Faultf(sdk.CodePoison, "transform %s died %d times in a row of one call: %v", r.name, n, err).
				Suggest("report it to the author of the plugin, or take it out of the task")
		}
	}
}

func (r *revived) once(ctx context.Context, call func(pipeline.Stage) error) error {
	if r.client == nil {
		c, err := r.plugin.Ready(ctx)
		if err != nil {
			return err
		}
		for _, s := range r.known {
			if _, err := c.Stage().Schema(ctx, s); err != nil {
				return err
			}
		}
		r.client = c
	}
	return call(r.client.Stage())
}
