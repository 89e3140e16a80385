package sdk

import (
	"context"
	"log/slog"

	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/manifest"
)

// Connector is what every connector has.
type Connector interface {
	// Check looks at the store and reports all that would make the task fail or
	// lose data. It writes nothing.
	Check(ctx context.Context) ([]Finding, error)
	// Close ends the instance. It is idempotent and bounded by its context.
	Close(ctx context.Context) error
}

// Discoverer is implemented by connectors that can list the tables of their
// store. Discover adds a schema for each and stops at io.EOF or an error of out.
type Discoverer interface {
	Discover(ctx context.Context, out func(*batch.Schema) error) error
}

// Releaser is implemented by connectors that leave something in the store: a
// slot, a peer, bookkeeping rows. Release removes what the task left; it is
// idempotent.
type Releaser interface {
	Release(ctx context.Context, taskUID string) error
}

// Narrowed is implemented by connectors whose configuration decides what they can
// do: Without lists the capabilities of their manifest that this instance lacks,
// such as manifest.FlatNames where only some of the stores have no namespaces.
type Narrowed interface {
	Without() []string
}

// Severity of a finding.
type Severity uint8

// Severities: a task with an Error does not start.
const (
	Info Severity = iota
	Warning
	Error
)

// String returns the severity in lower case.
func (s Severity) String() string { return [...]string{"info", "warning", "error"}[min(s, Error)] }

// Finding is one result of Check: what was looked at, what was found, what was
// expected and what to do.
type Finding struct {
	Severity Severity
	Subject  string
	Message  string
	Advice   string
}

// Reader reads a source's changes in order.
type Reader interface {
	Connector
	Positions
	// PositionFormat returns what the reader's positions carry as Format and
	// Version: transactions in a block name their positions by the source bytes
	// alone. Pure.
	PositionFormat() (format string, version uint32)
	// Open starts at the intersection of points and marks each transaction with
	// the points that cover it already (batch.Cover.Point is the place in
	// points). Zero positions stand for "nothing yet": the configured start.
	// State holds the reader's items as last stored.
	Open(ctx context.Context, ex Execution, points []Point, state []batch.StateItem) error
	// Next appends changes to out. It returns when out is full, or as soon as it
	// would have to wait while out holds something; with an empty out it waits
	// until ctx ends. io.EOF says that the source has ended for good; what out
	// holds then still counts. Out belongs to the caller.
	Next(ctx context.Context, out *batch.Builder) error
	// Durable says that everything up to the position is stored at every
	// writer: the source may prune. It may come while Next waits.
	Durable(ctx context.Context, upTo Position) error
}

// Range names the rows of a table with Lo < key <= Hi, both key bytes; an empty
// bound is the end of the table.
type Range struct {
	Schema *batch.Schema
	Lo, Hi []byte
	Rows   int // as many at most; 0 = the connector's choice
	// Keys, where it is not empty, names single rows instead, those that have one of
	// these keys; Lo, Hi and Rows say nothing then. Of Scan only.
	Keys [][]byte
}

// Placed says where rows that were read outside of the stream belong: changes
// at or before Low are in them, changes after High are not. Rest is what of the
// range is still to be read; its Schema is nil when nothing is.
type Placed struct {
	Low, High Position
	Rest      Range
}

// RangeReader is implemented by readers that can read a part of a table, for
// snapshots.
type RangeReader interface {
	ReadRange(ctx context.Context, r Range, out *batch.Builder) (Placed, error)
}

// KeyReader is implemented by readers that can read single rows, for repairs.
// Keys that have no row are left out.
type KeyReader interface {
	ReadKeys(ctx context.Context, s *batch.Schema, keys [][]byte, out *batch.Builder) (Placed, error)
}

// TargetScanner is implemented by writers that can read back what they wrote,
// for verification, in any layout of which the table has the key. It returns what of
// the range is still to be read, in the order of the target's key.
type TargetScanner interface {
	Scan(ctx context.Context, r Range, out *batch.Builder) (rest Range, err error)
}

// Transform changes rows on their way. Calls are pure: the same input gives the
// same output.
type Transform interface {
	Connector
	// Schema returns the layout of the output for rows of in. Returning in says
	// that rows keep their layout, Pass that the transform does not touch them and
	// need not be called; nil says that the table's rows are dropped, and its
	// truncates and ranges with them. The output keeps the id of in.
	Schema(ctx context.Context, in *batch.Schema) (*batch.Schema, error)
	// Apply appends the output rows for one input event with the given schema
	// (that of Schema) to out. Every output keeps the ordinal of the input.
	Apply(ctx context.Context, in *batch.Event, schema *batch.Schema, out *batch.Builder) error
}

// Pass is what Transform.Schema returns for tables that are not the
// transform's business.
var Pass = new(batch.Schema)

// Env is what an instance gets from its surroundings.
type Env struct {
	Log  *slog.Logger
	Task string
	Role manifest.Role
	Name string // of the writer or transform within the task
}
