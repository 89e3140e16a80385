package endtoend

import (
	"strings"
	"testing"
)

// sql writes statements in the store's own notation: {text 20} and the like are
// types, {x 00ff} is a byte string.
func (s *store) sql(text string) string {
	types := map[string]string{
		"{bin}": "VARBINARY(8)", "{boundless}": "VARCHAR(400) CHARACTER SET latin1 PRIMARY KEY", "{ci}": "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", "{bytewise}": "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
		"{full}": "", "{index}": "", "{retype}": "MODIFY n BIGINT", "{widen}": "MODIFY s VARCHAR(400)",
	}
	if s.Kind == "postgres" {
		types = map[string]string{
			"{bin}": "bytea", "{boundless}": "text PRIMARY KEY", "{ci}": "varchar(20)", "{bytewise}": `varchar(20) COLLATE "C"`,
			"{full}": "ALTER TABLE keyed.loose REPLICA IDENTITY FULL; ALTER TABLE keyed.half REPLICA IDENTITY FULL;", "{index}": "ALTER TABLE keyed.only_unique REPLICA IDENTITY USING INDEX only_unique_k;",
			"{retype}": "ALTER n TYPE bigint", "{widen}": "ALTER s TYPE varchar(400)",
		}
	}
	for k, v := range types {
		text = strings.ReplaceAll(text, k, v)
	}
	for {
		before, rest, ok := strings.Cut(text, "{x ")
		if !ok {
			return text
		}
		hex, after, _ := strings.Cut(rest, "}")
		text = before + s.bytesOf(hex) + after
	}
}

// place makes the home of tables, in which text is text.
func (s *store) place(name string) string {
	if s.Kind == "postgres" {
		return "CREATE SCHEMA " + name + ";\n"
	}
	return "CREATE DATABASE " + name + " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;\n"
}

// keyedTables are tables by what tells their rows apart, with all their columns.
var keyedTables = map[string][]col{
	"single":      {{"id", "int"}, {"v", "text"}},
	"composite":   {{"a", "text"}, {"b", "int"}, {"c", "bytes"}, {"v", "text"}},
	"folded":      {{"k", "text"}, {"v", "text"}},
	"exact":       {{"k", "text"}, {"v", "text"}},
	"boundless":   {{"k", "text"}, {"v", "text"}},
	"binary_key":  {{"k", "bytes"}, {"v", "text"}},
	"moments":     {{"k", "datetime"}, {"v", "text"}},
	"decimals":    {{"k", "decimal"}, {"v", "text"}},
	"loose":       {{"a", "int"}, {"v", "text"}},
	"half":        {{"u", "int"}, {"v", "text"}},
	"only_unique": {{"k", "int"}, {"u", "text"}, {"v", "text"}},
	"two":         {{"id", "int"}, {"u", "int"}, {"w", "text"}},
}

const keyedBefore = `
CREATE TABLE keyed.single (id INT PRIMARY KEY, v VARCHAR(20));
CREATE TABLE keyed.composite (a {bytewise} NOT NULL, b INT NOT NULL, c {bin} NOT NULL, v VARCHAR(20), PRIMARY KEY (b, c, a));
CREATE TABLE keyed.folded (k {ci} PRIMARY KEY, v VARCHAR(20));
CREATE TABLE keyed.exact (k {bytewise} PRIMARY KEY, v VARCHAR(20));
CREATE TABLE keyed.boundless (k {boundless}, v VARCHAR(20));
CREATE TABLE keyed.binary_key (k {bin} PRIMARY KEY, v VARCHAR(20));
CREATE TABLE keyed.moments (k {moment} PRIMARY KEY, v VARCHAR(20));
CREATE TABLE keyed.decimals (k DECIMAL(30,10) PRIMARY KEY, v VARCHAR(20));
CREATE TABLE keyed.loose (a INT, v VARCHAR(20));
CREATE TABLE keyed.half (u INT UNIQUE, v VARCHAR(20));
CREATE TABLE keyed.only_unique (k INT NOT NULL, u VARCHAR(20) UNIQUE, v VARCHAR(20), CONSTRAINT only_unique_k UNIQUE (k));
CREATE TABLE keyed.two (id INT PRIMARY KEY, u INT UNIQUE, w VARCHAR(20) NOT NULL UNIQUE);
{full} {index}
INSERT INTO keyed.single VALUES (1, 'a'), (2, 'b'), (3, 'c'), (-5, NULL);
INSERT INTO keyed.composite VALUES ('a|b', 1, {x 63}, 'x'), ('a', 1, {x 627c63}, 'y'), ('a ', 1, {x 63}, 'blank'), ('A', 1, {x 6300}, 'zero'), ('A', 1, {x 63}, 'no zero');
INSERT INTO keyed.folded VALUES ('abc', '1'), ('Straße', '2'), ('é', '3'), ('z', '4');
INSERT INTO keyed.exact VALUES ('abc', '1'), ('ABC', '2'), ('é', '3'), ('', '4'), ('😀', '5');
INSERT INTO keyed.boundless VALUES ('long', '1'), (REPEAT('x', 180), '2');
INSERT INTO keyed.binary_key VALUES ({x 00}, '1'), ({x 0000}, '2'), ({x ff}, '3'), ({x 27}, 'quote'), ({x 5c}, 'backslash');
INSERT INTO keyed.moments VALUES ('2026-01-01 00:00:00', '1'), ('2026-01-01 00:00:00.000001', '2'), ('0022-11-30 08:05:43', '3');
INSERT INTO keyed.decimals VALUES (0, '1'), (0.0000000001, '2'), (-12345678901234567890.0123456789, '3');
INSERT INTO keyed.loose VALUES (1, 'same'), (1, 'same'), (1, 'same'), (NULL, NULL), (NULL, 'x'), (2, NULL);
INSERT INTO keyed.half VALUES (1, 'a'), (NULL, 'b'), (NULL, 'b'), (NULL, 'c');
INSERT INTO keyed.only_unique VALUES (1, 'u1', 'a'), (2, NULL, 'b'), (3, NULL, 'c');
INSERT INTO keyed.two VALUES (1, 10, 'w1'), (2, 20, 'w2'), (3, NULL, 'w3'), (4, NULL, 'w4');
`

