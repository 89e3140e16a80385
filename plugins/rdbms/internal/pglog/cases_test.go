package pglog

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// cases are kinds of input at which readers of this log go wrong. Each has tables
// of its own, which end equal to the source's.
var cases = []struct {
	name          string
	before, after string
	tables        []string
}{
	{
		name:   "large values that an update leaves alone, under each identity",
		before: `CREATE TABLE {s}.d (id int PRIMARY KEY, big text, v int); CREATE TABLE {s}.f (id int PRIMARY KEY, big text, v int); ALTER TABLE {s}.f REPLICA IDENTITY FULL; CREATE TABLE {s}.i (id int NOT NULL, k int NOT NULL UNIQUE, big text, v int); ALTER TABLE {s}.i REPLICA IDENTITY USING INDEX i_k_key; ALTER TABLE {s}.d ALTER big SET STORAGE EXTERNAL; ALTER TABLE {s}.f ALTER big SET STORAGE EXTERNAL; ALTER TABLE {s}.i ALTER big SET STORAGE EXTERNAL; INSERT INTO {s}.d SELECT i, repeat('x', 9000), i FROM generate_series(1, 5) i; INSERT INTO {s}.f SELECT * FROM {s}.d; INSERT INTO {s}.i SELECT id, id, big, v FROM {s}.d;`,
		after:  `UPDATE {s}.d SET v = -v; UPDATE {s}.d SET id = id + 10 WHERE id < 3; UPDATE {s}.f SET v = -v, id = id + 10; UPDATE {s}.i SET v = -v; UPDATE {s}.i SET k = k + 10 WHERE id < 3; UPDATE {s}.d SET big = NULL WHERE id = 4; UPDATE {s}.f SET big = repeat('y', 9000) WHERE id = 14;`,
		tables: []string{"d", "f", "i"},
	},
	{
		name:   "truncate that cascades",
		before: `CREATE TABLE {s}.parent (id int PRIMARY KEY); CREATE TABLE {s}.child (id int PRIMARY KEY, p int REFERENCES {s}.parent); INSERT INTO {s}.parent VALUES (1), (2); INSERT INTO {s}.child VALUES (1, 1), (2, 2);`,
		after:  `TRUNCATE {s}.parent CASCADE; INSERT INTO {s}.parent VALUES (3); INSERT INTO {s}.child VALUES (3, 3);`,
		tables: []string{"parent", "child"},
	},
	{
		name:   "generated columns",
		before: `CREATE TABLE {s}.g (id int PRIMARY KEY, a int, twice int GENERATED ALWAYS AS (a * 2) STORED, z text); INSERT INTO {s}.g (id, a, z) VALUES (1, 1, 'one'), (2, 2, 'two');`,
		after:  `UPDATE {s}.g SET a = 5, z = 'five' WHERE id = 1; INSERT INTO {s}.g (id, a, z) VALUES (3, 3, 'three');`,
		tables: []string{"g"},
	},
	{
		name:   "rows that move from a partition to another",
		before: `CREATE TABLE {s}.p (id int, r int, v text, PRIMARY KEY (id, r)) PARTITION BY LIST (r); CREATE TABLE {s}.p1 PARTITION OF {s}.p FOR VALUES IN (1); CREATE TABLE {s}.p2 PARTITION OF {s}.p FOR VALUES IN (2); INSERT INTO {s}.p VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'c');`,
		after:  `UPDATE {s}.p SET r = 2 WHERE id = 1; UPDATE {s}.p SET v = 'x' WHERE id = 2; CREATE TABLE {s}.p3 PARTITION OF {s}.p FOR VALUES IN (3); INSERT INTO {s}.p VALUES (4, 3, 'd'); INSERT INTO {s}.p VALUES (5, 2, 'e'); DELETE FROM {s}.p1 WHERE id = 2; TRUNCATE {s}.p; INSERT INTO {s}.p VALUES (6, 2, 'f');`,
		tables: []string{"p"},
	},
	{
		name:   "names that need quotes, and differ in case",
		before: `CREATE TABLE {s}."My Table" ("Id" int PRIMARY KEY, "select" text, "a""b" int); INSERT INTO {s}."My Table" VALUES (1, 'x', 1);`,
		after:  `UPDATE {s}."My Table" SET "select" = 'y', "a""b" = 2; INSERT INTO {s}."My Table" VALUES (2, 'z', 3);`,
		tables: []string{`"My Table"`},
	},
	{
		name:   "keys that change in a chain, and come back",
		before: `CREATE TABLE {s}.k (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, v text); ALTER TABLE {s}.k REPLICA IDENTITY FULL; INSERT INTO {s}.k VALUES (1, 'a'), (2, 'b'), (3, 'c');`,
		after:  `BEGIN; DELETE FROM {s}.k WHERE id = 3; INSERT INTO {s}.k VALUES (3, 'again'); COMMIT; BEGIN; SAVEPOINT x; UPDATE {s}.k SET v = 'never'; ROLLBACK TO x; UPDATE {s}.k SET v = 'kept' WHERE id = 1; COMMIT;`,
		tables: []string{"k"},
	},
}

