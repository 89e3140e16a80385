package supervisor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/serve/link"
	"github.com/datalink-go/datalink/sdk/wire"
)

// Client is one running process of a plugin. Its calls have a deadline and are
// safe for concurrent use as far as the protocol allows.
type Client struct {
	cfg      Config
	proc     *process
	plug     *plugin.Client
	conn     *grpc.ClientConn
	addr     string
	out, err *logs
	codec    *link.Codec
	manifest *manifest.Manifest
	version  int
	gone     func() // of the metrics

	mu        sync.Mutex
	closing   bool
	closeOnce sync.Once
	freeOnce  sync.Once

	streams          sync.Mutex
	reading, writing context.CancelFunc // of the last stream of each kind
	sink             atomic.Pointer[sinkStream]
}

// Launch starts the plugin and does the handshake. The context bounds both.
func Launch(ctx context.Context, l *Launcher, cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	name := cfg.Image.Name
	log := cfg.Log.With("plugin", name, "instance", cfg.Instance)
	c := &Client{
		cfg:   cfg,
		out:   &logs{log: log, level: slog.LevelInfo, pipe: "stdout"},
		err:   &logs{log: log, level: slog.LevelWarn, pipe: "stderr"},
		codec: link.NewCodec(),
	}
	hello := link.Hello{PID: os.Getpid(), UID: os.Getuid(), Message: cfg.Limits.Message}
	hostTLS, err := c.keys(&hello)
	if err != nil {
		return nil, err
	}
	if n := len(cfg.SocketDir); n > 60 { // sun_path has 108 bytes, the rest takes 40
		return nil, fmt.Errorf("start plugin %s: folder for sockets %s has %d bytes, expected 60 at most", name, cfg.SocketDir, n)
	}
	c.proc = newProcess(l, &cfg, hello)
	stopAbort := context.AfterFunc(ctx, c.proc.abort)
	env := append([]string{link.HelloEnv + "=" + link.HelloLine}, cfg.Env...)
	sets := map[int]plugin.PluginSet{}
	for v := sdk.ProtocolMin; v <= sdk.ProtocolMax; v++ {
		sets[int(v)] = plugin.PluginSet{link.Name: dispenser{}}
	}
	timeout := cfg.StartTimeout
	if t, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(t))
	}
	c.plug = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  link.Handshake(),
		VersionedPlugins: sets,
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, _ string) (runner.Runner, error) {
			c.proc.cmd.Env = append(cmd.Env, env...) // go-plugin's variables and ours, nothing else
			return c.proc, nil
		},
		SkipHostEnv:      true,
		StartTimeout:     timeout,
		Logger:           hclog.NewNullLogger(),
		Stderr:           c.err,
		SyncStdout:       c.out,
		SyncStderr:       c.err,
		TLSConfig:        hostTLS,
		GRPCDialOptions:  c.dialOptions(),
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: cfg.SocketDir},
	})
	if err := c.connect(ctx); err != nil {
		stopAbort()
		c.end(0)
		return nil, err
	}
	if !stopAbort() { // the context ended at the last moment
		c.end(0)
		return nil, ctx.Err()
	}
	c.gone = cfg.Metrics.started(c)
	go func() { // ends with the process
		<-c.proc.exited
		c.free()
	}()
	return c, nil
}

// keys makes the certificates of mutual TLS where it is asked for.
func (c *Client) keys(h *link.Hello) (*tls.Config, error) {
	if !c.cfg.MutualTLS {
		return nil, nil
	}
	host, plug, err := link.NewKeyPairs(time.Now())
	if err != nil {
		return nil, err
	}
	h.TLS = &plug
	return host.Config()
}

func (c *Client) dialOptions() []grpc.DialOption {
	limit := int(c.cfg.Limits.Message)
	return []grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return link.Peer{PID: c.proc.started(), UID: os.Getuid()}.Dial(ctx, c.addr)
		}),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(c.codec), grpc.MaxCallRecvMsgSize(limit), grpc.MaxCallSendMsgSize(limit)),
		grpc.WithInitialWindowSize(4 << 20), grpc.WithInitialConnWindowSize(8 << 20),
		grpc.WithReadBufferSize(256 << 10), grpc.WithWriteBufferSize(256 << 10),
	}
}

// connect does the handshake, checks the peer and compares the manifest.
func (c *Client) connect(ctx context.Context) error {
	name := c.cfg.Image.Name
	addr, err := c.plug.Start()
	if err != nil {
		return c.startError(err)
	}
	c.addr = addr.String()
	c.version = c.plug.NegotiatedVersion()
	proto, err := c.plug.Client()
	if err != nil {
		return fmt.Errorf("connect to plugin %s: %w", name, err)
	}
	raw, err := proto.Dispense(link.Name)
	if err != nil {
		return fmt.Errorf("connect to plugin %s: %w", name, err)
	}
	c.conn = raw.(*grpc.ClientConn)
	var a wire.DescribeReply
	if err := c.call(ctx, wire.Describe, &wire.DescribeRequest{Protocol: uint32(c.version)}, &a); err != nil {
		return err
	}
	c.manifest, err = checkManifest(a.Manifest, c.cfg.Manifest, c.cfg.Role, uint32(c.version))
	return err
}

