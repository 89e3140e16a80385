package reader

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Config says what is read. Zero values mean the first choice named.
type Config struct {
	Tables    map[string]Table // by the table's name in HBase
	Start     string           // snapshot | latest
	Scope     string           // set | demand: REPLICATION_SCOPE of the families
	Serial    bool             // order of a region over its moves and splits
	Listen    string           // "" = 127.0.0.1:0
	Host      string           // that region servers reach this worker by; "" = the one of Listen
	ZooKeeper string           // where the sink is registered; the source's servers must reach it
	Parent    string           // znode of the sink; "" = /datalink/TASK
	Peer      string           // id; "" = datalink_TASK
	Window    int              // bytes that sources may have sent and that are not durable; 0 = 128 MiB
	Task      string
	Log       *slog.Logger
}

// Reader reads one cluster.
type Reader struct {
	sdk.Numbers
	cfg    Config
	client *rpc.Client

	sources []*source
	byName  map[string]*source
	sink    *rpc.Sink
	reg     *rpc.Registration
	next    uint64 // position of what was handed over last
	points  sdk.NumberPoints

	scans   map[string]string // table → hex of the last row, or "done"
	scanner *rpc.Scanner
	at      int // table that is scanned
	rows    [][]rpc.Cell
	state   uint64

	waiting []change
	ship    *shipped // what waiting belongs to

	mu      sync.Mutex
	durable uint64
	open    []*shipped // handed over, not answered
}

// shipped is a shipment; all of it is handed over at position last.
type shipped struct {
	*rpc.Shipment
	last uint64
}

type change struct {
	src   *source
	row   []byte
	cells []rpc.Cell
}

var (
	_ sdk.Reader   = (*Reader)(nil)
	_ sdk.Releaser = (*Reader)(nil)
)

const done = "done"

// unhurried is the context of a look into the source that is worth finishing
// although the call's own time is over.
func unhurried(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
}

var unfitID = regexp.MustCompile(`[^A-Za-z0-9_]`)

// New makes a Reader on a client, which it closes.
func New(cfg Config, client *rpc.Client) (*Reader, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	if cfg.Host == "" {
		cfg.Host, _, _ = net.SplitHostPort(cfg.Listen)
	}
	task := unfitID.ReplaceAllString(cfg.Task, "_")
	if cfg.Peer == "" {
		cfg.Peer = "datalink_" + task
	}
	if cfg.Parent == "" {
		cfg.Parent = "/datalink/" + task
	}
	if cfg.Window <= 0 {
		cfg.Window = 128 << 20
	}
	r := &Reader{Numbers: sdk.Numbers{Format: "hbase-stream", Unit: "change"}, cfg: cfg, client: client, byName: map[string]*source{}}
	for i, name := range slices.Sorted(maps.Keys(cfg.Tables)) {
		s, err := newSource(name, cfg.Tables[name], uint32(i+1), "")
		if err != nil {
			return nil, err
		}
		r.sources = append(r.sources, s)
		r.byName[name] = s
	}
	return r, nil
}

// Open registers the sink and sees to the peer.
func (r *Reader) Open(ctx context.Context, ex sdk.Execution, points []sdk.Point, state []batch.StateItem) (err error) {
	r.shut()
	if r.points, err = r.Points(points); err != nil {
		return err
	}
	r.next, r.durable = r.points.Start(), r.points.Start()
	r.scans, r.at, r.scanner, r.rows, r.waiting, r.ship, r.open = map[string]string{}, 0, nil, nil, nil, nil, nil
	for _, s := range state {
		r.scans[s.Key] = string(s.Value)
		r.state = max(r.state, s.Version)
	}
	if r.cfg.Start == "latest" {
		for _, s := range r.sources {
			r.scans["scan:"+s.name] = done
		}
	}
	for _, s := range r.sources {
		if err := r.scoped(ctx, s); err != nil {
			return err
		}
	}
	if r.sink, err = rpc.ListenSink(r.cfg.Listen, r.cfg.Window); err != nil {
		return sdk.Faultf(sdk.CodeUnavailable, "listen for replication: %v", err).Retry()
	}
	id := uuid.NewSHA1(uuid.NameSpaceURL, []byte("datalink:"+ex.TaskUID)).String()
	if r.reg, err = rpc.Register(ctx, r.cfg.ZooKeeper, r.cfg.Parent, id, r.cfg.Host, r.sink.Port()); err != nil {
		return sdk.Faultf(sdk.CodeUnavailable, "%v", err).Retry()
	}
	return r.peer(ctx)
}

