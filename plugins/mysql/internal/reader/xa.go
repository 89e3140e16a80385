package reader

import (
	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
)

// span is where a prepared transaction lies in the log.
type span struct {
	file     int
	from, to int64
}

// prepared notes the prepared transaction that is next and passes over it: its
// rows are delivered where it is committed.
func (r *Reader) prepared() error {
	from := r.scan.Offset()
	var ev binlog.Event
	for r.scan.Offset() < r.tx.bounds.End {
		if err := r.scan.Next(&ev); err != nil {
			return err
		}
		if ev.Type == binlog.XAPrepare {
			id, _, err := binlog.AppendXID(nil, ev.Body)
			if err != nil {
				return err
			}
			r.xa[string(id)] = span{r.file, from, r.scan.Offset()}
		}
	}
	r.here.off = r.scan.Offset()
	r.tx.passed = true
	return nil
}
