package snapshot

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sort"
	"strconv"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/mysql/internal/gtid"
)

// TestEnds measures, under load, what consistent snapshots see against the log:
// each transaction adds one to a sum, so that the sum says how many of them a
// snapshot sees. What the package takes for the ends always holds it; gtid_executed
// as the upper end, and gtid_binlog_pos as the place, do not.
func TestEnds(t *testing.T) {
	for _, kind := range []string{"mysql", "mariadb"} {
		t.Run(kind, func(t *testing.T) {
			srv := stack.Start(t, kind, "--sync-binlog=1")
			srv.SQL("CREATE DATABASE s; CREATE TABLE s.c (id INT PRIMARY KEY, ver INT NOT NULL);")
			fill(srv, "INSERT INTO s.c %s SELECT i, 0 FROM n;", 64)
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
			defer cancel()
			s := newStream(t, srv)
			s.w = New(Config{}, s, nil)
			before := gtidCount(t, s.here.GTID)
			sess, err := dial(ctx, s, &Config{Options: Options{StatementTimeout: time.Minute}})
			if err != nil {
				t.Fatal(err)
			}
			defer sess.Close()
			stop := load(t, srv, 16, func(r *rand.Rand) []string {
				return []string{fmt.Sprintf("UPDATE s.c SET ver = ver + 1 WHERE id = %d", 1+r.IntN(64))}
			})
			type look struct {
				sum        int
				sound, end Place
				executed   int
			}
			var looks []look
			unsound := 0
			for until := time.Now().Add(6 * time.Second); time.Now().Before(until) && len(looks) < 1500; {
				l := look{}
				var executed string
				if _, err := sess.Exec(ctx, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"); err != nil {
					t.Fatal(err)
				}
				if kind == "mariadb" {
					if l.sound, err = sess.own(ctx); err != nil {
						t.Fatal(err)
					}
				}
				if l.end, executed, err = sess.end(ctx); err != nil {
					t.Fatal(err)
				}
				text, err := sess.One(ctx, "SELECT SUM(ver) FROM s.c")
				if err != nil {
					t.Fatal(err)
				}
				l.sum, _ = strconv.Atoi(text)
				l.executed = gtidCount(t, executed) - before
				if kind == "mysql" && l.sum > l.executed {
					unsound++
				}
				if _, err := sess.Exec(ctx, "ROLLBACK"); err != nil {
					t.Fatal(err)
				}
				looks = append(looks, l)
			}
			stop()
			// The log says how many transactions lie before each place.
			var ends []Place
			s.committed = func() { ends = append(ends, s.here) }
			s.catchUp(ctx)
			at := func(p Place) int {
				return sort.Search(len(ends), func(i int) bool { return !p.reached(ends[i]) })
			}
			for _, l := range looks {
				switch kind {
				case "mysql":
					if n := at(l.end); l.sum > n {
						t.Errorf("a snapshot saw %d transactions, %d lie before the end of the log %s", l.sum, n, l.end)
					}
				default:
					if n := at(l.sound); l.sum != n {
						t.Errorf("a snapshot saw %d transactions, %d lie before its own place %s", l.sum, n, l.sound)
					}
					if at(l.end) != l.sum {
						unsound++
					}
				}
			}
			t.Logf("%d snapshots, %d transactions; the unsound end was wrong in %d", len(looks), len(ends), unsound)
			if unsound == 0 {
				t.Errorf("in none of %d snapshots the end that is not sound was wrong: this shows nothing", len(looks))
			}
		})
	}
}

func gtidCount(t *testing.T, text string) int {
	t.Helper()
	set, err := gtid.ParseSet(text)
	if err != nil {
		return 0 // of MariaDB
	}
	return int(set.Count())
}
