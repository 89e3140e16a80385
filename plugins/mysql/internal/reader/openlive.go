package reader

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/catalog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/gtid"
	"github.com/datalink-go/datalink/plugins/mysql/internal/schema"
	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// openLive finds the place to begin at and begins to read there.
func (r *Reader) openLive(ctx context.Context, ex sdk.Execution, points []sdk.Point, state []batch.StateItem) error {
	l := r.live
	l.id, l.uuid = serverID(cmp.Or(ex.TaskUID, ex.Task))
	if r.cfg.ServerID > 0 {
		l.id = r.cfg.ServerID
	}
	c, err := r.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	f, err := learn(ctx, c)
	if err != nil {
		return r.fault(refusal(c, &spot{}, err))
	}
	if err := r.refuseCascades(ctx, c); err != nil {
		return r.fault(err)
	}
	l.points = l.points[:0]
	var all []sdk.Position
	l.step = 0
	fresh := len(points) == 0
	for i := range points {
		p := points[i].Position
		if p.IsZero() {
			fresh = true
			continue
		}
		s, err := spotOf(p)
		if err != nil {
			return err
		}
		if s.kind == spotNone {
			s.kind = f.kind
		}
		all = append(all, s.position(p.Ordinal))
		l.step = max(l.step, s.step)
		l.points = append(l.points, livePoint{spot: s, index: i, ordinal: p.Ordinal})
	}
	r.first = fresh
	var cat *catalog.Catalog
	var at spot
	if fresh {
		s, err := r.beginLive(ctx, c, &f)
		if err == nil && (r.start.latest || r.start.snapshot) {
			// The end of the log at which the layouts of tables are read.
			if cat, at, err = r.readCatalog(ctx, c, s.kind, r.filter.wants, 0); err == nil {
				s = at
			}
		}
		if err != nil {
			return r.fault(refusal(c, &s, err))
		}
		all = append(all, s.position(0))
	} else {
		r.since = 0
	}
	from := all[0]
	for _, p := range all[1:] {
		if from, err = intersectSpots(from, p); err != nil {
			return err
		}
	}
	s, err := spotOf(from)
	if err != nil {
		return err
	}
	if s.kind == spotNone {
		s.kind = f.kind
	}
	l.kind, l.set, l.dom, l.fresh, l.name = s.kind, s.set, s.dom, false, ""
	r.here = place{}
	if s.kind == spotFile {
		r.here = s.file
		l.name = s.server
	}
	l.try = l.turn
	l.follow(&r.here)
	prepared := state
	if broken("mysql-prepared-lost") {
		prepared = nil
	}
	if err := r.restorePrepared(prepared); err != nil {
		return err
	}
	anew := false
	if err := r.reconnect(ctx); err != nil {
		if cat, at, err = r.leap(ctx, c, err); err != nil {
			return r.fault(err)
		}
		anew = true
	}
	if err := r.restore(ctx, state); err != nil {
		return err
	}
	if !r.known || anew {
		if err := r.bootstrap(ctx, c, cat, at); err != nil {
			return r.fault(err)
		}
	}
	r.findFoot(ctx, c, &f)
	if err := r.startWeaving(state); err != nil {
		return err
	}
	if anew || mustTakeAnew(state) {
		r.takeAnew()
	}
	return nil
}

// coveredFrom says of places in a log whether reading begins behind them.
func (r *Reader) coveredFrom() schema.Covered {
	if r.live == nil {
		return schema.Before(r.here.number, r.here.off)
	}
	here := r.spotHere()
	return func(p schema.Place) bool {
		switch {
		case p.Base != "":
			base, err := parseSpot(p.Base)
			return err == nil && here.same(&base) && here.holds(&base)
		case p.GTID != "" && here.kind != spotFile:
			return here.has(p.GTID)
		}
		return here.kind == spotFile && (p.File < here.file.number || p.File == here.file.number && p.Offset <= here.file.off)
	}
}

// placeOfStatement is where the transaction that is being read stands, as the
// history of layouts keeps it.
func (r *Reader) placeOfStatement() schema.Place {
	p := schema.Place{File: r.here.number, Offset: r.tx.bounds.End}
	if l := r.live; l != nil {
		p.Offset = binlog.EndOf(r.tx.bounds.Next, r.tx.bounds.End)
		if l.kind != spotFile {
			p.GTID = r.tx.id
		}
	}
	return p
}

// beginLive resolves the configured start.
func (r *Reader) beginLive(ctx context.Context, c *server.Conn, f *facts) (spot, error) {
	s := spot{kind: f.kind, server: f.name}
	if err := f.status(ctx, c); err != nil {
		return s, err
	}
	switch {
	case r.start.spot != nil:
		s = *r.start.spot
		switch {
		case s.kind == spotNone:
			s.kind = f.kind
			if f.kind == spotFile {
				s.file.setName(f.first)
				s.file.off = 4
			}
		case s.kind == spotFile && f.kind != spotFile:
			if err := f.hasFile(c, &s, func(format string, args ...any) error {
				return sdk.Faultf(sdk.CodePositionUnknown, "server %s never had, or lost, %s", c.Address, fmt.Sprintf(format, args...)).Suggest("%s", adviceUnknown)
			}); err != nil {
				return s, err
			}
			return r.atFile(ctx, c, f, s.file.name(), s.file.off)
		}
		if s.kind == spotFile && s.server == "" {
			s.server = f.name
		}
		return s, nil
	case r.start.latest, r.start.snapshot:
		s.set, s.dom = f.executed, f.binlogPos
		s.file.setName(f.file)
		s.file.off = f.off
		return s, nil
	case !r.start.since.IsZero():
		r.since = r.start.since.Unix()
		name, err := r.fileAt(ctx, f, r.start.since)
		if err != nil {
			return s, err
		}
		return r.atFile(ctx, c, f, name, 4)
	}
	if f.kind == spotSet {
		s.set = f.purged
		return s, nil
	}
	return r.atFile(ctx, c, f, f.first, 4)
}

