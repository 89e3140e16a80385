package zookeeper_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/coordination/zookeeper"
	"github.com/datalink-go/datalink/examples/stack"
)

func TestParseURL(t *testing.T) {
	for _, tt := range []struct {
		text, err string
		servers   []string
		root      string
		user      string
		password  string
		timeout   time.Duration
	}{
		{text: "zookeeper://a", servers: []string{"a:2181"}},
		{text: "zookeeper://a:1,b,[::1]:3/x/y", servers: []string{"a:1", "b:2181", "[::1]:3"}, root: "/x/y"},
		{text: "zookeeper://u:p%40w@a/?sessionTimeout=4s", servers: []string{"a:2181"}, user: "u", password: "p@w", timeout: 4 * time.Second},
		{text: "http://a", err: "expected zookeeper://"},
		{text: "zookeeper://a,,b", err: "expected HOST:PORT"},
		{text: "zookeeper://a?sessionTimeout=4", err: "expected a duration"},
		{text: "zookeeper://a?timeout=4s", err: `option "timeout"`},
		{text: "zookeeper://a?ca=/x", err: "tls=true"},
		{text: "zookeeper://a?tls=1", err: "expected true or false"},
		{text: "zookeeper://a?tls=true&ca=/none", err: "/none"},
	} {
		c, err := zookeeper.ParseURL(tt.text)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: got %v, want %q", tt.text, err, tt.err)
			}
			continue
		}
		got := []any{c.Servers, strings.TrimSuffix(c.Root, "/"), c.User, c.Password, c.Timeout, err}
		if d := cmp.Diff([]any{tt.servers, tt.root, tt.user, tt.password, tt.timeout, error(nil)}, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.text, d)
		}
	}
}

func TestDigest(t *testing.T) {
	e := servers(t, 1)
	cfg := config(e)
	mine := cfg
	mine.User, mine.Password = "datalink", "secret"
	s := open(t, t.Context(), mine)
	_, err := s.CreateTask(t.Context(), coordination.Definition{Name: "orders", Desired: coordination.Running})
	ok(t, "create", err)
	x, err := s.Join(t.Context(), coordination.Worker{ID: "w"})
	ok(t, "join", err)
	st, err := x.Take(t.Context(), coordination.Take{Task: "orders", ExecutionID: newID()})
	ok(t, "take", err)
	ok(t, "save", x.Save(t.Context(), st.Owner(), step(1)))
	for _, password := range []string{"", "wrong"} {
		other := cfg
		if password != "" {
			other.User, other.Password = "datalink", password
		}
		if s, err := zookeeper.Open(t.Context(), other); err == nil || !strings.Contains(err.Error(), "has no right") {
			if err == nil {
				s.Close()
			}
			t.Errorf("password %q: got %v, want a refusal", password, err)
		} else if strings.Contains(err.Error(), "wrong") {
			t.Errorf("the password is in the error: %v", err)
		}
	}
	again := open(t, t.Context(), mine)
	if _, err := again.Task(t.Context(), "orders"); err != nil {
		t.Errorf("with the right password: %v", err)
	}
}

func TestTLS(t *testing.T) {
	keytool, err := exec.LookPath("keytool")
	if err != nil {
		t.Skip("keytool is not installed")
	}
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(keytool, args...).CombinedOutput(); err != nil {
			t.Fatalf("keytool %v: %v %s", args, err, out)
		}
	}
	store, pem := filepath.Join(dir, "server.p12"), filepath.Join(dir, "server.pem")
	run("-genkeypair", "-alias", "s", "-keyalg", "EC", "-dname", "CN=localhost", "-ext", "san=ip:127.0.0.1", "-validity", "2",
		"-storetype", "PKCS12", "-keystore", store, "-storepass", "secret")
	run("-exportcert", "-rfc", "-alias", "s", "-keystore", store, "-storepass", "secret", "-file", pem)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, "port", err)
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	stack.StartEnsemble(t, 1, "forceSync=no", fmt.Sprintf("secureClientPort=%d", port), "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
		"ssl.keyStore.location="+store, "ssl.keyStore.password=secret", "ssl.clientAuth=none")
	url := fmt.Sprintf("zookeeper://127.0.0.1:%d/tls?tls=true", port)
	cfg, err := zookeeper.ParseURL(url + "&ca=" + pem)
	ok(t, "url", err)
	s := open(t, t.Context(), cfg)
	x, err := s.Join(t.Context(), coordination.Worker{ID: "w"})
	ok(t, "join", err)
	if x.Lease().Timeout == 0 {
		t.Error("the lease has no time-out")
	}
	cfg, err = zookeeper.ParseURL(url)
	ok(t, "url", err)
	cfg.Call = 2 * time.Second
	if _, err := zookeeper.Open(t.Context(), cfg); err == nil {
		t.Error("a certificate of nobody was trusted")
	}
}

// A server that takes connections and says nothing keeps nobody from the others.
func TestSilentServer(t *testing.T) {
	e := servers(t, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, "listen", err)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
		}
	}()
	cfg := config(e)
	cfg.Timeout = 2 * time.Second
	cfg.Servers = []string{l.Addr().String(), e.Addrs()}
	for range 4 { // the order is random
		s := open(t, t.Context(), cfg)
		ok(t, "use", func() error { _, err := s.Tasks(t.Context()); return err }())
		ok(t, "close", s.Close())
	}
}

func TestTooLarge(t *testing.T) {
	e := servers(t, 1)
	s := open(t, t.Context(), config(e))
	_, err := s.CreateTask(t.Context(), coordination.Definition{Name: "orders", Desired: coordination.Running})
	ok(t, "create", err)
	x, err := s.Join(t.Context(), coordination.Worker{ID: "w"})
	ok(t, "join", err)
	st, err := x.Take(t.Context(), coordination.Take{Task: "orders", ExecutionID: newID()})
	ok(t, "take", err)
	err = x.Save(t.Context(), st.Owner(), coordination.Step{Writer: "w", Items: []coordination.Item{{Key: "shop.orders", Value: bytes.Repeat([]byte("x"), 1<<20)}}})
	if err == nil || !strings.Contains(err.Error(), "shop.orders") || !strings.Contains(err.Error(), "jute.maxbuffer") {
		t.Errorf("save: got %v, want an error that names the item and the limit", err)
	}
	ok(t, "save after it", x.Save(t.Context(), st.Owner(), step(1)))
}

func TestNobodyAnswers(t *testing.T) {
	cfg := zookeeper.Config{Servers: []string{"127.0.0.1:1"}, Call: 500 * time.Millisecond}
	began := time.Now()
	_, err := zookeeper.Open(context.Background(), cfg)
	if err == nil || !strings.Contains(err.Error(), "did not answer within 500ms") || time.Since(began) > 3*time.Second {
		t.Errorf("open: got %v after %s", err, time.Since(began))
	}
}
