package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/registry"
	"github.com/datalink-go/datalink/sdk/manifest"
)

// plugin returns a manifest for this platform and the file that it names.
func plugin(t *testing.T, version, content string) (manifest.Manifest, map[string]string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return manifest.Manifest{
		Name: "mask", Version: version, Kind: "process", ProtocolMin: 1, ProtocolMax: 2, BatchFormat: 1,
		Roles:     map[manifest.Role]manifest.Facet{manifest.Transform: {}},
		Platforms: []manifest.Platform{{OS: runtime.GOOS, Arch: runtime.GOARCH, File: "mask"}},
	}, map[string]string{"mask": path}
}

func folder(t *testing.T, versions ...string) *registry.Folder {
	t.Helper()
	f, err := registry.CreateFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range versions {
		m, files := plugin(t, v, "program "+v)
		if err := f.Add(m, files); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func TestInstallAndResolve(t *testing.T) {
	f := folder(t, "1.0.0", "1.10.0", "1.9.0", "2.0.0-rc.1")
	dir := t.TempDir()
	s := registry.OpenStore(dir)
	for _, tt := range []struct{ ask, want string }{{"", "1.10.0"}, {"1.0.0", "1.0.0"}, {"2.0.0-rc.1", "2.0.0-rc.1"}} {
		in, err := s.Install(context.Background(), f, "mask", tt.ask)
		if err != nil {
			t.Fatalf("Install(%q): %v", tt.ask, err)
		}
		if in.Version != tt.want {
			t.Errorf("Install(%q) took version %s, want %s", tt.ask, in.Version, tt.want)
		}
		if data, _ := os.ReadFile(in.Path); string(data) != "program "+tt.want {
			t.Errorf("installed file of %s holds %q", tt.want, data)
		}
	}
	in, err := s.Resolve("mask", "")
	if err != nil || in.Version != "1.10.0" || in.Description.Name != "mask" {
		t.Errorf("Resolve the newest = %+v, %v", in, err)
	}
	before, _ := os.ReadFile(filepath.Join(dir, registry.LockFile))
	if _, err := s.Install(context.Background(), f, "mask", "1.0.0"); err != nil {
		t.Errorf("second installation: %v", err)
	}
	after, _ := os.ReadFile(filepath.Join(dir, registry.LockFile))
	if d := cmp.Diff(string(before), string(after)); d != "" {
		t.Errorf("a second installation changed plugins.lock:\n%s", d)
	}
	if _, err := s.Resolve("mask", "1.9.0"); !errors.Is(err, registry.ErrNotFound) || !strings.Contains(err.Error(), "1.10.0") {
		t.Errorf("Resolve of what is not installed = %v, want ErrNotFound with the versions there are", err)
	}
}

// TestRefusals: each way to get foreign bytes in has an error of its own.
func TestRefusals(t *testing.T) {
	ctx := context.Background()
	rewrite := func(t *testing.T, f *registry.Folder, change func(*manifest.Manifest)) {
		path := filepath.Join(f.Dir(), "mask", "1.0.0", "plugin.json")
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var m manifest.Manifest
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		change(&m)
		data, _ = json.Marshal(m)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, f *registry.Folder)
		want   error
	}{
		{"tampered file", func(t *testing.T, f *registry.Folder) {
			write(t, filepath.Join(f.Dir(), "mask", "1.0.0", "mask"), "evil")
		}, registry.ErrDigest},
		{"other platform", func(t *testing.T, f *registry.Folder) {
			rewrite(t, f, func(m *manifest.Manifest) { m.Platforms[0].OS = "plan9" })
		}, registry.ErrPlatform},
		{"newer protocol", func(t *testing.T, f *registry.Folder) {
			rewrite(t, f, func(m *manifest.Manifest) { m.ProtocolMin, m.ProtocolMax = 90, 91 })
		}, registry.ErrProtocol},
		{"path in a file name", func(t *testing.T, f *registry.Folder) {
			rewrite(t, f, func(m *manifest.Manifest) { m.Platforms[0].File = "../../../etc/passwd" })
		}, registry.ErrBadManifest},
		{"manifest of another plugin", func(t *testing.T, f *registry.Folder) {
			rewrite(t, f, func(m *manifest.Manifest) { m.Name = "other" })
		}, registry.ErrBadManifest},
		{"unknown kind", func(t *testing.T, f *registry.Folder) {
			rewrite(t, f, func(m *manifest.Manifest) { m.Kind = "shell" })
		}, registry.ErrBadManifest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := folder(t, "1.0.0")
			tt.change(t, f)
			dir := t.TempDir()
			s := registry.OpenStore(dir)
			if _, err := s.Install(ctx, f, "mask", "1.0.0"); !errors.Is(err, tt.want) {
				t.Errorf("Install = %v, want %v", err, tt.want)
			}
			if l, _ := s.List(); len(l) != 0 {
				t.Errorf("plugins.lock has %v after a refusal", l)
			}
			left, _ := filepath.Glob(filepath.Join(dir, "plugins", "sha256-*"))
			if len(left) != 0 {
				t.Errorf("a refusal left %v", left)
			}
		})
	}
	if _, err := registry.OpenStore(t.TempDir()).Install(ctx, folder(t), "../x", ""); !errors.Is(err, registry.ErrBadName) {
		t.Errorf("Install of ../x = %v, want ErrBadName", err)
	}
	if _, err := registry.OpenFolder(t.TempDir()); !errors.Is(err, registry.ErrNoRegistry) {
		t.Errorf("OpenFolder of an empty folder = %v, want ErrNoRegistry", err)
	}
}

