package supervisor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/wire"
)

// TestNoGoodPlugins starts programs that are no plugins, or not for this host.
func TestNoGoodPlugins(t *testing.T) {
	for _, tt := range []struct {
		kind string
		is   error    // nil = any
		says []string // parts of the message
	}{
		{"future", ErrProtocol, []string{"plugin oddball", "host speaks 1 to 2", "Plugin version: 7"}},
		{"garbage", nil, []string{"plugin oddball", "Hello, world!", "is it a DataLink connector"}},
		{"netrpc", nil, []string{"plugin oddball", "netrpc"}},
		{"crash", pipeline.ErrDied, []string{"oddball", "during start", "exit status 2", "panic: no stomach for this"}},
		{"silent", nil, []string{"plugin oddball", "timeout"}},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			_, _, err := tryLaunch(t, "oddball", manifest.Reader, func(c *Config) {
				c.Env = []string{"ODDBALL=" + tt.kind}
				if tt.kind == "silent" {
					c.StartTimeout = 300 * time.Millisecond
				}
			})
			if err == nil {
				t.Fatal("it was accepted")
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%v, want %v", err, tt.is)
			}
			for _, s := range tt.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("error %q does not say %q", err, s)
				}
			}
		})
	}
}

// TestPreviousProtocol runs a plugin that was made with the generated code for
// the version before, so that the hand-made codec and the .proto are compared on
// the wire.
func TestPreviousProtocol(t *testing.T) {
	ctx := context.Background()
	c, _, err := tryLaunch(t, "previous", manifest.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if c.Protocol() != 1 || c.Manifest().Version != "0.9.0" {
		t.Errorf("protocol %d, version %s, want 1 and 0.9.0", c.Protocol(), c.Manifest().Version)
	}
	a, err := c.Configure(ctx, []byte(`{}`), "")
	want := []sdk.Problem{{Path: "good", Found: "{}", Expected: "true", Message: "must be good"}}
	if err != nil || !cmp.Equal(a.Problems, want) {
		t.Errorf("Configure = %+v, %v, want problems %v", a, err, want)
	}
	if _, err := c.Configure(ctx, []byte(`{"good":true}`), ""); err != nil {
		t.Fatal(err)
	}
	_, err = c.Check(ctx)
	fault := &sdk.Fault{Code: sdk.CodeUnauthorized, Message: "not you", Suggestion: "be another"}
	if d := cmp.Diff(error(fault), err); d != "" {
		t.Errorf("Check: fault (-want +got)\n%s", d)
	}
	p := sdk.Position{Format: "x", Version: 2, Source: []byte{0, 255}, Ordinal: 1 << 40}
	if o, err := c.ComparePositions(p, p); o != sdk.Equal || err != nil {
		t.Errorf("ComparePositions = %s, %v, want equal", o, err)
	}
	if err := c.Durable(ctx, p); !errors.Is(err, &sdk.Fault{Code: sdk.CodeUnimplemented}) {
		t.Errorf("a call it does not have: %v, want code %s", err, sdk.CodeUnimplemented)
	}
	s, err := c.Open(ctx, &wire.OpenRequest{Points: []sdk.Point{{Writer: "a", Lane: -1}, {Writer: "b", Lane: 2, BatchNo: 3, Position: p}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Grant(7, 8); err != nil {
		t.Fatal(err)
	}
	r, err := s.Recv()
	last := sdk.Position{Format: "previous", Version: 3, Source: []byte("end"), Ordinal: 2}
	if err != nil || !r.End || !cmp.Equal(r.Last, last) {
		t.Errorf("Recv = %+v, %v, want the end at %+v", r, err, last)
	}
	if err := c.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// TestClaims compares what a package claims with what the code is.
func TestClaims(t *testing.T) {
	claim := func(change func(*manifest.Manifest)) *manifest.Manifest {
		m := &manifest.Manifest{Name: "fixture", Version: "1.2.3", Roles: map[manifest.Role]manifest.Facet{
			manifest.Writer: {Level: manifest.LevelTransactional, Capabilities: []string{manifest.CanPositions}},
		}}
		change(m)
		return m
	}
	level := func(l manifest.Level, caps ...string) func(*manifest.Manifest) {
		return func(m *manifest.Manifest) { m.Roles[manifest.Writer] = manifest.Facet{Level: l, Capabilities: caps} }
	}
	for _, tt := range []struct {
		name  string
		claim *manifest.Manifest
		role  manifest.Role
		want  error
	}{
		{"true", claim(func(*manifest.Manifest) {}), manifest.Writer, nil},
		{"none", nil, manifest.Writer, nil},
		{"other level", claim(level(manifest.LevelVersioned)), manifest.Writer, ErrLevel},
		{"ability too many", claim(level(manifest.LevelTransactional, manifest.CanScan)), manifest.Writer, ErrManifest},
		{"other version", claim(func(m *manifest.Manifest) { m.Version = "1.2.4" }), manifest.Writer, ErrManifest},
		{"other name", claim(func(m *manifest.Manifest) { m.Name = "mysql" }), manifest.Writer, ErrManifest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := tryLaunch(t, "fixture", tt.role, func(c *Config) { c.Manifest = tt.claim })
			if !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
		})
	}
}

func TestManifestOfRole(t *testing.T) {
	if _, err := checkManifest([]byte(`{"protocolMin":1,"protocolMax":2,"batchFormat":1,"roles":{"reader":{}}}`), nil, manifest.Writer, 2); !errors.Is(err, ErrManifest) {
		t.Errorf("a reader as writer: %v, want %v", err, ErrManifest)
	}
	if _, err := checkManifest([]byte(`{"protocolMin":1,"protocolMax":2,"batchFormat":9,"roles":{"reader":{}}}`), nil, manifest.Reader, 2); !errors.Is(err, ErrProtocol) {
		t.Errorf("another block format: %v, want %v", err, ErrProtocol)
	}
}

func TestLimits(t *testing.T) {
	host := withDefaults(wire.Limits{})
	for _, tt := range []struct {
		name string
		got  wire.Limits
		says string // "" = accepted
	}{
		{"same", host, ""},
		{"none", wire.Limits{}, ""},
		{"larger block", wire.Limits{Block: host.Block + 1}, "limit of block"},
		{"larger record", wire.Limits{Record: host.Record + 1}, "limit of record"},
		{"message below block", wire.Limits{Message: 1 << 20, Block: 2 << 20}, "no full block could pass"},
		{"record above block", wire.Limits{Block: 1 << 20, Record: 2 << 20}, "above that of block"},
	} {
		err := checkLimits("p", host, tt.got)
		if tt.says == "" && err != nil || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%s: %v, want an error that says %q", tt.name, err, tt.says)
		}
	}
}
