package reader

import (
	"context"
	"strconv"

	"github.com/datalink-go/datalink/plugins/mysql/internal/gtid"
	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
)

// findFoot asks where the log ends. Reading that begins there by GTID is not told the
// place in the file before something happens or the first heartbeat comes, and a
// snapshot would wait for that. Where it cannot be found the snapshot waits.
func (r *Reader) findFoot(ctx context.Context, c *server.Conn, f *facts) {
	l := r.live
	l.foot = place{}
	if l.kind == spotFile || l.name != f.name {
		return
	}
	res, err := c.Query(ctx, statusStatement(c))
	if err != nil || len(res.Rows) == 0 {
		return
	}
	name := res.Get(0, "File")
	off, err := strconv.ParseInt(res.Get(0, "Position"), 10, 64)
	if err != nil {
		return
	}
	end := spot{kind: l.kind}
	if l.kind == spotSet {
		end.set, err = gtid.ParseSet(res.Get(0, "Executed_Gtid_Set"))
	} else {
		end, err = r.atFile(ctx, c, f, name, off)
	}
	here := r.spotHere()
	if err != nil || !end.holds(&here) || !here.holds(&end) {
		return
	}
	l.foot.setName(name)
	l.foot.off = off
}

// reached is the place in the server's log before which all was delivered.
func (r *Reader) reached() place {
	if foot := &r.live.foot; foot.number > 0 && foot.base == r.here.base && r.here.order(foot) < 0 {
		return *foot
	}
	return r.here
}
