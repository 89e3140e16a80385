package task

import (
	"context"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/host/audit"
	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/manifest"
)

// Store is the part of a coordination store that a Runner needs.
type Store interface {
	UID() string
	Task(ctx context.Context, name string) (coordination.Definition, error)
	Status(ctx context.Context, name string) (coordination.Status, error)
	Watch(ctx context.Context, name string) (<-chan struct{}, error)
	Progress(ctx context.Context, taskUID, writer string) (coordination.Progress, error)
	Append(ctx context.Context, e coordination.Entry) error
}

// Launcher starts a task's connectors.
type Launcher interface {
	// Start starts, configures and checks all connectors for an execution. It ends
	// with its context. On an error nothing of what it started lives.
	Start(ctx context.Context, ex sdk.Execution) (Connectors, error)
}

// Connectors are those of one task while they live.
type Connectors interface {
	// Pipeline returns reader, stages and writers with their options; Execution
	// holds what the task file says of lanes and mapping. The Runner fills in the
	// rest.
	Pipeline() pipeline.Config
	// Level returns what a writer's plugin promises.
	Level(writer string) manifest.Level
	// Close ends them in good order. It ends with its context.
	Close(ctx context.Context) error
	// Kill ends their process groups at once and returns when they are gone. It is
	// idempotent and may come beside any other call.
	Kill()
}

// Auditor records what the life cycle finds; *audit.Auditor is one.
type Auditor interface {
	Predecessors(ctx context.Context, self coordination.Status, writers []audit.Writer) (left bool, err error)
	Settle(ctx context.Context, self coordination.Status) (left bool, err error)
	Late(ctx context.Context, l audit.Late) error
}

// RunPipeline moves changes; pipeline.Run is one.
type RunPipeline func(ctx context.Context, cfg pipeline.Config) (pipeline.Result, error)
