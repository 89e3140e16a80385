package schema

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// layout writes a table in one line: columns with their types, then keys.
func layout(t *Table) string {
	if t == nil {
		return "unknown"
	}
	var out []string
	for _, c := range t.Columns {
		s := c.Name + " " + c.Native
		if c.Charset != "" {
			s += " " + c.Charset
		}
		for _, f := range []struct {
			on   bool
			text string
		}{{c.NotNull, "!"}, {c.Auto, "auto"}, {c.Generated, "stored"}, {c.Virtual, "virtual"}, {c.Hidden, "hidden"}} {
			if f.on {
				s += " " + f.text
			}
		}
		out = append(out, s)
	}
	s := strings.Join(out, ", ")
	keys := func(parts []Part) string {
		var n []string
		for _, p := range parts {
			n = append(n, p.Column)
		}
		return "(" + strings.Join(n, " ") + ")"
	}
	if len(t.Primary) > 0 {
		s += "; primary " + keys(t.Primary)
	}
	for _, u := range t.Uniques {
		s += "; unique " + u.Name + keys(u.Parts)
	}
	for _, f := range t.ForeignKeys {
		s += "; " + f.Name + "(" + strings.Join(f.Columns, " ") + ") to " + f.RefDatabase + "." + f.RefTable + "(" + strings.Join(f.RefColumns, " ") + ") " + f.OnDelete
	}
	return s
}

var mysql84, maria1011 = Dialect{Version: 80400}, Dialect{MariaDB: true, Version: 101119}

