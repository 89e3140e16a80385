package reader

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/mysql/internal/replica"
	"github.com/datalink-go/datalink/plugins/mysql/internal/schema"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// liveFollower follows a server's tables in database d.
func liveFollower(srv *stack.Server, start string, more func(*Config)) *replica.Follower {
	return &replica.Follower{
		Replica: replica.New(), Limits: batch.Limits{Events: 20},
		New: func() (sdk.Reader, error) {
			cfg := Config{Address: sdk.Strings{srv.Addr()}, User: "root", Tables: sdk.Strings{"d.*"}, Start: start, DDL: "apply", OnStatement: "stop", OnUnknownTable: "stop", OnlineChanges: "recognize", Heartbeat: 500 * time.Millisecond, MaxEvent: 1 << 30, MaxWindow: 64 << 20}
			if more != nil {
				more(&cfg)
			}
			return New(sdk.Env{}, cfg)
		},
	}
}

// until follows until the replica's table d.mark has a row, at most a minute.
func until(t *testing.T, f *replica.Follower, id int) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	key := fmt.Sprintf("%q,", fmt.Sprint(id))
	each := f.Each
	defer func() { f.Each = each }()
	seen := false
	f.Each = func(tx *batch.Tx, e *batch.Event) {
		if each != nil {
			each(tx, e)
		}
		if m := f.Replica.Tables["d.mark"]; m != nil && m.Rows[key] != nil && !seen {
			seen = true
			cancel()
		}
	}
	err := f.Run(ctx, 0)
	if err == nil && !seen {
		return errors.New("the mark was not reached")
	}
	return err
}

func compareAll(t *testing.T, f *replica.Follower, srv *stack.Server, rows int) {
	t.Helper()
	db, err := sql.Open("mysql", "root@tcp("+srv.Addr()+")/")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	c, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	d, err := f.Replica.Compare(context.Background(), c, "d", nil)
	if err != nil || len(d.Found) > 0 || d.Rows != rows {
		t.Errorf("%d rows, want %d, %v, differences:\n%s", d.Rows, rows, err, strings.Join(d.Found, "\n"))
	}
}