// startError says why there was no handshake.
func (c *Client) startError(err error) error {
	name := c.cfg.Image.Name
	if strings.Contains(err.Error(), "incompatible API version") {
		return fmt.Errorf("%w: plugin %s, host speaks %d to %d: %w", ErrProtocol, name, sdk.ProtocolMin, sdk.ProtocolMax, err)
	}
	if c.proc.started() == 0 {
		return fmt.Errorf("start plugin %s: %w", name, err)
	}
	select {
	case <-c.proc.exited:
		if c.proc.suicide() {
			return c.died("start")
		}
	default:
	}
	return fmt.Errorf("start plugin %s: %w", name, err)
}

// Manifest returns what the program says of itself.
func (c *Client) Manifest() *manifest.Manifest { return c.manifest }

// Protocol returns the version of the protocol that the handshake chose.
func (c *Client) Protocol() int { return c.version }

// PID returns the process id.
func (c *Client) PID() int { return c.proc.started() }

// Exited is closed when the process has ended.
func (c *Client) Exited() <-chan struct{} { return c.proc.exited }

// How says how the process ended, after Exited.
func (c *Client) How() string { return c.proc.how() }

// call does one unary call.
func (c *Client) call(ctx context.Context, method string, req, reply wire.Message) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.cfg.CallTimeout)
		defer cancel()
	}
	err := c.conn.Invoke(ctx, "/"+wire.Service+"/"+method, req, reply)
	return c.failure(method, err)
}

// deathWait is how long a lost connection may come before the news of the death.
const deathWait = 3 * time.Second

// failure turns an error of the transport into a fault, or a DiedError when the
// process is gone.
func (c *Client) failure(method string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	call := c.cfg.Image.Name + " " + method
	fault := link.Fault(call, err)
	var f *sdk.Fault
	switch {
	case errors.Is(fault, context.Canceled): // by the caller, or the connection was closed behind a death
	case !errors.As(fault, &f), f.Code != sdk.CodeUnavailable && f.Code != sdk.CodeInternal:
		return fault
	case f.Code == sdk.CodeUnavailable:
		t := time.NewTimer(deathWait)
		defer t.Stop()
		select {
		case <-c.proc.exited:
		case <-t.C:
		}
	}
	select {
	case <-c.proc.exited:
	default:
		return fault
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return sdk.Faultf(sdk.CodeRefused, "%s: the plugin was closed", call)
	}
	return c.died(method)
}

// died describes the death of the process.
func (c *Client) died(call string) *pipeline.DiedError {
	t := time.NewTimer(2 * pipeGrace)
	defer t.Stop()
	select {
	case <-c.proc.silent:
	case <-t.C:
	}
	return &pipeline.DiedError{
		Connector: strings.TrimSpace(c.cfg.Image.Name + " " + c.versionName()), Instance: c.cfg.Instance,
		Call: call, How: c.proc.how(), LastWords: c.err.words(),
	}
}

func (c *Client) versionName() string {
	if c.manifest == nil {
		return ""
	}
	return c.manifest.Version
}

// Close ends the streams, closes the connector and ends the process: its own
// Close, then SIGTERM, then SIGKILL for the whole group, all within the grace
// period. Drain before it.
func (c *Client) Close(ctx context.Context) error {
	var err error
	c.closeOnce.Do(func() {
		c.mu.Lock()
		c.closing = true
		c.mu.Unlock()
		ctx, cancel := context.WithTimeout(ctx, c.cfg.Grace)
		defer cancel()
		c.endStreams()
		started := time.Now()
		err = c.call(ctx, wire.Close, &wire.Empty{}, &wire.Empty{})
		c.end(max(0, c.cfg.Grace-time.Since(started)))
	})
	return err
}

// endStreams lets go of a plugin that waits for the host in a stream.
func (c *Client) endStreams() {
	c.streams.Lock()
	defer c.streams.Unlock()
	for _, cancel := range []context.CancelFunc{c.reading, c.writing} {
		if cancel != nil {
			cancel()
		}
	}
}

// Kill ends the process group at once.
func (c *Client) Kill() {
	c.closeOnce.Do(func() {
		c.mu.Lock()
		c.closing = true
		c.mu.Unlock()
		c.end(0)
	})
}

// end stops the process and frees what the host holds of it.
func (c *Client) end(grace time.Duration) {
	if c.proc.started() != 0 {
		c.proc.stop(grace)
	}
	c.free()
}

// free is called when the process is gone.
func (c *Client) free() {
	c.freeOnce.Do(func() {
		c.plug.Kill() // closes the connection, reads the output to its end, removes the socket's folder
		c.proc.closePipes()
		if c.gone != nil {
			c.gone()
		}
	})
}

// dispenser gets the connection from go-plugin.
type dispenser struct{ plugin.NetRPCUnsupportedPlugin }

func (dispenser) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return errors.ErrUnsupported }

func (dispenser) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}
