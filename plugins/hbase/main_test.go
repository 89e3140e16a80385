package main

import (
	"strings"
	"testing"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/readme"
)

func TestConfig(t *testing.T) {
	for _, c := range []struct{ config, want string }{
		{`{"zookeeper":"127.0.0.1:1"}`, ""},
		{`{"masters":["127.0.0.1:1"],"tables":{"a.b":{"rowKey":"{id}","columns":{"c":"f:q"}}}}`, ""},
		{`{}`, "either zookeeper or masters"},
		{`{"zookeeper":"127.0.0.1:1","masters":["m:1"]}`, "either zookeeper or masters"},
		{`{"zookeeper":"127.0.0.1:1","tables":{"a.b":{"columns":{"c":"q"}}}}`, "family:qualifier"},
		{`{"zookeeper":"127.0.0.1:1","version":"server"}`, "version"},
		{`{"zookeeper":"127.0.0.1:1","seenBy":["x"]}`, "UUID"},
	} {
		p := plugin()
		conn, problems, err := p.Writer.Open(sdk.Env{}, []byte(c.config))
		got := ""
		for _, p := range problems {
			got += p.String() + "\n"
		}
		if err != nil {
			got += err.Error()
		}
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want it to contain %q", c.config, got, c.want)
		}
		if conn != nil && got == "" {
			if err := conn.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestManifest(t *testing.T) {
	p := plugin()
	if got := p.Writer.Facet().Level; got != manifest.LevelVersioned {
		t.Errorf("level %q, want %q", got, manifest.LevelVersioned)
	}
}

func TestREADME(t *testing.T) { p := plugin(); readme.Check(t, "README.md", &p) }
