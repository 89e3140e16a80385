package daemon

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/datalink-go/datalink/host/config"
	"github.com/datalink-go/datalink/host/mapping"
	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/host/wasmrt"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/wire"
)

// transform makes the stage of one transform.
func (c *connectors) transform(ctx context.Context, t *config.Transform) (pipeline.Stage, error) {
	if t.Rules != nil {
		return mapping.New(t.Rules, mapping.SameNames)
	}
	p, err := c.s.plugins.Find(t.Plugin)
	if err != nil {
		return nil, config.Problems{t.Plugin.Problem(t.Name, err.Error(), "an installed plugin")}
	}
	if p.Kind == "process" {
		sup, err := c.process(ctx, t.Connector, manifest.Transform, t.Name)
		if err != nil {
			return nil, err
		}
		c.stages = append(c.stages, sup)
		return scoped{&revived{plugin: sup, name: t.Name}, t.Tables}, nil
	}
	m, err := c.module(ctx, t, p)
	if err != nil {
		return nil, err
	}
	return scoped{m, t.Tables}, nil
}

// module starts a transform that is a WASM module.
func (c *connectors) module(ctx context.Context, t *config.Transform, p *Plugin) (*wasmrt.Module, error) {
	secrets, err := t.Config.Resolve(c.s.sources)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(p.Path)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", p.Name, err)
	}
	cfg := wasmrt.ModuleConfig{Name: c.task.Name + "/" + t.Name, Binary: data, SHA256: p.SHA256, FailPoint: strings.Join(c.s.failPoints(t.Name), ",")}
	if p.Claim != nil {
		cfg.MemoryMB = p.Claim.Grants.MemoryMB
	}
	m, err := c.s.modules.Open(cfg)
	if err != nil {
		return nil, err
	}
	c.modules = append(c.modules, m)
	desc, err := m.Describe(ctx)
	if err != nil {
		return nil, c.explain(err, t.Connector, t.Name, secrets)
	}
	a, err := m.Configure(ctx, &wire.ConfigureRequest{
		Role: string(manifest.Transform), Task: c.task.Name, Name: t.Name, Config: secrets.JSON(), LogLevel: c.s.level,
	})
	if err != nil {
		return nil, c.explain(err, t.Connector, t.Name, secrets)
	}
	if len(a.Problems) > 0 {
		return nil, t.Config.Problems(a.Problems, secrets)
	}
	return m, c.checked(ctx, m.Check, p, desc, manifest.Transform, t.Connector, t.Name, secrets)
}
