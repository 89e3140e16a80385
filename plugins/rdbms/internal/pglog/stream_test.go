package pglog

import (
	"strings"
	"testing"
)

func TestStream(t *testing.T) {
	srv := server(t)
	sqlText(srv, `CREATE TABLE a (id int PRIMARY KEY, v text, big text, n numeric);
		ALTER TABLE a ALTER big SET STORAGE EXTERNAL;
		CREATE TABLE f (v text, w int); ALTER TABLE f REPLICA IDENTITY FULL;
		CREATE TABLE ix (a int NOT NULL, b text NOT NULL, c text); CREATE UNIQUE INDEX ixu ON ix (b, a); ALTER TABLE ix REPLICA IDENTITY USING INDEX ixu;
		INSERT INTO a SELECT i, 'v' || i, repeat('x', 5000), i / 7.0 FROM generate_series(1, 300) i;
		INSERT INTO f VALUES ('a', 1), ('a', 1), (NULL, 2);
		INSERT INTO ix VALUES (1, 'x', 'y');`)
	tg := newTarget(t)
	s := tg.mustOpen(Config{URL: url(srv), Tables: []string{"public.*"}, ChunkRows: 50, Switches: FromEnv()})
	s.caughtUp(srv)
	tg.equal(srv, "public.a", "public.f", "public.ix")
	sqlText(srv, `UPDATE a SET v = 'new' WHERE id % 3 = 0;
		UPDATE a SET id = id + 1000 WHERE id % 5 = 0;
		DELETE FROM a WHERE id % 11 = 0;
		UPDATE f SET w = 7 WHERE v IS NULL; DELETE FROM f WHERE ctid = (SELECT min(ctid) FROM f WHERE v = 'a');
		UPDATE ix SET c = 'z'; UPDATE ix SET b = 'q'; INSERT INTO ix VALUES (2, 'x', NULL);`)
	s.caughtUp(srv)
	tg.equal(srv, "public.a", "public.f", "public.ix")
	// Streamed transactions, with subtransactions that are rolled back.
	sqlText(srv, `BEGIN; INSERT INTO a SELECT i, 'big', repeat('y', 100), 0 FROM generate_series(2000, 6000) i;
		SAVEPOINT s; DELETE FROM a WHERE id BETWEEN 2000 AND 5000; INSERT INTO a SELECT i, 'never', '', 0 FROM generate_series(7000, 9000) i; ROLLBACK TO s;
		UPDATE a SET v = 'after' WHERE id > 5500; COMMIT;
		BEGIN; INSERT INTO a SELECT i, 'rolled back', repeat('z', 100), 0 FROM generate_series(20000, 24000) i; ROLLBACK;`)
	s.caughtUp(srv)
	tg.equal(srv, "public.a")
	sqlText(srv, `TRUNCATE a, ix; INSERT INTO a VALUES (1, 'one', NULL, 'NaN');`)
	s.caughtUp(srv)
	tg.equal(srv, "public.a", "public.ix")
	sqlText(srv, `ALTER TABLE a ADD d date; ALTER TABLE a RENAME v TO vv; INSERT INTO a VALUES (2, 'two', NULL, 2, '2026-01-02'); ALTER TABLE a DROP big; INSERT INTO a VALUES (3, 'three', 3, '2026-01-03');
		ALTER TABLE a ALTER n TYPE text; INSERT INTO a VALUES (4, 'four', 'text', NULL); ALTER TABLE a RENAME TO a2; INSERT INTO a2 VALUES (5, 'five', 'x', NULL);`)
	s.caughtUp(srv)
	tg.equal(srv, "public.a2")
	if got := strings.Join(tg.ddl, "\n"); strings.Count(got, "\n") != 4 {
		t.Errorf("got schema changes:\n%s\nwant five", got)
	}
	s.close()
}
