package rpc

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"google.golang.org/protobuf/encoding/protowire"
)

// registry finds a cluster's fixed points. Addresses are host:port.
type registry interface {
	clusterID(ctx context.Context) (string, error)
	master(ctx context.Context) (string, error)
	meta(ctx context.Context) (string, error)
	close()
}

// zkRegistry reads the znodes that servers keep.
type zkRegistry struct {
	conn   *zk.Conn
	parent string
}

func newZKRegistry(cfg *Config) (*zkRegistry, error) {
	conn, _, err := zk.Connect(strings.Split(cfg.ZooKeeper, ","), 30*time.Second, zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, fmt.Errorf("connect to ZooKeeper %s: %w", cfg.ZooKeeper, err)
	}
	return &zkRegistry{conn, cfg.Parent}, nil
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func (r *zkRegistry) close() { r.conn.Close() }

// get returns the message in a znode: 0xFF, int32 length and name of the writer,
// "PBUF", message.
func (r *zkRegistry) get(ctx context.Context, node string) ([]byte, error) {
	type answer struct {
		data []byte
		err  error
	}
	path := r.parent + "/" + node
	ch := make(chan answer, 1)
	go func() { // the library waits without end while it has no server
		data, _, err := r.conn.Get(path)
		ch <- answer{data, err}
	}()
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("read %s in ZooKeeper: %w", path, ctx.Err())
	case a := <-ch:
		if a.err != nil {
			return nil, &connError{"zookeeper", fmt.Errorf("read %s: %w", path, a.err)}
		}
		return znode(a.data)
	}
}

func znode(data []byte) ([]byte, error) {
	if len(data) > 5 && data[0] == 0xFF {
		n := binary.BigEndian.Uint32(data[1:])
		if uint64(n) > uint64(len(data)-5) {
			return nil, corrupt("znode")
		}
		data = data[5+n:]
	}
	return pbuf(data)
}

// pbuf strips the magic before messages in znodes and in hbase:meta.
func pbuf(data []byte) ([]byte, error) {
	if len(data) < 4 || string(data[:4]) != "PBUF" {
		return nil, corrupt("no PBUF before a message")
	}
	return data[4:], nil
}

func (r *zkRegistry) clusterID(ctx context.Context) (id string, err error) {
	data, err := r.get(ctx, "hbaseid")
	if err != nil {
		return "", err
	}
	err = fields(data, func(f protowire.Number, _ uint64, b []byte) error {
		if f == 1 {
			id = string(b)
		}
		return nil
	})
	return id, err
}

func (r *zkRegistry) master(ctx context.Context) (string, error) { return r.server(ctx, "master") }

func (r *zkRegistry) meta(ctx context.Context) (string, error) {
	return r.server(ctx, "meta-region-server")
}

// server reads a znode whose message has a ServerName in field 1.
func (r *zkRegistry) server(ctx context.Context, node string) (addr string, err error) {
	data, err := r.get(ctx, node)
	if err != nil {
		return "", err
	}
	err = fields(data, func(f protowire.Number, _ uint64, b []byte) (err error) {
		if f == 1 {
			var s ServerName
			s, err = parseServerName(b)
			addr = s.Addr()
		}
		return err
	})
	return addr, err
}

// ServerName names one run of a server.
type ServerName struct {
	Host      string
	Port      int
	StartCode uint64
}

// Addr returns host:port.
func (s ServerName) Addr() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// String returns host,port,startcode, as HBase writes it.
func (s ServerName) String() string { return fmt.Sprintf("%s,%d,%d", s.Host, s.Port, s.StartCode) }

func (s ServerName) message() message {
	return message(nil).string(1, s.Host).varint(2, uint64(s.Port)).varint(3, s.StartCode)
}

func parseServerName(data []byte) (s ServerName, err error) {
	err = fields(data, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1:
			s.Host = string(b)
		case 2:
			s.Port = int(v & 0xffff)
		case 3:
			s.StartCode = v
		}
		return nil
	})
	return s, err
}

// masterRegistry asks the masters, any of which answers.
type masterRegistry struct {
	masters []string
	ask     func(ctx context.Context, addr, service string, r *request) (reply, error)
}

const clientMetaService = "ClientMetaService"

func (r *masterRegistry) close() {}

func (r *masterRegistry) any(ctx context.Context, method string) (msg []byte, err error) {
	var errs []error
	for _, m := range r.masters {
		rep, err := r.ask(ctx, m, clientMetaService, &request{method: method})
		if err == nil {
			return rep.msg, nil
		}
		errs = append(errs, err)
	}
	return nil, &connError{"masters", errors.Join(errs...)}
}

func (r *masterRegistry) clusterID(ctx context.Context) (id string, err error) {
	msg, err := r.any(ctx, "GetClusterId")
	if err != nil {
		return "", err
	}
	err = fields(msg, func(f protowire.Number, _ uint64, b []byte) error {
		if f == 1 {
			id = string(b)
		}
		return nil
	})
	return id, err
}

func (r *masterRegistry) master(ctx context.Context) (addr string, err error) {
	msg, err := r.any(ctx, "GetActiveMaster")
	if err != nil {
		return "", err
	}
	err = fields(msg, func(f protowire.Number, _ uint64, b []byte) (err error) {
		if f == 1 {
			var s ServerName
			s, err = parseServerName(b)
			addr = s.Addr()
		}
		return err
	})
	if err == nil && addr == "" {
		err = &connError{"masters", errors.New("there is no active master")}
	}
	return addr, err
}

// meta returns the first location, that of the primary replica.
func (r *masterRegistry) meta(ctx context.Context) (addr string, err error) {
	msg, err := r.any(ctx, "GetMetaRegionLocations")
	if err != nil {
		return "", err
	}
	err = fields(msg, func(f protowire.Number, _ uint64, b []byte) error {
		if f != 1 || addr != "" {
			return nil
		}
		return fields(b, func(f protowire.Number, _ uint64, b []byte) (err error) {
			if f == 2 {
				var s ServerName
				s, err = parseServerName(b)
				addr = s.Addr()
			}
			return err
		})
	})
	if err == nil && addr == "" {
		err = &connError{"masters", errors.New("hbase:meta is nowhere")}
	}
	return addr, err
}