// TestCases goes through the cases on one server, each in a schema of its own.
func TestCases(t *testing.T) {
	srv := server(t)
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			schema := "s" + string(rune('a'+i))
			in := func(text string) string { return strings.ReplaceAll(text, "{s}", schema) }
			sqlText(srv, "CREATE SCHEMA "+schema+";\n"+in(c.before))
			tg := newTarget(t)
			s := tg.mustOpen(Config{URL: url(srv), Tables: []string{schema + ".*"}, Slot: "case_" + schema, Publication: ""})
			defer s.close()
			equal := func() {
				t.Helper()
				s.caughtUp(srv)
				for _, table := range c.tables {
					// The copy is called as the reader calls the table.
					tg.tables[schema+"."+table] = tg.tables[schema+"."+strings.ReplaceAll(strings.Trim(table, `"`), `""`, `"`)]
					tg.equal(srv, schema+"."+table)
				}
			}
			equal()
			sqlText(srv, in(c.after))
			equal()
			sqlText(srv, "DROP PUBLICATION IF EXISTS datalink_"+strings.ReplaceAll(testUID, "-", ""))
		})
	}
}

// TestBigTransaction takes one of 90 MiB while it runs: the heap stays small.
func TestBigTransaction(t *testing.T) {
	srv := server(t)
	sqlText(srv, "CREATE TABLE big (id int PRIMARY KEY, v text)")
	tg := newTarget(t)
	s := tg.mustOpen(Config{URL: url(srv), Tables: []string{"public.big"}, SpillDir: t.TempDir()})
	defer s.close()
	s.caughtUp(srv)
	const rows = 150000
	sqlText(srv, "INSERT INTO big SELECT i, repeat(md5(i::text), 20) FROM generate_series(1, 150000) i")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	base, most, got := m.HeapInuse, uint64(0), 0
	for got < rows {
		s.out.Reset()
		if err := s.r.Next(ctx, s.out); err != nil {
			t.Fatalf("after %d rows: %v", got, err)
		}
		data, err := s.out.Finish()
		if err != nil {
			t.Fatal(err)
		}
		var blk batch.Block
		if err := blk.Decode(data, s.reg, batch.Limits{}); err != nil {
			t.Fatal(err)
		}
		for i := range blk.Txs {
			got += int(blk.Txs[i].Count)
		}
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapInuse)
	}
	if grown := int64(most) - int64(base); grown > 32<<20 {
		t.Errorf("the heap grew by %d MiB for a transaction of 90 MiB, want at most 32", grown>>20)
	}
	t.Logf("%d rows, heap %d MiB, before %d MiB", got, most>>20, base>>20)
}

// TestPublicationLacksATable names the table that a publication made by hand does
// not have, and does not change the publication.
func TestPublicationLacksATable(t *testing.T) {
	srv := server(t)
	sqlText(srv, "CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY); CREATE PUBLICATION mine FOR TABLE a")
	tg := newTarget(t)
	tg.wantFault("a table is not published", tg.first(Config{URL: url(srv), Tables: []string{"public.*"}, Publication: "mine"}), sdk.CodeInvalidConfig, "public.b", "mine")
	if n := sqlText(srv, "SELECT string_agg(tablename, ',') FROM pg_publication_tables WHERE pubname = 'mine'"); n != "a" {
		t.Errorf("the publication has %s now", n)
	}
}

// TestRetained: doctor tells what the slot of a task that does not run holds back.
func TestRetained(t *testing.T) {
	srv := server(t)
	sqlText(srv, "CREATE TABLE a (id int PRIMARY KEY, v text)")
	tg := newTarget(t)
	cfg := Config{URL: url(srv), Tables: []string{"public.a"}}
	s := tg.mustOpen(cfg)
	s.caughtUp(srv)
	s.close()
	sqlText(srv, "INSERT INTO a SELECT i, repeat('x', 1000) FROM generate_series(1, 5000) i")
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	found, err := r.Check(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	slot, _ := cfg.names(testUID)
	for _, f := range found {
		if f.Subject == "slot "+slot {
			if !strings.Contains(f.Message, "bytes of log") || strings.HasPrefix(f.Message, "keeps 0 ") || !strings.Contains(f.Advice, "drop it") {
				t.Errorf("got %+v, want what it holds back and what to do", f)
			}
			return
		}
	}
	t.Errorf("got %+v, want a finding about slot %s", found, slot)
}
