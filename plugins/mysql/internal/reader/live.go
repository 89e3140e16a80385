package reader

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/gtid"
	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
	"github.com/datalink-go/datalink/plugins/mysql/internal/snapshot"
	"github.com/datalink-go/datalink/sdk/batch"
)

// live is the log of a server as it is being written.
//
// The server sends the transactions of its log one after the other. A connection
// can end inside of one; what had arrived of it is dropped, and reading goes on
// after the last whole transaction, at the same server or the next that has it.
type live struct {
	cfg     server.Config
	addrs   []string
	turn    int // in addrs, of the server that is read
	try     int // in addrs, of the next to be tried
	id      uint32
	uuid    string        // by which servers know this reader
	period  time.Duration // of heartbeats
	conn    *server.Conn
	name    string // of the server: its UUID
	ctx     context.Context
	kind    kind // of positions here
	set     gtid.Set
	dom     gtid.Domains
	step    uint64
	foot    place // of reading that begins at the end of the log; see findFoot
	skipTo  int64 // offset up to which events are passed over: 32 bits do not reach it
	gather  gather
	points  []livePoint
	lost    error // why there is no connection
	down    time.Time
	beat    bool // the server was idle at the end of its log
	told    time.Time
	ends    int  // Size of the block when it got its last end position
	covered bool // a point may hold transactions that are to come

	// The text of the position, with the number that moves in the middle.
	before, after []byte
	number        int64
	source        gtid.Source
	split         bool
	text          []byte // whole, where it is not split
	fresh         bool   // text, or before and after, are of set
	tags          map[string]string
	prepared      map[string]prepared
	patience      time.Duration // how long a server that lacks the position is given, 0 = as it is fit
	heard         time.Time     // when something was read last, as wait saw it
	grace         time.Time     // until when that counts as alive
	waited        time.Time     // when wait returned last
	writeWait     int           // see dump.wait
	version       uint64        // of the last state item that is no layout
	weaver        *snapshot.Weaver
	woven         atomic.Pointer[snapshot.Weaver] // the same, for calls that come beside Next
	next          snapshot.Next                   // what the weaver said last
	anew          anew
	asked         chan struct{} // closed when it is stored that all tables are taken anew
	unask         context.CancelFunc
	address       atomic.Pointer[string]
	sharing       sharing
	handed        time.Time // when a block was handed over last
	naps          int       // for the block that is being filled
}

// livePoint is one of the points given to Open.
type livePoint struct {
	spot
	index   int
	ordinal uint64
	ahead   bool  // it holds something that was not read yet
	left    int64 // of a set: how many of its transactions were not read yet
	part    bool  // the transaction that it holds in part was not read yet
	forked  bool  // something was read that it does not hold
}

// serverID derives the number by which servers know a task's reader: two runs of
// one task have the same, and a server ends the older one.
func serverID(task string) (id uint32, uuid string) {
	h := sha256.Sum256([]byte("datalink reader " + task))
	id = binary.LittleEndian.Uint32(h[:])>>1 | 1<<31
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80
	u := hex.EncodeToString(h[:16])
	return id, u[:8] + "-" + u[8:12] + "-" + u[12:16] + "-" + u[16:20] + "-" + u[20:]
}

// here is the place after the last whole transaction.
func (r *Reader) spotHere() spot {
	l := r.live
	s := spot{kind: l.kind, step: l.step}
	switch l.kind {
	case spotSet:
		s.set = l.set.Clone()
	case spotDomains:
		s.dom = l.dom.Clone()
	case spotFile:
		s.file, s.server = r.here, l.name
	}
	return s
}

// markWhole appends the place after the last whole transaction as positions have
// it.
func (r *Reader) markWhole(dst []byte) []byte {
	l := r.live
	if l == nil {
		return r.here.append(dst)
	}
	switch {
	case l.kind == spotSet && l.split && l.fresh:
		dst = append(dst, l.before...)
		dst = strconv.AppendInt(dst, l.number, 10)
		dst = append(dst, l.after...)
	case l.kind == spotSet:
		if !l.fresh {
			l.text = l.set.Append(l.text[:0])
			if len(l.text) == 0 {
				l.text = append(l.text, "none"...)
			}
			l.fresh, l.split = true, false
		}
		dst = append(dst, l.text...)
	case l.kind == spotDomains && !l.dom.IsEmpty():
		dst = l.dom.Append(dst)
	case l.kind == spotFile:
		dst = r.here.append(dst)
		dst = append(append(dst, '@'), l.name...)
	default:
		dst = append(dst, "none"...)
	}
	return dst
}

// markInside appends the place before the transaction that is being read.
func (r *Reader) markInside(dst []byte) []byte {
	dst = r.mark(dst)
	if l := r.live; l != nil && l.kind != spotFile {
		dst = append(append(dst, '/'), r.tx.id...)
	}
	return dst
}

