package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/serve/link"
	"github.com/datalink-go/datalink/sdk/wire"
)

func init() { children["stranger"] = stranger }

// stranger is another process that calls a plugin.
func stranger() {
	fmt.Print(ping(os.Getenv("SOCKET")))
}

// ping calls a plugin with no more than its socket.
func ping(path string) error {
	conn, err := grpc.NewClient("passthrough:///x",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return conn.Invoke(ctx, "/"+wire.Service+"/"+wire.Ping, &wire.Empty{}, &wire.Empty{}, grpc.ForceCodecV2(link.NewCodec()))
}

// TestStrangerIsRefused calls a plugin from a process that is not its host.
func TestStrangerIsRefused(t *testing.T) {
	c, j := launch(t, manifest.Reader)
	if err := ping(c.addr); err != nil {
		t.Fatalf("another connection of the host: %v", err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SUPERVISOR_TEST_CHILD=stranger", "SOCKET="+c.addr)
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) == "<nil>" || len(out) == 0 {
		t.Errorf("a stranger got %q, %v, want an error", out, err)
	}
	if l := j.wait(t, "connection refused"); !strings.Contains(fmt.Sprint(l["error"]), fmt.Sprintf("expected process %d", os.Getpid())) {
		t.Errorf("log line %v, want one that names the process expected", l)
	}
}

// TestMutualTLS shows that with it a connection without the keys is refused.
func TestMutualTLS(t *testing.T) {
	c, _ := launch(t, manifest.Reader, func(c *Config) { c.MutualTLS = true })
	configure(t, c, map[string]any{"rows": 2000})
	s, err := c.Open(context.Background(), &wire.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := ids(t, s); len(got) != 2000 {
		t.Errorf("%d rows, want 2000", len(got))
	}
	if err := ping(c.addr); err == nil {
		t.Error("a connection without TLS was served")
	}
}

// TestTooLarge shows what a message over the limits leads to, on both sides.
func TestTooLarge(t *testing.T) {
	small := func(c *Config) {
		c.Limits = wire.Limits{Message: 64 << 10, Block: 60 << 10, Record: 50 << 10, Full: 10 << 10}
	}
	t.Run("record", func(t *testing.T) {
		c, _ := launch(t, manifest.Reader, small)
		configure(t, c, map[string]any{"rows": 3, "pad": 55 << 10})
		s, err := c.Open(context.Background(), &wire.OpenRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Grant(10, 1<<20); err != nil {
			t.Fatal(err)
		}
		a, err := s.Recv()
		if err != nil || !errors.Is(a.Fault, &sdk.Fault{Code: sdk.CodeTooLarge}) || !strings.Contains(a.Fault.Error(), "the limit is 51200") {
			t.Errorf("Recv = %+v, %v, want a fault %s with the limit", a, err, sdk.CodeTooLarge)
		}
	})
	t.Run("message of the host", func(t *testing.T) {
		c, _ := launch(t, manifest.Transform, small)
		configure(t, c, nil)
		_, err := c.Stage().Apply(context.Background(), make([]byte, 70<<10), nil)
		if !errors.Is(err, &sdk.Fault{Code: sdk.CodeTooLarge}) || !strings.Contains(err.Error(), "trying to send message larger than max") || !strings.Contains(err.Error(), "65536") {
			t.Errorf("Apply: %v, want code %s with the limit", err, sdk.CodeTooLarge)
		}
		if err := c.Ping(context.Background()); err != nil {
			t.Errorf("the connection is lost with it: %v", err)
		}
	})
	t.Run("message to the plugin", func(t *testing.T) {
		// The plugin refuses too, should a host not keep to its own limit.
		c, _ := launch(t, manifest.Transform, small)
		configure(t, c, nil)
		err := c.conn.Invoke(context.Background(), "/"+wire.Service+"/"+wire.ApplyTransform,
			&wire.TransformRequest{Block: make([]byte, 70<<10)}, &wire.TransformReply{}, grpc.MaxCallSendMsgSize(1<<20))
		if err := c.failure("Transform", err); !errors.Is(err, &sdk.Fault{Code: sdk.CodeTooLarge}) {
			t.Errorf("%v, want code %s", err, sdk.CodeTooLarge)
		}
	})
}

// block makes a block of rows with the ids.
func block(t testing.TB, s *batch.Schema, ids ...int64) []byte {
	t.Helper()
	b := batch.NewBuilder(batch.Limits{})
	if err := b.BeginTx(batch.Tx{Begins: true}); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if err := b.BeginRow(batch.Insert, s); err != nil {
			t.Fatal(err)
		}
		b.BeginImage(batch.AfterImage)
		b.PutInt(id)
		b.PutString("x")
		b.EndImage()
		if err := b.EndRow(); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.EndTx(true, nil, []byte(fmt.Sprint(ids[len(ids)-1]))); err != nil {
		t.Fatal(err)
	}
	data, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

var twoColumns = &batch.Schema{
	ID: 1, Namespace: "s", Table: "t", Key: []int{0},
	Columns: []batch.Column{{Name: "id", Type: batch.Int64}, {Name: "pad", Type: batch.String}},
}

func TestStage(t *testing.T) {
	ctx := context.Background()
	c, _ := launch(t, manifest.Transform)
	configure(t, c, nil)
	stage := c.Stage()
	if s, err := stage.Schema(ctx, twoColumns); err != nil || s != twoColumns {
		t.Fatalf("Schema = %v, %v, want the input's", s, err)
	}
	out, err := stage.Apply(ctx, block(t, twoColumns, 1, 2, 3), []uint32{1})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := out, block(t, twoColumns, 2, 3, 4); string(got) == "" || len(got) < len(want)/2 {
		t.Errorf("%d bytes, want about %d", len(got), len(want))
	}
	var b batch.Block
	if err := b.Decode(out, batch.NewRegistry(), batch.Limits{}); err != nil {
		t.Fatal(err)
	}
	for i := range b.Len() {
		var e batch.Event
		if err := b.Event(i, &e); err != nil {
			t.Fatal(err)
		}
		if v, err := e.After.Values(nil); err != nil || v[0].Int64() != int64(i+2) {
			t.Errorf("row %d: %v, %v, want %d", i, v, err, i+2)
		}
	}
}

func TestDiscoverPages(t *testing.T) {
	c, _ := launch(t, manifest.Reader)
	configure(t, c, nil)
	var names []string
	if err := c.Discover(context.Background(), func(s *batch.Schema) error {
		names = append(names, s.Table)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(names) != 1200 || names[0] != "t0000" || names[1199] != "t1199" {
		t.Errorf("%d tables, %s to %s, want 1200, t0000 to t1199", len(names), names[0], names[len(names)-1])
	}
}

// TestSecondOpen ends the first stream and starts over.
func TestSecondOpen(t *testing.T) {
	ctx := context.Background()
	c, _ := launch(t, manifest.Reader)
	configure(t, c, map[string]any{"rows": 100000, "wait": true})
	first, err := c.Open(ctx, &wire.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Grant(10, 1<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Recv(); err != nil {
		t.Fatal(err)
	}
	p, err := c.ParsePosition("99990")
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.Open(ctx, &wire.OpenRequest{Points: []sdk.Point{{Position: p}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Grant(1000, 1<<20); err != nil {
		t.Fatal(err)
	}
	if a, err := second.Recv(); err != nil || string(a.First.Source) != "99990" {
		t.Errorf("second stream begins with %+v, %v, want position 99990", a, err)
	}
	for err = nil; err == nil; _, err = first.Recv() {
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("first stream ended with %v, want %v", err, context.Canceled)
	}
}

// TestMetrics compares the metrics before and after a process has ended.
func TestMetrics(t *testing.T) {
	m := NewMetrics()
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(m); err != nil {
		t.Fatal(err)
	}
	l := NewLauncher()
	t.Cleanup(l.Close)
	ctx := context.Background()
	p := NewPlugin(l, Config{Image: image(t, "fixture"), Role: manifest.Reader, Task: "orders", Metrics: m}, Setup{Config: []byte(`{"rows":20000,"pad":100}`)}, Options{Policy: Policy{Min: time.Millisecond}}, nil)
	defer p.Close()
	read := func() *Client {
		t.Helper()
		c, err := p.Ready(ctx)
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.Open(ctx, &wire.OpenRequest{})
		if err != nil {
			t.Fatal(err)
		}
		ids(t, s)
		return c
	}
	c := read()
	live := gather(t, reg)
	if live["datalink_plugin_received_bytes_total"] < 20000*100 || live["datalink_plugin_sent_bytes_total"] <= 0 {
		t.Errorf("bytes of 20000 rows: %v", live)
	}
	if live["datalink_plugin_resident_bytes"] < 1<<20 || live["datalink_plugin_anonymous_bytes"] < 1<<20 || live["datalink_plugin_state{ready}"] != 1 || live["datalink_plugin_restarts_total"] != 0 {
		t.Errorf("live plugin: %v", live)
	}
	if err := unix.Kill(c.PID(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-c.Exited()
	read()
	again := gather(t, reg)
	if again["datalink_plugin_restarts_total"] != 1 || again["datalink_plugin_received_bytes_total"] < 2*20000*100 || again["datalink_plugin_cpu_seconds_total"] < live["datalink_plugin_cpu_seconds_total"] {
		t.Errorf("after a restart %v, before it %v", again, live)
	}
}

func gather(t *testing.T, g prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, s := range f.Metric {
			name := f.GetName()
			for _, l := range s.Label {
				if l.GetName() == "state" {
					name += "{" + l.GetValue() + "}"
				}
			}
			out[name] = s.GetCounter().GetValue() + s.GetGauge().GetValue()
		}
	}
	return out
}

func TestSocketFolderTooLong(t *testing.T) {
	_, _, err := tryLaunch(t, "fixture", manifest.Reader, func(c *Config) { c.SocketDir = filepath.Join("/tmp", strings.Repeat("x", 90)) })
	if err == nil || !strings.Contains(err.Error(), "expected 60 at most") {
		t.Errorf("%v, want an error that says how long it may be", err)
	}
}