// TestLayoutsAtTheStart begins at the end of a log without column names: layouts
// come from the server, survive a restart with schema changes meanwhile, and serve
// events that are older than the present ones.
func TestLayoutsAtTheStart(t *testing.T) {
	for _, s := range []struct {
		kind    string
		options []string
	}{{"mysql", []string{"--binlog-row-metadata=MINIMAL"}}, {"mysql", []string{"--binlog-row-metadata=MINIMAL", "--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}}, {"mariadb", []string{"--binlog-row-metadata=NO_LOG"}}} {
		t.Run(fmt.Sprint(s.kind, s.options), func(t *testing.T) {
			srv := stack.Start(t, s.kind, s.options...)
			srv.SQL("CREATE DATABASE d CHARACTER SET latin1; USE d; CREATE TABLE mark (id INT PRIMARY KEY); CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, e ENUM('a','b'), s VARCHAR(10)); CREATE TABLE later (a INT PRIMARY KEY, b INT, c INT);")
			f := liveFollower(srv, "latest", nil)
			ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
			if err := f.Run(ctx, 0); err != nil { // it notes the layouts and finds nothing else
				t.Fatal(err)
			}
			stop()
			if f.Position().IsZero() {
				t.Fatal("no position was given with the layouts")
			}
			// While it is down: B007, a label that is added; columns that swap places; a new table.
			srv.SQL("USE d; INSERT INTO t VALUES (3000000000, 'b', 'é'); ALTER TABLE t MODIFY e ENUM('a','b','c'); INSERT INTO t VALUES (2, 'c', 'x'); INSERT INTO later VALUES (1, 2, 3);" +
				"ALTER TABLE later MODIFY b INT AFTER c; INSERT INTO later VALUES (2, 3, 2); CREATE TABLE fresh (x BIGINT UNSIGNED PRIMARY KEY, y BIT(3)); INSERT INTO fresh VALUES (18446744073709551615, 5); INSERT INTO mark VALUES (1);")
			if err := until(t, f, 1); err != nil {
				t.Fatal(err)
			}
			compareAll(t, f, srv, 6)
			srv.SQL("USE d; ALTER TABLE t ADD z INT FIRST; INSERT INTO t VALUES (7, 3, 'a', 'y'); DROP TABLE fresh; INSERT INTO mark VALUES (2);")
			if err := until(t, f, 2); err != nil {
				t.Fatal(err)
			}
			compareAll(t, f, srv, 7)
			// Begun at earliest, the layouts of tables come from statements.
			again := liveFollower(srv, "earliest", nil)
			if err := until(t, again, 2); err != nil {
				t.Fatal(err)
			}
			compareAll(t, again, srv, 7)
		})
	}
}

// TestLayoutsOfAnOlderStart begins before schema changes and after the statements
// that made the tables were purged: what no statement touched since is known from
// the server, the rest stops the reader.
func TestLayoutsOfAnOlderStart(t *testing.T) {
	for _, s := range []struct{ kind, option, purge string }{{"mysql", "--binlog-row-metadata=MINIMAL", "SHOW BINARY LOG STATUS"}, {"mariadb", "--binlog-row-metadata=NO_LOG", "SHOW BINLOG STATUS"}} {
		t.Run(s.kind, func(t *testing.T) {
			srv := stack.Start(t, s.kind, s.option)
			srv.SQL("CREATE DATABASE d; USE d; CREATE TABLE mark (id INT PRIMARY KEY); CREATE TABLE t (id INT PRIMARY KEY, e ENUM('a','b')); CREATE TABLE u (id INT PRIMARY KEY, a INT, b INT); FLUSH BINARY LOGS;")
			file, _, _ := strings.Cut(srv.SQL(s.purge, "-N"), "\t")
			srv.SQL("PURGE BINARY LOGS TO '" + file + "'; INSERT INTO d.t VALUES (1, 'b'); INSERT INTO d.mark VALUES (1);")
			f := liveFollower(srv, "earliest", nil)
			if err := until(t, f, 1); err != nil {
				t.Fatal(err)
			}
			compareAll(t, f, srv, 2)
			// B049: names alone would fit, and values land in the wrong columns.
			srv.SQL("INSERT INTO d.u VALUES (1, 10, 20); ALTER TABLE d.u MODIFY a INT AFTER b; INSERT INTO d.u VALUES (2, 20, 10); INSERT INTO d.mark VALUES (2);")
			err := until(t, liveFollower(srv, "earliest", nil), 2)
			var fault *sdk.Fault
			if !errors.As(err, &fault) || fault.Code != sdk.CodeUnknownTable || !strings.Contains(err.Error(), "d.u") {
				t.Errorf("it ended with %v, want that d.u is not known", err)
			}
			if err := until(t, f, 2); err != nil { // it knew the table before the change
				t.Fatal(err)
			}
			compareAll(t, f, srv, 5)
		})
	}
}

// TestStatementsAreChecked has the history of statements be wrong: what the server
// says of the table stops the reader.
func TestStatementsAreChecked(t *testing.T) {
	srv := stack.Start(t, "mariadb", "--binlog-row-metadata=NO_LOG")
	srv.SQL("CREATE DATABASE d; USE d; CREATE TABLE mark (id INT PRIMARY KEY); CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT);")
	f := liveFollower(srv, "latest", nil)
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
	defer stop()
	if err := f.Run(ctx, 0); err != nil {
		t.Fatal(err)
	}
	// The log never tells of this change.
	srv.SQL("USE d; SET sql_log_bin = 0; ALTER TABLE t CHANGE a b2 INT, CHANGE b a INT; SET sql_log_bin = 1; ALTER TABLE t ADD c INT;")
	long, end := context.WithTimeout(context.Background(), 20*time.Second)
	defer end()
	err := f.Run(long, 0)
	if err == nil || !strings.Contains(err.Error(), "by the statements in the log and by the server") {
		t.Errorf("it ended with %v, want that the layouts differ", err)
	}
}

// TestNotUnderstoodIsReadAgain has a statement that the tokenizer refuses.
func TestNotUnderstoodIsReadAgain(t *testing.T) {
	srv := stack.Start(t, "mariadb", "--binlog-row-metadata=NO_LOG")
	srv.SQL("CREATE DATABASE d; USE d; CREATE TABLE mark (id INT PRIMARY KEY); CREATE TABLE t (id INT PRIMARY KEY, a INT);")
	f := liveFollower(srv, "latest", func(c *Config) { c.DDL = "ignore" })
	done := make(chan error, 1)
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	f.Each = func(_ *batch.Tx, e *batch.Event) {
		if e.Schema != nil && e.Schema.Table == "mark" {
			stop()
		}
	}
	go func() { done <- f.Run(ctx, 0) }()
	waitUntil(t, "the layouts", func() bool { return !f.Position().IsZero() })
	// MariaDB lets a statement change a column that it adds itself.
	srv.SQL("ALTER TABLE d.t ADD two INT, MODIFY two VARCHAR(9) FIRST")
	waitUntil(t, "the layout to be read again", func() bool {
		var v []schema.Version
		_ = json.Unmarshal(f.State()["table:d.t"].Value, &v)
		return len(v) > 1 && v[len(v)-1].Table != nil && v[len(v)-2].Unknown != ""
	})
	srv.SQL("INSERT INTO d.t VALUES ('y', 1, 2); INSERT INTO d.mark VALUES (1);")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	compareAll(t, f, srv, 2)
}

// waitUntil polls for a state, at most half a minute.
func waitUntil(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not come", what)
		}
	}
}
