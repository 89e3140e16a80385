package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/host/api"
)

// backend answers what the test wants; what it does not have panics.
type backend struct {
	api.Backend
	asked []string
	err   error
}

func (b *backend) Task(_ context.Context, name string) (*api.Task, error) {
	b.asked = append(b.asked, "task "+name)
	return &api.Task{Name: name, State: "running"}, b.err
}

func (b *backend) Apply(_ context.Context, files []api.File) ([]api.Applied, error) {
	b.asked = append(b.asked, fmt.Sprintf("apply %v", files))
	return []api.Applied{{Task: "t", Action: "created"}}, b.err
}

func (b *backend) Drop(_ context.Context, task, writer string, n []uint64) ([]api.Outcome, error) {
	b.asked = append(b.asked, fmt.Sprintf("drop %s %s %v", task, writer, n))
	return []api.Outcome{{Writer: writer, Number: n[0], Done: true}}, b.err
}

// TestRoundTrip: the client says the same as the backend, over a socket whose path
// is longer than a socket's address may be.
func TestRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long-name/", 12))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := api.ListenUnix(dir)
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{}
	mux := http.NewServeMux()
	mux.Handle("/v1/", api.Handler(b))
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	srv := &http.Server{Handler: mux}
	go func() { _ = srv.Serve(l) }()
	defer srv.Close()
	ctx := context.Background()
	c := api.Find(ctx, dir)
	if c == nil {
		t.Fatal("no daemon is found where one listens")
	}
	if st, err := os.Stat(filepath.Join(dir, api.SocketFile)); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("socket = %v, %v, want mode 0600", st, err)
	}
	got, err := c.Task(ctx, "a b/c")
	if err != nil || got.Name != "a b/c" || got.State != "running" {
		t.Errorf("Task = %+v, %v", got, err)
	}
	if _, err := c.Apply(ctx, []api.File{{Name: "f", Text: "x"}}); err != nil {
		t.Error(err)
	}
	if out, err := c.Drop(ctx, "t", "w", []uint64{3, 4}); err != nil || !out[0].Done {
		t.Errorf("Drop = %v, %v", out, err)
	}
	if d := cmp.Diff([]string{"task a b/c", "apply [{f x}]", "drop t w [3 4]"}, b.asked); d != "" {
		t.Errorf("what the backend was asked (-want +got):\n%s", d)
	}
	for _, k := range []api.Kind{api.Failed, api.Usage, api.CheckFailed, api.Fenced, api.Differences, api.Interrupted} {
		b.err = api.Errorf(k, "because of %s", k)
		_, err := c.Task(ctx, "t")
		if api.KindOf(err) != k || err.Error() != b.err.Error() {
			t.Errorf("error of kind %s arrives as %s: %v", k, api.KindOf(err), err)
		}
	}
	b.err = errors.New("plain")
	if _, err := c.Task(ctx, "t"); api.KindOf(err) != api.Failed || api.ExitCode(err) != 1 {
		t.Errorf("plain error arrives as %s", api.KindOf(err))
	}
	srv.Close()
	if api.Find(ctx, dir) != nil {
		t.Error("a daemon is found where none listens any more")
	}
}

func TestGuard(t *testing.T) {
	b := &backend{}
	srv := httptest.NewServer(api.Guard(api.Tokens{Write: "right", Read: "look"}, api.Handler(b)))
	defer srv.Close()
	for _, tt := range []struct {
		token       string
		read, write bool
	}{{"right", true, true}, {"look", true, false}, {"", false, false}, {"wrong", false, false}, {"righ", false, false}} {
		c, err := api.NewClient(srv.URL, api.Access{Token: tt.token})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Task(context.Background(), "t")
		if (err == nil) != tt.read {
			t.Errorf("token %q reads: %v, want it to pass: %v", tt.token, err, tt.read)
		}
		_, err = c.Apply(context.Background(), nil)
		if (err == nil) != tt.write {
			t.Errorf("token %q writes: %v, want it to pass: %v", tt.token, err, tt.write)
		}
	}
	if len(b.asked) != 3 {
		t.Errorf("the backend was asked %q, want three times", b.asked)
	}
	// Without tokens nothing passes, least of all a request without one.
	none := httptest.NewServer(api.Guard(api.Tokens{}, api.Handler(b)))
	defer none.Close()
	if c, err := api.NewClient(none.URL, api.Access{}); err != nil {
		t.Fatal(err)
	} else if _, err := c.Task(context.Background(), "t"); err == nil {
		t.Error("a request without a token passes where no token is set")
	}
}

func TestRefusals(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", "192.0.2.1:0", "example.org:80", "nonsense"} {
		if l, err := api.ListenTCP(address, false); err == nil {
			l.Close()
			t.Errorf("ListenTCP(%s) listens, want a refusal", address)
		}
	}
	for _, address := range []string{"https://", "127.0.0.1:80", "unix:", "ftp://x"} {
		if _, err := api.NewClient(address, api.Access{}); api.KindOf(err) != api.Usage {
			t.Errorf("NewClient(%s) = %v, want an error of usage", address, err)
		}
	}
	srv := httptest.NewServer(api.Handler(&backend{}))
	defer srv.Close()
	for _, body := range []string{`[{"nome": "x"}]`, `{`, `[]` + strings.Repeat(" ", 17<<20) + `x`} {
		r, err := http.Post(srv.URL+"/v1/tasks", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if len(body) < 100 && r.StatusCode != http.StatusBadRequest {
			t.Errorf("body %.20s: status %d, want 400", body, r.StatusCode)
		}
	}
}

func TestTokens(t *testing.T) {
	dir := t.TempDir()
	a, err := api.TokensOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := api.TokensOf(dir)
	if err != nil || a != b || len(a.Write) != 64 || len(a.Read) != 64 || a.Read == a.Write {
		t.Errorf("tokens %q and %q, %v; want the same two of 64 digits", a, b, err)
	}
	for _, f := range []string{api.TokenFile, api.ReadTokenFile} {
		if st, _ := os.Stat(filepath.Join(dir, f)); st.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", f, st.Mode())
		}
	}
}

func TestExitCodes(t *testing.T) {
	for k, want := range map[api.Kind]int{api.Failed: 1, api.Usage: 2, api.CheckFailed: 3, api.Fenced: 4, api.Differences: 5, api.Interrupted: 130} {
		if got := api.ExitCode(api.Errorf(k, "x")); got != want {
			t.Errorf("exit code of %s = %d, want %d", k, got, want)
		}
	}
	if got := api.ExitCode(nil); got != 0 {
		t.Errorf("exit code of success = %d", got)
	}
	if err := api.As(api.Usage, api.Errorf(api.Fenced, "x")); api.KindOf(err) != api.Fenced {
		t.Errorf("As changed the kind to %s", api.KindOf(err))
	}
}
