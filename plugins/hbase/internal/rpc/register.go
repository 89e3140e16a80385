package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// Registration makes a Sink known as the one region server of a cluster of its own
// in ZooKeeper: a znode hbaseid with its UUID, and an ephemeral rs/host,port,start.
type Registration struct {
	conn   *zk.Conn
	cancel context.CancelFunc
	done   chan struct{}
}

// Register writes the znodes and keeps them: after an expired session they are
// written again.
func Register(ctx context.Context, servers, parent, clusterID, host string, port int) (*Registration, error) {
	conn, events, err := zk.Connect(strings.Split(servers, ","), 10*time.Second, zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	run, cancel := context.WithCancel(context.Background())
	r := &Registration{conn: conn, cancel: cancel, done: make(chan struct{})}
	name := ServerName{host, port, uint64(time.Now().UnixMilli())}
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
				err := writeNodes(conn, parent, clusterID, name)
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
		return nil, fmt.Errorf("register in ZooKeeper %s under %s: %w", servers, parent, err)
	}
	return r, nil
}

func writeNodes(conn *zk.Conn, parent, clusterID string, name ServerName) error {
	all := zk.WorldACL(zk.PermAll)
	path := ""
	for _, p := range strings.Split(strings.Trim(parent, "/")+"/rs", "/") {
		path += "/" + p
		if _, err := conn.Create(path, nil, 0, all); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
	id := append([]byte("PBUF"), message(nil).string(1, clusterID)...)
	if _, err := conn.Create(parent+"/hbaseid", id, 0, all); errors.Is(err, zk.ErrNodeExists) {
		if _, err := conn.Set(parent+"/hbaseid", id, -1); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	_, err := conn.Create(parent+"/rs/"+name.String(), nil, zk.FlagEphemeral, all)
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// Close takes the registration away: sources find nobody and wait.
func (r *Registration) Close() {
	r.cancel()
	r.conn.Close()
	<-r.done
}
