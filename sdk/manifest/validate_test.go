package manifest

import (
	"errors"
	"strings"
	"testing"
)

func valid() *Manifest {
	return &Manifest{
		Name: "my-sql2", Version: "1.0.0-rc.1+build", ProtocolMin: 1, ProtocolMax: 2, BatchFormat: 1, Kind: "process",
		Roles:     map[Role]Facet{Reader: {}, Writer: {Level: LevelTransactional}},
		Platforms: []Platform{{OS: "linux", Arch: "amd64", File: "my-sql2", SHA256: strings.Repeat("0a", 32)}},
	}
}

func TestValidate(t *testing.T) {
	if err := valid().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		change func(m *Manifest)
		want   string
	}{
		{func(m *Manifest) { m.Name = "../x" }, `name "../x"`},
		{func(m *Manifest) { m.Name = strings.Repeat("a", 65) }, "at most 64"},
		{func(m *Manifest) { m.Version = "v1" }, `version "v1"`},
		{func(m *Manifest) { m.ProtocolMin = 3 }, "protocol versions 3 to 2"},
		{func(m *Manifest) { m.ProtocolMin = 0 }, "protocol versions 0 to 2"},
		{func(m *Manifest) { m.BatchFormat = 0 }, "batch format 0"},
		{func(m *Manifest) { m.Kind = "" }, `kind ""`},
		{func(m *Manifest) { m.Roles = nil }, "no roles"},
		{func(m *Manifest) { m.Roles["sink"] = Facet{} }, `role "sink"`},
		{func(m *Manifest) { m.Roles[Writer] = Facet{} }, `writer of level ""`},
		{func(m *Manifest) { m.Roles[Reader] = Facet{Level: LevelVersioned} }, `reader of level "versioned"`},
		{func(m *Manifest) { m.Platforms[0].OS = "" }, `platform "/amd64"`},
		{func(m *Manifest) { m.Kind = "wasm" }, `platform "linux/amd64" of kind wasm`},
		{func(m *Manifest) { m.Platforms = append(m.Platforms, m.Platforms[0]) }, "twice"},
		{func(m *Manifest) { m.Platforms[0].File = "a/b" }, `file "a/b"`},
		{func(m *Manifest) { m.Platforms[0].File = ".." }, `file ".."`},
		{func(m *Manifest) { m.Platforms[0].SHA256 = "00" }, `sha256 "00"`},
		{func(m *Manifest) { m.Platforms[0].SHA256 = strings.Repeat("0A", 32) }, "sha256"},
		{func(m *Manifest) { m.Name, m.Version = "", "" }, `version ""`},
	} {
		m := valid()
		tt.change(m)
		err := m.Validate()
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
}
