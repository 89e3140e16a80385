package sdk

// Position is a place in a source's change stream. Source is the reader's own,
// opaque to everybody else. A position with an Ordinal lies inside the source
// transaction that follows Source: Ordinal of its changes are done.
type Position struct {
	Format  string // e.g. "mysql-files"; names the reader's notation
	Version uint32 // of the notation, for Upgrade
	Source  []byte
	Ordinal uint64
}

// IsZero reports whether p is no position: nothing was read yet.
func (p Position) IsZero() bool { return p.Format == "" && len(p.Source) == 0 && p.Ordinal == 0 }

// Order is the outcome of comparing two positions.
type Order int8

// Outcomes of Compare. Incomparable positions each hold something the other
// lacks (GTID sets, parallel chunks).
const (
	Incomparable Order = iota
	Before
	Equal
	After
)

// String returns the outcome in lower case.
func (o Order) String() string {
	switch o {
	case Before:
		return "before"
	case Equal:
		return "equal"
	case After:
		return "after"
	}
	return "incomparable"
}

// Positions are the pure calls of a reader about its positions: they touch no
// store and are off the hot path. A position whose format or version is not
// theirs is an error with code InvalidPosition.
type Positions interface {
	// ParsePosition reads the printable form.
	ParsePosition(text string) (Position, error)
	// FormatPosition is the inverse of ParsePosition.
	FormatPosition(p Position) (string, error)
	// ComparePositions says whether a is before, equal to or after b.
	ComparePositions(a, b Position) (Order, error)
	// IntersectPositions returns the greatest position at or below both.
	IntersectPositions(a, b Position) (Position, error)
	// UpgradePosition rewrites a position of an older version.
	UpgradePosition(p Position) (Position, error)
}

// Point is the progress of one lane of one writer. Lane WriterLane is the
// writer's own row, which guards claims and schema changes.
type Point struct {
	Writer   string
	Lane     int32
	BatchNo  uint64 // target transactions of the lane so far
	Position Position
}

// WriterLane is the lane number of the writer's own progress row.
const WriterLane int32 = -1

// Execution identifies one run of a task and carries its fencing token.
type Execution struct {
	Task     string // name
	TaskUID  string // UUID of the task's creation
	StoreUID string // UUID of the coordination store
	ID       string // executionId, a UUIDv7
	Epoch    uint64 // fencing token
	Writer   string // name of the writer within the task; "" for readers
	Lanes    int32  // lanes the task asks for; 0 = the writer's default
	Mapping  string // digest of tables, columns and filters, stored with the progress; the lane count is apart
	TakeOver bool   // claim rows of another store or task uid
	Worker   string // who runs it, for messages
}