// sourceOf is who numbered a transaction of MySQL.
func (l *live) sourceOf(g *binlog.Group) gtid.Source {
	s := gtid.Source{UUID: g.UUID}
	if len(g.Tag) > 0 {
		tag, ok := l.tags[string(g.Tag)]
		if !ok {
			tag = string(g.Tag)
			if l.tags == nil {
				l.tags = map[string]string{}
			}
			l.tags[tag] = tag
		}
		s.Tag = tag
	}
	return s
}

// advance notes that a whole transaction went by.
func (l *live) advance(g *binlog.Group, here *place) {
	l.step = 0
	switch l.kind {
	case spotSet:
		src := l.sourceOf(g)
		l.set.Add(src, g.Number)
		if l.fresh && l.split && src == l.source && g.Number == l.number+1 {
			l.number++
			break
		}
		l.source = src
		l.before, l.after, l.number, l.split = l.set.Last(src)
		// The number that was added must be the last of its source.
		l.split = l.split && l.number == g.Number
		l.fresh = l.split
	case spotDomains:
		l.dom.Add(domainsOf(g))
	}
	if l.covered {
		l.passed(g, here)
	}
}

// passed follows the points of Open: which of them are reached, and which hold
// what was not read while something was read that they do not hold.
func (l *live) passed(g *binlog.Group, here *place) {
	any := false
	for i := range l.points {
		p := &l.points[i]
		if !p.ahead {
			continue
		}
		switch {
		case l.kind == spotFile:
			p.ahead = p.file.order(here) > 0
		case p.part && p.inside == string(g.ID):
			p.part = false
		case l.kind == spotSet && p.set.Contains(l.sourceOf(g), g.Number):
			p.left--
		case l.kind == spotDomains && p.dom.Contains(domainsOf(g)):
		default:
			p.forked = true
		}
		switch l.kind {
		case spotSet:
			p.ahead = p.left > 0 || p.part
		case spotDomains:
			p.ahead = p.part || !p.dom.Within(&l.dom)
		}
		any = any || p.ahead
	}
	l.covered = any
	if !any {
		l.points = l.points[:0]
	}
}

// follow begins to follow the points given to Open.
func (l *live) follow(here *place) {
	l.covered = false
	for i := range l.points {
		p := &l.points[i]
		p.forked = false
		p.part = p.inside != "" && p.ordinal > 0
		switch l.kind {
		case spotSet:
			rest := p.set.Subtract(&l.set)
			p.left = rest.Count()
			over := l.set.Subtract(&p.set)
			p.ahead, p.forked = p.left > 0 || p.part, !over.IsEmpty()
		case spotDomains:
			p.ahead, p.forked = p.part || !p.dom.Within(&l.dom), !l.dom.Within(&p.dom)
		case spotFile:
			p.ahead = p.file.order(here) > 0 || p.file.order(here) == 0 && p.ordinal > 0 && p.step == 0
		}
		l.covered = l.covered || p.ahead
	}
}

func domainsOf(g *binlog.Group) gtid.GTID {
	return gtid.GTID{Domain: g.Domain, Server: g.Server, Seq: g.Sequence}
}

// comparable reports whether the place here is before or after each point.
func (l *live) comparable() bool {
	if !l.covered {
		return true
	}
	for i := range l.points {
		if p := &l.points[i]; p.ahead && p.forked {
			return false
		}
	}
	return true
}

// cover says which of the points hold the transaction that begins, or how much.
func (r *Reader) coverLive(dst []batch.Cover, to place) []batch.Cover {
	l := r.live
	if !l.covered || broken("mysql-covers-off") {
		return dst
	}
	g := &r.group
	for i := range l.points {
		p := &l.points[i]
		switch l.kind {
		case spotSet:
			if p.set.Contains(l.sourceOf(g), g.Number) {
				dst = append(dst, batch.Cover{Point: p.index})
				continue
			}
		case spotDomains:
			if p.dom.Contains(domainsOf(g)) {
				dst = append(dst, batch.Cover{Point: p.index})
				continue
			}
		case spotFile:
			if p.file.order(&to) >= 0 {
				dst = append(dst, batch.Cover{Point: p.index})
			} else if p.ordinal > 0 && p.step == 0 && p.file.order(&r.here) == 0 {
				dst = append(dst, batch.Cover{Point: p.index, Upto: p.ordinal})
			}
			continue
		}
		if p.ordinal > 0 && p.inside != "" && p.inside == string(g.ID) {
			dst = append(dst, batch.Cover{Point: p.index, Upto: p.ordinal})
		}
	}
	return dst
}
