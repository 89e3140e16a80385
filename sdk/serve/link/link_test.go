package link

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/wire"
)

// pair returns both ends of a unix socket of this process.
func pair(t *testing.T) (server, client net.Conn, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if client, err = net.Dial("unix", path); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return server, client, path
}

func TestPeer(t *testing.T) {
	server, client, _ := pair(t)
	me := Peer{PID: os.Getpid(), UID: os.Getuid()}
	for _, tt := range []struct {
		name string
		peer Peer
		want error
	}{
		{"self", me, nil},
		{"other user", Peer{me.PID, me.UID + 1}, ErrPeer},
		{"other process", Peer{me.PID + 1, me.UID}, ErrPeer},
	} {
		for side, conn := range map[string]net.Conn{"server": server, "client": client} {
			if err := tt.peer.Check(conn); !errors.Is(err, tt.want) {
				t.Errorf("%s, seen by the %s: %v, want %v", tt.name, side, err, tt.want)
			}
		}
	}
	tcp, other := net.Pipe()
	defer tcp.Close()
	defer other.Close()
	if err := me.Check(tcp); !errors.Is(err, ErrPeer) {
		t.Errorf("no unix socket: %v, want %v", err, ErrPeer)
	}
}

// TestDialRefuses shows that the host does not talk to a stranger's socket.
func TestDialRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := (Peer{PID: os.Getpid(), UID: os.Getuid() + 1}).Dial(context.Background(), path); !errors.Is(err, ErrPeer) {
		t.Errorf("Dial: %v, want %v", err, ErrPeer)
	}
	conn, err := (Peer{PID: os.Getpid(), UID: os.Getuid()}).Dial(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

// TestOnlyRefuses shows that a server does not answer a stranger.
func TestOnlyRefuses(t *testing.T) {
	server, client, _ := pair(t)
	var refused error
	creds := Only(Peer{PID: os.Getpid(), UID: os.Getuid() + 1}, nil, func(err error) { refused = err }).Clone()
	if _, _, err := creds.ServerHandshake(server); !errors.Is(err, ErrPeer) || !errors.Is(refused, ErrPeer) {
		t.Errorf("handshake: %v, told %v, want %v", err, refused, ErrPeer)
	}
	_ = client.SetReadDeadline(time.Now().Add(5 * time.Second))
	if n, err := client.Read(make([]byte, 1)); n != 0 || os.IsTimeout(err) {
		t.Errorf("the refused connection gave %d bytes, %v, want its end", n, err)
	}
}

func TestHello(t *testing.T) {
	want := &Hello{PID: 1, UID: 2, Message: 3, TLS: &KeyPair{Cert: strings.Repeat("c", 5000), Key: "k\n", Peer: "p"}}
	var buf bytes.Buffer
	if err := want.Write(&buf); err != nil {
		t.Fatal(err)
	}
	buf.WriteString("rest")
	r := bufio.NewReaderSize(&buf, 16)
	got, err := ReadHello(r)
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v (-want +got)\n%s", err, d)
	}
	if rest, _ := r.Peek(4); string(rest) != "rest" {
		t.Errorf("behind the hello %q, want rest", rest)
	}
	for name, in := range map[string]string{"cut": `{"pid":1`, "no JSON": "hello\n", "endless": strings.Repeat("x", helloLimit+8192)} {
		if _, err := ReadHello(bufio.NewReader(strings.NewReader(in))); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func FuzzHello(f *testing.F) {
	f.Add([]byte(`{"pid":1,"uid":2}` + "\n"))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := ReadHello(bufio.NewReader(bytes.NewReader(data)))
		if (h == nil) == (err == nil) {
			t.Errorf("hello %v, error %v", h, err)
		}
	})
}

