package pipeline

import (
	"context"
	"errors"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/wire"
)

// ErrDied is wrapped by the errors of streams and calls when the connector's
// process or module ended while it was at work.
var ErrDied = errors.New("connector died")

// Source is the reader as the pipeline sees it: a plugin process, a WASM module
// or a test double. Calls other than Durable come one at a time.
type Source interface {
	sdk.Positions
	// Open begins reading at the intersection of points and returns the stream. A
	// second Open ends the first stream.
	Open(ctx context.Context, req *wire.OpenRequest) (SourceStream, error)
	// Durable tells the reader what every writer has stored.
	Durable(ctx context.Context, upTo sdk.Position) error
}

// SourceStream delivers blocks in order. Grant and Recv may run side by side.
type SourceStream interface {
	// Grant allows the reader so many more records and bytes.
	Grant(records, bytes uint64) error
	// Recv returns the next block. Its bytes belong to the caller. A reply with
	// End or Fault is the last one.
	Recv() (*wire.ReadReply, error)
	Close() error
}

// Sink is a writer as the pipeline sees it.
type Sink interface {
	// Claim takes the target; see sdk.Target.
	Claim(ctx context.Context, ex sdk.Execution) (*sdk.Claimed, error)
	// Write opens the stream of blocks. A sink has one stream at a time.
	Write(ctx context.Context) (SinkStream, error)
}

// SinkStream takes blocks and answers. Send and Recv may run side by side; Send
// does not keep the request after it returned. Recv gives io.EOF after CloseSend
// when all is answered.
type SinkStream interface {
	Send(*wire.WriteRequest) error
	Recv() (*wire.WriteReply, error)
	CloseSend() error
	Close() error
}

// Stage is one transform: built in, a process or a WASM module. A method Reset, if
// it has one, is called whenever the reader is opened: schema ids mean something
// else from there on.
type Stage interface {
	// Schema returns the layout of the output for rows of s: s itself where rows
	// pass as they are, another one, be it equal, where Apply is wanted, nil where
	// the rows are dropped. The output keeps the id of s: it is the layout of that
	// id on the stream behind the stage. It is called for each definition of the
	// stream, before Apply gets a row of it.
	Schema(ctx context.Context, s *batch.Schema) (*batch.Schema, error)
	// Apply transforms the rows of those schemas (ids that Schema was called for)
	// and passes all other events on. The result defines the schemas it uses,
	// keeps the input's transaction table and ordinals, and belongs to the caller.
	Apply(ctx context.Context, block []byte, schemas []uint32) ([]byte, error)
}

// DDLStage is implemented by stages that change schema changes too, such as one
// that renames tables. Its Apply is called for blocks that hold any.
type DDLStage interface {
	Stage
	ChangesDDL()
}

// Progress keeps what a writer without storage of its own needs kept, and shows
// the progress of all. The coordination store is behind it. Save is conditional
// on execution and epoch; ErrFenced says that another execution has taken over.
type Progress interface {
	Load(ctx context.Context, writer string) (*sdk.Claimed, error)
	Save(ctx context.Context, writer string, p *Saved) error
	// Reserve moves the writer's version ceiling to at least want and returns it.
	Reserve(ctx context.Context, writer string, want uint64) (uint64, error)
}

// Saved is one step of progress of a writer, stored as a whole.
type Saved struct {
	Points   []sdk.Point
	State    []batch.StateItem // changed items
	SetAside []sdk.DeadLetter
	Dropped  []uint64
}
