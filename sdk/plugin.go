package sdk

import (
	"reflect"

	"github.com/datalink-go/datalink/sdk/manifest"
)

// Versions of the protocol between host and plugin that this SDK speaks.
const (
	ProtocolMin = manifest.ProtocolMin
	ProtocolMax = manifest.ProtocolMax
)

// Plugin is what a connector's main hands to serve.Main.
type Plugin struct {
	Name    string
	Version string
	Summary string
	Grants  manifest.Grants

	Reader    *Factory // nil = the plugin has no such role
	Writer    *Factory
	Transform *Factory
}

// Factory makes instances of a connector from configurations of type C, a struct
// whose tags describe its options; see ParseConfig.
type Factory struct {
	role   manifest.Role
	facet  manifest.Facet
	config reflect.Type
	open   func(Env, any) (Connector, error)
}

// ReaderOf makes a Factory of a constructor of readers.
func ReaderOf[C any, R Reader](open func(Env, C) (R, error)) *Factory {
	return factory[C](manifest.Reader, open)
}

// WriterOf makes a Factory of a constructor of writers. The level follows from
// which of the writer interfaces the type W implements.
func WriterOf[C any, W Target](open func(Env, C) (W, error)) *Factory {
	return factory[C](manifest.Writer, open)
}

// TransformOf makes a Factory of a constructor of transforms.
func TransformOf[C any, T Transform](open func(Env, C) (T, error)) *Factory {
	return factory[C](manifest.Transform, open)
}

func factory[C any, T Connector](role manifest.Role, open func(Env, C) (T, error)) *Factory {
	config, facet := reflect.TypeFor[C](), facetOf(reflect.TypeFor[T](), role)
	facet.ConfigSchema = ConfigSchema(config)
	return &Factory{
		role:   role,
		facet:  facet,
		config: config,
		open: func(env Env, c any) (Connector, error) {
			v, err := open(env, c.(C))
			if err != nil {
				return nil, err
			}
			return v, nil
		},
	}
}

func facetOf(t reflect.Type, role manifest.Role) manifest.Facet {
	var f manifest.Facet
	if role == manifest.Writer {
		switch {
		case t.Implements(reflect.TypeFor[TransactionalWriter]()):
			f.Level = manifest.LevelTransactional
			f.Capabilities = append(f.Capabilities, manifest.CanPositions)
		case t.Implements(reflect.TypeFor[VersionedWriter]()):
			f.Level = manifest.LevelVersioned
		case t.Implements(reflect.TypeFor[IdempotentWriter]()):
			f.Level = manifest.LevelIdempotent
		}
	}
	for _, c := range []struct {
		name string
		is   reflect.Type
	}{
		{manifest.CanDiscover, reflect.TypeFor[Discoverer]()},
		{manifest.CanRelease, reflect.TypeFor[Releaser]()},
		{manifest.CanReadRange, reflect.TypeFor[RangeReader]()},
		{manifest.CanReadKeys, reflect.TypeFor[KeyReader]()},
		{manifest.CanSnapshot, reflect.TypeFor[Snapshotter]()},
		{manifest.CanScan, reflect.TypeFor[TargetScanner]()},
	} {
		if t.Implements(c.is) {
			f.Capabilities = append(f.Capabilities, c.name)
		}
	}
	return f
}

// With adds capabilities that do not follow from the code, such as
// manifest.CanLanes or manifest.FlatNames.
func (f *Factory) With(capabilities ...string) *Factory {
	f.facet.Capabilities = append(f.facet.Capabilities, capabilities...)
	return f
}

// ConfigTable returns the option table for the README, see ConfigTable.
func (f *Factory) ConfigTable() string { return ConfigTable(f.config) }
