package conformance

import (
	"context"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/delivery"
)

// Null is how a Store writes NULL.
const Null = "NULL"

// Subject is a writer to be proven.
type Subject struct {
	Name string
	// New makes an empty store.
	New func(ctx context.Context) (Store, error)
	// Lanes are the lane counts that the writer can do; none = 1.
	Lanes []int32
	// Append and Match say what the writer does with tables without a key under
	// the configuration it is opened with: inserts, and updates and deletes.
	Append, Match bool
	// Engine is the base of the engine's configuration; tests of the kit switch
	// guarantees off in it.
	Engine delivery.Config
}

// Store is where a writer writes to. It outlives the writers opened on it.
type Store interface {
	// Open returns a new writer, as a process that has just been started.
	Open(ctx context.Context) (sdk.Target, error)
	// Rows returns the rows of a table in any order, each as its values joined by
	// "|" in the order of the schema's columns: numbers in decimal, text as it is,
	// Null for NULL. A table that is not there has no rows.
	Rows(ctx context.Context, s *batch.Schema) ([]string, error)
	// Close removes the store.
	Close(ctx context.Context) error
}

// Copier is implemented by stores that can be put back to an older state, as by
// a fail-over to a replica that lags.
type Copier interface {
	Copy(ctx context.Context) (restore func(context.Context) error, err error)
}

// TextRows turns encoded cells into the text form of Store.Rows.
func TextRows(s *batch.Schema, rows [][]*string) []string {
	var out []string
	for _, r := range rows {
		words := make([]string, len(r))
		for i, c := range r {
			switch {
			case c == nil:
				words[i] = Null
			case s.Columns[i].Type == batch.Int32:
				words[i] = strconv.Itoa(int(int32(binary.LittleEndian.Uint32([]byte(*c)))))
			default:
				_, k := binary.Uvarint([]byte(*c))
				words[i] = (*c)[k:]
			}
		}
		out = append(out, strings.Join(words, "|"))
	}
	slices.Sort(out)
	return out
}