// atFile is the place of an offset in a file, as positions of this server are.
func (r *Reader) atFile(ctx context.Context, c *server.Conn, f *facts, name string, off int64) (spot, error) {
	s := spot{kind: f.kind, server: f.name}
	s.file.setName(name)
	s.file.off = off
	switch f.kind {
	case spotDomains:
		text, err := c.One(ctx, fmt.Sprintf("SELECT COALESCE(BINLOG_GTID_POS(%s, %d), '')", server.Literal(name), off))
		if err != nil {
			return s, err
		}
		s.dom, err = gtid.ParseDomains(text)
		return s, err
	case spotSet:
		// The head of the file has all transactions before it; those up to the
		// offset are added.
		err := r.scanFile(ctx, name, func(ev *binlog.Event) (bool, error) {
			if ev.At >= off {
				return true, nil
			}
			switch ev.Type {
			case binlog.PreviousGTIDs:
				var err error
				s.set, err = gtid.ParseWire(ev.Body)
				return off <= ev.End, err
			case binlog.GTID, binlog.GTIDTagged:
				var g binlog.Group
				if err := binlog.DecodeGroup(ev, nil, &g); err != nil {
					return false, err
				}
				s.set.Add(gtid.Source{UUID: g.UUID, Tag: string(g.Tag)}, g.Number)
			case binlog.AnonymousGTID:
				return false, sdk.Faultf(sdk.CodeUnsupportedEvent, "%s at offset %d: a transaction without a GTID before the position", name, ev.At).
					Suggest("begin at a later place, after gtid_mode was set to ON")
			}
			return ev.End >= off, nil
		})
		return s, err
	}
	return s, nil
}

// fileAt finds the last file that was begun at or before a time.
func (r *Reader) fileAt(ctx context.Context, f *facts, t time.Time) (string, error) {
	if len(f.files) == 0 {
		return f.file, nil
	}
	var failed error
	i, _ := slices.BinarySearchFunc(f.files, t, func(l sizedFile, t time.Time) int {
		var begun time.Time
		if err := r.scanFile(ctx, l.name, func(ev *binlog.Event) (bool, error) {
			begun = time.Unix(int64(ev.Time), 0)
			return true, nil
		}); err != nil {
			failed = err
		}
		return cmp.Compare(begun.Unix(), t.Unix()+1)
	})
	return f.files[max(0, i-1)].name, failed
}

// scanFile reads a file of the server's log from its beginning, on a connection of
// its own, until f has seen enough or the log ends.
func (r *Reader) scanFile(ctx context.Context, name string, f func(*binlog.Event) (stop bool, err error)) error {
	s := spot{kind: spotFile}
	s.file.setName(name)
	s.file.off = 4
	return r.view(ctx, &s, func(scan *binlog.Scanner, next func(*binlog.Event) error) error {
		var ev binlog.Event
		for {
			if err := next(&ev); err != nil {
				return err
			}
			if ev.Type == binlog.Rotate {
				file, _, err := binlog.RotatePlace(ev.Body)
				if err != nil || file != name && ev.Flags&binlog.FlagArtificial != 0 {
					return err
				}
				continue
			}
			if ev.Flags&binlog.FlagArtificial != 0 || ev.Type == binlog.Heartbeat || ev.Type == binlog.HeartbeatV2 {
				continue
			}
			stop, err := f(&ev)
			if stop || err != nil {
				return err
			}
		}
	})
}

// view reads the log of the server from a place on a connection of its own. Next
// gives event after event, and io.EOF at the end of the log.
func (r *Reader) view(ctx context.Context, from *spot, f func(scan *binlog.Scanner, next func(*binlog.Event) error) error) error {
	l := r.live
	c, err := server.Dial(ctx, l.cfg, l.addrs[l.turn])
	if err != nil {
		return unreachable([]error{err})
	}
	defer func() { _ = c.Close() }()
	id, uuid := serverID(l.uuid + " view")
	d := dump{from: *from, nonBlock: true, id: id, uuid: uuid, period: l.period}
	if err := d.start(ctx, c); err != nil {
		return refusal(c, from, err)
	}
	scan := binlog.NewStream(from.file.name(), stream{c}, 1, int(r.cfg.MaxEvent))
	err = f(scan, func(ev *binlog.Event) error {
		if err := waitFor(ctx, c, l.period, func() error { return scan.Next(ev) }); err != nil {
			return err
		}
		made := ev.Flags&binlog.FlagArtificial != 0 || ev.Type == binlog.Heartbeat || ev.Type == binlog.HeartbeatV2
		switch {
		case ev.Type == binlog.Rotate && made:
			file, off, err := binlog.RotatePlace(ev.Body)
			if err != nil {
				return err
			}
			scan.SetPlace(file, off)
		case made || ev.Type == binlog.FormatDescription && ev.Next == 0:
			scan.SetPlace(scan.Name(), ev.At)
		default:
			ev.End = binlog.EndOf(ev.Next, ev.End)
			ev.At = ev.End - int64(ev.Size)
			scan.SetPlace(scan.Name(), ev.End)
		}
		return nil
	})
	return refusal(c, from, err)
}
