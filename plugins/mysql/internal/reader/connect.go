package reader

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
	"github.com/datalink-go/datalink/sdk"
)

const (
	// patience is how long a lost connection is made anew before the reader gives
	// up, which leaves it to the host to start it again.
	patience = 60 * time.Second
	// behind is how long a server that lacks transactions of the position is given
	// to get them: it may be a replica that lags, or commit them a moment after it
	// has sent them.
	behind = 30 * time.Second
)

// dial opens a connection for statements to the server that is read.
func (r *Reader) dial(ctx context.Context) (*server.Conn, error) {
	l := r.live
	var errs []error
	for i := range l.addrs {
		c, err := server.Dial(ctx, l.cfg, l.addrs[(l.turn+i)%len(l.addrs)])
		if err == nil {
			l.turn = (l.turn + i) % len(l.addrs)
			return c, nil
		}
		errs = append(errs, err)
	}
	return nil, unreachable(errs)
}

// unreachable says why no address could be connected to.
func unreachable(errs []error) error {
	err := errors.Join(errs...)
	switch {
	case len(errs) == 1 && (server.Code(err) == 1045 || server.Code(err) == 1044 || server.Code(err) == 1698), errors.Is(err, server.ErrAuth):
		return sdk.Faultf(sdk.CodeUnauthorized, "%v", err).Suggest("check user and password, and from which hosts the account may log in")
	case errors.Is(err, server.ErrNoTLS):
		return sdk.Faultf(sdk.CodeUnauthorized, "%v", err).Suggest("set up TLS at the source, or tls.mode: preferred or disabled")
	case server.Code(err) == 3159:
		return sdk.Faultf(sdk.CodeUnauthorized, "%v", err).Suggest("set tls.mode: required")
	}
	return sdk.Faultf(sdk.CodeUnavailable, "%v", err).Suggest("see that the server runs and that its address is right").Retry()
}

// reconnect goes on at the server that is read or another that has the position.
func (r *Reader) reconnect(ctx context.Context) error {
	l := r.live
	l.hangUp()
	l.gather.reset()
	if l.down.IsZero() {
		l.down = time.Now()
	}
	pause := 100 * time.Millisecond
	for {
		var errs []error
		lacking := true
		for i := range l.addrs {
			turn := (l.try + i) % len(l.addrs)
			err := r.connectTo(ctx, turn)
			if err == nil {
				l.turn, l.try, l.down = turn, turn, time.Time{}
				return nil
			}
			if ctx.Err() != nil {
				l.try = (turn + 1) % len(l.addrs) // the next call begins there
				return ctx.Err()
			}
			if errors.Is(err, errWrongServer) && len(l.addrs) == 1 {
				return err
			}
			lacking = lacking && errors.Is(err, sdk.ErrPositionUnknown)
			errs = append(errs, err)
		}
		gone := time.Since(l.down)
		switch {
		case lacking && gone > r.behind():
			return errs[0]
		case !lacking && allFinal(errs):
			return errs[0]
		case gone > patience:
			return unreachable(errs)
		}
		r.log.Warn("the source cannot be read from; trying again", "reason", errors.Join(errs...), "since", gone.Round(time.Second))
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, 5*time.Second)
	}
}

func (r *Reader) behind() time.Duration {
	switch {
	case r.live.patience > 0:
		return r.live.patience
	case len(r.live.addrs) > 1:
		return behind
	case r.live.kind == spotFile:
		return 0
	}
	return behind / 10
}

// allFinal reports whether no address can become good by waiting.
func allFinal(errs []error) bool {
	for _, err := range errs {
		var f *sdk.Fault
		if !errors.As(err, &f) || f.Retryable || f.Code == sdk.CodePositionUnknown || f.Code == sdk.CodeUnavailable {
			return false
		}
	}
	return true
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errWrongServer is wrapped where a file position is of another server.
var errWrongServer = errors.New("another server")

func (l *live) hangUp() {
	if l.conn != nil {
		_ = l.conn.Close()
		l.conn = nil
	}
}

// connectTo begins to read from one address, after the last whole transaction.
func (r *Reader) connectTo(ctx context.Context, turn int) error {
	l := r.live
	c, err := server.Dial(ctx, l.cfg, l.addrs[turn])
	if err != nil {
		return unreachable([]error{err})
	}
	// The first packets tell whether the server agrees to the position.
	bounded, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err = r.begin2(bounded, c); err != nil {
		_ = c.Close()
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			err = sdk.Faultf(sdk.CodeUnavailable, "server %s does not answer", c.Address).Retry()
		}
		return err
	}
	return nil
}

