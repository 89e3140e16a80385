package catalog

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/mysql/internal/gtid"
	"github.com/datalink-go/datalink/plugins/mysql/internal/schema"
	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
)

func dial(t *testing.T, s *stack.Server) *server.Conn {
	t.Helper()
	c, err := server.Dial(context.Background(), server.Config{User: "root"}, s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func wants(database, _ string) bool { return database == "d" }

// transactions is how many the log has, by the position's own count.
func transactions(t *testing.T, maria bool, pos string) int64 {
	t.Helper()
	if maria {
		d, err := gtid.ParseDomains(pos)
		if err != nil {
			t.Fatal(err)
		}
		n := int64(0)
		for _, g := range d.All() {
			n += int64(g.Seq)
		}
		return n
	}
	s, err := gtid.ParseSet(pos)
	if err != nil {
		t.Fatal(err)
	}
	return s.Count()
}

// TestReadIsExact has a session add columns all the time, one in each transaction,
// so that a layout says how many transactions came before it: as many as the
// position beside it has. Without the lock the two are found to differ.
func TestReadIsExact(t *testing.T) {
	for _, kind := range []string{"mysql", "mariadb"} {
		t.Run(kind, func(t *testing.T) {
			s := stack.Start(t, kind)
			s.SQL("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); CREATE TABLE d.u (id INT PRIMARY KEY);")
			maria := kind == "mariadb"
			query := "SELECT @@GLOBAL.gtid_executed"
			if maria {
				query = "SELECT @@GLOBAL.gtid_binlog_pos"
			}
			c, ctx := dial(t, s), context.Background()
			r := Request{Want: wants, Dialect: schema.Dialect{MariaDB: maria}, Position: func(ctx context.Context) (string, error) { return c.One(ctx, query) }}
			start, err := c.One(ctx, query)
			if err != nil {
				t.Fatal(err)
			}
			before := transactions(t, maria, start)
			busy, stop := context.WithCancel(ctx)
			done := make(chan error, 1)
			ddl := dial(t, s)
			go func() {
				for i := 0; busy.Err() == nil; i++ {
					if _, err := ddl.Exec(ctx, fmt.Sprintf("ALTER TABLE d.t ADD c%d INT", i)); err != nil && busy.Err() == nil {
						done <- err
						return
					}
					if i%50 == 49 { // a fresh table, as columns have a limit
						for _, q := range []string{"DROP TABLE d.t", "CREATE TABLE d.t (id INT PRIMARY KEY)"} {
							if _, err := ddl.Exec(ctx, q); err != nil && busy.Err() == nil {
								done <- err
								return
							}
						}
					}
				}
				done <- nil
			}()
			// Of 52 transactions 50 add a column; the last two make a new table.
			exact := func(cat *Catalog) bool {
				n := transactions(t, maria, cat.Position) - before
				for _, tb := range cat.Tables {
					if tb.Name == "t" {
						return int64(len(tb.Columns)-1) == n%52 || n%52 == 51 // dropped: not listed
					}
				}
				return n%52 == 51
			}
			for i := range 60 {
				cat, err := Read(ctx, c, r)
				if err != nil {
					t.Fatal(err)
				}
				if !exact(cat) {
					t.Fatalf("read %d: at %s (%d transactions) the table has %d columns", i, cat.Position, transactions(t, maria, cat.Position)-before, len(cat.Tables[0].Columns))
				}
			}
			r.unlocked = true
			wrong := 0
			for deadline := time.Now().Add(20 * time.Second); wrong == 0 && time.Now().Before(deadline); {
				cat, err := Read(ctx, c, r)
				if err == nil && !exact(cat) {
					wrong++
				}
			}
			if wrong == 0 {
				t.Error("without the lock all layouts fit their positions too: the test shows nothing")
			}
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestReadDefinitions reads tables of many kinds, and names one that it does not
// understand.
func TestReadDefinitions(t *testing.T) {
	s := stack.Start(t, "mariadb")
	s.SQL("CREATE DATABASE d; USE d; CREATE TABLE a (id INT PRIMARY KEY, j JSON, e ENUM('x','y')); CREATE SEQUENCE s; CREATE VIEW v AS SELECT 1; CREATE TABLE ver (id INT PRIMARY KEY) WITH SYSTEM VERSIONING; CREATE TABLE `od``d` (`q``q` INT); CREATE DATABASE other; CREATE TABLE other.x (id INT);")
	c := dial(t, s)
	cat, err := Read(context.Background(), c, Request{Want: wants, Dialect: schema.Dialect{MariaDB: true}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tb := range cat.Tables {
		got = append(got, tb.Name+" "+strconv.Itoa(len(tb.Columns)))
	}
	if d := cmp.Diff([]string{"a 3", "od`d 1", "s 8", "ver 3"}, got); d != "" {
		t.Error(d)
	}
	for n, err := range cat.Refused {
		t.Errorf("%s: %v", n, err)
	}
}

// TestSilent lists the keys whose actions are not in the log.
func TestSilent(t *testing.T) {
	for _, c := range []struct {
		kind string
		want []string
	}{
		{"mariadb", []string{"d.child fk d.parent p CASCADE RESTRICT", "d.soft fs d.parent p SET NULL CASCADE"}},
		{"mysql", nil},
	} {
		t.Run(c.kind, func(t *testing.T) {
			s := stack.Start(t, c.kind)
			s.SQL(`CREATE DATABASE d; USE d; CREATE TABLE parent (id INT PRIMARY KEY);
CREATE TABLE child (id INT PRIMARY KEY, p INT, CONSTRAINT fk FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE);
CREATE TABLE soft (id INT PRIMARY KEY, p INT, CONSTRAINT fs FOREIGN KEY (p) REFERENCES parent (id) ON DELETE SET NULL ON UPDATE CASCADE);
CREATE TABLE plain (id INT PRIMARY KEY, p INT, CONSTRAINT fp FOREIGN KEY (p) REFERENCES parent (id));`)
			found, err := Silent(context.Background(), dial(t, s), wants)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range found {
				got = append(got, fmt.Sprintf("%s %s %s %s %s %s", f.Child, f.Name, f.Parent, strings.Join(f.Columns, ","), f.OnDelete, f.OnUpdate))
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}
