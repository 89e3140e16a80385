package registry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datalink-go/datalink/sdk/manifest"
)

// LockFile is the name of the list of installed plugins in a data directory.
const LockFile = "plugins.lock"

const lockFormat = 1

// lockFile is plugins.lock.
type lockFile struct {
	Format  int      `json:"format"`
	Plugins []Locked `json:"plugins"`
}

// Locked is one installed version.
type Locked struct {
	Name        string    `json:"name"`
	Version     string    `json:"version"`
	Kind        string    `json:"kind"`
	OS          string    `json:"os,omitempty"`
	Arch        string    `json:"arch,omitempty"`
	SHA256      string    `json:"sha256"`   // of the program or module
	Manifest    string    `json:"manifest"` // digest of the manifest
	Registry    string    `json:"registry"` // where it came from
	InstalledAt time.Time `json:"installedAt"`
}

// Installed is a plugin that can be run.
type Installed struct {
	Locked
	Path        string             // of the program or module
	Description *manifest.Manifest // what its package says of it
}

// Store is what is installed in a data directory.
type Store struct {
	dir string
	now func() time.Time
}

// OpenStore returns the store of a data directory. Nothing is written before
// Install.
func OpenStore(dataDir string) *Store { return &Store{dir: dataDir, now: time.Now} }

func (s *Store) path(digest string) string {
	return filepath.Join(s.dir, "plugins", "sha256-"+digest)
}

// Install copies a plugin of the registry and enters it in plugins.lock.
// Installing what is installed already changes nothing.
func (s *Store) Install(ctx context.Context, f *Folder, name, version string) (*Installed, error) {
	m, err := f.Find(name, version)
	if err != nil {
		return nil, err
	}
	what := m.Name + " " + m.Version
	if m.ProtocolMax < manifest.ProtocolMin || m.ProtocolMin > manifest.ProtocolMax {
		return nil, fmt.Errorf("install %s: %w: it speaks %d to %d, this host %d to %d", what, ErrProtocol, m.ProtocolMin, m.ProtocolMax, manifest.ProtocolMin, manifest.ProtocolMax)
	}
	p, err := platform(m)
	if err != nil {
		return nil, fmt.Errorf("install %s: %w", what, err)
	}
	unlock, err := s.exclusive(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	lock, err := s.read()
	if err != nil {
		return nil, err
	}
	for i := range lock.Plugins {
		l := &lock.Plugins[i]
		if l.Name != m.Name || l.Version != m.Version {
			continue
		}
		if l.SHA256 != p.SHA256 {
			return nil, fmt.Errorf("install %s: %w: plugins.lock has sha256 %s, the registry %s; install another version", what, ErrVersionTaken, l.SHA256, p.SHA256)
		}
		if in, err := s.load(*l); err == nil {
			return in, nil
		}
		lock.Plugins = slices.Delete(lock.Plugins, i, i+1) // damaged: from the registry again
		break
	}
	l := Locked{
		Name: m.Name, Version: m.Version, Kind: m.Kind, OS: p.OS, Arch: p.Arch, SHA256: p.SHA256,
		Registry: f.dir, InstalledAt: s.now().UTC().Truncate(time.Second),
	}
	sum, err := copyFile(s.path(p.SHA256), filepath.Join(f.dir, m.Name, m.Version, p.File), 0o500)
	if err != nil {
		return nil, fmt.Errorf("install %s: %w", what, err)
	}
	if sum != p.SHA256 {
		return nil, errors.Join(fmt.Errorf("install %s: %w: %s has sha256 %s, its manifest says %s: the registry is damaged or was tampered with", what, ErrDigest, p.File, sum, p.SHA256),
			os.Remove(s.path(p.SHA256)))
	}
	desc := s.path(p.SHA256) + ".json"
	if err := writeJSON(desc, 0o400, m); err != nil {
		return nil, fmt.Errorf("install %s: %w", what, err)
	}
	if l.Manifest, err = digestOf(desc); err != nil {
		return nil, fmt.Errorf("install %s: %w", what, err)
	}
	lock.Plugins = append(lock.Plugins, l)
	slices.SortFunc(lock.Plugins, func(a, b Locked) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return CompareVersions(a.Version, b.Version)
	})
	if err := writeJSON(filepath.Join(s.dir, LockFile), 0o600, lock); err != nil {
		return nil, fmt.Errorf("install %s: %w", what, err)
	}
	return s.load(l)
}

