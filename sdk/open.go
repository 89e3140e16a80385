package sdk

import (
	"reflect"

	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/manifest"
)

// Factory returns the plugin's factory for a role, nil when it has no such role.
func (p *Plugin) Factory(r manifest.Role) *Factory {
	switch r {
	case manifest.Reader:
		return p.Reader
	case manifest.Writer:
		return p.Writer
	case manifest.Transform:
		return p.Transform
	}
	return nil
}

// Manifest returns what the plugin says of itself; kind is "process" or "wasm".
// The level of a writer in it is derived from the code.
func (p *Plugin) Manifest(kind string) manifest.Manifest {
	m := manifest.Manifest{
		Name: p.Name, Version: p.Version, Summary: p.Summary, Kind: kind,
		ProtocolMin: ProtocolMin, ProtocolMax: ProtocolMax, BatchFormat: batch.Format,
		Roles: map[manifest.Role]manifest.Facet{}, Grants: p.Grants,
	}
	for _, r := range []manifest.Role{manifest.Reader, manifest.Writer, manifest.Transform} {
		if f := p.Factory(r); f != nil {
			m.Roles[r] = f.Facet()
		}
	}
	return m
}

// Role returns what the factory's connectors are used as.
func (f *Factory) Role() manifest.Role { return f.role }

// Facet returns the level and the capabilities that follow from the code, and
// those added by With.
func (f *Factory) Facet() manifest.Facet { return f.facet }

// Open makes an instance from a configuration in JSON. Problems of the
// configuration are all reported at once; with any of them there is no instance.
func (f *Factory) Open(env Env, config []byte) (Connector, []Problem, error) {
	c := reflect.New(f.config)
	if problems := ParseConfig(config, c.Interface()); len(problems) > 0 {
		return nil, problems, nil
	}
	conn, err := f.open(env, c.Elem().Interface())
	return conn, nil, err
}
