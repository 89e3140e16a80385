package wasmrt

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/wire"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == ChildArg {
		ChildMain()
	}
	var err error
	if builtDir, err = os.MkdirTemp("", "wasmrt"); err != nil {
		panic(err)
	}
	if len(os.Args) > 1 && os.Args[1] == hostArg {
		hostMain(os.Args[2])
	}
	code := m.Run()
	os.RemoveAll(builtDir)
	os.Exit(code)
}

var (
	builtDir  string
	buildOnce sync.Once
	buildErr  error
)

// maskGo returns the module of examples/mask-go, built with the Go toolchain.
func maskGo(tb testing.TB) []byte {
	tb.Helper()
	buildOnce.Do(func() {
		cmd := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", filepath.Join(builtDir, "mask.wasm"), "../../examples/mask-go")
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			buildErr = fmt.Errorf("%w: %s", err, out)
		}
	})
	if buildErr != nil {
		tb.Fatal(buildErr)
	}
	return file(tb, filepath.Join(builtDir, "mask.wasm"))
}

// maskRust returns the committed module of examples/mask-rust.
func maskRust(tb testing.TB) []byte { return file(tb, "../../examples/mask-rust/mask.wasm") }

func file(tb testing.TB, path string) []byte {
	tb.Helper()
	p, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// newRuntime returns a Runtime; all tests share one cache.
func newRuntime(tb testing.TB) *Runtime {
	tb.Helper()
	r, err := New(Config{CacheDir: filepath.Join(builtDir, "cache"), Log: slog.New(slog.NewTextHandler(tb.Output(), nil))})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { r.Close() })
	return r
}

// open opens a module with small limits; change sets others.
func open(tb testing.TB, r *Runtime, name string, binary []byte, change func(*ModuleConfig)) *Module {
	tb.Helper()
	cfg := ModuleConfig{
		Name: name, Binary: binary, SHA256: digest(binary), BackOff: time.Millisecond,
		Limits: batch.Limits{Block: 8 << 20},
	}
	if change != nil {
		change(&cfg)
	}
	m, err := r.Open(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { m.Close(context.Background()) })
	return m
}

const maskConfig = `{"columns": ["shop.customers.name", "shop.customers.note"], "keep": 2}`

// configure configures a mask and tells it the schemas.
func configure(tb testing.TB, m *Module, config string, schemas ...*batch.Schema) {
	tb.Helper()
	reply, err := m.Configure(tb.Context(), &wire.ConfigureRequest{Role: "transform", Task: "t", Name: "mask", Config: []byte(config)})
	if err != nil {
		tb.Fatal(err)
	}
	if len(reply.Problems) > 0 {
		tb.Fatalf("problems: %v", reply.Problems)
	}
	for _, s := range schemas {
		if _, err := m.Schema(tb.Context(), s); err != nil {
			tb.Fatal(err)
		}
	}
}