// keyedAfter changes keys, gives values of unique keys to other rows, and swaps
// them by way of a third.
const keyedAfter = `
BEGIN; UPDATE keyed.single SET id = 4 WHERE id = 3; UPDATE keyed.single SET id = 3 WHERE id = 2; UPDATE keyed.single SET id = 2 WHERE id = 1; COMMIT;
UPDATE keyed.single SET id = -6, v = 'moved' WHERE id = -5; INSERT INTO keyed.single VALUES (-5, 'again'); DELETE FROM keyed.single WHERE id = -6;
UPDATE keyed.composite SET a = 'b', c = {x 00} WHERE v = 'y'; DELETE FROM keyed.composite WHERE v = 'zero'; UPDATE keyed.composite SET v = 'blank too' WHERE v = 'blank';
UPDATE keyed.folded SET k = 'ABC' WHERE k = 'abc'; UPDATE keyed.folded SET v = 'upper' WHERE k = 'ABC'; DELETE FROM keyed.folded WHERE k = 'z'; INSERT INTO keyed.folded VALUES ('Z', 'again');
UPDATE keyed.exact SET v = 'x' WHERE k = 'ABC'; DELETE FROM keyed.exact WHERE k = 'abc'; UPDATE keyed.exact SET k = 'E' WHERE k = 'é'; UPDATE keyed.exact SET v = 'empty' WHERE k = '';
UPDATE keyed.boundless SET v = 'x' WHERE k = 'long'; INSERT INTO keyed.boundless VALUES (REPEAT('y', 180), 'é');
UPDATE keyed.binary_key SET v = 'two' WHERE k = {x 0000}; DELETE FROM keyed.binary_key WHERE k = {x 00}; UPDATE keyed.binary_key SET k = {x 2700} WHERE k = {x 27};
UPDATE keyed.moments SET v = 'x' WHERE k = '0022-11-30 08:05:43'; DELETE FROM keyed.moments WHERE k = '2026-01-01 00:00:00.000001';
UPDATE keyed.decimals SET v = 'x' WHERE k = 0.0000000001; UPDATE keyed.decimals SET k = k - 1 WHERE k < 0;
UPDATE keyed.loose SET v = 'two' WHERE a = 2; UPDATE keyed.loose SET a = 9 WHERE a IS NULL AND v IS NULL; DELETE FROM keyed.loose WHERE v = 'x'; INSERT INTO keyed.loose VALUES (1, 'same');
UPDATE keyed.half SET u = 7 WHERE v = 'c'; DELETE FROM keyed.half WHERE u = 1; INSERT INTO keyed.half VALUES (1, 'taken'), (NULL, 'b');
UPDATE keyed.only_unique SET u = 'freed' WHERE k = 1; UPDATE keyed.only_unique SET u = 'u1' WHERE k = 2; UPDATE keyed.only_unique SET k = 30 WHERE k = 3;
BEGIN; UPDATE keyed.two SET u = NULL WHERE id = 1; UPDATE keyed.two SET u = 10 WHERE id = 2; UPDATE keyed.two SET u = 20 WHERE id = 1; COMMIT;
BEGIN; DELETE FROM keyed.two WHERE id = 3; INSERT INTO keyed.two VALUES (5, 30, 'w3'); UPDATE keyed.two SET id = 3 WHERE id = 5; COMMIT;
UPDATE keyed.two SET w = 'free' WHERE id = 4; INSERT INTO keyed.two VALUES (6, 40, 'w4');
`

