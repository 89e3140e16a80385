package reader

import (
	"context"

	"github.com/datalink-go/datalink/sdk/batch"
)

// weaver puts the chunks of a snapshot into the stream. All calls come from the
// goroutine of Next.
type weaver interface {
	// Active reports whether Row and Changed are wanted.
	Active() bool
	// Row follows each row that was appended to out, whose transaction is open.
	Row(s *batch.Schema, out *batch.Builder)
	// Changed says that a schema change or a TRUNCATE of a table went by.
	Changed(database, table string)
	// Moved says that the stream goes on at a new connection, perhaps to another
	// server: offsets compare no more.
	Moved()
	// Weave appends what is ready, in entries of its own, between two transactions.
	Weave(ctx context.Context, out *batch.Builder, here Place) error
	// Ready wakes a reader that waits.
	Ready() <-chan struct{}
}

// Place is where the stream is: behind everything that was delivered.
type Place struct {
	Server string // its UUID
	File   string
	Offset int64 // end of the last transaction in that file
	GTID   string
}

func (r *Reader) weaveIn(out *batch.Builder) error {
	l := r.live
	select {
	case <-l.weave.Ready():
	default:
		if !l.weave.Active() {
			return nil
		}
	}
	return l.weave.Weave(l.ctx, out, Place{Server: l.name, File: r.here.name(), Offset: r.here.off, GTID: l.gtidSet()})
}

// stepped returns the position here after a further step of a snapshot.
func (r *Reader) stepped(step uint64) []byte {
	r.live.step = step
	return r.mark(nil)
}
