// Command previous is a reader plugin made with the generated gRPC code and plain
// go-plugin, for protocol version 1 alone: it knows nothing of the SDK, answers
// no limits and reads no hello.
package main

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	protov1 "github.com/datalink-go/datalink/sdk/proto/v1"
)

func main() {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: "DATALINK_PLUGIN", MagicCookieValue: "datalink.v1"},
		VersionedPlugins: map[int]plugin.PluginSet{1: {"connector": &previous{}}},
		GRPCServer:       plugin.DefaultGRPCServer,
	})
}

type previous struct {
	plugin.NetRPCUnsupportedPlugin
	protov1.UnimplementedConnectorServer
	points int
}

func (p *previous) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	protov1.RegisterConnectorServer(s, p)
	return nil
}

func (p *previous) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, nil
}

func (p *previous) Describe(_ context.Context, q *protov1.DescribeRequest) (*protov1.DescribeReply, error) {
	if q.Protocol != 1 {
		return nil, status.Errorf(codes.InvalidArgument, "protocol %d, want 1", q.Protocol)
	}
	m, err := json.Marshal(map[string]any{
		"name": "previous", "version": "0.9.0", "protocolMin": 1, "protocolMax": 1, "batchFormat": 1,
		"kind": "process", "roles": map[string]any{"reader": map[string]any{}},
	})
	return &protov1.DescribeReply{Manifest: m}, err
}

func (p *previous) Configure(_ context.Context, q *protov1.ConfigureRequest) (*protov1.ConfigureReply, error) {
	if string(q.Config) != `{"good":true}` {
		return &protov1.ConfigureReply{Problems: []*protov1.Problem{{Path: "good", Found: string(q.Config), Expected: "true", Message: "must be good"}}}, nil
	}
	return &protov1.ConfigureReply{}, nil
}

func (p *previous) Check(context.Context, *protov1.CheckRequest) (*protov1.CheckReply, error) {
	f := &protov1.Fault{Code: "unauthorized", Message: "not you", Suggestion: "be another"}
	s, err := status.New(codes.PermissionDenied, "not you").WithDetails(f)
	if err != nil {
		return nil, err
	}
	return nil, s.Err()
}

func (p *previous) ComparePositions(_ context.Context, q *protov1.PositionPair) (*protov1.OrderReply, error) {
	if string(q.A.Source) == string(q.B.Source) && q.A.Ordinal == q.B.Ordinal {
		return &protov1.OrderReply{Order: 2}, nil
	}
	return &protov1.OrderReply{}, nil
}

func (p *previous) Open(_ context.Context, q *protov1.OpenRequest) (*protov1.Empty, error) {
	p.points = len(q.Points)
	return &protov1.Empty{}, nil
}

func (p *previous) Read(s protov1.Connector_ReadServer) error {
	g, err := s.Recv()
	if err != nil {
		return err
	}
	last := &protov1.Position{Format: "previous", Version: 3, Source: []byte("end"), Ordinal: uint64(p.points)}
	return s.Send(&protov1.ReadReply{Last: last, End: g.Records == 7 && g.Bytes == 8})
}

func (p *previous) Close(context.Context, *protov1.Empty) (*protov1.Empty, error) {
	return &protov1.Empty{}, nil
}
