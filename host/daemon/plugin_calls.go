package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/datalink-go/datalink/host/api"
	"github.com/datalink-go/datalink/host/config"
	"github.com/datalink-go/datalink/host/supervisor"
	"github.com/datalink-go/datalink/registry"
	"github.com/datalink-go/datalink/sdk/manifest"
)

// Installer is the part of a Node that needs no store: what is installed in a data
// directory, also while a daemon uses it.
type Installer struct{ Plugins Plugins }

// List returns what is installed and what is bundled.
func (in Installer) List() ([]api.Plugin, error) {
	locked, err := in.Plugins.Store.List()
	if err != nil {
		return nil, api.As(api.CheckFailed, err)
	}
	out := []api.Plugin{}
	for _, l := range locked {
		p := api.Plugin{Name: l.Name, Version: l.Version, Kind: l.Kind, SHA256: l.SHA256, From: l.Registry, Status: "ok", Lock: &l}
		if _, err := in.Plugins.Store.Resolve(l.Name, l.Version); err != nil {
			p.Status = err.Error()
		}
		out = append(out, p)
	}
	for _, name := range in.Plugins.Bundled.Names() {
		out = append(out, in.bundled(name))
	}
	return out, nil
}

func (in Installer) bundled(name string) api.Plugin {
	b := in.Plugins.Bundled
	p := api.Plugin{Name: name, Kind: "process", SHA256: b.Digests[name], From: "bundled", Status: "ok"}
	img, err := supervisor.OpenImage(name, filepath.Join(b.Dir, name), p.SHA256)
	if err != nil {
		p.Status = err.Error()
		return p
	}
	defer img.Close()
	m, err := img.Manifest(context.Background())
	if err != nil {
		p.Status = err.Error()
		return p
	}
	p.Version = m.Version
	return p
}

// Install installs a plugin of a registry folder.
func (in Installer) Install(ctx context.Context, folder, name, version string) (*api.Plugin, error) {
	if folder == "" {
		return nil, api.Errorf(api.Usage, "no registry given: expected --registry DIR, or the environment variable DATALINK_REGISTRY")
	}
	f, err := registry.OpenFolder(folder)
	if err != nil {
		return nil, api.As(api.Usage, err)
	}
	got, err := in.Plugins.Store.Install(ctx, f, name, version)
	switch {
	case errors.Is(err, registry.ErrNotFound), errors.Is(err, registry.ErrBadName):
		return nil, api.As(api.Usage, err)
	case err != nil:
		return nil, api.As(api.CheckFailed, err)
	}
	return &api.Plugin{Name: got.Name, Version: got.Version, Kind: got.Kind, SHA256: got.SHA256, From: got.Registry, Status: "ok", Lock: &got.Locked}, nil
}

// Plugins implements api.Backend.
func (n *Node) Plugins(context.Context) ([]api.Plugin, error) { return Installer{n.plugins}.List() }

// Install implements api.Backend.
func (n *Node) Install(ctx context.Context, folder, name, version string) (*api.Plugin, error) {
	return Installer{n.plugins}.Install(ctx, folder, name, version)
}

// Plugin implements api.Backend: it starts a bundled plugin to ask what it is.
func (n *Node) Plugin(ctx context.Context, name, version string) (*api.Plugin, error) {
	p, err := n.plugins.Find(config.Ref{Name: name, Version: version})
	switch {
	case errors.Is(err, registry.ErrNotFound):
		return nil, api.As(api.Usage, err)
	case err != nil:
		return nil, api.As(api.CheckFailed, err)
	}
	out := &api.Plugin{Name: p.Name, Version: p.Version, Kind: p.Kind, SHA256: p.SHA256, From: "bundled", Status: "ok", Manifest: p.Claim}
	if !p.Bundled {
		in, err := n.plugins.Store.Resolve(name, version)
		if err != nil {
			return nil, api.As(api.CheckFailed, err)
		}
		out.From, out.Lock = in.Registry, &in.Locked
		return out, nil
	}
	if out.Manifest, err = n.describe(ctx, p); err != nil {
		return nil, api.As(api.CheckFailed, err)
	}
	out.Version = out.Manifest.Version
	return out, nil
}

// describe starts a bundled plugin in the first role it has.
func (n *Node) describe(ctx context.Context, p *Plugin) (*manifest.Manifest, error) {
	img, err := supervisor.OpenImage(p.Name, p.Path, p.SHA256)
	if err != nil {
		return nil, err
	}
	defer img.Close()
	var last error
	for _, role := range []manifest.Role{manifest.Reader, manifest.Writer, manifest.Transform} {
		cfg := supervisor.Config{Image: img, Role: role, Instance: "describe", SocketDir: n.sockets, Log: n.log, Inherit: []*os.File{n.lock}}
		c, err := supervisor.Launch(ctx, n.launcher, cfg)
		if err != nil {
			if last = err; errors.Is(err, supervisor.ErrManifest) {
				continue
			}
			return nil, err
		}
		defer c.Kill()
		return c.Manifest(), nil
	}
	return nil, fmt.Errorf("plugin %s has no role: %w", p.Name, last)
}
