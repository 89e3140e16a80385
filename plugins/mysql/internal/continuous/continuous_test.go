package continuous

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/mysql/alltypes"
	"github.com/datalink-go/datalink/plugins/mysql/internal/reader"
	"github.com/datalink-go/datalink/plugins/mysql/internal/replica"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// TestContinuous reads the files of a server that eight sessions write to.
func TestContinuous(t *testing.T) { each(t, files, servers) }

// TestContinuousLive reads a server over its connection; the server is killed once.
func TestContinuousLive(t *testing.T) { each(t, overConnection, servers) }

// TestContinuousFailover reads two servers of which one follows the other: first the
// one that reading is from is killed, then the one that is written to.
func TestContinuousFailover(t *testing.T) { each(t, failover, servers) }

type variant func(t *testing.T, kind string, which alltypes.Server, options []string, seed uint64) error

func each(t *testing.T, run variant, servers []flavour) {
	if os.Getenv("DATALINK_CONTINUOUS") == "" {
		t.Skip("optional while it finds faults: DATALINK_CONTINUOUS=8, and make soak, run it")
	}
	for _, s := range servers {
		t.Run(s.kind, func(t *testing.T) {
			t.Parallel()
			seed := seed()
			if err := run(t, s.kind, s.which, s.options, seed); err != nil {
				t.Errorf("DATALINK_SEED=%d: %v", seed, err)
			}
		})
	}
}

// files: the reader is killed at random, the server stays.
func files(t *testing.T, kind string, which alltypes.Server, options []string, seed uint64) error {
	srv := stack.Start(t, kind, append(options[:len(options):len(options)], "--log-bin=log")...)
	g := newRig(t, which, srv, seed)
	t.Cleanup(func() { keep(t, srv) })
	g.begin()
	g.follow = &replica.Follower{
		New: func() (sdk.Reader, error) {
			return reader.New(sdk.Env{}, reader.Config{Files: sdk.Strings{filepath.Join(srv.Facts["datadir"], "log.0*")}, Tables: sdk.Strings{Database + ".*"}, Start: "earliest", DDL: "apply", MaxEvent: 1 << 30, MaxWindow: 64 << 20})
		},
		Limits: batch.Limits{Events: 50}, Replica: replica.New(),
	}
	g.write()
	err := g.lives(20, 420, func(err error, done bool) bool {
		// A file ends wherever the server has got to with writing it.
		var fault *sdk.Fault
		return errors.As(err, &fault) && fault.Code == sdk.CodeCorruptSource && !done
	})
	if err != nil {
		return err
	}
	if err := g.quiet(); err != nil {
		return err
	}
	if err := g.follow.Run(g.ctx, 0); err != nil {
		return err
	}
	return g.compare()
}

// live follows servers over their connections.
func live(addrs ...string) *replica.Follower {
	return &replica.Follower{
		Limits: batch.Limits{Events: 5}, Replica: replica.New(),
		New: func() (sdk.Reader, error) {
			return reader.New(sdk.Env{Task: "continuous"}, reader.Config{
				Address: addrs, User: "root", Tables: sdk.Strings{Database + ".*"}, Start: "latest", DDL: "apply", OnStatement: "stop", OnUnknownTable: "stop",
				OnlineChanges: "recognize", Cascades: "stop", Heartbeat: 300 * time.Millisecond, MaxEvent: 1 << 30, MaxWindow: 64 << 20,
			})
		},
	}
}

// first takes the position at which reading begins.
func (g *rig) first() {
	g.t.Helper()
	for end := time.Now().Add(time.Minute); g.follow.Position().IsZero(); {
		ctx, stop := context.WithTimeout(g.ctx, time.Second)
		err := g.follow.Run(ctx, 0)
		stop()
		if err != nil || time.Now().After(end) {
			g.t.Fatalf("first position %v, %v", g.follow.Position(), err)
		}
	}
}

// after does something once a part of the time has passed, beside everything else.
func (g *rig) after(part float64, f func() error) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-g.ctx.Done():
		case <-time.After(time.Duration(part * float64(seconds()))):
			if err := f(); err != nil {
				select {
				case g.broken <- err:
				default:
				}
			}
		}
	}()
	return done
}

// overConnection: reader and server are killed.
func overConnection(t *testing.T, kind string, which alltypes.Server, options []string, seed uint64) error {
	srv := stack.Start(t, kind, options...)
	g := newRig(t, which, srv, seed)
	t.Cleanup(func() { keep(t, srv) })
	g.begin()
	g.follow = live(srv.Addr())
	g.first()
	g.write()
	killed := g.after(0.5, func() error {
		srv.Kill()
		dead(srv)
		srv.Restart()
		return g.src.Recover(g.ctx, g.db)
	})
	err := g.lives(50, 650, away)
	<-killed
	if err != nil {
		return err
	}
	return g.end()
}

// end compares when all sessions are gone and everything was read.
func (g *rig) end() error {
	for _, step := range []func() error{g.quiet, g.catchUp, g.compare} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// failover: reading begins at the server that follows, which is killed; then all
// sessions and the reader go over to it when the other is killed.
func failover(t *testing.T, kind string, which alltypes.Server, options []string, seed uint64) error {
	options = append(options[:len(options):len(options)], following...)
	a, b := stack.Start(t, kind, options...), stack.Start(t, kind, options...)
	g := newRig(t, which, a, seed)
	t.Cleanup(func() { keep(t, a) })
	follow(a, b)
	g.begin()
	if err := level(a, b); err != nil {
		return err
	}
	g.follow = live(b.Addr(), a.Addr())
	g.first()
	g.write()
	moved := g.after(0.3, func() error {
		b.Kill()
		dead(b)
		b.Restart()
		time.Sleep(time.Duration(0.3 * float64(seconds())))
		release := g.src.Hold()
		defer release()
		if err := level(a, b); err != nil {
			return err
		}
		a.Kill()
		dead(a)
		alone(b)
		g.at.Store(b.Addr())
		return nil
	})
	err := g.lives(50, 650, away)
	<-moved
	if err != nil {
		return err
	}
	select {
	case err := <-g.broken:
		return err
	default:
	}
	if g.at.Load() != b.Addr() {
		return fmt.Errorf("the sessions did not go over")
	}
	return g.end()
}
