package endtoend

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/examples/stack"
)

// TestServers has real servers write their logs now, for inputs too large or too
// special for a recording.
func TestServers(t *testing.T) {
	for _, s := range []struct {
		name    string
		options []string
	}{
		{"mysql", []string{"--binlog-row-metadata=MINIMAL", "--max-allowed-packet=256M"}},
		{"mariadb", []string{"--binlog-row-metadata=NO_LOG", "--max-allowed-packet=256M"}},
	} {
		t.Run(s.name, func(t *testing.T) {
			srv := stack.Start(t, s.name, append(s.options, "--log-bin=live")...)
			for _, c := range inputs {
				if c.only == "" || c.only == s.name {
					srv.SQL("SET NAMES utf8mb4; CREATE DATABASE " + c.id + " CHARACTER SET utf8mb4; USE " + c.id + ";\n" + c.sql)
				}
			}
			for _, c := range inputs {
				if c.only != "" && c.only != s.name {
					continue
				}
				t.Run(c.id+" "+c.name, func(t *testing.T) {
					k := newTask(t, job{files: filepath.Join(srv.Facts["datadir"], "live.0*"), reader: `tables: ["` + c.id + `.*"]`})
					_, err := k.run()
					if c.stops == "" && err != nil || c.stops != "" && (err == nil || !strings.Contains(err.Error(), c.stops)) {
						t.Fatalf("it ended with %v, want %q", err, c.stops)
					}
					if d := cmp.Diff(c.want, query(t, k.target, c.query), cmp.Comparer(same)); d != "" {
						t.Errorf("(-want +got):\n%s", d)
					}
				})
			}
		})
	}
}

