package verifytest

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/google/go-cmp/cmp"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/host/verify"
)

func open(t testing.TB, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func exec1(t testing.TB, db *sql.DB, text string) {
	t.Helper()
	if _, err := db.Exec(text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

const schema = `CREATE TABLE shop.items (id INT PRIMARY KEY, n BIGINT UNSIGNED, d DECIMAL(20,6), f DOUBLE, s VARCHAR(100), b VARBINARY(50), dt DATETIME(3), ts TIMESTAMP(6) NULL, j JSON, e ENUM('a','b c'), y TINYINT(1));
CREATE TABLE shop.names (name VARCHAR(40) COLLATE utf8mb4_bin, part INT, v TEXT, PRIMARY KEY (name, part));
CREATE TABLE shop.drafts (id INT PRIMARY KEY, status VARCHAR(10), cust INT);`

func itemRow(id int, r *rand.Rand) string {
	return fmt.Sprintf("(%d, %d, %d.%06d, %d.25, 'item %d é 😀', x'00ff%02x', '2026-01-%02d 10:00:00.%03d', '2026-02-03 04:05:06.%06d', '{\"b\": [%d, 1.50], \"a\": null}', '%s', %d)",
		id, r.Uint64(), r.IntN(1e6), r.IntN(1e6), r.IntN(1000), r.IntN(1000), r.IntN(256), 1+r.IntN(28), r.IntN(1000), r.IntN(1e6), r.IntN(100), [2]string{"a", "b c"}[r.IntN(2)], r.IntN(2))
}

// load changes the source until it is stopped: rows of keys that tests plant nothing
// at, key changes among them.
type load struct {
	stop  chan struct{}
	done  sync.WaitGroup
	count atomic.Int64
}

func startLoad(t testing.TB, db *sql.DB, sessions int) *load {
	l := &load{stop: make(chan struct{})}
	for i := range sessions {
		l.done.Go(func() {
			r := rand.New(rand.NewPCG(7, uint64(i)))
			for {
				select {
				case <-l.stop:
					return
				default:
				}
				id := 1000 + r.IntN(3000)
				var q string
				switch r.IntN(8) {
				case 0:
					q = fmt.Sprintf("DELETE FROM shop.items WHERE id = %d", id)
				case 1, 2:
					q = "REPLACE INTO shop.items VALUES " + itemRow(id, r)
				case 3:
					q = fmt.Sprintf("UPDATE IGNORE shop.items SET id = %d WHERE id = %d", 1000+r.IntN(3000), id)
				case 4:
					q = fmt.Sprintf("REPLACE INTO shop.names VALUES ('ü%d', %d, 'v%d')", id%300, id%7, r.IntN(1000))
				case 5:
					q = fmt.Sprintf("DELETE FROM shop.names WHERE name = 'ü%d' LIMIT 1", id%300)
				case 6:
					q = fmt.Sprintf("REPLACE INTO shop.drafts VALUES (%d, '%s', %d)", id, [2]string{"draft", "sent"}[r.IntN(2)], r.IntN(9))
				default: // a few keys that change all the time, back and forth
					q = fmt.Sprintf("UPDATE shop.items SET y = 1 - y, n = n ^ 1 WHERE id = %d", 1000+r.IntN(4))
				}
				if _, err := db.Exec(q); err != nil {
					t.Errorf("load: %s: %v", q, err)
					return
				}
				l.count.Add(1)
			}
		})
	}
	return l
}

func (l *load) end() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.done.Wait()
}

// fill makes the tables and what they hold at first.
func fill(t testing.TB, db *sql.DB, rows int) {
	t.Helper()
	for _, q := range []string{"CREATE DATABASE shop CHARACTER SET utf8mb4"} {
		exec1(t, db, q)
	}
	exec1(t, db, schema)
	r := rand.New(rand.NewPCG(1, 1))
	for from := 0; from < rows; from += 500 {
		items, names, drafts := "", "", ""
		for i := from; i < min(from+500, rows); i++ {
			sep := ","
			if items == "" {
				sep = ""
			}
			items += sep + itemRow(i, r)
			names += fmt.Sprintf("%s('n%d', %d, 'text %d')", sep, i, i%3, i)
			drafts += fmt.Sprintf("%s(%d, '%s', %d)", sep, i, [2]string{"draft", "sent"}[i%2], i%10)
		}
		exec1(t, db, "INSERT INTO shop.items VALUES "+items+"; INSERT INTO shop.names VALUES "+names+"; INSERT INTO shop.drafts VALUES "+drafts)
	}
}

// planted is a difference by table, kind and key.
type planted struct{ Writer, Table, Kind, Key string }

func plantedOf(s *verify.State) []planted {
	out := []planted{}
	for _, t := range s.Results {
		for _, d := range t.Differing {
			out = append(out, planted{t.Writer, d.Table, d.Kind, d.Key})
		}
	}
	slices.SortFunc(out, func(a, b planted) int { return cmpText(fmt.Sprint(a), fmt.Sprint(b)) })
	return out
}

func cmpText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// verify runs the command and checks its exit code against what it found.
func (w *worker) verify(args ...string) *verify.State {
	w.t.Helper()
	s := new(verify.State)
	err := w.decode(s, append([]string{"verify", "shop"}, args...)...)
	var f *failed
	switch {
	case s.Differences() > 0 && errors.As(err, &f) && f.code == 5:
	case s.Differences() == 0 && err == nil:
	default:
		w.t.Fatalf("verify %v: %v, %d differences: %+v", args, err, s.Differences(), s)
	}
	if s.Phase != verify.Done || s.Percent != 100 {
		w.t.Errorf("verify %v: phase %s, %.0f %%: %s", args, s.Phase, s.Percent, s.Reason)
	}
	return s
}

// TestVerify plants rows that differ at each kind of target while the source changes,
// and finds exactly these, run after run; repaired, nothing differs.
func TestVerify(t *testing.T) {
	maria, pg := stack.Start(t, "mariadb"), stack.Start(t, "postgres")
	src := open(t, "mysql", "root@tcp("+maria.Addr()+")/?multiStatements=true&time_zone=%27%2B00%3A00%27")
	fill(t, src, 1000)
	exec1(t, src, "CREATE DATABASE copy CHARACTER SET utf8mb4")
	post := open(t, "pgx", "postgres://postgres@"+pg.Addr()+"/postgres")
	exec1(t, post, "CREATE SCHEMA shop")
	dir := t.TempDir()
	lite := filepath.Join(dir, "target.db")
	w := serve(t, filepath.Join(dir, "data"), nil)
	w.apply(fmt.Sprintf(`
apiVersion: datalink/v1
task: shop
reader: {plugin: mysql, config: {address: %q, user: root, password: "", tables: ["shop.*"], start: snapshot}}
writers:
  - {name: lite, plugin: rdbms, config: {url: %q}}
  - {name: maria, plugin: rdbms, config: {url: "mariadb://root@%s/copy", lanes: 2}, mappings: [{from: shop.drafts, to: copy.sent, filter: "status != 'draft'", columns: {rename: {cust: customer}}}, {from: "shop.*", to: "copy.{table}"}]}
  - {name: pg, plugin: rdbms, config: {url: "postgres://postgres@%s/postgres", lanes: 2}}
`, maria.Addr(), "sqlite://"+lite, maria.Addr(), pg.Addr()))
	sq := open(t, "sqlite", "file:"+lite+"?_pragma=busy_timeout(20000)")
	eventually(t, 60*time.Second, "the targets are filled", func() error {
		for _, q := range []struct {
			db   *sql.DB
			text string
			want int
		}{
			{sq, "SELECT count(*) FROM items", 1000},
			{sq, "SELECT count(*) FROM names", 1000},
			{sq, "SELECT count(*) FROM drafts", 1000},
			{src, "SELECT count(*) FROM copy.items", 1000},
			{src, "SELECT count(*) FROM copy.names", 1000},
			{src, "SELECT count(*) FROM copy.sent", 500},
			{post, "SELECT count(*) FROM shop.items", 1000},
			{post, "SELECT count(*) FROM shop.names", 1000},
			{post, "SELECT count(*) FROM shop.drafts", 1000},
		} {
			var n int
			if err := q.db.QueryRow(q.text).Scan(&n); err != nil || n != q.want {
				return fmt.Errorf("%s: %d, %v", q.text, n, err)
			}
		}
		return nil
	})
	l := startLoad(t, src, 3)
	defer l.end()
	if s := w.verify(); s.Differences() != 0 {
		t.Fatalf("before anything is planted: %v", plantedOf(s))
	}
	// Each target loses, gets and has otherwise some rows.
	exec1(t, sq, "UPDATE items SET n = '5' WHERE id = 10; DELETE FROM items WHERE id IN (11, 999); INSERT INTO items (id, s) VALUES (900000, 'extra'); UPDATE names SET v = NULL WHERE name = 'n5'; DELETE FROM names WHERE name = 'n6'; INSERT INTO names VALUES ('zz', 1, 'extra')")
	exec1(t, src, "SET sql_log_bin = 0; UPDATE copy.items SET d = d + 0.000001 WHERE id = 20; DELETE FROM copy.items WHERE id = 21; INSERT INTO copy.items (id) VALUES (-7); UPDATE copy.sent SET customer = 77 WHERE id = 1; DELETE FROM copy.sent WHERE id = 3; INSERT INTO copy.sent VALUES (2, 'draft', 2); SET sql_log_bin = 1")
	exec1(t, post, "UPDATE shop.items SET j = '{}' WHERE id = 30; DELETE FROM shop.items WHERE id = 31; INSERT INTO shop.items (id) VALUES (2000000); UPDATE shop.names SET v = v || ' ' WHERE name = 'n7'; DELETE FROM shop.names WHERE name = 'n8'; INSERT INTO shop.names VALUES ('ÿ', 5, '')")
	want := []planted{
		{"lite", "items", "different", "10"},
		{"lite", "items", "missing", "11"},
		{"lite", "items", "missing", "999"},
		{"lite", "items", "extra", "900000"},
		{"lite", "names", "different", "n5,2"},
		{"lite", "names", "missing", "n6,0"},
		{"lite", "names", "extra", "zz,1"},
		{"maria", "copy.items", "different", "20"},
		{"maria", "copy.items", "missing", "21"},
		{"maria", "copy.items", "extra", "-7"},
		{"maria", "copy.sent", "different", "1"},
		{"maria", "copy.sent", "missing", "3"},
		{"maria", "copy.sent", "extra", "2"},
		{"pg", "shop.items", "different", "30"},
		{"pg", "shop.items", "missing", "31"},
		{"pg", "shop.items", "extra", "2000000"},
		{"pg", "shop.names", "different", "n7,1"},
		{"pg", "shop.names", "missing", "n8,2"},
		{"pg", "shop.names", "extra", "ÿ,5"},
	}
	slices.SortFunc(want, func(a, b planted) int { return cmpText(fmt.Sprint(a), fmt.Sprint(b)) })
	suspects := uint64(0)
	for i := range 3 {
		before := l.count.Load()
		s := w.verify()
		if d := cmp.Diff(want, plantedOf(s)); d != "" {
			t.Errorf("run %d (-planted +found):\n%s", i, d)
		}
		for _, r := range s.Results {
			suspects += r.Suspects
			t.Logf("%s %s %s: %d rows, %d suspects, %d unsettled, checksum %s", r.Writer, r.Table, r.Side, r.Rows, r.Suspects, r.Unsettled, r.Checksum)
		}
		t.Logf("run %d: %d changes at the source meanwhile, in %s", i, l.count.Load()-before, s.EndedAt.Sub(s.StartedAt))
	}
	if suspects <= 3*uint64(len(want)) {
		t.Errorf("%d suspects in 3 runs: nothing lagged, so that nothing was shown", suspects)
	}
	if s := w.verify("--repair"); s.Differences() != 0 || len(plantedOf(s)) != len(want) {
		t.Errorf("repair: %d left of %v", s.Differences(), plantedOf(s))
	}
	if got := plantedOf(w.verify()); len(got) > 0 {
		t.Errorf("after the repair: %v", got)
	}
	l.end()
	s := w.verify("--max-rows-per-second", "100000")
	if got := plantedOf(s); len(got) > 0 || s.Unsettled() > 0 {
		t.Errorf("at rest: %v, %d unsettled", got, s.Unsettled())
	}
}
