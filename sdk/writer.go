package sdk

import (
	"context"
	"time"

	"github.com/datalink-go/datalink/sdk/batch"
)

// Target is what all writers have in common.
type Target interface {
	Connector
	// Claim takes the target for the execution and returns the progress it
	// holds, nil where the writer stores none. A higher epoch, or an equal one of
	// another execution, is ErrFenced; rows of another store or task are
	// ErrForeignClaim unless ex.TakeOver.
	Claim(ctx context.Context, ex Execution) (Claimed, error)
	// Prepare makes the table ready for rows of that schema, creating it where
	// the configuration says so, and returns what the target demands of the
	// order of changes. It is called before the first change of each schema.
	Prepare(ctx context.Context, s *batch.Schema) (Constraints, error)
}

// Laned is implemented by writers whose configuration says how many lanes they
// want where the execution does not.
type Laned interface {
	Lanes() int32
}

// Claimed is what a target holds for a task.
type Claimed struct {
	Points      []Point           // one a lane, the writer's own row not among them
	State       []batch.StateItem // reader state, where the writer stores it
	DeadLetters []DeadLetter      // those that still guard their keys
	// Lanes and Mapping are those under which the points were stored. Where they
	// are not those of the execution, the lanes stand at different positions and
	// the target waits for a claim at which they do not; 0 and "" = as asked for.
	Lanes   int32
	Mapping string
	Ceiling uint64 // versioned writers: no earlier execution gave a version above it
}

// Constraints are the target's own keys: changes that touch the same value are
// never in flight together and never reordered. Places are those of the
// schema that was prepared.
type Constraints struct {
	Uniques     []batch.Index
	ForeignKeys []batch.ForeignKey
	Referenced  bool // rows of other tables refer to this one: a key change is UPDATE … SET key
	OneLane     bool // the table cannot be split among lanes
	// Unordered says that the target cannot compare keys in the source's order, so
	// that it cannot tell which of its rows lie in a range: Reconcile then comes
	// once, without bounds, at the end of the table's snapshot, or not at all where
	// that has more keys than can be kept.
	Unordered bool
	// Collated are columns that the target compares otherwise than byte by byte
	// although the schema does not say so.
	Collated []int
}

// Op is what a writer does with a change.
type Op uint8

// The operations. Upsert matches the primary key only. Patch changes the columns
// that are present and leaves the others; a missing row is an error by policy.
// Rekey is UPDATE … SET key. The last three concern tables without a key.
const (
	OpInvalid   Op = iota
	Upsert         // write the whole row, whether it exists or not
	Patch          // update columns of an existing row
	Remove         // delete the row if it exists
	Rekey          // change the key of an existing row, and other columns with it
	Truncate       // delete all rows
	Alter          // schema change
	Reconcile      // end of a snapshot range: keys of the range that were not among its rows go
	Append         // insert a row of a keyless table
	MatchPatch     // update one row equal to Before
	MatchRemove    // delete one row equal to Before
)

var opNames = [...]string{"invalid", "upsert", "patch", "remove", "rekey", "truncate", "alter", "reconcile", "append", "match-patch", "match-remove"}

// String returns the operation in lower case.
func (o Op) String() string { return opNames[min(int(o), len(opNames)-1)] }

// Change is one change as a writer gets it: keyed, merged to net effect with
// the others of its key in the segment, and in order.
type Change struct {
	Op      Op
	Kind    batch.Kind // of the last source change in it
	Schema  *batch.Schema
	Key     []byte // key bytes; the new key for Rekey
	OldKey  []byte // Rekey
	Before  batch.Image
	After   batch.Image
	DDL     *batch.Change
	Range   *batch.KeyRange
	Seen    [][]byte // Reconcile: keys that the range's rows had
	Version uint64   // versioned writers: the change's version

	// Committed is when the last source change in it was committed, in
	// microseconds since the epoch; 0 = the source does not say.
	Committed int64
}

// Changes is what one Apply writes. Segments follow one another in order; within
// a segment no two changes share a key, a unique value or a foreign key tie, so
// that a writer may group them by table and operation as it likes.
type Changes struct {
	Lane     int32
	Segments [][]Change
	Deadline time.Time // idempotent writers: nothing may be sent after it; zero = none
	Ceiling  uint64    // versioned writers: versions of this execution stay below it
	To       Position  // where the lane stands once they are written; the host keeps it where the writer stores none
}

// Len returns the number of changes.
func (c *Changes) Len() int {
	n := 0
	for _, s := range c.Segments {
		n += len(s)
	}
	return n
}

// RecordError says that one change cannot be written. Index counts through all
// segments. Nothing of the Apply has taken effect at a transactional target.
type RecordError struct {
	Index int
	Err   *Fault
}

// IdempotentWriter writes changes so that repeating any suffix of the stream
// leaves the same state. Apply returns when the changes are durable.
type IdempotentWriter interface {
	Target
	Apply(ctx context.Context, c *Changes) ([]RecordError, error)
}

// VersionedWriter writes changes at the versions they carry, so that a late
// write is outranked. ApplyAt returns when the changes are durable.
type VersionedWriter interface {
	Target
	ApplyAt(ctx context.Context, c *Changes) ([]RecordError, error)
}

// TransactionalWriter writes changes and position in one target transaction,
// which is also the fence.
type TransactionalWriter interface {
	Target
	// Begin opens a target transaction that serves the lanes, in ascending
	// order. Transactions of different lanes run side by side: Begin is safe for
	// concurrent use, a Tx is not.
	Begin(ctx context.Context, lanes []int32) (Tx, error)
	// Settle reads a lane's progress under a row lock, after a commit whose answer
	// was lost.
	Settle(ctx context.Context, lane int32) (Point, error)
}

// Tx is one target transaction. The order is Fence, then Apply once or more,
// then Commit or Rollback.
type Tx interface {
	// Fence writes the next progress of each lane, conditional on epoch,
	// execution, claim and the batch number before it, and returns after the
	// count of matched rows was read. None matched is ErrFenced or
	// ErrTargetWentBack.
	Fence(ctx context.Context, next []Next) error
	// Apply writes the changes. After a RecordError the caller rolls back.
	Apply(ctx context.Context, c *Changes) ([]RecordError, error)
	// Commit makes all of it durable. ErrCommitUnknown says that the answer was
	// lost: the caller asks Settle.
	Commit(ctx context.Context) error
	// Rollback ends the transaction without effect. It is a no-op after Commit.
	Rollback(ctx context.Context) error
}

// Next is the progress that a target transaction leaves behind in one lane, and
// what is stored with it.
type Next struct {
	Point
	State    []batch.StateItem // changed items of reader state
	SetAside []DeadLetter      // new dead letters
	Dropped  []uint64          // numbers of dead letters that are done with
}

// DeadLetter is a record that could not be written, kept with the progress. It
// guards its key: later changes of that key follow it.
type DeadLetter struct {
	Number   uint64 // within the writer, ascending
	Table    string
	Key      []byte
	Record   []byte // a block that holds the one event and its schema
	Position Position
	Fault    Fault
	At       time.Time
}
