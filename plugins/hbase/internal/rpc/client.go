package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Names of the services that a connection may be for.
const (
	clientService = "ClientService"
	adminService  = "AdminService"
	masterService = "MasterService"
)

// Config of a Client. Either ZooKeeper or Masters is needed.
type Config struct {
	ZooKeeper string   // host:port,host:port
	Parent    string   // znode of the cluster; "" = /hbase
	Masters   []string // host:port each, where the cluster is found through its masters
	User      string   // that servers are told; "" = datalink

	ConnectTimeout time.Duration // 0 = 5 s
	CallTimeout    time.Duration // of one try; 0 = 20 s
	// Timeout is how long a call is tried again where its context has no end; 0 =
	// 2 minutes.
	Timeout time.Duration

	// BatchBytes and BatchRows bound one request of a batch; 0 = 2 MiB and 2000.
	BatchBytes int
	BatchRows  int

	// Login is the place for SASL: it gets each new connection before anything is
	// sent and returns the one to be used.
	Login func(ctx context.Context, c net.Conn) (net.Conn, error)

	Log *slog.Logger // nil = none
}

// Client talks to one cluster. It is safe for concurrent use.
type Client struct {
	cfg Config
	reg registry

	mu     sync.Mutex
	conns  map[connKey]*conn
	dials  map[connKey]*sync.Mutex
	closed bool

	cache cache
}

type connKey struct{ addr, service string }

// Dial makes a client. It contacts the cluster no further than to begin a session
// with ZooKeeper.
func Dial(cfg Config) (*Client, error) {
	def := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&cfg.ConnectTimeout, 5*time.Second)
	def(&cfg.CallTimeout, 20*time.Second)
	def(&cfg.Timeout, 2*time.Minute)
	if cfg.Parent == "" {
		cfg.Parent = "/hbase"
	}
	if cfg.BatchBytes <= 0 {
		cfg.BatchBytes = 2 << 20
	}
	if cfg.BatchRows <= 0 {
		cfg.BatchRows = 2000
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	c := &Client{cfg: cfg, conns: map[connKey]*conn{}, dials: map[connKey]*sync.Mutex{}}
	switch {
	case len(cfg.Masters) > 0:
		c.reg = &masterRegistry{cfg.Masters, c.once}
	case cfg.ZooKeeper != "":
		reg, err := newZKRegistry(&c.cfg)
		if err != nil {
			return nil, err
		}
		c.reg = reg
	default:
		return nil, errors.New("neither ZooKeeper nor masters are given")
	}
	return c, nil
}

// Close ends all connections.
func (c *Client) Close() {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.closed = true
	conns := c.conns
	c.conns = map[connKey]*conn{}
	c.mu.Unlock()
	for _, n := range conns {
		n.fail(ErrClosed)
		<-n.ended
	}
	c.reg.close()
}

// ClusterID returns the UUID of the cluster.
func (c *Client) ClusterID(ctx context.Context) (id string, err error) {
	err = c.retry(ctx, "cluster id", func(ctx context.Context) error {
		id, err = c.reg.clusterID(ctx)
		return err
	})
	return id, err
}

// conn returns a connection to a service of a server, dialing when there is none.
func (c *Client) conn(ctx context.Context, addr, service string) (*conn, error) {
	key := connKey{addr, service}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, ErrClosed
	}
	if n := c.conns[key]; n != nil && !n.broken() {
		c.mu.Unlock()
		return n, nil
	}
	d := c.dials[key]
	if d == nil {
		d = &sync.Mutex{}
		c.dials[key] = d
	}
	c.mu.Unlock()

	d.Lock() // one dials, the others take what it got
	defer d.Unlock()
	c.mu.Lock()
	n := c.conns[key]
	c.mu.Unlock()
	if n != nil && !n.broken() {
		return n, nil
	}
	n, err := dialConn(ctx, &c.cfg, addr, service)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		n.fail(ErrClosed)
		return nil, ErrClosed
	}
	c.conns[key] = n
	return n, nil
}

// once makes one try of a call.
func (c *Client) once(ctx context.Context, addr, service string, r *request) (reply, error) {
	n, err := c.conn(ctx, addr, service)
	if err != nil {
		return reply{}, err
	}
	return n.call(ctx, r)
}

// bounded gives a context an end where it has none.
func (c *Client) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.cfg.Timeout)
}

// backoff waits before try n is repeated: 10 ms at first, then longer up to 2 s.
func backoff(ctx context.Context, n int) error {
	d := 10 * time.Millisecond << min(n, 8)
	d = min(d, 2*time.Second)
	d = d/2 + time.Duration(rand.Int64N(int64(d)/2+1))
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// retry calls f until it succeeds, fails for good, or the context ends; what the
// error was then is part of the error.
func (c *Client) retry(ctx context.Context, what string, f func(ctx context.Context) error) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	for n := 0; ; n++ {
		err := f(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w (%d tries, last error: %w)", what, ctx.Err(), n+1, err)
		}
		if remedyOf(err) == giveUp {
			return fmt.Errorf("%s: %w", what, err)
		}
		c.cfg.Log.Debug("hbase call is tried again", "call", what, "try", n+1, "error", err)
		if werr := backoff(ctx, n); werr != nil {
			return fmt.Errorf("%s: %w (%d tries, last error: %w)", what, werr, n+1, err)
		}
	}
}

// onRegion makes a call on the region that holds the row, wherever it goes.
func (c *Client) onRegion(ctx context.Context, table string, row []byte, what, service string, build func(r *Region) *request) (rep reply, err error) {
	err = c.retry(ctx, what+" of "+table, func(ctx context.Context) error {
		r, err := c.Locate(ctx, table, row)
		if err != nil {
			return err
		}
		if rep, err = c.once(ctx, r.Addr, service, build(r)); err != nil && remedyOf(err) == relocate {
			c.cache.drop(r)
		}
		return err
	})
	return rep, err
}
