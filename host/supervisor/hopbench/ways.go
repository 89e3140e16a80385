package hopbench

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/datalink-go/datalink/host/supervisor"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/proto/rowbench"
	"github.com/datalink-go/datalink/sdk/wire"
)

// own is the project's way.
type own struct {
	c    *supervisor.Client
	pid  int
	rows *rowbench.Rows
}

func startPacked(ctx context.Context, l *supervisor.Launcher, img *supervisor.Image, batch int) (*own, error) {
	c, err := supervisor.Launch(ctx, l, supervisor.Config{
		Image: img, Role: manifest.Reader, Env: []string{env + "=" + packed},
		Limits: wire.Limits{Events: uint64(batch), Full: 4 << 20},
	})
	if err != nil {
		return nil, err
	}
	if _, err := c.Configure(ctx, []byte("{}"), ""); err != nil {
		c.Kill()
		return nil, err
	}
	return &own{c, c.PID(), rowbench.NewRows(1)}, nil
}

func (o *own) close() { o.c.Kill() }

func (o *own) run(ctx context.Context, rows int) (uint64, error) {
	s, err := o.c.Open(ctx, &wire.OpenRequest{})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	o.rows = rowbench.NewRows(1) // a stream defines its schemas anew
	granted := min(16<<10, rows)
	if err := s.Grant(uint64(granted), 1<<40); err != nil {
		return 0, err
	}
	for got := 0; got < rows; {
		a, err := s.Recv()
		if err != nil {
			return 0, err
		}
		n, err := o.rows.ReadBlock(a.Block)
		if err != nil {
			return 0, err
		}
		if got += n; got >= rows {
			break
		}
		if n = min(n, rows-granted); n > 0 {
			granted += n
			if err := s.Grant(uint64(n), 0); err != nil {
				return 0, err
			}
		}
	}
	return o.rows.Sum(), nil
}

// rivals are the other ways.
type rivals struct {
	plug *plugin.Client
	conn *grpc.ClientConn
	pid  int
	rows *rowbench.Rows
}

func startRival() (*rivals, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path)
	cmd.Env = []string{env + "=rival"}
	c := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: "DATALINK_PLUGIN", MagicCookieValue: "datalink.v1"},
		VersionedPlugins: map[int]plugin.PluginSet{1: {"connector": &rivalPlugin{}}},
		Cmd:              cmd, SkipHostEnv: true, Logger: hclog.NewNullLogger(),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		GRPCDialOptions: []grpc.DialOption{
			grpc.WithInitialWindowSize(4 << 20), grpc.WithInitialConnWindowSize(8 << 20),
			grpc.WithReadBufferSize(256 << 10), grpc.WithWriteBufferSize(256 << 10),
		},
	})
	p, err := c.Client()
	if err != nil {
		c.Kill()
		return nil, err
	}
	raw, err := p.Dispense("connector")
	if err != nil {
		c.Kill()
		return nil, err
	}
	return &rivals{c, raw.(*grpc.ClientConn), cmd.Process.Pid, rowbench.NewRows(1)}, nil
}

func (r *rivals) close() { r.plug.Kill() }

func (r *rivals) open(ctx context.Context, method string, req *wrapperspb.StringValue) (grpc.ClientStream, error) {
	s, err := r.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/rival/"+method)
	if err != nil {
		return nil, err
	}
	if err := s.SendMsg(req); err != nil {
		return nil, err
	}
	return s, s.CloseSend()
}

func (r *rivals) single(ctx context.Context, rows int) (uint64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := r.open(ctx, single, order(rows, 1))
	if err != nil {
		return 0, err
	}
	var m rowbench.Row
	for range rows {
		if err := s.RecvMsg(&m); err != nil {
			return 0, err
		}
		if err := r.rows.ReadMessage(&m); err != nil {
			return 0, err
		}
	}
	return r.rows.Sum(), nil
}

func (r *rivals) batched(ctx context.Context, rows, batch int) (uint64, error) {
	if rows%batch != 0 || set%batch != 0 {
		return 0, fmt.Errorf("%d rows in batches of %d of %d", rows, batch, set)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := r.open(ctx, batched, order(rows, batch))
	if err != nil {
		return 0, err
	}
	var m wrapperspb.BytesValue
	for range rows / batch {
		if err := s.RecvMsg(&m); err != nil {
			return 0, err
		}
		if err := r.rows.ReadMessages(m.Value); err != nil {
			return 0, err
		}
	}
	return r.rows.Sum(), nil
}
