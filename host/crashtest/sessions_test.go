package crashtest

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
)

// sourceOf writes a log of so many transactions.
func sourceOf(t *testing.T, seed uint64, transactions int) (s spec, want expected) {
	t.Helper()
	src := newModel(seed)
	src.transactions(transactions / 2)
	src.large(400)
	src.transactions(transactions / 2)
	log := filepath.Join(t.TempDir(), "crash.000001")
	if err := src.write(log); err != nil {
		t.Fatal(err)
	}
	return spec{files: log, tables: "crash.*"}, src.rows(false)
}

// TestServerPoints kills the writer of a real server at each of its fail points.
func TestServerPoints(t *testing.T) {
	s, want := sourceOf(t, 5, 120)
	var points []string
	for _, name := range failPoints(t) {
		switch {
		case !strings.HasPrefix(name, "rdbms."), name == "rdbms.row" && testing.Short():
		case strings.HasPrefix(name, "rdbms.claim"), strings.HasPrefix(name, "rdbms.prepare"):
			points = append(points, name+":1")
		default:
			points = append(points, name+":4")
		}
	}
	if len(points) < 12 {
		t.Fatalf("found %d fail points of the writer, want all: %q", len(points), points)
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			srv := &server{stack.Start(t, kind), t}
			t.Run("points", func(t *testing.T) {
				for _, point := range points {
					t.Run(point, func(t *testing.T) {
						t.Parallel()
						one := s
						one.writers = []writer{{name: "target", options: "keyless: append, lanes: 2", server: srv}}
						r := newRig(t, one)
						p := r.run("DATALINK_FAILPOINT=" + point)
						if code := p.wait(); code != 0 {
							t.Errorf("run ended with %d\n%s", code, p.tail())
						}
						r.after(p)
						if !strings.Contains(p.err.String(), "plugin did not close as it should") && !strings.Contains(p.err.String(), "killed") {
							t.Errorf("nothing was killed: the writer did not come by\n%s", p.tail())
						}
						r.finish(want)
					})
				}
			})
		})
	}
}

// commitHeld is how a server is brought to let sessions wait in COMMIT.
type commitHeld struct {
	hold, release []string // by one session
	waiting       string   // lists sessions that wait in COMMIT
	kill          string   // with the number of one in place of $1
	session       string   // finds that one
}

var holds = map[string]commitHeld{
	// A global read lock comes before the commit: what is ended there is undone.
	"mariadb": {[]string{"FLUSH TABLES WITH READ LOCK"}, []string{"UNLOCK TABLES"}, "SELECT id FROM information_schema.processlist WHERE info LIKE 'COMMIT%'", "KILL $1", "SELECT id FROM information_schema.processlist WHERE id = $1"},
	"mysql":   {[]string{"FLUSH TABLES WITH READ LOCK"}, []string{"UNLOCK TABLES"}, "SELECT id FROM information_schema.processlist WHERE info LIKE 'COMMIT%'", "KILL $1", "SELECT id FROM information_schema.processlist WHERE id = $1"},
	// A standby that is waited for comes behind it: what is ended there is written,
	// and the answer is lost.
	"postgres": {
		[]string{"ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()"},
		[]string{"ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()"},
		"SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'", "SELECT pg_terminate_backend($1)", "SELECT pid FROM pg_stat_activity WHERE pid = $1",
	},
}

// TestServerKilledInCommit ends the session of the writer while it is in COMMIT:
// the writer stops itself before it, and finds COMMIT blocked when it goes on.
func TestServerKilledInCommit(t *testing.T) {
	s, want := sourceOf(t, 6, 200)
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			srv := &server{stack.Start(t, kind), t}
			s := s
			s.writers = []writer{{name: "target", options: "keyless: append", server: srv}}
			for _, count := range []string{"2", "7"} {
				r := newRig(t, s)
				p := r.run("DATALINK_FAILPOINT=rdbms.applied:" + count + ":stop")
				srv.endInCommit(p, holds[kind], r.spec.writers[0].path)
				if code := p.wait(); code != 0 {
					t.Errorf("run ended with %d\n%s", code, p.tail())
				}
				r.after(p)
				r.equal(want)
				if !strings.Contains(p.err.String(), "the answer to the commit was lost") && kind == "mysql" {
					t.Errorf("no commit had its answer lost\n%s", p.tail())
				}
				r.finish(want)
			}
			if kind != "postgres" {
				return // what was ended there had no effect: there is nothing to find out
			}
			r := newRig(t, s)
			p := r.run("DATALINK_FAILPOINT=rdbms.applied:2:stop", "DATALINK_SWITCH=settle-off,batchno-off,skip-off")
			srv.endInCommit(p, holds[kind], r.spec.writers[0].path)
			p.wait()
			r.gone(p)
			if d := want.missing(t, r.spec.writers[0].path); d == "" {
				t.Errorf("no row differs although nobody asked whether the commit had an effect\n%s", p.tail())
			}
		})
	}
}

// endInCommit waits until the writer has stopped itself before COMMIT, lets it go
// on into one that waits, and ends its session there.
func (s *server) endInCommit(p *process, h commitHeld, path string) {
	s.t.Helper()
	w := p.stopped("rdbms")
	db := open(s.t, path)
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := db.Conn(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	exec := func(q string) {
		s.t.Helper()
		if _, err := c.ExecContext(ctx, q); err != nil {
			s.t.Fatalf("%s: %v", q, err)
		}
	}
	for _, q := range h.hold {
		exec(q)
	}
	if s.Kind == "postgres" { // a session takes the setting over between two statements
		until(s.t, "the server waits for a standby", func() bool {
			var now string
			return c.QueryRowContext(ctx, "SHOW synchronous_standby_names").Scan(&now) == nil && now != ""
		})
	}
	resume(w)
	var id int64
	until(s.t, "the writer is in COMMIT", func() bool {
		err := c.QueryRowContext(ctx, h.waiting).Scan(&id)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			s.t.Fatal(err)
		}
		return err == nil
	})
	exec(strings.Replace(h.kill, "$1", strconv.FormatInt(id, 10), 1))
	gone := func() bool {
		err := c.QueryRowContext(ctx, strings.Replace(h.session, "$1", strconv.FormatInt(id, 10), 1)).Scan(new(int64))
		return errors.Is(err, sql.ErrNoRows)
	}
	// MariaDB ends it only when it has committed, the others at once.
	for end := time.Now().Add(time.Second); s.Kind != "mariadb" && !gone() && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
	}
	for _, q := range h.release {
		exec(q)
	}
	until(s.t, "the session has ended", gone)
}

// TestServerRestarted kills the server itself while rows are written, and starts
// it again: the daemon waits for it and goes on.
func TestServerRestarted(t *testing.T) {
	s, want := sourceOf(t, 7, 800)
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			srv := &server{stack.Start(t, kind), t}
			s := s
			s.writers = []writer{{name: "target", options: "keyless: append, lanes: 2", server: srv}}
			r := newRig(t, s)
			p := r.run()
			target := r.spec.writers[0].path
			for range 2 {
				before := progressOf(t, target)
				until(t, "work goes on", func() bool { return p.ended() || advanced(before, progressOf(t, target), 2) })
				srv.Kill()
				until(t, "the server is gone", func() bool {
					c, ok := look(srv.PID)
					return !ok || c.state == 'Z'
				})
				srv.Restart()
				r.forward()
			}
			if code := p.wait(); code != 0 {
				t.Errorf("run ended with %d\n%s", code, p.tail())
			}
			r.after(p)
			r.finish(want)
		})
	}
}