// inputs are statements in a database of their own, and what arrives.
var inputs = []struct {
	id, name string
	only     string // "" = both servers
	sql      string
	query    string
	want     [][]string
	stops    string
}{
	{
		id: "B093", name: "value of 40 MiB",
		sql:   "CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT); INSERT INTO t VALUES (1, REPEAT('0123456789abcdef', 2621440)), (2, 'small');",
		query: "SELECT id, length(v), substr(v, -16) FROM t ORDER BY id", want: [][]string{{"1", "41943040", "0123456789abcdef"}, {"2", "5", "small"}},
	},
	{
		id: "B037", name: "row without a key, found by a padded BINARY",
		sql:   "CREATE TABLE t (id INT, val BINARY(5)); INSERT INTO t VALUES (1, 'a'), (2, 'a'); UPDATE t SET id = 10 WHERE id = 1; DELETE FROM t WHERE id = 2;",
		query: "SELECT id, val FROM t", want: [][]string{{"10", "6100000000"}},
	},
	{
		id: "B080", name: "eleven columns without a key, NULLs among them",
		sql: "CREATE TABLE t (a INT, b INT, c INT, d INT, e INT, f INT, g INT, h INT, i INT, j INT, k DOUBLE); INSERT INTO t (a, k) VALUES (1, NULL), (1, NULL), (2, 0.1), (NULL, -0.0);" +
			"DELETE FROM t WHERE a = 1 LIMIT 1; DELETE FROM t WHERE a IS NULL; UPDATE t SET b = 5 WHERE a = 2;",
		query: "SELECT a, b, k FROM t ORDER BY a", want: [][]string{{"1", null, null}, {"2", "5", "0.1"}},
	},
	{
		id: "B057", name: "RENAME COLUMN",
		sql:   "CREATE TABLE t (id INT PRIMARY KEY, a INT, z INT); INSERT INTO t VALUES (1, 10, 100); ALTER TABLE t RENAME COLUMN a TO b; INSERT INTO t VALUES (2, 20, 200); UPDATE t SET b = 11 WHERE id = 1;",
		query: "SELECT id, b, z FROM t ORDER BY id", want: [][]string{{"1", "11", "100"}, {"2", "20", "200"}},
	},
	{
		id: "B049", name: "column moved between rows, without names in the log",
		sql: "CREATE TABLE t (id INT PRIMARY KEY, x INT, y INT); INSERT INTO t VALUES (1, 10, 20); ALTER TABLE t MODIFY x INT AFTER y; INSERT INTO t VALUES (2, 20, 10);" +
			"ALTER TABLE t MODIFY x INT AFTER id; INSERT INTO t VALUES (3, 10, 20); ALTER TABLE t CHANGE x y2 INT, CHANGE y x INT; INSERT INTO t VALUES (4, 10, 20);",
		query: "SELECT id, y2, x FROM t ORDER BY id", want: [][]string{{"1", "10", "20"}, {"2", "10", "20"}, {"3", "10", "20"}, {"4", "10", "20"}},
	},
	{
		id: "B040", name: "statements without effect on rows",
		sql: "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(10)) CHARSET latin1; INSERT INTO t VALUES (1, 'é'); CREATE INDEX i ON t (s); ALTER TABLE t COMMENT 'x', ADD INDEX j (s, id); ALTER TABLE t ENGINE = InnoDB;" +
			"ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4; INSERT INTO t VALUES (2, '男'); DROP INDEX i ON t; ANALYZE TABLE t; ALTER TABLE t AUTO_INCREMENT = 7; INSERT INTO t VALUES (3, 'z');",
		query: "SELECT id, s FROM t ORDER BY id", want: [][]string{{"1", "é"}, {"2", "男"}, {"3", "z"}},
	},
	{
		id: "B016", name: "zero dates under NOT NULL", sql: "SET sql_mode = ''; CREATE TABLE t (a DATE NULL, b DATE NOT NULL, c DATETIME NOT NULL, d TIMESTAMP NOT NULL, id INT PRIMARY KEY); INSERT INTO t VALUES (0, 0, 0, 0, 1);",
		query: "SELECT a, b, c, d FROM t", want: [][]string{{"0000-00-00", "0000-00-00", "0000-00-00 00:00:00", "0000-00-00 00:00:00"}},
	},
	{
		id: "B079", name: "rows that the log never had",
		sql:   "CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1); SET sql_log_bin = 0; INSERT INTO t VALUES (2, 2), (3, 3); SET sql_log_bin = 1; UPDATE t SET v = 20 WHERE id = 2; DELETE FROM t WHERE id = 3;",
		query: "SELECT id, v FROM t ORDER BY id", want: [][]string{{"1", "1"}, {"2", "20"}},
	},
	{
		id: "B122", name: "ROLLBACK TO with an engine without transactions",
		sql:   "CREATE TABLE i (id INT PRIMARY KEY); CREATE TABLE t (id INT PRIMARY KEY) ENGINE = MyISAM; SET sql_log_bin = 1; BEGIN; INSERT INTO i VALUES (1); SAVEPOINT s; INSERT INTO i VALUES (2); ROLLBACK TO s; INSERT INTO i VALUES (3); COMMIT; INSERT INTO t VALUES (9);",
		query: "SELECT id FROM i UNION SELECT id FROM t ORDER BY 1", want: rows("1|3|9"),
	},
	{
		id: "B098", name: "compression in one session", only: "mysql",
		sql:   "CREATE TABLE t (id INT PRIMARY KEY, v TEXT); INSERT INTO t VALUES (1, 'plain'); SET SESSION binlog_transaction_compression = ON; INSERT INTO t VALUES (2, REPEAT('packed', 100)); UPDATE t SET v = 'again' WHERE id = 1;",
		query: "SELECT id, length(v) FROM t ORDER BY id", want: [][]string{{"1", "5"}, {"2", "600"}},
	},
	{
		id: "B004", name: "unsigned number of a function in a document", only: "mysql",
		sql:   "CREATE FUNCTION f(v BIGINT UNSIGNED) RETURNS JSON DETERMINISTIC NO SQL RETURN CAST(v AS JSON); CREATE TABLE t (id INT PRIMARY KEY, j JSON); INSERT INTO t VALUES (1, JSON_OBJECT('value', f(2147483648)));",
		query: "SELECT j FROM t", want: rows(`{"value": 2147483648}`),
	},
	{
		id: "B030", name: "differences of documents in one session", only: "mysql",
		sql: "CREATE TABLE t (id INT PRIMARY KEY, j JSON); INSERT INTO t VALUES (1, JSON_OBJECT('a', REPEAT('x', 100), 'n', 1)); SET SESSION binlog_row_value_options = PARTIAL_JSON; UPDATE t SET j = JSON_SET(j, '$.n', 2);" +
			"SET SESSION binlog_row_image = MINIMAL; UPDATE t SET j = JSON_SET(j, '$.n', 3);",
		query: "SELECT json_extract(j, '$.n'), length(json_extract(j, '$.a')) FROM t", want: [][]string{{"2", "100"}}, stops: "PARTIAL_UPDATE_ROWS",
	},
	{
		id: "B053", name: "functional index", only: "mysql",
		sql:   "CREATE TABLE t (id INT PRIMARY KEY, phone VARCHAR(20), KEY k ((RIGHT(phone, 4)))); INSERT INTO t VALUES (1, '18606520112'); UPDATE t SET phone = '1' WHERE id = 1;",
		query: "SELECT * FROM t", want: [][]string{{"1", "1"}},
	},
	{
		id: "B101", name: "stop inside of a group", only: "mariadb",
		sql:   "CREATE TABLE t (id INT PRIMARY KEY, v INT); BEGIN; INSERT INTO t VALUES (1, 1); INSERT INTO t VALUES (2, 2); COMMIT; INSERT INTO t VALUES (3, 3);",
		query: "SELECT id FROM t ORDER BY id", want: rows("1|2|3"),
	},
	{
		id: "B047", name: "JSON added to a table", only: "mariadb",
		sql:   `CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (0); ALTER TABLE t ADD COLUMN foo JSON; INSERT INTO t VALUES (1, '{"a":1}');`,
		query: "SELECT id, foo FROM t ORDER BY id", want: [][]string{{"0", null}, {"1", `{"a":1}`}},
	},
}
