package scan

import (
	"context"
	"errors"

	"github.com/datalink-go/datalink/sdk/batch"
)

// Table is a table to be read.
type Table struct {
	Schema *batch.Schema // columns that are read, and the key
	Where  string        // SQL condition; "" = all rows
	// Ordered says that rows come sorted as this program sorts their key bytes'
	// values: see Less.
	Ordered bool
	// Backticks says that names in Where are quoted with them.
	Backticks bool
	Native    any // the dialect's own
}

// ErrEnough ends Session.Rows before the last row.
var ErrEnough = errors.New("enough rows")

// Source is a database whose tables are read. It is safe for concurrent use.
type Source interface {
	// Open returns a session on a connection of its own.
	Open(ctx context.Context) (Session, error)
}

// Session reads through one connection. It is not safe for concurrent use.
type Session interface {
	// Bound returns the key of the n-th row with lo < key, or nil where there are
	// fewer rows. Empty lo = from the beginning. With a hi, rows after it do not
	// count.
	Bound(ctx context.Context, t *Table, lo, hi []byte, n int) ([]byte, error)
	// Rows appends the rows with lo < key <= hi as Read events, in the order of
	// the key, and calls done after each one. It ends at done's error,
	// and returns ErrEnough as it is.
	Rows(ctx context.Context, t *Table, lo, hi []byte, out *batch.Builder, done func() error) error
	Close()
}
