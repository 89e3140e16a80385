package writer

import (
	"context"
	"errors"
	"io"

	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
)

// Release gives up the bookkeeping rows of a task. Their ceilings stay: a task that
// is made again starts above them. Rows of data stay as they are.
func (w *Writer) Release(ctx context.Context, taskUID string) error {
	x := w.store.Scan(rpc.Scan{Table: w.cfg.Progress, Columns: []rpc.Column{{Family: progressFamily}}})
	defer x.Close(ctx)
	for {
		rows, err := x.Next(ctx)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, rpc.ErrNoTable):
			return nil
		case err != nil:
			return fault(err)
		}
		for _, cells := range rows {
			for i := range cells {
				c := &cells[i]
				if string(c.Qualifier) != string(ownerColumn) {
					continue
				}
				o, err := parseOwner(c.Value)
				if err != nil || o.task != taskUID {
					continue
				}
				m := rpc.NewMutation(c.Row, nil)
				m.Put(progressFamily, ownerColumn, c.Timestamp+1, nil)
				if _, err := w.store.CheckAndMutate(ctx, w.cfg.Progress, rpc.Condition{Family: progressFamily, Qualifier: ownerColumn, Value: c.Value}, &m); err != nil {
					return fault(err)
				}
			}
		}
	}
}