func (r *Reader) begin2(ctx context.Context, c *server.Conn) error {
	l := r.live
	f, err := learn(ctx, c)
	if err != nil {
		return refusal(c, &spot{}, err)
	}
	here := r.spotHere()
	if err := f.serves(ctx, c, &here); err != nil {
		if !r.passOn(err, &f) {
			return err
		}
		here = r.spotHere()
	}
	if r.cfg.Share && f.file == "" {
		// Behind what the server says now lies nothing that its position holds.
		if err := f.status(ctx, c); err != nil {
			return refusal(c, &here, err)
		}
	}
	if f.id == l.id {
		return sdk.Faultf(sdk.CodeInvalidConfig, "serverId %d is that of the server itself", l.id).Suggest("give the task another serverId")
	}
	d := dump{from: here, id: l.id, uuid: l.uuid, period: l.period, wait: l.writeWait}
	if err := d.start(ctx, c); err != nil {
		return refusal(c, &here, err)
	}
	scan := binlog.NewStream("", stream{c}, 1, int(r.cfg.MaxEvent))
	// The first packet is a ROTATE event that names the file, or the refusal.
	if err := waitFor(ctx, c, l.period, func() error {
		var h binlog.Header
		return scan.Peek(&h)
	}); err != nil {
		return refusal(c, &here, err)
	}
	if r.sw.ChecksumOff {
		scan.Unchecked()
	}
	c.NoWait(true)
	moved := l.name != "" && l.name != f.name
	if moved {
		l.foot = place{}
		r.log.Warn("reading goes on at another server", "address", c.Address, "server", f.name, "before", l.name)
	}
	l.address.Store(&c.Address)
	if l.name != "" && l.weaver != nil {
		l.weaver.Moved()
	}
	if l.kind == spotFile && r.here.off > 1<<32-1 {
		l.skipTo = r.here.off
	}
	l.name, l.conn, r.scan = f.name, c, scan
	l.sharing.joined = false
	if r.cfg.Share {
		l.sharing.behind = place{off: f.off}
		l.sharing.behind.setName(f.file)
	}
	r.tables.forget()
	return nil
}

// passOn reports whether a switch lets reading go on at a server that does not
// serve the position.
func (r *Reader) passOn(err error, f *facts) bool {
	l := r.live
	switch {
	case r.sw.PurgedOff && errors.Is(err, sdk.ErrPositionPurged):
		l.set, l.fresh = l.set.Union(&f.purged), false
		return true
	case errors.Is(err, sdk.ErrPositionUnknown):
		return r.sw.ForeignOff
	}
	return false
}

// waitFor calls f until it has what it reads.
func waitFor(ctx context.Context, c *server.Conn, period time.Duration, f func() error) error {
	c.NoWait(true)
	for {
		err := f()
		if err != binlog.ErrWait {
			return err
		}
		if err := c.Wait(ctx, time.Now().Add(max(10*time.Second, 3*period)), nil); err != nil {
			return fmt.Errorf("wait for server %s: %w", c.Address, err)
		}
	}
}

// serves says why a server cannot go on after a place, if it cannot.
func (f *facts) serves(ctx context.Context, c *server.Conn, s *spot) error {
	unknown := func(format string, args ...any) error {
		return sdk.Faultf(sdk.CodePositionUnknown, "server %s (%s) never had, or lost, %s", c.Address, f.name, fmt.Sprintf(format, args...)).Suggest("%s", adviceUnknown)
	}
	if s.kind != f.kind {
		return sdk.Faultf(sdk.CodePositionUnknown, "position %s is not one of server %s, whose positions are %s", s, c.Address, kindNames[f.kind]).
			Suggest("the server's gtid_mode was changed, or it is another kind of server; set a position it has with datalink task position")
	}
	switch s.kind {
	case spotSet:
		if lacks := s.set.Subtract(&f.executed); !lacks.IsEmpty() {
			return unknown("%d transactions of the position: %s", lacks.Count(), &lacks)
		}
		if gone := f.purged.Subtract(&s.set); !gone.IsEmpty() {
			all := s.set.Union(&f.purged)
			return sdk.Faultf(sdk.CodePositionPurged, "server %s has purged %d transactions that position %s lacks: %s", c.Address, gone.Count(), s, &gone).
				Suggest("%s; the position without them is %s", advicePurged, &all)
		}
	case spotDomains:
		for _, g := range s.dom.Subtract(&f.binlogPos) {
			return unknown("transaction %s of position %s; its log ends at %s", g, s, &f.binlogPos)
		}
	case spotFile:
		if s.server != "" && s.server != f.name {
			return fmt.Errorf("%w: %w", errWrongServer, sdk.Faultf(sdk.CodePositionUnknown, "position %s is of server %s, and %s is server %s; files and offsets are those of one server", s, s.server, c.Address, f.name).
				Suggest("set gtid_mode=ON at the source to go on at other servers; else begin anew"))
		}
		if err := f.status(ctx, c); err != nil {
			return refusal(c, s, err)
		}
		return f.hasFile(c, s, unknown)
	}
	return nil
}

func (f *facts) hasFile(c *server.Conn, s *spot, unknown func(string, ...any) error) error {
	name := s.file.name()
	for _, l := range f.files {
		if l.name != name {
			continue
		}
		if s.file.off > l.size {
			return unknown("position %s: the file has %d bytes", s, l.size)
		}
		return nil
	}
	first := place{}
	first.setName(f.first)
	if first.base == s.file.base && s.file.number < first.number {
		return sdk.Faultf(sdk.CodePositionPurged, "server %s has purged file %s; the first that is there is %s", c.Address, name, f.first).Suggest("%s", advicePurged)
	}
	return unknown("file %s of position %s; its files are %s to %s", name, s, f.first, f.file)
}

var kindNames = [...]string{spotNone: "none", spotSet: "GTID sets", spotDomains: "GTIDs of MariaDB", spotFile: "files and offsets"}