func TestLayouts(t *testing.T) {
	for _, c := range []struct {
		name string
		d    Dialect
		sql  []string // the table is d.t at the end unless want names another
		want string
	}{
		{
			"types", mysql84,
			[]string{"CREATE TABLE t (a INT(11) UNSIGNED NOT NULL AUTO_INCREMENT, b VARCHAR(20) CHARACTER SET latin1, c DECIMAL, d DOUBLE PRECISION(5,2), e BOOL DEFAULT TRUE, f NATIONAL CHAR(3), g LONG VARCHAR, h SERIAL, i CHAR BYTE, PRIMARY KEY (a))"},
			"a int unsigned ! auto, b varchar(20) latin1, c decimal(10,0), d double(5,2), e tinyint, f char(3) utf8mb3, g mediumtext utf8mb4, h bigint unsigned ! auto, i binary(1); primary (a); unique h(h)",
		},
		{
			"column keys", mysql84,
			[]string{"create table `d`.`t` (`id` bigint key, `u` int unique key comment 'it''s, (x)', v int as (u + 1) stored, w int generated always as (v) virtual invisible)"},
			"id bigint !, u int, v int stored, w int virtual hidden; primary (id); unique u(u)",
		},
		{
			"charsets", mysql84,
			[]string{"CREATE DATABASE d CHARACTER SET gbk", "CREATE TABLE t (a TEXT, b TEXT COLLATE utf8mb4_bin, c VARCHAR(3) CHARACTER SET binary, d ENUM('x','y') CHARSET utf8) "},
			"a text gbk, b text utf8mb4, c varbinary(3), d enum('x','y') utf8mb3",
		},
		{"table charset behind", mysql84, []string{"CREATE TABLE t (a CHAR(2)) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_bin ROW_FORMAT=DYNAMIC COMMENT='x'"}, "a char(2) latin1"},
		{
			"foreign key", mysql84,
			[]string{"CREATE TABLE t (a INT, b INT, CONSTRAINT fk FOREIGN KEY ix (b) REFERENCES other.p (id) ON DELETE CASCADE ON UPDATE NO ACTION, KEY (a), FULLTEXT KEY f (a), CHECK (a > 0) NOT ENFORCED)"},
			"a int, b int; fk(b) to other.p(id) CASCADE",
		},
		{"comments", mysql84, []string{"CREATE TABLE t (a INT) -- x\n/* y */ # z", "ALTER /* why */ TABLE t /*!50000 ADD COLUMN b INT */ /*!99999 , ADD c INT */"}, "a int, b int"},
		{"version comments of MariaDB", maria1011, []string{"CREATE TABLE t (a INT /*M!100000 , b INT */ /*!50701 , c INT */ /*!100000 , e INT */)"}, "a int, b int, e int"},
		{
			"change and after", mysql84,
			[]string{"CREATE TABLE t (id INT, item_id INT)", "ALTER TABLE t ADD COLUMN taskable_type VARCHAR(255) CHARSET latin1 AFTER taskable_id, CHANGE COLUMN item_id taskable_id INT"},
			"id int, taskable_id int, taskable_type varchar(255) latin1",
		},
		{"modify moves", mysql84, []string{"CREATE TABLE t (id INT, x INT, y INT, z INT)", "ALTER TABLE t MODIFY x INT AFTER z"}, "id int, y int, z int, x int"},
		{
			"many actions", mysql84,
			[]string{"CREATE TABLE t (a INT, b INT, c INT, PRIMARY KEY (a), UNIQUE uq (b, c))", "ALTER TABLE t DROP COLUMN c, ADD first INT FIRST, RENAME COLUMN b TO bb, ADD (d INT, e INT), DROP PRIMARY KEY, ADD PRIMARY KEY (bb), ALGORITHM=INPLACE, LOCK=NONE"},
			"first int, a int !, bb int !, d int, e int; primary (bb); unique uq(bb)",
		},
		{"drop column if exists", maria1011, []string{"CREATE TABLE t (a INT)", "ALTER TABLE t DROP COLUMN IF EXISTS b, ADD COLUMN IF NOT EXISTS a INT, ADD COLUMN IF NOT EXISTS c INT", "ALTER TABLE IF EXISTS t WAIT 5 MODIFY COLUMN IF EXISTS c BIGINT"}, "a int, c bigint"},
		{
			"changes behind options", mysql84,
			[]string{"CREATE TABLE t (a INT, b INT, c INT)", "ALTER TABLE t ENGINE=InnoDB, ADD COLUMN d INT, COMMENT 'x', MODIFY a INT AFTER d, AUTO_INCREMENT 7, DROP COLUMN b, ROW_FORMAT=DYNAMIC, RENAME COLUMN c TO cc, DEFAULT CHARSET latin1, ADD INDEX j (a), ADD e CHAR(2)"},
			"cc int, d int, a int, e char(2) latin1",
		},
		{"swap", mysql84, []string{"CREATE TABLE t (a INT)", "CREATE TABLE _gho LIKE t", "ALTER TABLE _gho ADD b INT", "RENAME TABLE t TO _del, _gho TO t", "DROP TABLE _del"}, "a int, b int"},
		{"rename to other database", mysql84, []string{"CREATE TABLE x.s (a INT)", "RENAME TABLE x.s TO d.t"}, "a int"},
		{"alter rename", mysql84, []string{"CREATE TABLE a (aID INT PRIMARY KEY)", "ALTER TABLE a RENAME TO t", "ALTER TABLE t CHANGE aID bID BIGINT(19)"}, "bID bigint !; primary (bID)"},
		{"indexes", mysql84, []string{"CREATE TABLE t (a INT, b INT)", "CREATE UNIQUE INDEX u USING BTREE ON t (b DESC, a) COMMENT 'x'", "ALTER TABLE t RENAME INDEX u TO v", "CREATE INDEX i ON t (a)", "DROP INDEX i ON t"}, "a int, b int; unique v(b a)"},
		{"convert", mysql84, []string{"CREATE TABLE t (a VARCHAR(5), b INT, c TEXT) CHARSET latin1", "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4"}, "a varchar(5) utf8mb4, b int, c mediumtext utf8mb4"},
		{"functional index", mysql84, []string{"CREATE TABLE t (a VARCHAR(9), KEY k ((right(a,4))))", "ALTER TABLE t ADD b INT"}, "a varchar(9) utf8mb4, b int, !hidden!k!0!0  virtual"},
		{"srid", mysql84, []string{"CREATE TABLE t (p POINT NOT NULL SRID 4326, SPATIAL KEY (p))"}, "p point !"},
		{
			"mariadb only", maria1011,
			[]string{"CREATE OR REPLACE TABLE t (u UUID DEFAULT uuid() PRIMARY KEY, i INET6, x TEXT COMPRESSED=zlib, j JSON CHECK (json_valid(j)), p INT AS (1) PERSISTENT, e INT ENCRYPTED=YES) ENGINE=Aria TRANSACTIONAL=1 PAGE_CHECKSUM=1 WITH SYSTEM VERSIONING"},
			"u uuid !, i inet6, x text utf8mb4, j json utf8mb4, p int stored, e int, row_start timestamp(6) ! stored hidden, row_end timestamp(6) ! stored hidden; primary (u)",
		},
		{"set statement", maria1011, []string{"SET STATEMENT max_statement_time=1 FOR CREATE TABLE t (a INT)"}, "a int"},
		{"names in quotes", Dialect{Version: 80400, ANSIQuotes: true}, []string{"CREATE TABLE \"t\" (\"select\" INT, `a``b` INT, \"quo\"\"te\" INT)"}, "select int, a`b int, quo\"te int"},
		{"a word as a name", mysql84, []string{"CREATE TABLE `t` (`key` INT, `index` INT, `primary` INT, period INT, `check` INT)"}, "key int, index int, primary int, period int, check int"},
		{"partitions", mysql84, []string{"CREATE TABLE t (a INT) PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE)", "ALTER TABLE t REORGANIZE PARTITION p0, p1 INTO (PARTITION p VALUES LESS THAN MAXVALUE)"}, "a int"},
		{"ctas as it is logged", mysql84, []string{"CREATE TABLE t (`one` int NOT NULL DEFAULT '0') START TRANSACTION"}, "one int !"},
		{"select gives the columns", mysql84, []string{"CREATE TABLE t AS SELECT 1"}, "unknown"},
		{"unknown attribute", mysql84, []string{"CREATE TABLE t (a INT)", "ALTER TABLE t ADD b INT SPARKLING"}, "unknown"},
		{"unknown type", mysql84, []string{"CREATE TABLE t (a QUBIT)"}, "unknown"},
		{"known again", mysql84, []string{"CREATE TABLE t (a QUBIT)", "DROP TABLE t", "CREATE TABLE t (a INT)"}, "a int"},
		{"dropped database", mysql84, []string{"CREATE TABLE t (a INT)", "DROP DATABASE d"}, "unknown"},
		{"exists already", mysql84, []string{"CREATE TABLE t (a INT)", "CREATE TABLE IF NOT EXISTS t (b INT)", "CREATE TEMPORARY TABLE t (c INT)"}, "a int"},
		{"no table is touched", mysql84, []string{"CREATE TABLE t (a INT)", "CREATE DEFINER=`root`@`%` SQL SECURITY INVOKER VIEW v AS SELECT 1", "CREATE DEFINER=CURRENT_USER() TRIGGER x AFTER INSERT ON t FOR EACH ROW INSERT INTO u VALUES (1)", "GRANT SELECT ON d.t TO u", "DROP VIEW v", "CREATE USER u IDENTIFIED BY 'x'", "FLUSH TABLES", "ALTER EVENT e DISABLE"}, "a int"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := NewHistory()
			for _, sql := range c.sql {
				eff := h.Apply(Statement{Text: sql, Database: "d", Dialect: c.d, Collation: "utf8mb4_general_ci"})
				if eff.Class == NotUnderstood {
					t.Errorf("%s: %v", sql, eff.Err)
				}
			}
			if d := cmp.Diff(c.want, layout(h.Get("d", "t"))); d != "" {
				t.Error(d)
			}
			if c.want == "unknown" && h.Unknown("d", "t") == nil && !strings.Contains(c.name, "dropped") {
				t.Error("no reason is kept")
			}
		})
	}
}

