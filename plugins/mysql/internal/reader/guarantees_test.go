package reader

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// lab is servers that know nothing of each other, for all guarantees.
type lab struct {
	*stack.Server
	other *stack.Server
	mixed *stack.Server // lets a transaction mix engines
}

// guarantee is one promise, the switch that breaks it, and a run that says what
// went wrong.
var guarantees = []struct {
	name string
	off  Switches
	run  func(t *testing.T, l *lab, db string, sw Switches) (wrong string)
}{
	{"resumes behind whole transactions only", Switches{WholeOff: true}, func(t *testing.T, l *lab, db string, sw Switches) string {
		w := newWire(t, l.Addr())
		p := l.pull(t, sw, db, w.addr())
		w.limit.Store(100_000)
		l.SQL("INSERT INTO " + db + ".t VALUES (1, REPEAT('a', 1000000)); INSERT INTO " + db + ".t VALUES (2, 'b');")
		p.reach(patient(sw), p.has(db+".t", 2))
		return p.differs(l, db)
	}},
	{"a purged position is noticed", Switches{PurgedOff: true}, func(t *testing.T, l *lab, db string, sw Switches) string {
		p := l.pull(t, sw, db, l.Addr())
		l.SQL("INSERT INTO " + db + ".t VALUES (1, 'a'); FLUSH BINARY LOGS; INSERT INTO " + db + ".t VALUES (2, 'a'); FLUSH BINARY LOGS;")
		p.reach(20*time.Second, p.has(db+".t", 2))
		at := p.first
		_ = p.r.Close(t.Context())
		name := ""
		for _, f := range strings.Fields(l.SQL("SHOW BINARY LOGS", "-N")) {
			if strings.HasPrefix(f, "binlog.") {
				name = f
			}
		}
		l.SQL("PURGE BINARY LOGS TO '" + name + "'; INSERT INTO " + db + ".t VALUES (3, 'a');")
		return noticed(t, l, sw, db, at, sdk.ErrPositionPurged, l.Addr())
	}},
	{"a server that never had the position is noticed", Switches{ForeignOff: true}, func(t *testing.T, l *lab, db string, sw Switches) string {
		p := l.pull(t, sw, db, l.Addr())
		l.SQL("INSERT INTO " + db + ".t VALUES (1, 'a');")
		p.reach(20*time.Second, p.has(db+".t", 1))
		_ = p.r.Close(t.Context())
		return noticed(t, l, sw, db, p.last, sdk.ErrPositionUnknown, l.other.Addr())
	}},
	{"a silent peer is left", Switches{SilenceOff: true}, func(t *testing.T, l *lab, db string, sw Switches) string {
		w := newWire(t, l.Addr())
		p := l.pull(t, sw, db, w.addr(), l.Addr())
		l.SQL("INSERT INTO " + db + ".t VALUES (1, 'a');")
		p.reach(20*time.Second, p.has(db+".t", 1))
		w.silent.Store(true)
		l.SQL("INSERT INTO " + db + ".t VALUES (2, 'b');")
		p.reach(patient(sw), p.has(db+".t", 2))
		return p.differs(l, db)
	}},
	{"a wrong checksum stops", Switches{ChecksumOff: true}, mangled(sdk.CodeCorruptSource, func(ev []byte) bool {
		if i := bytes.Index(ev, []byte("needle")); i >= 0 && binlog.Type(ev[4]).IsRows() {
			ev[i] = 'N'
		}
		return false
	})},
	{"an unknown event stops", Switches{UnknownOff: true}, mangled(sdk.CodeUnsupportedEvent, func(ev []byte) bool {
		found := bytes.Contains(ev, []byte("needle")) && binlog.Type(ev[4]).IsRows()
		if found {
			ev[4] = 200
		}
		return found
	})},
	{"an incident stops", Switches{IncidentOff: true}, func(t *testing.T, l *lab, db string, sw Switches) string {
		armed := false
		return mangled(sdk.CodeUnsupportedEvent, func(ev []byte) bool {
			armed = armed || bytes.Contains(ev, []byte("needle")) && binlog.Type(ev[4]).IsRows()
			if armed && binlog.Type(ev[4]) == binlog.Xid {
				ev[4], armed = byte(binlog.Incident), false
				return true
			}
			return false
		})(t, l, db, sw)
	}},
	{"a change as a statement stops", Switches{StmtOff: true}, func(t *testing.T, l *lab, db string, sw Switches) string {
		p := l.pull(t, sw, db, l.Addr())
		l.SQL("SET SESSION binlog_format = STATEMENT; INSERT INTO " + db + ".t VALUES (1, 'statement'); SET SESSION binlog_format = ROW; INSERT INTO " + db + ".t VALUES (2, 'row');")
		p.reach(20*time.Second, func() bool { return len(p.rows(db+".t")) > 0 })
		return noFault(p.err, &sdk.Fault{Code: sdk.CodeUnsupportedEvent})
	}},
	{"no place is told before its end is reached", Switches{EndOff: true}, func(t *testing.T, l *lab, db string, sw Switches) string {
		p := l.pull(t, sw, db, l.Addr())
		var b strings.Builder
		for i := range 500 {
			fmt.Fprintf(&b, "INSERT INTO %s.t VALUES (%d, 'x');\n", db, i)
		}
		l.SQL("BEGIN;" + b.String() + "COMMIT;")
		p.reach(20*time.Second, func() bool { return len(p.rows(db+".t")) > 0 })
		if n := len(p.rows(db + ".t")); n == 500 {
			t.Fatal("the transaction came in one block")
		}
		again := l.resume(t, sw, db, p, l.Addr())
		l.SQL("INSERT INTO " + db + ".t VALUES (1000, 'end');")
		again.reach(patient(sw), func() bool { return slices.Contains(again.rows(db+".t"), "1000|end") })
		return again.differs(l, db)
	}},
	{"where a prepared transaction lies is kept", Switches{PreparedOff: true}, func(t *testing.T, l *lab, db string, sw Switches) string {
		p := l.pull(t, sw, db, l.Addr())
		l.SQL("XA START '" + db + "'; INSERT INTO " + db + ".t VALUES (1, 'xa'); XA END '" + db + "'; XA PREPARE '" + db + "';")
		l.SQL("INSERT INTO " + db + ".t VALUES (2, 'b');")
		p.reach(20*time.Second, p.has(db+".t", 1))
		again := l.resume(t, sw, db, p, l.Addr())
		l.SQL("XA COMMIT '" + db + "';")
		again.reach(patient(sw), again.has(db+".t", 2))
		return again.differs(l, db)
	}},
	{"what was rolled back is not delivered", Switches{UndoneOff: true}, func(t *testing.T, l *lab, db string, sw Switches) string {
		l = &lab{Server: l.mixed}
		l.SQL("CREATE DATABASE " + db + "; CREATE TABLE " + db + ".t (id INT PRIMARY KEY, v LONGTEXT); CREATE TABLE " + db + ".m (id INT PRIMARY KEY) ENGINE=MyISAM;")
		p := l.pull(t, sw, db, l.Addr())
		l.SQL("USE " + db + "; BEGIN; INSERT INTO t VALUES (1, 'kept'); SAVEPOINT s; INSERT INTO t VALUES (2, 'undone'); INSERT INTO m VALUES (1); ROLLBACK TO SAVEPOINT s; COMMIT; INSERT INTO t VALUES (3, 'end');")
		p.reach(20*time.Second, func() bool { return slices.Contains(p.rows(db+".t"), "3|end") })
		return p.differs(l, db)
	}},
	{"writes of the opposite task are left out", Switches{OriginOff: true}, func(t *testing.T, l *lab, db string, sw Switches) string {
		l.SQL("USE " + db + "; CREATE TABLE datalink_progress (task VARCHAR(128) NOT NULL, task_uid VARCHAR(64) NOT NULL, writer VARCHAR(128) NOT NULL, lane INT NOT NULL, batch_no BIGINT UNSIGNED NOT NULL, PRIMARY KEY (task, writer, lane)) COLLATE utf8mb4_bin; INSERT INTO datalink_progress VALUES ('back', 'uid-back', 'w', 0, 0);")
		p := l.pull(t, sw, db, l.Addr())
		l.SQL("USE " + db + "; BEGIN; UPDATE datalink_progress SET batch_no = 1; INSERT INTO t VALUES (1, 'back'); COMMIT; INSERT INTO t VALUES (2, 'user');")
		p.reach(20*time.Second, func() bool { return slices.Contains(p.rows(db+".t"), "2|user") })
		if got := p.rows(db + ".t"); !slices.Equal(got, []string{"2|user"}) {
			return fmt.Sprintf("rows %q", got)
		}
		return ""
	}},
}

