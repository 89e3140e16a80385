package serve

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/internal/endpoint"
	"github.com/datalink-go/datalink/sdk/serve/link"
	"github.com/datalink-go/datalink/sdk/wire"
)

// Main serves the plugin and ends the process when it is done; it does not
// return. With the argument "manifest" it prints the manifest instead.
func Main(p sdk.Plugin) {
	os.Exit(run(&p, os.Args[1:]))
}

func run(p *sdk.Plugin, args []string) int {
	if len(args) == 1 && args[0] == "manifest" {
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		if out.Encode(p.Manifest("process")) != nil {
			return 1
		}
		return 0
	}
	if os.Getenv(link.CookieName) != link.CookieValue {
		fmt.Fprintf(os.Stderr, "%s %s is a DataLink connector: the host starts it.\nSee `datalink plugin show %s`; `%s manifest` prints what it can do.\n", p.Name, p.Version, p.Name, os.Args[0])
		return 2
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	level := new(slog.LevelVar)
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	slog.SetDefault(log)
	_ = os.WriteFile("/proc/self/comm", []byte(p.Name), 0) // the file executed has no name

	hello, err := greet(os.Stdin)
	if err != nil {
		log.Error("plugin does not start", "error", err)
		return 1
	}
	e := endpoint.New(p, endpoint.Options{
		Kind: "process", Log: log, SetLevel: level.Set, Deliver: deliver,
		Limits: wire.Limits{Message: hello.Message},
	})
	go onTerm(e, log)
	tlsConfig, err := tlsOf(hello)
	if err != nil {
		log.Error("plugin does not start", "error", err)
		return 1
	}
	sets := map[int]plugin.PluginSet{}
	for v := sdk.ProtocolMin; v <= sdk.ProtocolMax; v++ {
		sets[int(v)] = plugin.PluginSet{link.Name: &service{e: e, stderr: os.Stderr}}
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  link.Handshake(),
		VersionedPlugins: sets,
		TLSProvider:      func() (*tls.Config, error) { return tlsConfig, nil },
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, serverOptions(hello, tlsConfig, log)...)...)
		},
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: os.Stderr, JSONFormat: true}),
	})
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := e.Close(ctx); err != nil {
		log.Error("close", "error", err)
		return 1
	}
	return 0
}

// gcPercent keeps a plugin small, of which a host may have dozens: what it holds
// are blocks on their way, and its hot path allocates next to nothing.
const gcPercent = 50

// closeTime bounds the closing of the instance where the host gave no deadline.
const closeTime = 10 * time.Second

// greet reads the host's hello and from then on watches the input: its end is the
// end of the host, and of this process.
func greet(in *os.File) (*link.Hello, error) {
	r := bufio.NewReader(in)
	h := &link.Hello{PID: os.Getppid(), UID: os.Getuid()}
	if os.Getenv(link.HelloEnv) == link.HelloLine {
		var err error
		if h, err = link.ReadHello(r); err != nil {
			return nil, err
		}
		if pp := os.Getppid(); pp != h.PID {
			return nil, fmt.Errorf("parent is process %d, the hello names %d: the host has died", pp, h.PID)
		}
		go func() {
			for {
				if _, err := r.ReadByte(); err != nil {
					endGroup()
				}
			}
		}()
	}
	return h, nil
}

func tlsOf(h *link.Hello) (*tls.Config, error) {
	if h.TLS == nil {
		return nil, nil
	}
	return h.TLS.Config()
}

// Sizes of HTTP/2 windows and of the buffers before the socket: a full block
// passes without waiting for the peer.
const (
	streamWindow = 4 << 20
	connWindow   = 8 << 20
	ioBuffer     = 256 << 10
)

func serverOptions(h *link.Hello, t *tls.Config, log *slog.Logger) []grpc.ServerOption {
	var inner credentials.TransportCredentials
	if t != nil {
		inner = credentials.NewTLS(t)
	}
	limit := int(h.Message)
	if limit == 0 {
		limit = int(endpoint.DefaultLimits.Message)
	}
	refused := func(err error) { log.Warn("connection refused", "error", err) }
	return []grpc.ServerOption{
		grpc.Creds(link.Only(link.Peer{PID: h.PID, UID: h.UID}, inner, refused)),
		grpc.ForceServerCodecV2(link.NewCodec()),
		grpc.MaxRecvMsgSize(limit), grpc.MaxSendMsgSize(limit),
		grpc.InitialWindowSize(streamWindow), grpc.InitialConnWindowSize(connWindow),
		grpc.ReadBufferSize(ioBuffer), grpc.WriteBufferSize(ioBuffer),
	}
}