func TestClasses(t *testing.T) {
	for _, c := range []struct {
		sql  string
		want Class
	}{
		{"INSERT INTO t VALUES (1)", Rows},
		{"UPDATE t SET a = 1", Rows},
		{"REPLACE INTO t VALUES (1)", Rows},
		{"LOAD DATA INFILE 'x' INTO TABLE t", Rows},
		{"WITH x AS (SELECT 1) DELETE FROM t", Rows},
		{"DELETE FROM t WHERE a = 1", Rows},
		{"DELETE FROM `d`.`t` /* generated by server */", TruncateTable},
		{"TRUNCATE TABLE t", TruncateTable},
		{"truncate t", TruncateTable},
		{"SELECT f()", Rows},
		{"FROBNICATE t", NotUnderstood},
		{"CREATE GALAXY g", NotUnderstood},
		{"CREATE TABLE t (a INT", NotUnderstood},
		{"", Nothing},
		{"/* nothing */", Nothing},
		{"CREATE TEMPORARY TABLE x (a INT)", Nothing},
		{"DROP TEMPORARY TABLE x", Nothing},
		{"ALTER TABLE t COMMENT 'ALTER TABLE x ADD y INT; -- no'", Definition},
	} {
		h := NewHistory()
		eff := h.Apply(Statement{Text: c.sql, Database: "d", Dialect: mysql84})
		if got := eff.Class; got != c.want && !(c.want == NotUnderstood && len(eff.Changes) == 1 && eff.Changes[0].Err != nil) {
			t.Errorf("%q: class %d, want %d (%v)", c.sql, got, c.want, eff.Err)
		}
	}
}