// TestInstalledFileChanged: what changed after the installation is not used.
func TestInstalledFileChanged(t *testing.T) {
	f := folder(t, "1.0.0")
	for _, suffix := range []string{"", ".json"} {
		dir := t.TempDir()
		s := registry.OpenStore(dir)
		in, err := s.Install(context.Background(), f, "mask", "")
		if err != nil {
			t.Fatal(err)
		}
		write(t, in.Path+suffix, "evil")
		if _, err := s.Resolve("mask", ""); !errors.Is(err, registry.ErrDigest) {
			t.Errorf("Resolve after a change of %q = %v, want ErrDigest", suffix, err)
		}
		if _, err := s.Install(context.Background(), f, "mask", ""); err != nil {
			t.Errorf("installing again mends it: %v", err)
		}
		if _, err := s.Resolve("mask", ""); err != nil {
			t.Errorf("Resolve after that: %v", err)
		}
	}
}

// TestSameVersionOtherBytes: a version stays what it was.
func TestSameVersionOtherBytes(t *testing.T) {
	f := folder(t, "1.0.0")
	m, files := plugin(t, "1.0.0", "other bytes")
	if err := f.Add(m, files); !errors.Is(err, registry.ErrVersionTaken) {
		t.Errorf("Add = %v, want ErrVersionTaken", err)
	}
	s := registry.OpenStore(t.TempDir())
	if _, err := s.Install(context.Background(), f, "mask", ""); err != nil {
		t.Fatal(err)
	}
	g := folder(t)
	if err := g.Add(m, files); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Install(context.Background(), g, "mask", ""); !errors.Is(err, registry.ErrVersionTaken) {
		t.Errorf("Install from another registry = %v, want ErrVersionTaken", err)
	}
}

func TestCompareVersions(t *testing.T) {
	// semver.org 2.0.0, section 11.
	order := []string{"0.9.9", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.2.0", "1.10.0"}
	for i, a := range order {
		for j, b := range order {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := registry.CompareVersions(a, b); got != want {
				t.Errorf("CompareVersions(%s, %s) = %d, want %d", a, b, got, want)
			}
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	_ = os.Chmod(path, 0o600)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
