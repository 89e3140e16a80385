package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/datalink-go/datalink/host/api"
	"github.com/datalink-go/datalink/sdk/manifest"
)

const registryEnv = "DATALINK_REGISTRY"

func (a *app) pluginCommand() *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "List installed and bundled connectors", Example: "  datalink plugin list", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := a.plugins(c.Context())
			if err != nil {
				return err
			}
			return a.show(map[string]any{"plugins": all}, func() {
				a.table("NAME\tVERSION\tKIND\tFROM\tSHA256\tSTATUS", func(row func(string, ...any)) {
					for _, p := range all {
						row("%s\t%s\t%s\t%s\t%.12s\t%s", p.Name, orDash(p.Version), p.Kind, p.From, p.SHA256, p.Status)
					}
				})
			})
		},
	}
	show := &cobra.Command{
		Use: "show NAME[@VERSION]", Short: "Show what a connector is and can do", Example: "  datalink plugin show mysql", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			name, version, _ := strings.Cut(args[0], "@")
			return a.with(c, func(ctx context.Context, b api.Backend) error {
				p, err := b.Plugin(ctx, name, version)
				if err != nil {
					return err
				}
				return a.show(p, func() { a.showPlugin(p) })
			})
		},
	}
	subs := []*cobra.Command{list, show, a.installCommand()}
	for _, n := range []string{"uninstall", "search", "new", "build", "test", "sign", "publish", "audit"} {
		subs = append(subs, notYet(n))
	}
	return group("plugin", "Connectors and the registry", "  datalink plugin list\n  datalink plugin install mask-go --registry ./registry", subs...)
}

// plugins needs no lock: it reads plugins.lock, whoever runs.
func (a *app) plugins(ctx context.Context) ([]api.Plugin, error) {
	if a.apiURL != "" {
		b, done, err := a.backend(ctx)
		if err != nil {
			return nil, err
		}
		defer done()
		return b.Plugins(ctx)
	}
	in, err := a.installer()
	if err != nil {
		return nil, err
	}
	return in.List()
}

func (a *app) installCommand() *cobra.Command {
	var from string
	c := &cobra.Command{
		Use: "install NAME[@VERSION]", Short: "Install a connector from a registry folder",
		Long: `Copy a connector of the registry into the data directory and enter its digest in
plugins.lock. A file with another digest than the registry's manifest says is
refused, and so are other platforms and protocol versions that do not fit.`,
		Example: "  datalink plugin install mask-go@1.0.0 --registry ./registry", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if from == "" {
				from = os.Getenv(registryEnv)
			}
			name, version, _ := strings.Cut(args[0], "@")
			p, err := a.install(c.Context(), from, name, version)
			if err != nil {
				return err
			}
			return a.show(p, func() { a.line("installed %s %s (%s, sha256 %s)", p.Name, p.Version, p.Kind, p.SHA256) })
		},
	}
	c.Flags().StringVar(&from, "registry", "", "folder of the registry (default: environment variable DATALINK_REGISTRY)")
	return c
}

func (a *app) install(ctx context.Context, from, name, version string) (*api.Plugin, error) {
	if from != "" {
		abs, err := filepath.Abs(from)
		if err != nil {
			return nil, err
		}
		from = abs
	}
	if a.apiURL != "" {
		b, done, err := a.backend(ctx)
		if err != nil {
			return nil, err
		}
		defer done()
		return b.Install(ctx, from, name, version)
	}
	in, err := a.installer()
	if err != nil {
		return nil, err
	}
	return in.Install(ctx, from, name, version)
}

func (a *app) showPlugin(p *api.Plugin) {
	a.line("plugin    %s %s (%s)", p.Name, p.Version, p.Kind)
	a.line("from      %s", p.From)
	a.line("sha256    %s", p.SHA256)
	m := p.Manifest
	if m == nil {
		return
	}
	a.line("summary   %s", m.Summary)
	a.line("protocol  %d to %d", m.ProtocolMin, m.ProtocolMax)
	for _, r := range []manifest.Role{manifest.Reader, manifest.Writer, manifest.Transform} {
		f, ok := m.Roles[r]
		if !ok {
			continue
		}
		var can []string
		if f.Level != "" {
			can = append(can, "level "+string(f.Level))
		}
		if can = append(can, f.Capabilities...); len(can) == 0 {
			can = []string{"yes"}
		}
		a.line("%-9s %s", r, strings.Join(can, ", "))
		a.options(f.ConfigSchema)
	}
}

// options prints the options of a configuration schema.
func (a *app) options(schema json.RawMessage) {
	var s struct {
		Properties map[string]struct {
			Description string `json:"description"`
			Default     any    `json:"default"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if json.Unmarshal(schema, &s) != nil || len(s.Properties) == 0 {
		return
	}
	names := make([]string, 0, len(s.Properties))
	for n := range s.Properties {
		names = append(names, n)
	}
	slices.Sort(names)
	a.table("  OPTION\tDEFAULT\tWHAT", func(row func(string, ...any)) {
		for _, n := range names {
			o := s.Properties[n]
			def := "-"
			if o.Default != nil {
				b, _ := json.Marshal(o.Default)
				def = string(b)
			}
			if slices.Contains(s.Required, n) {
				def = "(required)"
			}
			row("  %s\t%s\t%s", n, def, o.Description)
		}
	})
}
