package main

import (
	"context"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/readme"
)

func TestOpen(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct{ config, want string }{
		{`{"url":"sqlite://a.db"}`, ""},
		{`{"url":"sqlite:///tmp/x/a.db","lanes":4,"keyless":"append","busyTimeout":"2s"}`, ""},
		{`{"url":"postgres://u:hidden@h/db","lanes":4,"schema":"s","triggers":"skip"}`, ""},
		{`{"url":"postgres://u:hidden@h:port/db"}`, "url: "},
		{`{"url":"postgres://u:hidden@h/db","schema":"pg_x"}`, "PostgreSQL's own"},
		{`{"url":"mysql://u:hidden@h/db","triggers":"skip"}`, "triggers: "},
		{`{}`, "url: "},
		{`{"url":"a.db"}`, "found no scheme, expected mysql://"},
		{`{"url":"oracle://u:hidden@h/db"}`, `found scheme "oracle", expected mysql`},
		{`{"url":"mysql://u:hidden@h/db","lanes":4,"rowsPerSecond":1000,"skipKeys":["a.b:1"]}`, ""},
		{`{"url":"mariadb://u:hidden@h:3307/db?tls=skip-verify","dryRun":true}`, ""},
		{`{"url":"mysql://u:hidden@h/"}`, "found no database"},
		{`{"url":"mysql://u:hid%zzden@h/db"}`, "cannot be read"},
		{`{"url":"mysql://u:hidden@h/db?tls=maybe"}`, "found tls=maybe"},
		{`{"url":"mysql://u:hidden@h/db?sslmode=1"}`, `found parameter "sslmode"`},
		{`{"url":"sqlite://a.db","dryRun":true}`, "cannot rehearse"},
		{`{"url":"sqlite://a.db","skipKeys":["x"]}`, "expected TABLE:KEY"},
		{`{"url":"sqlite://"}`, "names no file"},
		{`{"url":"sqlite:///a/"}`, "names no file"},
		{`{"url":"sqlite://a.db","keyless":"maybe"}`, "keyless: "},
		{`{"url":"sqlite://a.db","bulks":1}`, "bulks"},
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
		if c.want == "" && got != "" || !strings.Contains(got, c.want) || strings.Contains(got, "hid") {
			t.Errorf("%s: got %q, want it to contain %q", c.config, got, c.want)
		}
		if conn != nil && got == "" {
			if l, ok := conn.(interface{ Lanes() int32 }); !ok || l.Lanes() < 1 {
				t.Errorf("%s: the connector does not say how many lanes it wants", c.config)
			}
			if err := conn.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestManifest(t *testing.T) {
	p := plugin()
	f := p.Manifest("process").Roles[manifest.Writer]
	if f.Level != manifest.LevelTransactional {
		t.Errorf("level %q, want %q", f.Level, manifest.LevelTransactional)
	}
	for _, want := range []string{manifest.CanPositions, manifest.CanScan, manifest.CanRelease, manifest.CanDiscover, manifest.CanLanes, manifest.FlatNames} {
		if !strings.Contains(strings.Join(f.Capabilities, " "), want) {
			t.Errorf("capabilities %v lack %q", f.Capabilities, want)
		}
	}
}

func TestReadme(t *testing.T) {
	p := plugin()
	readme.Check(t, "README.md", &p)
}