// scoped sees that changes of a table's families are replicated at all.
func (r *Reader) scoped(ctx context.Context, s *source) error {
	t, err := r.client.Describe(ctx, s.name)
	if errors.Is(err, rpc.ErrNoTable) {
		return sdk.Faultf(sdk.CodeSchemaMismatch, "table %s does not exist", s.name)
	}
	if err != nil {
		return unavailable(err)
	}
	local := false
	for i := range t.Families {
		if v := t.Families[i].Values["REPLICATION_SCOPE"]; v == "" || v == "0" {
			local = true
			t.Families[i].Values["REPLICATION_SCOPE"] = "1"
		}
	}
	if !local {
		return nil
	}
	if r.cfg.Scope == "demand" {
		return sdk.Faultf(sdk.CodeRefused, "table %s has families whose changes are not replicated", s.name).
			Suggest("alter '%s', {NAME => 'd', REPLICATION_SCOPE => '1'}, or scope: set", s.name)
	}
	return unavailable(r.client.Modify(ctx, t))
}

func (r *Reader) scanned() bool {
	for _, s := range r.sources {
		if r.scans["scan:"+s.name] != done {
			return false
		}
	}
	return true
}

func (r *Reader) peer(ctx context.Context) error {
	peers, err := r.client.Peers(ctx)
	if err != nil {
		return unavailable(err)
	}
	i := slices.IndexFunc(peers, func(p rpc.Peer) bool { return p.ID == r.cfg.Peer })
	ready := r.scanned()
	switch {
	case i < 0 && r.next > 0:
		return sdk.Faultf(sdk.CodePositionPurged, "replication peer %s is gone: changes since then were not kept", r.cfg.Peer).
			Suggest("start the task over with a new snapshot")
	case i < 0:
		host, port, err := net.SplitHostPort(firstOf(r.cfg.ZooKeeper))
		if err != nil {
			return sdk.Faultf(sdk.CodeInvalidConfig, "zookeeper %q: %v", r.cfg.ZooKeeper, err)
		}
		p := &rpc.Peer{ID: r.cfg.Peer, ClusterKey: host + ":" + port + ":" + r.cfg.Parent, Serial: r.cfg.Serial, Disabled: !ready}
		for _, s := range r.sources {
			p.Tables = append(p.Tables, s.name)
		}
		return unavailable(r.client.AddPeer(ctx, p))
	case ready && peers[i].Disabled:
		return unavailable(r.client.EnablePeer(ctx, r.cfg.Peer))
	case !ready && !peers[i].Disabled:
		return unavailable(r.client.DisablePeer(ctx, r.cfg.Peer))
	}
	return nil
}

// firstOf returns the first server: a cluster key has one port for all of them.
func firstOf(servers string) string {
	for i := range len(servers) {
		if servers[i] == ',' {
			return servers[:i]
		}
	}
	return servers
}

func unavailable(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return err
	case rpc.Final(err):
		return sdk.Faultf(sdk.CodeInternal, "%v", err)
	}
	return sdk.Faultf(sdk.CodeUnavailable, "%v", err).Retry()
}

// Next gives rows of the scan, then changes.
func (r *Reader) Next(ctx context.Context, out *batch.Builder) error {
	for !out.Full() && ctx.Err() == nil {
		if !r.scanned() {
			if err := r.scan(ctx, out); err != nil {
				return err
			}
			continue
		}
		if len(r.waiting) == 0 {
			if err := r.receive(ctx, out.Empty()); err != nil {
				return err
			}
			if len(r.waiting) == 0 {
				if out.Empty() {
					continue
				}
				return nil
			}
		}
		c := r.waiting[0]
		if err := r.tx(out, func() error { return c.src.put(out, batch.Insert, c.row, c.cells) }); err != nil {
			return err
		}
		r.waiting = r.waiting[1:]
	}
	return ctx.Err()
}

// tx appends a transaction of its own, at the next position.
func (r *Reader) tx(out *batch.Builder, body func() error) error {
	if err := out.BeginTx(batch.Tx{Begins: true, Covers: r.points.Covers(nil, r.next, r.next+1)}); err != nil {
		return err
	}
	if err := body(); err != nil {
		return err
	}
	r.next++
	return out.EndTx(true, nil, r.Source(r.next))
}

// scan gives one piece of the scan and how far it came.
func (r *Reader) scan(ctx context.Context, out *batch.Builder) error {
	for r.scans["scan:"+r.sources[r.at].name] == done {
		r.at++
	}
	s := r.sources[r.at]
	key := "scan:" + s.name
	if r.scanner == nil {
		from, err := hex.DecodeString(r.scans[key])
		if err != nil {
			return sdk.Faultf(sdk.CodeInvalidPosition, "state %s: %q", key, r.scans[key])
		}
		r.scanner = r.client.Scanner(rpc.Scan{Table: s.name, Start: from, After: len(from) > 0, NoCache: true})
	}
	progress := done
	if len(r.rows) == 0 {
		calm, cancel := unhurried(ctx)
		rows, err := r.scanner.Next(calm)
		cancel()
		if err != nil && !errors.Is(err, io.EOF) {
			return unavailable(err)
		}
		r.rows = rows
	}
	n := min(len(r.rows), 200)
	if n > 0 {
		progress = hex.EncodeToString(r.rows[n-1][0].Row)
	}
	err := r.tx(out, func() error {
		for _, cells := range r.rows[:n] {
			if err := s.put(out, batch.Read, cells[0].Row, cells); err != nil {
				return err
			}
		}
		r.state++
		return out.StateItem(&batch.StateItem{Key: key, Version: r.state, Value: []byte(progress)})
	})
	if err != nil {
		return err
	}
	r.rows = r.rows[n:]
	r.scans[key] = progress
	if progress == done {
		r.scanner = nil
		if r.scanned() {
			r.cfg.Log.Info("the scan is done; changes since it began follow")
			calm, cancel := unhurried(ctx)
			defer cancel()
			return unavailable(r.client.EnablePeer(calm, r.cfg.Peer))
		}
	}
	return nil
}

