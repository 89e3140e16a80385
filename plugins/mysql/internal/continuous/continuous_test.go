package continuous

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/mysql/alltypes"
	"github.com/datalink-go/datalink/plugins/mysql/internal/reader"
	"github.com/datalink-go/datalink/plugins/mysql/internal/replica"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// seconds is how long each server is written to: DATALINK_CONTINUOUS, default 8.
func seconds() time.Duration {
	if n, err := strconv.Atoi(os.Getenv("DATALINK_CONTINUOUS")); err == nil {
		return time.Duration(n) * time.Second
	}
	return 8 * time.Second
}

func seed() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("DATALINK_SEED"), 10, 64); err == nil {
		return n
	}
	return uint64(time.Now().UnixNano()) % 1e6
}

// keep copies the logs of a run that failed to where DATALINK_KEEP says.
func keep(t *testing.T, srv *stack.Server) {
	dir := os.Getenv("DATALINK_KEEP")
	if !t.Failed() || dir == "" {
		return
	}
	logs, _ := filepath.Glob(filepath.Join(srv.Facts["datadir"], "*log.0*"))
	for _, l := range logs {
		if data, err := os.ReadFile(l); err == nil {
			_ = os.WriteFile(filepath.Join(dir, srv.Kind+"-"+filepath.Base(l)), data, 0o600)
		}
	}
}

