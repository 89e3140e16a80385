package mysql

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/rowtest"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

var bg = context.Background()

// server is a server that several tests use, each with a database of its own.
type testServer struct {
	*stack.Server
	maria bool
}

// suite is run on both servers; each file of tests adds its own.
var suite = map[string]func(*testing.T, *testServer){}

func TestMariaDB(t *testing.T) { onServer(t, "mariadb") }
func TestMySQL(t *testing.T)   { onServer(t, "mysql") }

func onServer(t *testing.T, kind string) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	t.Parallel()
	s := &testServer{stack.Start(t, kind, "--innodb-buffer-pool-size=128M", "--innodb-flush-log-at-trx-commit=2", "--sync-binlog=0"), kind == "mariadb"}
	for name, f := range suite {
		t.Run(name, func(t *testing.T) { f(t, s) })
	}
}

// TestMain puts the servers' files where a sync costs nothing, if there is such a
// place: the tests ask what happens, not how fast.
func TestMain(m *testing.M) {
	if st, err := os.Stat("/dev/shm"); err == nil && st.IsDir() && os.Getenv("BENCH_STACK") == "" {
		os.Setenv("TMPDIR", "/dev/shm")
	}
	os.Exit(m.Run())
}

var databases atomic.Int64

// database makes an empty database.
func (s *testServer) database(t testing.TB) string {
	name := fmt.Sprintf("db%d", databases.Add(1))
	s.SQL("CREATE DATABASE " + name + " CHARACTER SET utf8mb4")
	return name
}

func (s *testServer) url(addr, database string) *url.URL {
	u, err := url.Parse("mysql://root@" + addr + "/" + database)
	if err != nil {
		panic(err)
	}
	return u
}

// writer makes a Writer of the database.
func (s *testServer) writer(t testing.TB, database string, change func(*Config)) *Writer {
	t.Helper()
	cfg := Config{URL: s.url(s.Addr(), database)}
	if change != nil {
		change(&cfg)
	}
	w, err := New(cfg)
	rowtest.Must(t, err)
	t.Cleanup(func() { rowtest.Must(t, w.Close(bg)) })
	return w
}

// admin opens a session of its own, apart from the writers'.
func (s *testServer) admin(t testing.TB) *session {
	t.Helper()
	w, err := New(Config{URL: s.url(s.Addr(), "mysql")})
	rowtest.Must(t, err)
	a, err := w.connect(bg, true)
	rowtest.Must(t, err)
	t.Cleanup(a.close)
	return a
}

func execution(id string, epoch uint64) sdk.Execution {
	return sdk.Execution{Task: "orders", TaskUID: "uid-1", StoreUID: "store-1", ID: id, Epoch: epoch, Writer: "w", Mapping: "m"}
}

func claim(t testing.TB, w *Writer, ex sdk.Execution) sdk.Claimed {
	t.Helper()
	c, err := w.Claim(bg, ex)
	rowtest.Must(t, err)
	return c
}

func at(n uint64) sdk.Position {
	return sdk.Position{Format: "test", Version: 1, Source: fmt.Appendf(nil, "%d", n)}
}

// next is the progress of batch n in a lane.
func next(lane int32, n uint64) sdk.Next {
	return sdk.Next{Point: sdk.Point{Writer: "w", Lane: lane, BatchNo: n, Position: at(n)}}
}

// begin prepares the tables and brings a transaction to where its changes are
// written.
func begin(w *Writer, n sdk.Next, changes ...sdk.Change) (sdk.Tx, error) {
	for i := range changes {
		if s := changes[i].Schema; s != nil {
			w.mu.Lock()
			known := w.plans[s] != nil
			w.mu.Unlock()
			if !known {
				if _, err := w.Prepare(bg, s); err != nil {
					return nil, err
				}
			}
		}
	}
	tx, err := w.Begin(bg, []int32{n.Lane})
	if err != nil {
		return nil, err
	}
	if err := tx.Fence(bg, []sdk.Next{n}); err != nil {
		_ = tx.Rollback(bg)
		return nil, err
	}
	bad, err := tx.Apply(bg, &sdk.Changes{Lane: n.Lane, Segments: [][]sdk.Change{changes}})
	if err == nil && len(bad) > 0 {
		err = bad[0].Err
	}
	if err != nil {
		_ = tx.Rollback(bg)
		return nil, err
	}
	return tx, nil
}

// write runs one transaction to its end.
func write(w *Writer, n sdk.Next, changes ...sdk.Change) error {
	tx, err := begin(w, n, changes...)
	if err != nil {
		return err
	}
	return tx.Commit(bg)
}

// rows reads with the server's own client: columns joined by blanks.
func (s *testServer) rows(database, query string) []string {
	out := s.SQL(query, "-N", "--default-character-set=utf8mb4", database)
	var rows []string
	for line := range strings.Lines(out) {
		rows = append(rows, strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", " "))
	}
	return rows
}

func insert(t testing.TB, s *batch.Schema, v ...any) sdk.Change {
	return rowtest.Change(t, sdk.Upsert, s, nil, v)
}

func remove(t testing.TB, s *batch.Schema, v ...any) sdk.Change {
	return rowtest.Change(t, sdk.Remove, s, v, nil)
}

// contains compares without case: the servers print types each in their way.
func contains(s, part string) bool {
	return strings.Contains(strings.ToLower(s), strings.ToLower(part))
}
