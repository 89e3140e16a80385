package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// ErrTaken says that another owner is registered under the same parent.
var ErrTaken = errors.New("another task is registered there")

// Known says as what a Sink is to be known.
type Known struct {
	Servers   string // of ZooKeeper
	Parent    string // znode of a cluster of its own
	ClusterID string
	Host      string
	Port      int
	Owner     string // registrations of an owner replace one another
	Shared    bool   // other owners may be there
}

// Registration makes a Sink known as the region server of a cluster of its own in
// ZooKeeper: a znode hbaseid with its UUID, and an ephemeral rs/host,port,start,
// which holds the owner. HBase reads the name alone.
type Registration struct {
	conn   *zk.Conn
	cancel context.CancelFunc
	done   chan struct{}
}

// Register writes the znodes and keeps them: after an expired session they are
// written again. What the owner left there earlier is removed, so that sources do
// not wait for a dead one.
func Register(ctx context.Context, k Known) (*Registration, error) {
	conn, events, err := zk.Connect(strings.Split(k.Servers, ","), 10*time.Second, zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	run, cancel := context.WithCancel(context.Background())
	r := &Registration{conn: conn, cancel: cancel, done: make(chan struct{})}
	name := ServerName{k.Host, k.Port, uint64(time.Now().UnixMilli())}
	ready := make(chan error, 1)
	go func() {
		defer close(r.done)
		for {
			select {
			case <-run.Done():
				return
			case e, ok := <-events:
				if !ok {
					return
				}
				if e.State != zk.StateHasSession {
					continue
				}
				err := k.write(conn, name)
				select {
				case ready <- err:
				default:
				}
			}
		}
	}()
	select {
	case err = <-ready:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("register in ZooKeeper %s under %s: %w", k.Servers, k.Parent, err)
	}
	return r, nil
}

func (k *Known) write(conn *zk.Conn, name ServerName) error {
	all := zk.WorldACL(zk.PermAll)
	path := ""
	for _, p := range strings.Split(strings.Trim(k.Parent, "/")+"/rs", "/") {
		path += "/" + p
		if _, err := conn.Create(path, nil, 0, all); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
	if err := k.clear(conn, path, name.String()); err != nil {
		return err
	}
	id := append([]byte("PBUF"), message(nil).string(1, k.ClusterID)...)
	if _, err := conn.Create(k.Parent+"/hbaseid", id, 0, all); errors.Is(err, zk.ErrNodeExists) {
		if _, err := conn.Set(k.Parent+"/hbaseid", id, -1); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	_, err := conn.Create(path+"/"+name.String(), []byte(k.Owner), zk.FlagEphemeral, all)
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// clear removes what the owner left, and refuses where others are.
func (k *Known) clear(conn *zk.Conn, path, name string) error {
	names, _, err := conn.Children(path)
	if err != nil {
		return err
	}
	for _, n := range names {
		if n == name {
			continue
		}
		data, _, err := conn.Get(path + "/" + n)
		switch {
		case errors.Is(err, zk.ErrNoNode):
		case err != nil:
			return err
		case string(data) == k.Owner:
			if err := conn.Delete(path+"/"+n, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
				return err
			}
		case !k.Shared:
			return fmt.Errorf("%w: %s, task uid %s", ErrTaken, n, data)
		}
	}
	return nil
}

// Close takes the registration away: sources find nobody and wait.
func (r *Registration) Close() {
	r.cancel()
	r.conn.Close()
	<-r.done
}
