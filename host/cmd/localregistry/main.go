// Command localregistry adds connectors to a registry folder:
//
//	localregistry --to DIR [--cache DIR] FILE…
//
// A file that ends in .wasm is a module, any other one a program for this
// platform. Each is asked for its manifest, a program by the argument "manifest".
// The files are trusted: they are run as they are. It is for building a registry
// from one's own connectors, such as the one of the demo.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/datalink-go/datalink/host/wasmrt"
	"github.com/datalink-go/datalink/registry"
	"github.com/datalink-go/datalink/sdk/manifest"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == wasmrt.ChildArg {
		wasmrt.ChildMain()
	}
	to := flag.String("to", "", "registry folder, made when it is not there")
	cache := flag.String("cache", "", "folder for compiled modules, such as cache/wasm of a data directory; empty = none")
	flag.Parse()
	if *to == "" || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: localregistry --to DIR FILE…")
		os.Exit(2)
	}
	if err := run(*to, *cache, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "localregistry:", err)
		os.Exit(1)
	}
}

func run(to, cache string, files []string) error {
	folder, err := registry.CreateFolder(to)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for _, f := range files {
		m, err := describe(ctx, f, cache)
		if err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
		name := filepath.Base(f)
		p := manifest.Platform{File: name}
		if m.Kind == "process" {
			p.OS, p.Arch = runtime.GOOS, runtime.GOARCH
		}
		m.Platforms = []manifest.Platform{p}
		if err := folder.Add(*m, map[string]string{name: f}); err != nil {
			return err
		}
		fmt.Printf("added %s %s (%s) to %s\n", m.Name, m.Version, m.Kind, to)
	}
	return nil
}

func describe(ctx context.Context, file, cache string) (*manifest.Manifest, error) {
	if strings.HasSuffix(file, ".wasm") {
		return describeModule(ctx, file, cache)
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, path, "manifest").Output()
	if err != nil {
		return nil, fmt.Errorf("ask for its manifest: %w", err)
	}
	m := new(manifest.Manifest)
	d := json.NewDecoder(bytes.NewReader(out))
	if err := d.Decode(m); err != nil {
		return nil, fmt.Errorf("its manifest: %w", err)
	}
	m.Kind = "process"
	return m, nil
}

func describeModule(ctx context.Context, file, cache string) (*manifest.Manifest, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	rt, err := wasmrt.New(wasmrt.Config{CacheDir: cache, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return nil, err
	}
	defer rt.Close()
	sum := sha256.Sum256(data)
	mod, err := rt.Open(wasmrt.ModuleConfig{Name: filepath.Base(file), Binary: data, SHA256: hex.EncodeToString(sum[:])})
	if err != nil {
		return nil, err
	}
	m, err := mod.Describe(ctx)
	if err != nil {
		return nil, err
	}
	m.Kind = "wasm"
	return m, mod.Close(ctx)
}