func platform(m *manifest.Manifest) (*manifest.Platform, error) {
	var have []string
	for i := range m.Platforms {
		p := &m.Platforms[i]
		if m.Kind == "wasm" || p.OS == runtime.GOOS && p.Arch == runtime.GOARCH {
			return p, nil
		}
		have = append(have, p.OS+"/"+p.Arch)
	}
	return nil, fmt.Errorf("%w: this is %s/%s, it has %s", ErrPlatform, runtime.GOOS, runtime.GOARCH, strings.Join(have, ", "))
}

// List returns what plugins.lock has, by name and version, without looking at the
// files.
func (s *Store) List() ([]Locked, error) {
	lock, err := s.read()
	return lock.Plugins, err
}

// Resolve returns an installed plugin: the version, or the highest one for "".
// Its files are read and compared with plugins.lock.
func (s *Store) Resolve(name, version string) (*Installed, error) {
	lock, err := s.read()
	if err != nil {
		return nil, err
	}
	var have []string
	for _, l := range lock.Plugins {
		if l.Name == name {
			have = append(have, l.Version)
		}
	}
	want := version
	if want == "" {
		want = Newest(have)
	}
	for _, l := range lock.Plugins {
		if l.Name == name && l.Version == want {
			return s.load(l)
		}
	}
	return nil, &NotFoundError{Name: name, Version: version, Where: filepath.Join(s.dir, LockFile), Have: have}
}

func (s *Store) load(l Locked) (*Installed, error) {
	in := &Installed{Locked: l, Path: s.path(l.SHA256), Description: new(manifest.Manifest)}
	desc := in.Path + ".json"
	for _, f := range []struct{ path, want string }{{in.Path, l.SHA256}, {desc, l.Manifest}} {
		switch sum, err := digestOf(f.path); {
		case err != nil:
			return nil, fmt.Errorf("plugin %s %s: %w; install it again", l.Name, l.Version, err)
		case sum != f.want:
			return nil, fmt.Errorf("plugin %s %s: %w: %s has sha256 %s, plugins.lock says %s; install it again", l.Name, l.Version, ErrDigest, f.path, sum, f.want)
		}
	}
	if err := readJSON(desc, maxManifest, in.Description); err != nil {
		return nil, fmt.Errorf("plugin %s %s: %w", l.Name, l.Version, err)
	}
	return in, nil
}

func (s *Store) read() (lockFile, error) {
	lock := lockFile{Format: lockFormat}
	path := filepath.Join(s.dir, LockFile)
	err := readJSON(path, maxManifest, &lock)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return lock, nil
	case err != nil:
		return lock, fmt.Errorf("%w: %w", ErrBadLock, err)
	case lock.Format != lockFormat:
		return lock, fmt.Errorf("%w: %s has format %d, this program reads %d", ErrBadLock, path, lock.Format, lockFormat)
	}
	for _, l := range lock.Plugins {
		if !validName(l.Name) || !validVersion(l.Version) || !validDigest(l.SHA256) || !validDigest(l.Manifest) {
			return lock, fmt.Errorf("%w: %s: entry of %q %q has no valid name, version or digest", ErrBadLock, path, l.Name, l.Version)
		}
	}
	return lock, nil
}

// exclusive keeps other installers out.
func (s *Store) exclusive(ctx context.Context) (func(), error) {
	dir := filepath.Join(s.dir, "plugins")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("folder of plugins: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("folder of plugins: %w", err)
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("another installation is under way: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond): // flock has no wait with a limit
		}
	}
}
