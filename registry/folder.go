package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/datalink-go/datalink/sdk/manifest"
)

const (
	folderFile   = "registry.json"
	manifestFile = "plugin.json"
	folderFormat = 1

	maxManifest = 1 << 20
	maxFile     = 512 << 20
)

type folderInfo struct {
	Format int `json:"format"`
}

// Folder is a registry in a local folder.
type Folder struct{ dir string }

// OpenFolder opens a registry folder.
func OpenFolder(dir string) (*Folder, error) {
	var info folderInfo
	err := readJSON(filepath.Join(dir, folderFile), maxManifest, &info)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("registry %s: %w, expected a folder with %s", dir, ErrNoRegistry, folderFile)
	case err != nil:
		return nil, fmt.Errorf("registry %s: %w", dir, err)
	case info.Format != folderFormat:
		return nil, fmt.Errorf("registry %s has format %d, this program reads %d", dir, info.Format, folderFormat)
	}
	return &Folder{dir}, nil
}

// CreateFolder opens a registry folder and makes it before, if it is not there.
func CreateFolder(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	path := filepath.Join(dir, folderFile)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if err := writeJSON(path, 0o644, folderInfo{folderFormat}); err != nil {
			return nil, fmt.Errorf("registry: %w", err)
		}
	}
	return OpenFolder(dir)
}

// Dir returns the folder.
func (f *Folder) Dir() string { return f.dir }

// Add puts a plugin into the folder: its manifest and the file for each platform,
// by the names that the manifest has. Digests are computed here. A version that
// is there with other bytes is refused.
func (f *Folder) Add(m manifest.Manifest, files map[string]string) error {
	m.Platforms = slices.Clone(m.Platforms)
	for i := range m.Platforms {
		p := &m.Platforms[i]
		sum, err := digestOf(files[p.File])
		if err != nil {
			return fmt.Errorf("add %s %s: %w", m.Name, m.Version, err)
		}
		p.SHA256 = sum
	}
	if err := check(&m); err != nil {
		return fmt.Errorf("add %s %s: %w", m.Name, m.Version, err)
	}
	dir := filepath.Join(f.dir, m.Name, m.Version)
	if old, err := f.manifest(m.Name, m.Version); err == nil && !samePlatforms(old, &m) {
		return fmt.Errorf("add %s %s: %w in %s", m.Name, m.Version, ErrVersionTaken, dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, p := range m.Platforms {
		if _, err := copyFile(filepath.Join(dir, p.File), files[p.File], 0o755); err != nil {
			return fmt.Errorf("add %s %s: %w", m.Name, m.Version, err)
		}
	}
	return writeJSON(filepath.Join(dir, manifestFile), 0o644, m)
}

// Find returns a plugin's manifest: the version, or the highest one for "".
// Pre-releases are found by their version only.
func (f *Folder) Find(name, version string) (*manifest.Manifest, error) {
	if !validName(name) || version != "" && !validVersion(version) {
		return nil, fmt.Errorf("plugin %q %q: %w", name, version, ErrBadName)
	}
	have := f.versions(name)
	if version == "" {
		version = Newest(have)
	}
	if version == "" || !slices.Contains(have, version) {
		return nil, &NotFoundError{Name: name, Version: version, Where: "registry " + f.dir, Have: have}
	}
	return f.manifest(name, version)
}

// List returns the manifests of everything in the folder, by name and version.
func (f *Folder) List() ([]*manifest.Manifest, error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, fmt.Errorf("registry %s: %w", f.dir, err)
	}
	var out []*manifest.Manifest
	for _, e := range entries {
		for _, v := range f.versions(e.Name()) {
			m, err := f.manifest(e.Name(), v)
			if err != nil {
				return nil, err
			}
			out = append(out, m)
		}
	}
	return out, nil
}

func (f *Folder) versions(name string) []string {
	if !validName(name) {
		return nil
	}
	entries, err := os.ReadDir(filepath.Join(f.dir, name))
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() && validVersion(e.Name()) {
			out = append(out, e.Name())
		}
	}
	slices.SortFunc(out, CompareVersions)
	return out
}

func (f *Folder) manifest(name, version string) (*manifest.Manifest, error) {
	path := filepath.Join(f.dir, name, version, manifestFile)
	m := new(manifest.Manifest)
	if err := readJSON(path, maxManifest, m); err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	if err := check(m); err != nil {
		return nil, fmt.Errorf("registry: %s: %w", path, err)
	}
	if m.Name != name || m.Version != version {
		return nil, fmt.Errorf("registry: %s: %w: it is of %s %s", path, ErrBadManifest, m.Name, m.Version)
	}
	return m, nil
}

// check refuses manifests with which nothing could be installed safely.
func check(m *manifest.Manifest) error {
	switch {
	case !validName(m.Name) || !validVersion(m.Version):
		return fmt.Errorf("%w: name %q, version %q", ErrBadName, m.Name, m.Version)
	case m.Kind != "process" && m.Kind != "wasm":
		return fmt.Errorf("%w: kind %q, expected process or wasm", ErrBadManifest, m.Kind)
	case len(m.Roles) == 0:
		return fmt.Errorf("%w: it has no role, expected reader, writer or transform", ErrBadManifest)
	case len(m.Platforms) == 0:
		return fmt.Errorf("%w: it has no files", ErrBadManifest)
	}
	for _, p := range m.Platforms {
		if p.File == "" || p.File != filepath.Base(p.File) || strings.HasPrefix(p.File, ".") || p.File == manifestFile {
			return fmt.Errorf("%w: file %q, expected a plain file name", ErrBadManifest, p.File)
		}
		if !validDigest(p.SHA256) {
			return fmt.Errorf("%w: file %s has the digest %q, expected 64 hexadecimal digits", ErrBadManifest, p.File, p.SHA256)
		}
		if (m.Kind == "wasm") != (p.OS == "" && p.Arch == "") {
			return fmt.Errorf("%w: file %s is for %q/%q; expected a system for a process, none for wasm", ErrBadManifest, p.File, p.OS, p.Arch)
		}
	}
	return nil
}

func samePlatforms(a, b *manifest.Manifest) bool {
	return slices.Equal(a.Platforms, b.Platforms)
}

func readJSON(path string, limit int64, v any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return err
	case int64(len(data)) > limit:
		return fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