// TestContinuous reads the files of a server that eight sessions write to, with a
// reader that is killed at random, and compares all tables at the end.
func TestContinuous(t *testing.T) {
	if os.Getenv("DATALINK_CONTINUOUS") == "" {
		t.Skip("optional: make soak runs it; it finds faults that are still open, see README.md of plugins/mysql")
	}
	for _, s := range []struct {
		name    string
		kind    string
		options []string
	}{
		{"mysql", "mysql", []string{"--binlog-row-metadata=MINIMAL", "--max-binlog-size=4M"}},
		{"mariadb", "mariadb", []string{"--binlog-row-metadata=NO_LOG", "--max-binlog-size=4M", "--sync-binlog=1"}},
	} {
		t.Run(s.name, func(t *testing.T) {
			srv := stack.Start(t, s.kind, append(s.options, "--log-bin=log")...)
			db, err := sql.Open("mysql", "root@tcp("+srv.Addr()+")/?multiStatements=true")
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			which := alltypes.MySQL
			if s.kind == "mariadb" {
				which = alltypes.MariaDB
			}
			seed := seed()
			t.Logf("DATALINK_SEED=%d", seed)
			ctx := context.Background()
			src, err := New(ctx, db, which, seed)
			if err != nil {
				t.Fatal(err)
			}
			src.Pause = 2 * time.Millisecond
			t.Cleanup(func() { keep(t, srv) })
			f := &replica.Follower{
				New: func() (sdk.Reader, error) {
					return reader.New(sdk.Env{}, reader.Config{Files: sdk.Strings{filepath.Join(srv.Facts["datadir"], "log.0*")}, Tables: sdk.Strings{Database + ".*"}, Start: "earliest", DDL: "apply", MaxEvent: 1 << 30, MaxWindow: 64 << 20})
				},
				Limits: batch.Limits{Events: 50}, Replica: replica.New(),
			}
			busy, stop := context.WithTimeout(ctx, seconds())
			defer stop()
			wrote := make(chan struct{})
			go func() {
				defer close(wrote)
				src.Write(busy, db, 8)
			}()
			r := rand.New(rand.NewPCG(seed, 99))
			for done := false; !done; {
				select {
				case <-wrote:
					done = true
				default:
				}
				life, kill := context.WithTimeout(ctx, time.Duration(20+r.IntN(400))*time.Millisecond)
				err := f.Run(life, 0)
				kill()
				// A file ends wherever the server has got to with writing it.
				var fault *sdk.Fault
				if err != nil && !(errors.As(err, &fault) && fault.Code == sdk.CodeCorruptSource && !done) {
					t.Fatal(err)
				}
				if err != nil || f.Opened%10 == 0 {
					time.Sleep(5 * time.Millisecond)
				}
			}
			quiet(t, db)
			if err := f.Run(ctx, 0); err != nil {
				t.Fatal(err)
			}
			c, err := db.Conn(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			d, err := f.Replica.Compare(ctx, c, Database, func(n string) bool { return n == "mark" })
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d transactions, %d rolled back, %d by XA, %d statements, %d schema changes; %d readers, events %v; %d tables, %d rows, %d cells equal, %d unknown", src.Committed.Load(), src.RolledBack.Load(), src.XA.Load(), src.Changes.Load(), src.Schema.Load(), f.Opened, f.Replica.Events, d.Tables, d.Rows, d.Cells, d.Unknown)
			if len(d.Found) > 0 {
				t.Errorf("differences (DATALINK_SEED=%d):\n%s", seed, strings.Join(d.Found[:min(len(d.Found), 20)], "\n"))
			}
			if d.Rows < 20 || src.Schema.Load() < 1 || d.Unknown > d.Cells {
				t.Errorf("too little was done: %s", fmt.Sprint(d))
			}
		})
	}
}

// live follows servers over their connections.
func live(addrs ...string) *replica.Follower {
	return &replica.Follower{
		Limits: batch.Limits{Events: 5}, Replica: replica.New(),
		New: func() (sdk.Reader, error) {
			return reader.New(sdk.Env{Task: "continuous"}, reader.Config{
				Address: addrs, User: "root", Tables: sdk.Strings{Database + ".*"}, Start: "latest", DDL: "apply", OnStatement: "stop", OnUnknownTable: "stop",
				OnlineChanges: "recognize", Cascades: "stop", Heartbeat: 300 * time.Millisecond, MaxEvent: 1 << 30, MaxWindow: 64 << 20,
			})
		},
	}
}

// TestContinuousLive reads a server over its connection while eight sessions write
// to it; the reader is killed at random, and the server once, with SIGKILL.
func TestContinuousLive(t *testing.T) {
	if os.Getenv("DATALINK_CONTINUOUS") == "" {
		t.Skip("optional: make soak runs it; it finds faults that are still open, see README.md of plugins/mysql")
	}
	for _, s := range []struct {
		name    string
		kind    string
		options []string
	}{
		{"mysql", "mysql", []string{"--binlog-row-metadata=MINIMAL", "--max-binlog-size=4M"}},
		{"mariadb", "mariadb", []string{"--binlog-row-metadata=NO_LOG", "--max-binlog-size=4M", "--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"}},
	} {
		t.Run(s.name, func(t *testing.T) {
			srv := stack.Start(t, s.kind, s.options...)
			db, err := sql.Open("mysql", "root@tcp("+srv.Addr()+")/?multiStatements=true")
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			which := alltypes.MySQL
			if s.kind == "mariadb" {
				which = alltypes.MariaDB
			}
			seed := seed()
			t.Logf("DATALINK_SEED=%d", seed)
			ctx := context.Background()
			src, err := New(ctx, db, which, seed)
			if err != nil {
				t.Fatal(err)
			}
			src.Pause = 2 * time.Millisecond
			t.Cleanup(func() { keep(t, srv) })
			f := live(srv.Addr())
			first, stop := context.WithTimeout(ctx, 3*time.Second)
			err = f.Run(first, 0)
			stop()
			if err != nil || f.Position().IsZero() {
				t.Fatalf("first position %v, %v", f.Position(), err)
			}
			busy, stop := context.WithTimeout(ctx, seconds())
			defer stop()
			wrote := make(chan struct{})
			go func() {
				defer close(wrote)
				src.Write(busy, db, 8)
			}()
			killed := make(chan struct{})
			go func() {
				defer close(killed)
				time.Sleep(seconds() / 2)
				srv.Kill()
				for { // the kernel has to take the process apart first
					c, err := net.Dial("tcp", srv.Addr())
					if err != nil {
						break
					}
					c.Close()
					time.Sleep(20 * time.Millisecond)
				}
				srv.Restart()
			}()
			r := rand.New(rand.NewPCG(seed, 99))
			for done := false; !done; {
				select {
				case <-wrote:
					done = true
				default:
				}
				life, kill := context.WithTimeout(ctx, time.Duration(50+r.IntN(600))*time.Millisecond)
				err := f.Run(life, 0)
				kill()
				var fault *sdk.Fault
				if err != nil && !(errors.As(err, &fault) && fault.Retryable) && !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				if err != nil { // the server is away
					time.Sleep(50 * time.Millisecond)
				}
			}
			<-killed
			quiet(t, db)
			catchUp(t, f, db)
			c, err := db.Conn(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			d, err := f.Replica.Compare(ctx, c, Database, func(n string) bool { return n == "mark" })
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d transactions, %d rolled back, %d by XA, %d statements, %d schema changes; %d readers, events %v; %d tables, %d rows, %d cells equal, %d unknown", src.Committed.Load(), src.RolledBack.Load(), src.XA.Load(), src.Changes.Load(), src.Schema.Load(), f.Opened, f.Replica.Events, d.Tables, d.Rows, d.Cells, d.Unknown)
			if len(d.Found) > 0 {
				t.Errorf("differences (DATALINK_SEED=%d):\n%s", seed, strings.Join(d.Found[:min(len(d.Found), 20)], "\n"))
			}
			if d.Rows < 20 || d.Unknown > d.Cells {
				t.Errorf("too little was done: %+v", d)
			}
		})
	}
}

// quiet waits until statements whose sessions went away have come to their end.
func quiet(t *testing.T, db *sql.DB) {
	t.Helper()
	db.SetMaxIdleConns(0) // connections that rest in the pool are no sessions that work
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var who sql.NullString
		err := db.QueryRow("SELECT GROUP_CONCAT(CONCAT_WS(' ', ID, COMMAND, TIME, STATE, LEFT(INFO, 100)) SEPARATOR '; ') FROM information_schema.PROCESSLIST WHERE DB = '" + Database + "' AND ID <> CONNECTION_ID()").Scan(&who)
		if err == nil && !who.Valid {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("sessions that are still there: %s, %v", who.String, err)
		}
	}
}

// catchUp writes a mark and follows until it has come.
func catchUp(t *testing.T, f *replica.Follower, db *sql.DB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if _, err := db.ExecContext(ctx, fmt.Sprintf("REPLACE INTO %s.mark VALUES (%d)", Database, 1)); err != nil {
		t.Fatal(err)
	}
	seen := false
	f.Each = func(_ *batch.Tx, e *batch.Event) {
		if e.Schema != nil && e.Schema.Table == "mark" && e.Kind == batch.Insert {
			seen = true
			cancel()
		}
	}
	if err := f.Run(ctx, 0); err != nil || !seen {
		t.Fatalf("the mark was seen: %v, the reader ended with %v", seen, err)
	}
}
