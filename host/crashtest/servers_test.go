package crashtest

import (
	"database/sql"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // reads targets without code of the connector
	_ "github.com/jackc/pgx/v5/stdlib" // reads targets without code of the connector
	"golang.org/x/sys/unix"

	"github.com/datalink-go/datalink/examples/stack"
)

// server is a database server in which each rig has a database of its own.
type server struct {
	*stack.Server
	t *testing.T
}

var databases atomic.Int64

// database makes a new one and returns its url.
func (s *server) database() string {
	name := fmt.Sprintf("crash%d", databases.Add(1))
	user := "root"
	if s.Kind == "postgres" {
		user = "postgres"
	}
	s.SQL("CREATE DATABASE " + name + ";")
	return fmt.Sprintf("%s://%s@%s/%s", s.Kind, user, s.Addr(), name)
}

// home is where the tables of a target are: its database, or a schema in it.
func (s *server) home(path string) string { return schemaOf(path) }

func schemaOf(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.Scheme == "postgres" {
		return "crash"
	}
	return strings.TrimPrefix(u.Path, "/")
}

func isURL(path string) bool { return strings.Contains(path, "://") }

// urlOf is what a task file says of a target.
func urlOf(path string) string {
	if isURL(path) {
		return path
	}
	return "sqlite://" + path
}

// dsn is how the database's own driver names a target.
func dsn(path string) (driver, source string) {
	u, err := url.Parse(path)
	if err != nil {
		panic(err)
	}
	if u.Scheme == "postgres" {
		return "pgx", path
	}
	return "mysql", fmt.Sprintf("root@tcp(%s)%s", u.Host, u.Path)
}

func tablesOf(t *testing.T, db *sql.DB, path string) []string {
	t.Helper()
	if !isURL(path) {
		return rowsAsText(t, db, "SELECT name FROM sqlite_schema WHERE type = 'table'")
	}
	return rowsAsText(t, db, "SELECT CONCAT(table_name, '') FROM information_schema.tables WHERE table_schema IN ('"+schemaOf(path)+"', 'public')")
}

// within is the name of a table in a target.
func within(path, name string) string {
	if !isURL(path) {
		return quote(name)
	}
	if strings.HasPrefix(path, "postgres") {
		return schemaOf(path) + "." + quote(name)
	}
	return "`" + name + "`"
}

var kinds = []string{"mariadb", "mysql", "postgres"}

// TestServerKills kills random processes of a task that writes to a real server:
// keyed rows, and rows of a table without a key, each once.
func TestServerKills(t *testing.T) {
	rounds := int(fromEnv(t, "DATALINK_CRASH_ROUNDS", 40)) / 8
	seed := fromEnv(t, "DATALINK_CRASH_SEED", uint64(time.Now().UnixNano()))
	fmt.Printf("random kills at servers: %d rounds each, DATALINK_CRASH_SEED=%d\n", rounds, seed)
	src := newModel(seed)
	for range 3 {
		src.transactions(150)
		src.large(400)
	}
	log := filepath.Join(t.TempDir(), "crash.000001")
	if err := src.write(log); err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			s := &server{stack.Start(t, kind), t}
			for _, options := range []string{"keyless: append", "keyless: append, lanes: 3"} {
				w := &workload{want: src.rows(false), spec: spec{files: log, tables: "crash.*", writers: []writer{{name: "target", options: options, server: s}}}}
				r := newRig(t, w.spec)
				r.finish(w.want)
				w.end = progressOf(t, r.spec.writers[0].path)["crash/target/0"]
				for i := range rounds {
					t.Run(fmt.Sprint(options, " ", i), func(t *testing.T) {
						rng := rand.New(rand.NewPCG(seed, uint64(i)))
						r := newRig(t, w.spec)
						if rng.IntN(3) == 0 {
							r.serveAndKill(rng, w)
						} else {
							r.runAndKill(rng, w)
						}
						r.finish(w.want)
					})
				}
			}
		})
	}
}

// TestServerTwin is the story of the worker that wakes up late, at real servers:
// stopped with rows read and not sent, all of it, while another writes everything.
func TestServerTwin(t *testing.T) {
	src := newModel(3)
	src.transactions(400)
	log := filepath.Join(t.TempDir(), "crash.000001")
	if err := src.write(log); err != nil {
		t.Fatal(err)
	}
	want := src.rows(false)
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			s := &server{stack.Start(t, kind), t}
			for _, tt := range []struct {
				name, off string
				differ    bool
			}{
				{"all checks on", "", false},
				{"none of them", "epoch-off,batchno-off,locks-off,count-off", true},
			} {
				t.Run(tt.name, func(t *testing.T) {
					late := newRig(t, spec{files: log, tables: "crash.*", writers: []writer{{name: "target", server: s}}})
					target := late.spec.writers[0].path
					p := late.run("DATALINK_FAILPOINT=pipeline.sending:6:stop", "DATALINK_SWITCH="+tt.off)
					until(t, "the first daemon stops itself", func() bool { return p.ended() || halted(p.pid()) })
					if p.ended() {
						t.Fatalf("the first daemon ended instead of stopping itself\n%s", p.tail())
					}
					settled(t, target)
					plugins := p.children()
					for _, c := range plugins {
						c.signal(unix.SIGSTOP)
					}
					owner := newRig(t, late.spec)
					env := []string(nil)
					if tt.off != "" {
						env = []string{"DATALINK_SWITCH=locks-off"} // or it would end the late one's sessions
					}
					owner.ends(start(t, append(env, small...), "run", owner.file, "--data-dir", owner.data, "--take-over", "--output", "json"), 0)
					owner.equal(want)
					claimed := progressOf(t, target)
					for _, c := range plugins {
						resume(c)
					}
					if err := p.cmd.Process.Signal(unix.SIGCONT); err != nil {
						t.Fatal(err)
					}
					code := p.wait()
					late.gone(p)
					d := want.missing(t, target)
					if tt.differ {
						if d == "" {
							t.Errorf("the late daemon wrote nothing although nothing stopped it, it ended with %d\n%s", code, p.tail())
						}
						return
					}
					if d != "" {
						t.Errorf("the late daemon wrote after the claim:\n%s", d)
					}
					if now := progressOf(t, target); !maps.Equal(now, claimed) {
						t.Errorf("progress is %+v, it was %+v after the owner had ended", now, claimed)
					}
					if code != fenced {
						t.Errorf("the late daemon ended with %d, want %d\n%s", code, fenced, p.tail())
					}
				})
			}
		})
	}
}
