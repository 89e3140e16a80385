package supervisor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/datalink-go/datalink/sdk/manifest"
)

// built is the folder of the fixture programs, made once for all tests.
var built struct {
	sync.Once
	dir string
	err error
}

func TestMain(m *testing.M) {
	if child, ok := children[os.Getenv("SUPERVISOR_TEST_CHILD")]; ok {
		child()
		return
	}
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// children are what this test binary does when it is started again by a test.
var children = map[string]func(){"host": hostChild}

// program builds one of the programs in testdata.
func program(t testing.TB, name string) string {
	t.Helper()
	built.Do(func() { built.dir, built.err = os.MkdirTemp("", "supervisor") })
	if built.err != nil {
		t.Fatal(built.err)
	}
	path := filepath.Join(built.dir, name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	cmd := exec.Command("go", "build", "-o", path, "./testdata/"+name)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, out)
	}
	return path
}

func digest(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func image(t testing.TB, name string) *Image {
	t.Helper()
	path := program(t, name)
	img, err := OpenImage(name, path, digest(t, path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.Close() })
	return img
}

// launch starts the fixture; options change its configuration.
func launch(t testing.TB, role manifest.Role, options ...func(*Config)) (*Client, *journal) {
	t.Helper()
	c, j, err := tryLaunch(t, "fixture", role, options...)
	if err != nil {
		t.Fatal(err)
	}
	return c, j
}

func tryLaunch(t testing.TB, name string, role manifest.Role, options ...func(*Config)) (*Client, *journal, error) {
	t.Helper()
	j := &journal{changed: make(chan struct{}, 1)}
	cfg := Config{
		Image: image(t, name), Role: role, Task: "orders", Grace: 5 * time.Second,
		Log: slog.New(slog.NewJSONHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, o := range options {
		o(&cfg)
	}
	l := NewLauncher()
	t.Cleanup(l.Close)
	c, err := Launch(context.Background(), l, cfg)
	if err == nil {
		t.Cleanup(c.Kill)
	}
	return c, j, err
}

// configure configures the fixture.
func configure(t testing.TB, c *Client, config map[string]any, failPoints ...string) {
	t.Helper()
	if config == nil {
		config = map[string]any{}
	}
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Configure(context.Background(), data, "debug", failPoints...)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Problems) > 0 {
		t.Fatalf("configure: %v", a.Problems)
	}
}

// journal keeps log lines and lets a test wait for one.
type journal struct {
	mu      sync.Mutex
	lines   []map[string]any
	changed chan struct{}
}

func (j *journal) Write(p []byte) (int, error) {
	var kv map[string]any
	if err := json.Unmarshal(p, &kv); err != nil {
		return 0, err
	}
	j.mu.Lock()
	j.lines = append(j.lines, kv)
	j.mu.Unlock()
	select {
	case j.changed <- struct{}{}:
	default:
	}
	return len(p), nil
}

// wait returns the first line whose message is msg.
func (j *journal) wait(t *testing.T, msg string) map[string]any {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		j.mu.Lock()
		for _, l := range j.lines {
			if l["msg"] == msg {
				j.mu.Unlock()
				return l
			}
		}
		all := fmt.Sprint(j.lines)
		j.mu.Unlock()
		select {
		case <-j.changed:
		case <-late:
			t.Fatalf("no log line %q, got %s", msg, all)
		}
	}
}