// keys are tables told apart by each kind of key, or by none.
func (m *matrix) keys(t *testing.T) {
	src := m.all[m.from]
	moment := "DATETIME(6)"
	if m.from == "postgres" {
		moment = "timestamp(6)"
	}
	src.SQL(src.place("keyed") + src.sql(strings.ReplaceAll(keyedBefore, "{moment}", moment)))
	j := m.job(t, "keys", "keyed", "keyless: full-row-match")
	j.run()
	for table, cols := range keyedTables {
		m.same(t, j, "keyed."+table, cols)
	}
	src.SQL(src.sql(keyedAfter))
	j.run()
	for table, cols := range keyedTables {
		m.same(t, j, "keyed."+table, cols)
	}
}

// changes are changes of the layout that each source announces, with rows between.
func (m *matrix) changes(t *testing.T) {
	src := m.all[m.from]
	src.SQL(src.place("ddl") + src.sql(`
CREATE TABLE ddl.t (id INT PRIMARY KEY, n INT, s VARCHAR(20), gone INT, old INT);
CREATE TABLE ddl.was (id INT PRIMARY KEY, v VARCHAR(20));
CREATE TABLE ddl.emptied (id INT PRIMARY KEY, v VARCHAR(20));
CREATE TABLE ddl.dropped (id INT PRIMARY KEY);
INSERT INTO ddl.t VALUES (1, 1, 'one', 1, 10), (2, 2, 'two', 2, 20);
INSERT INTO ddl.was VALUES (1, 'x'); INSERT INTO ddl.emptied VALUES (1, 'x'), (2, 'y'); INSERT INTO ddl.dropped VALUES (1);
`))
	j := m.job(t, "ddl", "ddl", "")
	j.run()
	m.same(t, j, "ddl.t", []col{{"id", "int"}, {"n", "int"}, {"s", "text"}, {"gone", "int"}, {"old", "int"}})
	src.SQL(src.sql(`
ALTER TABLE ddl.t ADD COLUMN added VARCHAR(20) DEFAULT 'dflt';
INSERT INTO ddl.t (id, n) VALUES (3, 3);
ALTER TABLE ddl.t DROP COLUMN gone;
UPDATE ddl.t SET n = 22 WHERE id = 2;
ALTER TABLE ddl.t RENAME COLUMN old TO renamed;
UPDATE ddl.t SET renamed = 11 WHERE id = 1;
ALTER TABLE ddl.t {retype};
UPDATE ddl.t SET n = 9223372036854775807 WHERE id = 1;
ALTER TABLE ddl.t {widen};
UPDATE ddl.t SET s = REPEAT('é', 400) WHERE id = 2;
ALTER TABLE ddl.was RENAME TO ` + map[bool]string{true: "", false: "ddl."}[m.from == "postgres"] + `is_now;
INSERT INTO ddl.is_now VALUES (2, 'y');
TRUNCATE TABLE ddl.emptied;
INSERT INTO ddl.emptied VALUES (2, 'again');
CREATE TABLE ddl.made (id INT PRIMARY KEY, v VARCHAR(20));
INSERT INTO ddl.made VALUES (1, 'new');
DROP TABLE ddl.dropped;
`))
	j.run()
	m.same(t, j, "ddl.t", []col{{"id", "int"}, {"n", "bigint"}, {"s", "text"}, {"renamed", "int"}, {"added", "text"}})
	for _, table := range []string{"is_now", "emptied", "made"} {
		m.same(t, j, "ddl."+table, []col{{"id", "int"}, {"v", "text"}})
	}
	if m.from == "postgres" {
		return // its log does not say that a table was dropped
	}
	for _, to := range allTargets {
		if to == "sqlite" {
			if n := query(t, j.lite, "SELECT count(*) FROM sqlite_schema WHERE name IN ('"+j.home+".dropped', '"+j.home+".was')"); n[0][0] != "0" {
				t.Errorf("%s → %s: %s of the tables that are gone are there", m.from, to, n[0][0])
			}
			continue
		}
		if n := strings.TrimSpace(m.all[to].SQL("SELECT count(*) FROM information_schema.tables WHERE table_schema = '"+j.home+"' AND table_name IN ('dropped', 'was')", flags(to)...)); n != "0" {
			t.Errorf("%s → %s: %s of the tables that are gone are there", m.from, to, n)
		}
	}
}
