package main

import (
	"context"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/sdk"
)

func TestOpenReader(t *testing.T) {
	for _, c := range []struct{ config, want string }{
		{`{"url":"postgres://u:hidden@h/db"}`, ""},
		{`{"url":"postgres://u:hidden@h/db","start":"position:0/16B3748"}`, ""},
		{`{"url":"postgres://u:hidden@h/db","start":"earliest"}`, "start: "},
		{`{"url":"postgres://u:hidden@h/db","slot":"No-Slot"}`, "slot: "},
		{`{"url":"postgres://u:hidden@h:x/db"}`, "not a PostgreSQL url"},
		{`{"url":"postgres://u:hidden@h/db","where":{"a.b":"x"}}`, "where: "},
		{`{"url":"mysql://u:hidden@h/db"}`, "mode: the log of MySQL"},
		{`{"url":"mysql://u:hidden@h/db","mode":"snapshot"}`, ""},
		{`{"url":"mariadb://u:hidden@h/db?tls=skip-verify","mode":"snapshot"}`, ""},
		{`{"url":"mysql://u:hidden@h/db?x=1","mode":"snapshot"}`, "unknown parameter x"},
		{`{"url":"sqlite:///tmp/a.db","mode":"snapshot","tables":["a","!b*"]}`, ""},
		{`{"url":"sqlite://","mode":"snapshot"}`, "url: "},
		{`{"url":"oracle://u:hidden@h","mode":"snapshot"}`, `found scheme "oracle"`},
		{`{"url":"sqlite:///tmp/a.db","mode":"poll"}`, "pollColumn: "},
		{`{"url":"sqlite:///tmp/a.db","mode":"poll","pollColumn":"at"}`, ""},
		{`{"url":"sqlite:///tmp/a.db","mode":"snapshot","tables":["[.a"]}`, "tables: "},
	} {
		p := plugin()
		conn, problems, err := p.Reader.Open(sdk.Env{}, []byte(c.config))
		got := ""
		for _, p := range problems {
			got += p.String() + "\n"
		}
		if err != nil {
			got += err.Error()
		}
		if c.want == "" && got != "" || !strings.Contains(got, c.want) || strings.Contains(got, "hidden") {
			t.Errorf("%s: got %q, want it to contain %q", c.config, got, c.want)
		}
		if got == "" {
			_ = conn.Close(context.Background())
		}
	}
}
