package serve

import (
	"context"
	"errors"
	"os"
	"sync"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/datalink-go/datalink/sdk/internal/endpoint"
	"github.com/datalink-go/datalink/sdk/serve/link"
	"github.com/datalink-go/datalink/sdk/wire"
)

// service registers an endpoint at a gRPC server.
type service struct {
	plugin.NetRPCUnsupportedPlugin
	e      *endpoint.Endpoint
	stderr *os.File
}

// GRPCServer implements plugin.GRPCPlugin.
func (s *service) GRPCServer(_ *plugin.GRPCBroker, server *grpc.Server) error {
	server.RegisterService(describe(s.stderr), s.e)
	return nil
}

// GRPCClient implements plugin.GRPCPlugin; a plugin is no client.
func (s *service) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.ErrUnsupported
}

// describe builds the service from the table of methods. The first call of all
// gives the process its standard error back: go-plugin relays what is written to
// it through the connection, where the last words of a dying process are lost.
func describe(stderr *os.File) *grpc.ServiceDesc {
	restore := sync.OnceFunc(func() { os.Stderr = stderr })
	d := &grpc.ServiceDesc{ServiceName: wire.Service, HandlerType: (*any)(nil)}
	for _, m := range wire.Methods() {
		if !m.Stream {
			d.Methods = append(d.Methods, grpc.MethodDesc{MethodName: m.Name, Handler: unary(m, restore)})
			continue
		}
		d.Streams = append(d.Streams, grpc.StreamDesc{
			StreamName: m.Name, Handler: stream(m.Name), ServerStreams: true, ClientStreams: true,
		})
	}
	return d
}

func unary(m wire.Method, first func()) grpc.MethodHandler {
	return func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		first()
		req := m.NewRequest()
		if err := decode(req); err != nil {
			return nil, err
		}
		reply, err := srv.(*endpoint.Endpoint).Call(ctx, m.Name, req)
		if err != nil {
			return nil, link.Status(err)
		}
		return reply, nil
	}
}

func stream(name string) grpc.StreamHandler {
	return func(srv any, s grpc.ServerStream) error {
		e := srv.(*endpoint.Endpoint)
		var err error
		switch name {
		case wire.Read:
			err = e.Read(s.Context(), func() (*wire.ReadRequest, error) {
				q := new(wire.ReadRequest)
				return q, s.RecvMsg(q)
			}, func(a *wire.ReadReply) error { return s.SendMsg(a) })
		case wire.Write:
			err = e.Write(s.Context(), writeStream{s})
		}
		return link.Status(err)
	}
}

// writeStream gives a gRPC stream its types.
type writeStream struct{ s grpc.ServerStream }

func (w writeStream) Recv() (*wire.WriteRequest, error) {
	q := new(wire.WriteRequest)
	if err := w.s.RecvMsg(q); err != nil {
		return nil, err // io.EOF as it is
	}
	return q, nil
}

func (w writeStream) Send(a *wire.WriteReply) error { return w.s.SendMsg(a) }