// TestGuarantees runs each guarantee as it is, when nothing must go wrong, and with
// its switch, when something must.
func TestGuarantees(t *testing.T) {
	options := []string{"--max-allowed-packet=64M"}
	l := &lab{stack.Start(t, "mysql", options...), stack.Start(t, "mysql", options...), stack.Start(t, "mariadb")}
	for i, g := range guarantees {
		t.Run(g.name, func(t *testing.T) {
			for k, sw := range []Switches{{}, g.off} {
				db := fmt.Sprintf("g%d_%d", i, k)
				l.SQL("CREATE DATABASE " + db + "; CREATE TABLE " + db + ".t (id INT PRIMARY KEY, v LONGTEXT);")
				wrong := g.run(t, l, db, sw)
				switch {
				case k == 0 && wrong != "":
					t.Errorf("it is not kept: %s", wrong)
				case k == 1 && wrong == "":
					t.Error("with its switch nothing goes wrong: this shows nothing")
				case k == 1:
					t.Logf("with its switch: %s", wrong)
				}
			}
		})
	}
}

// probe is a puller that does not end the test.
type probe struct {
	*puller
	first sdk.Position // at the start
}

func (l *lab) config(db string, addrs ...string) Config {
	cfg := liveConfig("latest", addrs...)
	cfg.TLS.Mode, cfg.Tables = "disabled", sdk.Strings{db + ".*"}
	cfg.IgnoreOrigins = sdk.Strings{"back"}
	cfg.Heartbeat = 300 * time.Millisecond
	return cfg
}

