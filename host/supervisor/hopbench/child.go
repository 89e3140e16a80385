package hopbench

import (
	"context"
	"fmt"
	"os"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/proto/rowbench"
	"github.com/datalink-go/datalink/sdk/serve"
	"github.com/datalink-go/datalink/sdk/serve/link"
)

// env says what a child of this program is.
const env = "HOPBENCH_CHILD"

// set is how many different rows there are.
const set = 1024

// Child does not return in a process that Measure has started.
func Child() {
	switch os.Getenv(env) {
	case "":
		return
	case packed:
		serve.Main(sdk.Plugin{Name: packed, Version: "1.0.0", Reader: sdk.ReaderOf(func(sdk.Env, struct{}) (*reader, error) {
			return &reader{rows: rowbench.NewRows(set)}, nil
		})})
	default:
		rival()
	}
	os.Exit(0)
}

// reader makes rows without end.
type reader struct {
	rows *rowbench.Rows
	at   int
}

func (r *reader) Next(ctx context.Context, out *batch.Builder) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := out.BeginTx(batch.Tx{Begins: true}); err != nil {
		return err
	}
	for !out.Full() {
		if err := r.rows.Append(out, r.at); err != nil {
			return err
		}
		r.at++
	}
	return out.EndTx(true, nil, fmt.Append(nil, r.at))
}

func (r *reader) Open(context.Context, sdk.Execution, []sdk.Point, []batch.StateItem) error {
	r.at = 0
	return nil
}

func (r *reader) Check(context.Context) ([]sdk.Finding, error)               { return nil, nil }
func (r *reader) Close(context.Context) error                                { return nil }
func (r *reader) Durable(context.Context, sdk.Position) error                { return nil }
func (r *reader) PositionFormat() (string, uint32)                           { return "hop", 1 }
func (r *reader) ParsePosition(string) (p sdk.Position, err error)           { return p, nil }
func (r *reader) FormatPosition(sdk.Position) (s string, err error)          { return s, nil }
func (r *reader) UpgradePosition(p sdk.Position) (sdk.Position, error)       { return p, nil }
func (r *reader) ComparePositions(_, _ sdk.Position) (o sdk.Order, e error)  { return o, nil }
func (r *reader) IntersectPositions(a, _ sdk.Position) (sdk.Position, error) { return a, nil }

// rival serves rows as protobuf messages.
func rival() {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  link.Handshake(),
		VersionedPlugins: map[int]plugin.PluginSet{1: {link.Name: &rivalPlugin{}}},
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts,
				grpc.InitialWindowSize(4<<20), grpc.InitialConnWindowSize(8<<20),
				grpc.ReadBufferSize(256<<10), grpc.WriteBufferSize(256<<10))...)
		},
	})
}

type rivalPlugin struct{ plugin.NetRPCUnsupportedPlugin }

func (*rivalPlugin) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "rival", HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{
			{StreamName: single, Handler: sendRows, ServerStreams: true},
			{StreamName: batched, Handler: sendBatches, ServerStreams: true},
		},
	}, nil)
	return nil
}

func (*rivalPlugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return c, nil
}

// order is what a rival asks for: it gets exactly that, so that nobody pays for
// rows that are on the way when the measurement ends.
func order(rows, batch int) *wrapperspb.StringValue {
	return wrapperspb.String(fmt.Sprintf("%d %d", rows, batch))
}

func orderOf(s grpc.ServerStream) (rows, batch int, err error) {
	var v wrapperspb.StringValue
	if err := s.RecvMsg(&v); err != nil {
		return 0, 0, err
	}
	_, err = fmt.Sscanf(v.Value, "%d %d", &rows, &batch)
	return rows, batch, err
}

// sendRows sends one message a row.
func sendRows(_ any, s grpc.ServerStream) error {
	n, _, err := orderOf(s)
	if err != nil {
		return err
	}
	rows := rowbench.NewRows(set)
	for i := range n {
		if err := s.SendMsg(rows.Message(i)); err != nil {
			return err
		}
	}
	return nil
}

// sendBatches sends batches.
func sendBatches(_ any, s grpc.ServerStream) error {
	n, batch, err := orderOf(s)
	if err != nil {
		return err
	}
	rows := rowbench.NewRows(set)
	for i := 0; i < n; i += batch {
		data, err := rows.Messages(i, batch)
		if err != nil {
			return err
		}
		if err := s.SendMsg(&wrapperspb.BytesValue{Value: data}); err != nil {
			return err
		}
	}
	return nil
}
