package reader

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/sdk"
)

// TestDoctor holds Check to what it must see, at servers that are set up badly.
func TestDoctor(t *testing.T) {
	for _, c := range []struct {
		kind    string
		options []string
		grants  string
		want    map[string]sdk.Severity
		not     []string
	}{
		{"mysql", nil, "REPLICATION SLAVE, REPLICATION CLIENT, SELECT", map[string]sdk.Severity{"time_zone": sdk.Info, "server": sdk.Info}, []string{"privileges", "binlog_format", "gtid_mode", "retention"}},
		{
			"mysql",
			[]string{"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF", "--binlog-row-image=MINIMAL", "--binlog-row-value-options=PARTIAL_JSON", "--binlog-row-metadata=MINIMAL", "--binlog-expire-logs-seconds=3600", "--max-allowed-packet=1M"},
			"SELECT",
			map[string]sdk.Severity{
				"gtid_mode": sdk.Warning, "binlog_row_image": sdk.Warning, "binlog_row_value_options": sdk.Error, "binlog_row_metadata": sdk.Warning,
				"retention": sdk.Warning, "max_allowed_packet": sdk.Warning, "privileges": sdk.Error,
			},
			nil,
		},
		{"mariadb", nil, "REPLICATION SLAVE, BINLOG MONITOR, SELECT", map[string]sdk.Severity{"time_zone": sdk.Info}, []string{"privileges", "binlog_format", "gtid_strict_mode"}},
		{
			"mariadb",
			[]string{"--binlog-format=MIXED", "--gtid-strict-mode=0", "--binlog-row-metadata=NO_LOG", "--expire-logs-days=0.01"},
			"SELECT, INSERT",
			map[string]sdk.Severity{"binlog_format": sdk.Error, "gtid_strict_mode": sdk.Warning, "binlog_row_metadata": sdk.Warning, "privileges": sdk.Error},
			nil,
		},
		{"mariadb", nil, "REPLICATION SLAVE, BINLOG MONITOR, INSERT", map[string]sdk.Severity{"privileges": sdk.Error}, nil}, // sees tables and may not read them
		{"mariadb", []string{"--skip-log-bin"}, "SELECT", map[string]sdk.Severity{"log_bin": sdk.Error}, nil},
	} {
		t.Run(c.kind+strings.Join(c.options, ""), func(t *testing.T) {
			s := stack.Start(t, c.kind, c.options...)
			s.SQL(fmt.Sprintf("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY); CREATE USER dl@'%%' IDENTIFIED BY 'p'; GRANT %s ON *.* TO dl@'%%';", c.grants))
			cfg := liveConfig("latest", s.Addr())
			cfg.User, cfg.Password = "dl", sdk.NewSecret("p")
			r, err := New(sdk.Env{}, cfg)
			if err != nil {
				t.Fatal(err)
			}
			found, err := r.Check(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]sdk.Severity{}
			for _, f := range found {
				_, subject, _ := strings.Cut(f.Subject, ": ")
				got[subject] = max(got[subject], f.Severity)
				if f.Severity > sdk.Info && f.Advice == "" {
					t.Errorf("no advice: %+v", f)
				}
			}
			for subject, want := range c.want {
				if sev, ok := got[subject]; !ok || sev != want {
					t.Errorf("%s: found %v %v, want %v; all: %+v", subject, ok, sev, want, found)
				}
			}
			for _, subject := range c.not {
				if sev, ok := got[subject]; ok && sev > sdk.Info {
					t.Errorf("%s: %v; all: %+v", subject, sev, found)
				}
			}
		})
	}
	r, err := New(sdk.Env{}, liveConfig("latest", "127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	if found, err := r.Check(t.Context()); err != nil || len(found) != 1 || found[0].Severity != sdk.Error {
		t.Errorf("no server: %+v, %v", found, err)
	}
}

// TestStarts begins in every way, and goes on from a file position at a server
// with GTIDs.
func TestStarts(t *testing.T) {
	for _, f := range flavours {
		t.Run(f.name, func(t *testing.T) {
			s := stack.Start(t, f.kind, f.options...)
			s.SQL("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY); INSERT INTO a.t VALUES (1); FLUSH BINARY LOGS; SET TIMESTAMP = 1700000000; INSERT INTO a.t VALUES (2); FLUSH BINARY LOGS; SET TIMESTAMP = 1700001000; INSERT INTO a.t VALUES (3);")
			status := "SHOW BINARY LOG STATUS"
			if f.kind == "mariadb" {
				status = "SHOW BINLOG STATUS"
			}
			at := strings.Fields(s.SQL(status, "-N"))
			s.SQL("INSERT INTO a.t VALUES (4);")
			for i, c := range []struct {
				start string
				want  []string
			}{
				{"earliest", []string{"1", "2", "3", "4", "90"}},
				{"latest", []string{"91"}},
				{"position:none", []string{"1", "2", "3", "4", "90", "91", "92"}},
				{"position:" + at[0] + ":" + at[1], []string{"4", "90", "91", "92", "93"}},
				{"time:" + time.Now().Add(time.Hour).UTC().Format(time.RFC3339), nil},
			} {
				p := pull(t, liveConfig(c.start, s.Addr()), nil, nil)
				s.SQL(fmt.Sprintf("INSERT INTO a.t VALUES (%d);", 90+i))
				if c.want == nil {
					p.until("the end of the log", func() bool { return p.beats > 0 })
				} else {
					p.until("the last row", p.has("a.t", len(c.want)))
				}
				if got := p.rows("a.t"); strings.Join(got, ",") != strings.Join(c.want, ",") {
					t.Errorf("%s: rows %q, want %q", c.start, got, c.want)
				}
				if strings.HasPrefix(c.start, "position:b") { // B107
					again := pull(t, liveConfig("earliest", s.Addr()), []sdk.Point{{Position: p.last}}, p.state)
					s.SQL("INSERT INTO a.t VALUES (10);")
					again.until("the next row", again.has("a.t", 1))
				}
				_ = p.r.Close(t.Context())
			}
		})
	}
}