func (l *lab) pull(t *testing.T, sw Switches, db string, addrs ...string) *probe {
	t.Helper()
	p, err := l.open(t, sw, db, nil, nil, addrs...)
	if err != nil {
		t.Fatal(err)
	}
	format, version := p.r.PositionFormat()
	p.first = sdk.Position{Format: format, Version: version, Source: p.r.mark(nil)}
	return p
}

func (l *lab) open(t *testing.T, sw Switches, db string, points []sdk.Point, state map[string]batch.StateItem, addrs ...string) (*probe, error) {
	t.Helper()
	p, err := l.prepare(t, sw, db, state, addrs...)
	if err != nil {
		return nil, err
	}
	return p, p.r.Open(context.Background(), sdk.Execution{Task: db}, points, itemsOf(state))
}

// prepare makes a reader that is not open.
func (l *lab) prepare(t *testing.T, sw Switches, db string, state map[string]batch.StateItem, addrs ...string) (*probe, error) {
	t.Helper()
	r, err := New(sdk.Env{}, l.config(db, addrs...))
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	r.sw, r.live.patience = sw, 500*time.Millisecond
	p := newPuller(t, r, state)
	p.model.loose = true
	return &probe{puller: p}, nil
}

// resume goes on with what is stored, in a new reader.
func (l *lab) resume(t *testing.T, sw Switches, db string, p *probe, addrs ...string) *probe {
	t.Helper()
	at := p.last
	_ = p.r.Close(t.Context())
	again, err := l.open(t, sw, db, []sdk.Point{{Position: at}}, p.state, addrs...)
	if err != nil {
		t.Fatal(err)
	}
	again.model = p.model
	return again
}

// reach reads until ok is true, the reader has ended or the time is over.
func (p *probe) reach(d time.Duration, ok func() bool) bool {
	p.tb.Helper()
	for end := time.Now().Add(d); !ok() && p.err == nil && time.Now().Before(end); {
		p.next(100 * time.Millisecond)
	}
	return ok()
}

// differs compares the rows that came with those of the server.
func (p *probe) differs(l *lab, db string) string {
	p.tb.Helper()
	want := strings.Fields(l.SQL("SELECT CONCAT_WS('|', id, SHA2(v, 256)) FROM "+db+".t", "-N"))
	slices.Sort(want)
	var got []string
	for _, r := range p.rows(db + ".t") {
		id, v, _ := strings.Cut(r, "|")
		got = append(got, fmt.Sprintf("%s|%x", id, sha256.Sum256([]byte(v))))
	}
	slices.Sort(got)
	if slices.Equal(got, want) {
		return ""
	}
	return fmt.Sprintf("%d rows, the server has %d (%v)", len(got), len(want), p.err)
}

// patient is how long to wait for what comes as long as the guarantees are kept.
func patient(sw Switches) time.Duration {
	if sw == (Switches{}) {
		return 30 * time.Second
	}
	return 3 * time.Second
}

// noFault says what is wrong where an error is not of a kind.
func noFault(err, want error) string {
	if errors.Is(err, want) {
		return ""
	}
	return fmt.Sprintf("it ended with %v, want %v", err, want)
}

// noticed opens at a position that must be refused.
func noticed(t *testing.T, l *lab, sw Switches, db string, at sdk.Position, want error, addr string) string {
	t.Helper()
	p, err := l.open(t, sw, db, []sdk.Point{{Position: at}}, nil, addr)
	if err == nil {
		_ = p.r.Close(t.Context())
	}
	return noFault(err, want)
}

// mangled reads a row behind a wire that changes an event on its way.
func mangled(want sdk.Code, change func(ev []byte) bool) func(t *testing.T, l *lab, db string, sw Switches) string {
	return func(t *testing.T, l *lab, db string, sw Switches) string {
		w := newMangledWire(t, l.Addr(), change)
		p := l.pull(t, sw, db, w.addr())
		l.SQL("INSERT INTO " + db + ".t VALUES (1, 'needle'); INSERT INTO " + db + ".t VALUES (2, 'end');")
		p.reach(20*time.Second, func() bool { return slices.Contains(p.rows(db+".t"), "2|end") })
		return noFault(p.err, &sdk.Fault{Code: want})
	}
}
