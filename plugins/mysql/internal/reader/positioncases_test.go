package reader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// positionCases are inputs about positions and connections on which tools of this
// kind have gone wrong. Each has a database with a table t of its own.
var positionCases = []struct {
	id, name, only string
	run            func(t *testing.T, l *lab, db string)
}{
	{"B096", "stop inside of a compressed transaction", "mysql", func(t *testing.T, l *lab, db string) {
		p := l.pull(t, Switches{}, db, l.Addr())
		l.SQL("SET SESSION binlog_transaction_compression = ON; BEGIN;" + l.inserts(db, 0, 500) + "COMMIT;")
		p.must("a part", func() bool { return len(p.rows(db+".t")) > 0 })
		at, _, inside := strings.Cut(string(p.last.Source), "/")
		if n := len(p.rows(db + ".t")); n == 500 || !inside || at != string(p.first.Source) {
			t.Fatalf("%d rows at %s, the transaction begins at %s", n, p.last.Source, p.first.Source)
		}
		again := l.resume(t, Switches{}, db, p, l.Addr())
		again.must("the rest", again.has(db+".t", 500))
		again.same(l, db)
		if n := p.changes + again.changes; n-again.covered != 500 {
			t.Errorf("%d changes, %d of them covered", n, again.covered)
		}
	}},
	{"B106", "gaps in the set are kept", "mysql", func(t *testing.T, l *lab, db string) {
		const u = "aaaaaaaa-0106-0106-0106-aaaaaaaaaaaa"
		write := func(n int) string {
			return fmt.Sprintf("SET gtid_next = '%s:%d'; INSERT INTO %s.t VALUES (%d, 'x'); SET gtid_next = AUTOMATIC;", u, n, db, n)
		}
		p := l.pull(t, Switches{}, db, l.Addr())
		l.SQL(write(1) + write(2) + write(4))
		p.must("three rows", p.has(db+".t", 3))
		if !strings.Contains(string(p.last.Source), u+":1-2:4") {
			t.Errorf("position %s has no gap", p.last.Source)
		}
		_ = p.r.Close(t.Context())
		l.SQL(write(3))
		again := l.resume(t, Switches{}, db, p, l.Addr())
		again.must("the row in the gap", again.has(db+".t", 4))
		again.same(l, db)
	}},
	{"B107", "from a file and offset on a server with GTIDs", "", func(t *testing.T, l *lab, db string) {
		l.SQL("FLUSH BINARY LOGS; INSERT INTO " + db + ".t VALUES (1, 'before');")
		at := strings.Fields(l.SQL(l.status(), "-N"))
		l.SQL("PURGE BINARY LOGS TO '" + at[0] + "'; INSERT INTO " + db + ".t VALUES (2, 'after');")
		cfg := l.config(db, l.Addr())
		cfg.Start = "position:" + at[0] + ":" + at[1]
		p := pull(t, cfg, nil, nil)
		p.until("what came after", p.has(db+".t", 1))
		_ = p.r.Close(t.Context())
		again := pull(t, cfg, []sdk.Point{{Position: p.last}}, p.state)
		l.SQL("INSERT INTO " + db + ".t VALUES (3, 'later');")
		again.until("what came later", again.has(db+".t", 1))
	}},
	{"B108", "transactions of another writer that were purged", "mysql", func(t *testing.T, l *lab, db string) {
		const w = "bbbbbbbb-0108-0108-0108-bbbbbbbbbbbb"
		p := l.pull(t, Switches{}, db, l.Addr())
		l.SQL("INSERT INTO " + db + ".t VALUES (1, 'x');")
		p.must("a row", p.has(db+".t", 1))
		_ = p.r.Close(t.Context())
		l.SQL("SET gtid_next = '" + w + ":1'; CREATE DATABASE " + db + "_other; SET gtid_next = AUTOMATIC;")
		l.purge()
		_, err := l.open(t, Switches{}, db, []sdk.Point{{Position: p.last}}, p.state, l.Addr())
		var f *sdk.Fault
		if !errors.As(err, &f) || f.Code != sdk.CodePositionPurged || !strings.Contains(f.Message, w+":1") {
			t.Fatalf("%v, want that %s:1 was purged", err, w)
		}
		_, over, _ := strings.Cut(f.Suggestion, "the position without them is ")
		at, err := parseLive(over)
		if err != nil {
			t.Fatalf("%q: %v", f.Suggestion, err)
		}
		p.last = at // set on purpose
		again := l.resume(t, Switches{}, db, p, l.Addr())
		l.SQL("INSERT INTO " + db + ".t VALUES (2, 'x');")
		again.must("the next row", again.has(db+".t", 2))
	}},
	{"B109", "the stored position was purged", "", func(t *testing.T, l *lab, db string) {
		p := l.pull(t, Switches{}, db, l.Addr())
		l.SQL("INSERT INTO " + db + ".t VALUES (1, 'x');")
		l.purge()
		_ = p.r.Close(t.Context())
		for range 2 { // it does not jump by being asked again
			_, err := l.open(t, Switches{}, db, []sdk.Point{{Position: p.first}}, nil, l.Addr())
			var f *sdk.Fault
			if !errors.As(err, &f) || f.Code != sdk.CodePositionPurged || !strings.Contains(f.Message, string(p.first.Source)) || !strings.Contains(f.Suggestion, "onPurged: resnapshot") {
				t.Errorf("%v (%v)", err, f)
			}
		}
	}},
	{"B112", "a position beyond the end of its file", "", func(t *testing.T, l *lab, db string) {
		cfg := l.config(db, l.Addr())
		cfg.Start = "position:" + strings.Fields(l.SQL(l.status(), "-N"))[0] + ":99999999"
		_, err := tryPull(t, cfg, nil, nil)
		var f *sdk.Fault
		if !errors.As(err, &f) || f.Code != sdk.CodePositionUnknown || f.Retryable {
			t.Errorf("%v", err) // TestB112Clash has the other meaning of the server's code
		}
	}},
	{"B113", "a second execution of the task", "", func(t *testing.T, l *lab, db string) {
		old := l.pull(t, Switches{}, db, l.Addr())
		young := l.pull(t, Switches{}, db, l.Addr())
		l.SQL("INSERT INTO " + db + ".t VALUES (1, 'x');")
		young.must("a row", young.has(db+".t", 1))
		old.reach(20*time.Second, func() bool { return false })
		var f *sdk.Fault
		if !errors.As(old.err, &f) || f.Code != sdk.CodeUnavailable || !strings.Contains(f.Message, "server id") {
			t.Fatalf("the older execution: %v", old.err)
		}
		old.next(time.Second)
		if !errors.As(old.err, &f) {
			t.Errorf("the older execution went on: %v", old.err)
		}
	}},
	{"B115", "the connection is up and the server says nothing", "", func(t *testing.T, l *lab, db string) {
		p := l.pull(t, Switches{}, db, l.Addr())
		l.SQL("INSERT INTO " + db + ".t VALUES (1, 'x');")
		p.must("a row", p.has(db+".t", 1))
		l.Signal(syscall.SIGSTOP)
		begun := time.Now()
		gone := p.reach(10*time.Second, func() bool { return p.r.live.conn == nil })
		took := time.Since(begun)
		l.Signal(syscall.SIGCONT)
		if !gone || took > 3*p.r.live.period+5*time.Second {
			t.Errorf("left %v after %s; a heartbeat is due every %s", gone, took, p.r.live.period)
		}
		l.SQL("INSERT INTO " + db + ".t VALUES (2, 'y');")
		p.must("the next row", p.has(db+".t", 2))
	}},
	{"B116", "closing while nothing passes", "", func(t *testing.T, l *lab, db string) {
		w := newWire(t, l.Addr())
		p := l.pull(t, Switches{}, db, w.addr())
		w.silent.Store(true)
		begun := time.Now()
		if err := p.r.Close(context.Background()); err != nil || time.Since(begun) > 3*time.Second {
			t.Errorf("close took %s: %v", time.Since(begun), err)
		}
	}},
	{"B117", "a reader that does not read for longer than the server waits", "", func(t *testing.T, l *lab, db string) {
		p, err := l.prepare(t, Switches{}, db, nil, l.Addr())
		if err != nil {
			t.Fatal(err)
		}
		p.r.live.writeWait = 1
		if err := p.r.Open(t.Context(), sdk.Execution{Task: db}, nil, nil); err != nil {
			t.Fatal(err)
		}
		for i := range 8 {
			l.SQL(fmt.Sprintf("INSERT INTO %s.t VALUES (%d, REPEAT('x', 8000000));", db, i))
		}
		dumps := func() string {
			return strings.TrimSpace(l.SQL("SELECT COUNT(*) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'", "-N"))
		}
		for end := time.Now().Add(60 * time.Second); dumps() != "0"; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the server did not drop the connection")
			}
		}
		p.must("all rows", p.has(db+".t", 8))
		p.same(l, db)
		if p.changes != 8 {
			t.Errorf("%d changes", p.changes)
		}
	}},
	{"B046", "a key whose first column has few values", "", func(t *testing.T, l *lab, db string) {
		const chunk = 100
		l.SQL("CREATE TABLE " + db + ".c (a VARCHAR(10), b VARCHAR(20), c DATETIME(6), v INT, PRIMARY KEY (a, b, c));")
		var rows []string
		for i := range 3000 {
			rows = append(rows, fmt.Sprintf("('%s', 'b%05d', '2024-01-01 00:00:00.%06d', %d)", []string{"aaa", "bbb"}[i%2], i/7, i, i))
		}
		l.SQL("INSERT INTO " + db + ".c VALUES " + strings.Join(rows, ",") + ";")
		cfg := l.config(db, l.Addr())
		cfg.Start, cfg.Snapshot.ChunkRows, cfg.Snapshot.Parallel = "snapshot", chunk, 2
		p := pull(t, cfg, nil, nil)
		most, ranges := 0, 0
		p.seen = func(e *batch.Event) {
			if e.Kind != batch.Range || e.Schema.Table != "c" {
				return
			}
			r, err := e.KeyRange()
			if err != nil {
				t.Error(err)
				return
			}
			most, ranges = max(most, len(r.Keys)), ranges+1
		}
		p.until("all rows", p.has(db+".c", len(rows)))
		if most > chunk || ranges < len(rows)/chunk {
			t.Errorf("%d chunks, of %d rows at most", ranges, most)
		}
	}},
	{"B104", "several domains over a restart of the server", "mariadb", func(t *testing.T, l *lab, db string) {
		p := l.pull(t, Switches{}, db, l.Addr())
		for i, s := range []string{"gtid_domain_id = 1, server_id = 23", "gtid_domain_id = 1, server_id = 321", "gtid_domain_id = 0, server_id = 1073719201", "gtid_domain_id = 2, server_id = 5"} {
			l.SQL(fmt.Sprintf("SET SESSION %s; INSERT INTO %s.t VALUES (%d, 'x');", s, db, i))
		}
		p.must("rows", p.has(db+".t", 4))
		for _, part := range []string{"0-1073719201-", "1-321-", "2-5-"} {
			if !strings.Contains(string(p.last.Source), part) {
				t.Errorf("position %s lacks %s", p.last.Source, part)
			}
		}
		_ = p.r.Close(t.Context())
		l.Stop()
		l.Restart()
		again := l.resume(t, Switches{}, db, p, l.Addr())
		l.SQL("SET SESSION gtid_domain_id = 1, server_id = 23; INSERT INTO " + db + ".t VALUES (10, 'y'); SET SESSION gtid_domain_id = 3; INSERT INTO " + db + ".t VALUES (11, 'y');")
		again.must("the next rows", again.has(db+".t", 6))
		again.same(l, db)
	}},
	{"B105", "a promoted replica whose log never had what it replicated", "mariadb", func(t *testing.T, l *lab, db string) {
		l.SQL("SET GLOBAL gtid_slave_pos = CONCAT(@@gtid_binlog_pos, ',7-99-1000');")
		if current := l.SQL("SELECT @@gtid_current_pos", "-N"); !strings.Contains(current, "7-99-1000") {
			t.Fatalf("gtid_current_pos is %s", current)
		}
		p := l.pull(t, Switches{}, db, l.Addr())
		if want := strings.TrimSpace(l.SQL("SELECT @@gtid_binlog_pos", "-N")); string(p.first.Source) != want {
			t.Errorf("it begins at %s, the log ends at %s", p.first.Source, want)
		}
		l.SQL("INSERT INTO " + db + ".t VALUES (1, 'x');")
		p.must("a row", p.has(db+".t", 1))
		again := l.resume(t, Switches{}, db, p, l.Addr())
		l.SQL("INSERT INTO " + db + ".t VALUES (2, 'x');")
		again.must("the next row", again.has(db+".t", 2))
	}},
}