func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   error
		want error
	}{
		{"fault", sdk.ErrFenced, sdk.ErrFenced},
		{"all fields", &sdk.Fault{Code: sdk.CodeUnavailable, Message: "m", Retryable: true, Suggestion: "s"}, &sdk.Fault{Code: sdk.CodeUnavailable, Message: "m", Retryable: true, Suggestion: "s"}},
		{"plain", errors.New("x"), &sdk.Fault{Code: sdk.CodeInternal, Message: "x"}},
		{"no UTF-8", errors.New("x\xff"), &sdk.Fault{Code: sdk.CodeInternal, Message: "x\uFFFD"}},
		{"deadline", context.DeadlineExceeded, &sdk.Fault{Code: sdk.CodeDeadline, Message: "context deadline exceeded", Retryable: true}},
		{"none", nil, nil},
	} {
		if d := cmp.Diff(tt.want, Fault("call", Status(tt.in))); d != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.name, d)
		}
	}
	for _, tt := range []struct {
		code codes.Code
		want sdk.Code
	}{
		{codes.ResourceExhausted, sdk.CodeTooLarge},
		{codes.DeadlineExceeded, sdk.CodeDeadline},
		{codes.Unavailable, sdk.CodeUnavailable},
		{codes.Unimplemented, sdk.CodeUnimplemented},
		{codes.Unknown, sdk.CodeInternal},
	} {
		if err := Fault("call", status.Error(tt.code, "m")); !errors.Is(err, &sdk.Fault{Code: tt.want}) {
			t.Errorf("status %s: %v, want code %s", tt.code, err, tt.want)
		}
	}
}

func TestCodec(t *testing.T) {
	c := NewCodec()
	for _, size := range []int{0, 10, 3000, 300 << 10, 2 << 20} {
		want := &wire.WriteRequest{Seq: 7, Block: bytes.Repeat([]byte{1}, size), SetAside: []sdk.DeadLetter{{Table: strings.Repeat("t", 5000)}}}
		data, err := c.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got := new(wire.WriteRequest)
		if err := c.Unmarshal(data, got); err != nil {
			t.Fatal(err)
		}
		data.Free()
		if !bytes.Equal(got.Block, want.Block) || got.Seq != 7 || got.SetAside[0].Table != want.SetAside[0].Table {
			t.Errorf("block of %d bytes came back as %d, seq %d", size, len(got.Block), got.Seq)
		}
	}
	other, err := c.Marshal(wrapperspb.String("x"))
	if err != nil {
		t.Fatal(err)
	}
	v := new(wrapperspb.StringValue)
	if err := c.Unmarshal(other, v); err != nil || v.Value != "x" {
		t.Errorf("another message: %q, %v", v.Value, err)
	}
	if sent, received := c.Traffic(); sent != received || sent < 2<<20 {
		t.Errorf("traffic %d, %d, want both the same", sent, received)
	}
}

// TestKeyPairs shows that each side trusts the other alone.
func TestKeyPairs(t *testing.T) {
	now := time.Now()
	host, plug, err := NewKeyPairs(now)
	if err != nil {
		t.Fatal(err)
	}
	stranger, _, err := NewKeyPairs(now)
	if err != nil {
		t.Fatal(err)
	}
	stranger.Peer = plug.Cert
	for _, tt := range []struct {
		name   string
		client KeyPair
		ok     bool
	}{{"host", host, true}, {"stranger", stranger, false}} {
		a, b, _ := pair(t) // buffered, unlike net.Pipe
		server, err := plug.Config()
		if err != nil {
			t.Fatal(err)
		}
		client, err := tt.client.Config()
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- handshake(a, server, false); a.Close() }()
		_ = handshake(b, client, true)
		b.Close()
		if err := <-done; (err == nil) != tt.ok {
			t.Errorf("%s: handshake %v, want success %t", tt.name, err, tt.ok)
		}
	}
}

func handshake(c net.Conn, cfg *tls.Config, client bool) error {
	conn := tls.Server(c, cfg)
	if client {
		conn = tls.Client(c, cfg)
	}
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if err := conn.Handshake(); err != nil {
		return err
	}
	if client {
		_, err := conn.Write([]byte{1})
		return err
	}
	_, err := conn.Read(make([]byte, 1))
	return err
}
