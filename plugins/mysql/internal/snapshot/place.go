package snapshot

import (
	"strconv"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
)

// Place is how far the stream has delivered: the end of the last whole
// transaction.
type Place struct {
	Server string // identity of the server whose log the file is of
	File   string
	Offset int64
	GTID   string // set of all that was delivered; "" where the server has none
}

// String returns file:offset.
func (p Place) String() string { return p.File + ":" + strconv.FormatInt(p.Offset, 10) }

// reached reports whether p is at or after q, a place in the log of the same
// server.
func (p Place) reached(q Place) bool {
	_, a, _ := binlog.SplitName(p.File)
	_, b, _ := binlog.SplitName(q.File)
	return a > b || a == b && p.Offset >= q.Offset
}