// TestPositionCases runs all of them at one server of each kind.
func TestPositionCases(t *testing.T) {
	for _, kind := range []string{"mysql", "mariadb"} {
		t.Run(kind, func(t *testing.T) {
			l := &lab{Server: stack.Start(t, kind, "--max-allowed-packet=64M")}
			for _, c := range positionCases {
				if c.only != "" && c.only != kind {
					continue
				}
				t.Run(c.id, func(t *testing.T) {
					l.SQL("CREATE DATABASE " + c.id + "; CREATE TABLE " + c.id + ".t (id INT PRIMARY KEY, v LONGTEXT);")
					c.run(t, l, c.id)
				})
			}
		})
	}
}

// must reads until ok is true, or ends the test.
func (p *probe) must(what string, ok func() bool) {
	p.tb.Helper()
	if !p.reach(60*time.Second, ok) {
		p.tb.Fatalf("%s did not come: %v; at %s", what, p.err, p.last.Source)
	}
}

func (p *probe) same(l *lab, db string) {
	p.tb.Helper()
	if d := p.differs(l, db); d != "" {
		p.tb.Error(d)
	}
}

// inserts are statements that write n rows.
func (l *lab) inserts(db string, from, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "INSERT INTO %s.t VALUES (%d, 'row %d');\n", db, from+i, i)
	}
	return b.String()
}

func (l *lab) status() string {
	if l.Kind == "mysql" {
		return "SHOW BINARY LOG STATUS"
	}
	return "SHOW BINLOG STATUS"
}

// purge begins a new file and removes those before.
func (l *lab) purge() {
	l.SQL("FLUSH BINARY LOGS;")
	if l.Kind != "mysql" { // MariaDB keeps a file until its engines have let go of it
		l.SQL("FLUSH BINARY LOGS; SET GLOBAL innodb_flush_log_at_trx_commit = 1;")
	}
	newest := strings.Fields(l.SQL(l.status(), "-N"))[0]
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		l.SQL("PURGE BINARY LOGS TO '" + newest + "';")
		files := slices.DeleteFunc(strings.Fields(l.SQL("SHOW BINARY LOGS", "-N")), func(s string) bool { return !strings.HasPrefix(s, "binlog.") })
		if len(files) == 1 || time.Now().After(end) {
			return
		}
	}
}