// receive takes a shipment and reads its rows as they are now.
func (r *Reader) receive(ctx context.Context, wait bool) error {
	var sh *rpc.Shipment
	if wait {
		select {
		case sh = <-r.sink.Shipments():
		case <-ctx.Done():
			return ctx.Err()
		}
	} else {
		select {
		case sh = <-r.sink.Shipments():
		default:
			return nil
		}
	}
	seen := map[string]bool{}
	var list []change
	for i := range sh.Entries {
		e := &sh.Entries[i]
		s := r.byName[e.Table]
		if s == nil {
			continue // tables of an older configuration of the peer
		}
		for k := range e.Cells {
			id := e.Table + "\x00" + string(e.Cells[k].Row)
			if !seen[id] {
				seen[id] = true
				list = append(list, change{src: s, row: e.Cells[k].Row})
			}
		}
	}
	calm, cancel := unhurried(ctx)
	defer cancel()
	if err := r.reread(calm, list); err != nil {
		sh.Done(err)
		return unavailable(err)
	}
	r.waiting = list
	x := &shipped{Shipment: sh, last: r.next + uint64(len(list))}
	r.mu.Lock()
	r.open = append(r.open, x)
	r.mu.Unlock()
	r.settle(0)
	return nil
}

// reread reads the rows of changes, several at a time. All of it is done before a
// later shipment is looked at.
func (r *Reader) reread(ctx context.Context, list []change) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	next := make(chan *change)
	for range min(16, len(list)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for c := range next {
				var err error
				if c.cells, err = r.client.Get(ctx, c.src.name, rpc.Get{Row: c.row}); err != nil {
					cancel(err)
				}
			}
		}()
	}
	for i := range list {
		next <- &list[i]
	}
	close(next)
	wg.Wait()
	return context.Cause(ctx)
}

// Durable answers the sources whose changes are stored.
func (r *Reader) Durable(_ context.Context, upTo sdk.Position) error {
	n, _, err := r.Number(upTo)
	if err != nil {
		return err
	}
	r.settle(n)
	return nil
}

func (r *Reader) settle(upTo uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.durable = max(r.durable, upTo)
	for len(r.open) > 0 && r.open[0].last <= r.durable {
		r.open[0].Done(nil)
		r.open = r.open[1:]
	}
}

// Release removes the peer.
func (r *Reader) Release(ctx context.Context, _ string) error {
	peers, err := r.client.Peers(ctx)
	if err != nil {
		return unavailable(err)
	}
	if !slices.ContainsFunc(peers, func(p rpc.Peer) bool { return p.ID == r.cfg.Peer }) {
		return nil
	}
	return unavailable(r.client.RemovePeer(ctx, r.cfg.Peer))
}

// shut takes the registration away, then ends the sink.
func (r *Reader) shut() {
	if r.reg != nil {
		r.reg.Close()
		r.reg = nil
	}
	if r.sink != nil {
		r.sink.Close()
		r.sink = nil
	}
}

// Close ends the reader.
func (r *Reader) Close(context.Context) error {
	r.shut()
	r.client.Close()
	return nil
}

// Check looks at the tables.
func (r *Reader) Check(ctx context.Context) ([]sdk.Finding, error) {
	var out []sdk.Finding
	for _, s := range r.sources {
		t, err := r.client.Describe(ctx, s.name)
		switch {
		case errors.Is(err, rpc.ErrNoTable):
			out = append(out, sdk.Finding{Severity: sdk.Error, Subject: s.name, Message: "table does not exist", Advice: "create it, or take it out of tables"})
			continue
		case err != nil:
			return nil, unavailable(err)
		}
		for _, f := range s.families {
			if fam := t.Family(f); fam == nil {
				out = append(out, sdk.Finding{Severity: sdk.Error, Subject: s.name, Message: "there is no family " + f, Advice: "correct the cells of its columns"})
			} else if n, _ := strconv.Atoi(fam.Values["REPLICATION_SCOPE"]); n == 0 {
				sev := sdk.Info
				if r.cfg.Scope == "demand" {
					sev = sdk.Error
				}
				out = append(out, sdk.Finding{Severity: sev, Subject: s.name, Message: "changes of family " + f + " are not replicated yet", Advice: "alter '" + s.name + "', {NAME => '" + f + "', REPLICATION_SCOPE => '1'}, or scope: set"})
			}
		}
	}
	return out, nil
}