// TestRowTables names what statements change.
func TestRowTables(t *testing.T) {
	for _, c := range []struct{ sql, want string }{
		{"INSERT INTO t VALUES (1)", "d.t"},
		{"insert low_priority ignore e.`t t` (a) select a from u", "e.t t"},
		{"REPLACE t SET a = 1", "d.t"},
		{"LOAD DATA LOCAL INFILE 'INTO TABLE x' REPLACE INTO TABLE t FIELDS TERMINATED BY ','", "d.t"},
		{"UPDATE LOW_PRIORITY t AS x SET a = 1 WHERE b IN (SELECT 1 FROM u)", "d.t"},
		{"UPDATE t a JOIN e.u b USING (id) LEFT JOIN v ON (a.x = v.x), w SET a.x = 1", "d.t e.u d.v d.w"},
		{"UPDATE (SELECT 1) q, t SET a = 1", ""},
		{"DELETE FROM t WHERE a = 1", "d.t"},
		{"DELETE a, b FROM t a INNER JOIN u b WHERE 1", "d.t d.u"},
		{"DELETE FROM t USING t, u WHERE 1", "d.t d.t d.u"},
		{"CALL p()", ""},
		{"WITH q AS (SELECT 1) UPDATE t SET a = 1", ""},
	} {
		eff := NewHistory().Apply(Statement{Text: c.sql, Database: "d", Dialect: mysql84})
		var got []string
		for _, n := range eff.Tables {
			got = append(got, n.String())
		}
		if g := strings.Join(got, " "); g != c.want || eff.Class != Rows {
			t.Errorf("%s: class %d, tables %q, want %q", c.sql, eff.Class, g, c.want)
		}
	}
}

// TestVersions goes back to earlier places with what was kept.
func TestVersions(t *testing.T) {
	h := NewHistory()
	for i, sql := range []string{"CREATE TABLE t (a INT)", "ALTER TABLE t ADD b INT", "ALTER TABLE t DROP a", "DROP TABLE t"} {
		h.SetPlace(Place{File: 1, Offset: int64(i+1) * 100})
		h.Apply(Statement{Text: sql, Database: "d", Dialect: mysql84})
	}
	v, n := h.Versions(Name{"d", "t"})
	for _, c := range []struct {
		at   int64
		want string
	}{{50, "unknown"}, {100, "a int"}, {199, "a int"}, {200, "a int, b int"}, {300, "b int"}, {1000, "unknown"}} {
		r := NewHistory()
		r.Restore(Name{"d", "t"}, v, n, Before(1, c.at))
		if got := layout(r.Get("d", "t")); got != c.want {
			t.Errorf("at %d: %s, want %s", c.at, got, c.want)
		}
	}
}

func FuzzApply(f *testing.F) {
	for _, s := range []string{
		"CREATE TABLE t (a INT, b ENUM('x','y') DEFAULT 'x', PRIMARY KEY (a)) ENGINE=InnoDB", "ALTER TABLE t ADD c INT AFTER a, DROP b, RENAME TO u",
		"RENAME TABLE t TO u, v TO t", "DROP TABLE IF EXISTS t, u", "/*!50000 CREATE */ TABLE `a``b`.c (x INT)", "CREATE DEFINER=`a`@`b` VIEW v AS SELECT 1",
		"SET STATEMENT a=1 FOR DROP TABLE t", "ALTER TABLE t PARTITION BY HASH (a)", "CREATE TABLE t LIKE u", "'", "`", "/*", "a.b.c", "(((", "ALTER TABLE t ADD (", "CREATE SEQUENCE s",
	} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, sql string, maria bool) {
		h := NewHistory()
		h.Apply(Statement{Text: "CREATE TABLE t (a INT, b INT, c VARCHAR(10), PRIMARY KEY (a))", Database: "d"})
		h.Apply(Statement{Text: sql, Database: "d", Dialect: Dialect{MariaDB: maria}})
		if tb := h.Get("d", "t"); tb != nil {
			for _, p := range tb.Primary {
				if tb.Column(p.Column) < 0 && !strings.Contains(strings.ToUpper(sql), "CREATE") && !strings.Contains(strings.ToUpper(sql), "PRIMARY") {
					t.Errorf("%q leaves a key of column %s, which is not there", sql, p.Column)
				}
			}
		}
	})
}
