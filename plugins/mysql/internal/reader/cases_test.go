package reader

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/mysql/internal/replica"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// fieldCases are small inputs on which tools of this kind have gone wrong. Each is
// written by a real server in a database of its own; what the stream makes of it
// is compared with the server's own tables.
var fieldCases = []struct {
	id, only, sql string
}{
	{"B002", "", "CREATE TABLE t (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, v INT); INSERT INTO t VALUES (3355, 1), (18446744073709551614, 2);"},
	{"B004", "mysql", "CREATE FUNCTION f() RETURNS JSON DETERMINISTIC RETURN (SELECT CAST(CAST(2147483648 AS UNSIGNED) AS JSON)); CREATE TABLE t (id INT PRIMARY KEY, j JSON); INSERT INTO t VALUES (1, JSON_OBJECT('value', f()));"},
	{"B007", "", "CREATE TABLE t (id INT PRIMARY KEY, e ENUM('a','b')); INSERT INTO t VALUES (1, 'b'); ALTER TABLE t MODIFY e ENUM('c','a','b'); INSERT INTO t VALUES (2, 'c');"},
	{"B008", "", "CREATE TABLE t (id INT PRIMARY KEY, e ENUM('a','b')); INSERT INTO t VALUES (1, 'zzz'), (2, NULL);"},
	{"B010", "", "CREATE TABLE t (id INT PRIMARY KEY, y YEAR); INSERT INTO t VALUES (1, 0), (2, 1901);"},
	{"B012", "", "CREATE TABLE t (id INT PRIMARY KEY, t TIME); INSERT INTO t VALUES (1, '-00:00:01'), (2, '-507:48:27');"},
	{"B014", "", "CREATE TABLE t (id INT PRIMARY KEY, d DATETIME); INSERT INTO t VALUES (1, '0002-11-30 08:05:43'), (2, '0022-11-30 08:05:43'), (3, '0222-11-30 08:05:43');"},
	{"B016", "", "CREATE TABLE t (id INT PRIMARY KEY, a DATE NULL, b DATE NOT NULL, c DATETIME NOT NULL, d TIMESTAMP NOT NULL DEFAULT '0000-00-00 00:00:00'); INSERT INTO t VALUES (1, 0, 0, 0, 0);"},
	{"B017", "", "SET time_zone = '+08:00'; CREATE TABLE t (id INT PRIMARY KEY, value TIMESTAMP NOT NULL DEFAULT '0000-00-00 00:00:00'); INSERT INTO t (id) VALUES (1); INSERT INTO t VALUES (2, '2024-01-01 00:00:00');"},
	{"B018", "", "CREATE TABLE t (id INT PRIMARY KEY, v INT, update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP); INSERT INTO t VALUES (1, 1, '2025-02-17 18:11:25'); INSERT INTO t (id, v) VALUES (2, 1); UPDATE t SET v = 2;"},
	{"B019", "", "SET time_zone = '+05:30'; CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, ts TIMESTAMP NULL); INSERT INTO t VALUES (4000000000, '2025-02-17 18:11:25'); SET time_zone = '-08:45'; UPDATE t SET id = id + 1;"},
	{"B021", "", "CREATE TABLE t (id INT PRIMARY KEY, d DATETIME NOT NULL DEFAULT '0000-00-00 00:00:00'); SET sql_mode = 'STRICT_TRANS_TABLES,NO_ZERO_DATE'; INSERT IGNORE INTO t (id) VALUES (1);"},
	{"B022", "", "CREATE TABLE t (id INT PRIMARY KEY); ALTER TABLE t ADD a DATE DEFAULT '2020-00-10', ADD b TIME NOT NULL DEFAULT '00:00:00'; INSERT INTO t (id) VALUES (1);"},
	{"B025", "", "CREATE TABLE t (id INT PRIMARY KEY, a DECIMAL(12,4), b DECIMAL(13,4)); INSERT INTO t VALUES (1, 1.23, 1.23), (2, -1.23, -1.23);"},
	{"B027", "", `CREATE TABLE t (id INT PRIMARY KEY, j JSON); INSERT INTO t VALUES (1, '{"k1":"男","k2":"18606520112","cardNumber":"","k3":"Peter"}');`},
	{"B028", "mysql", "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, c INT, d INT, remark JSON); INSERT INTO t VALUES (1, 1, -70000, 2147483647, NULL, NULL); UPDATE t SET remark = JSON_OBJECT('0-1000', a, '1000-2000', b, '2000-3000', c, '3000', d);"},
	{"B030", "mysql", "CREATE TABLE t (id INT PRIMARY KEY, j JSON); INSERT INTO t VALUES (1, JSON_OBJECT('a', REPEAT('x', 200), 'n', 1)); SET SESSION binlog_row_value_options = PARTIAL_JSON; UPDATE t SET j = JSON_SET(j, '$.n', 2); UPDATE t SET j = JSON_REMOVE(j, '$.n');"},
	{"B031", "", "CREATE TABLE t (id INT PRIMARY KEY, g GEOMETRY); INSERT INTO t VALUES (1, ST_GeomFromText('POINT(1 2)', 3857)), (2, ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))')), (3, ST_GeomFromText('MULTIPOINT(0 0,1 1)')), (4, ST_GeomFromText('LINESTRING(0 0,1 1)')), (5, ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1))')), (6, ST_GeomFromText('MULTILINESTRING((0 0,1 1))')), (7, ST_GeomFromText('MULTIPOLYGON(((0 0,1 0,1 1,0 0)))'));"},
	{"B032", "", "CREATE TABLE t (id INT PRIMARY KEY, coordinates GEOMETRY NOT NULL); INSERT INTO t VALUES (1, ST_GeomFromText('POINT(0 0)'));"},
	{"B033", "mysql", "CREATE TABLE t (id INT PRIMARY KEY); ALTER TABLE t ADD location POINT NOT NULL SRID 4326; INSERT INTO t VALUES (1, ST_GeomFromText('POINT(48 16)', 4326));"},
	{"B034", "", "CREATE TABLE t (id BINARY(16) PRIMARY KEY, v INT); INSERT INTO t VALUES (x'6CCD780CBABA1026956454FDA9C87800', 1); UPDATE t SET v = 2;"},
	{"B035", "", "CREATE TABLE t (id INT PRIMARY KEY, b BINARY(4), v VARBINARY(4)); INSERT INTO t VALUES (1, x'01020000', x'01020000');"},
	{"B037", "", "CREATE TABLE t (id INT, val BINARY(5)); INSERT INTO t VALUES (1, 'a'), (2, 'a'); UPDATE t SET id = 10 WHERE id = 1; DELETE FROM t WHERE id = 2;"},
	{"B039", "", "CREATE TABLE t (id VARCHAR(100) PRIMARY KEY) CHARSET=utf8mb3; INSERT INTO t VALUES ('A');"},
	{"B040", "", "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(9)) CHARSET latin1; INSERT INTO t VALUES (1, 'é');"},
	{"B043", "", `CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(10)); INSERT INTO t VALUES (1, 'a\0b');`},
	{"B047", "mariadb", `CREATE TABLE t (id INT PRIMARY KEY); ALTER TABLE t ADD COLUMN foo JSON; INSERT INTO t VALUES (1, '{"a":1}');`},
	{"B049", "", "CREATE TABLE t (id INT PRIMARY KEY, x INT, y INT); INSERT INTO t VALUES (1, 10, 20); ALTER TABLE t MODIFY x INT AFTER y; INSERT INTO t (id, x, y) VALUES (2, 10, 20); ALTER TABLE t MODIFY x INT AFTER id; INSERT INTO t VALUES (3, 10, 20);"},
	{"B050", "", "CREATE TABLE test1 (name VARCHAR(9) PRIMARY KEY); ALTER TABLE test1 ADD age INT; INSERT INTO test1 VALUES ('a', 1); DROP TABLE test1; CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1);"},
	{"B051", "", "CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1), (2, 2); CREATE TABLE _t_gho LIKE t; ALTER TABLE _t_gho ADD w INT; INSERT INTO _t_gho SELECT id, v, 0 FROM t; UPDATE _t_gho SET v = v + 1; DROP TABLE _t_gho; INSERT INTO t VALUES (3, 3);"},
	{"B053", "mysql", "CREATE TABLE t (id INT PRIMARY KEY, phone VARCHAR(20), KEY k ((RIGHT(phone, 4)))); INSERT INTO t VALUES (1, '18606520112'); UPDATE t SET phone = '1';"},
	{"B054", "", "CREATE TABLE a (aID INT PRIMARY KEY, v INT); INSERT INTO a VALUES (1, 1); ALTER TABLE a RENAME TO b; ALTER TABLE b CHANGE aID bID BIGINT(19); INSERT INTO b VALUES (2, 2); UPDATE b SET v = 3 WHERE bID = 1;"},
	{"B055", "", "CREATE TABLE t (id INT PRIMARY KEY, item_id INT, z INT); INSERT INTO t VALUES (1, 2, 3); ALTER TABLE t ADD COLUMN taskable_type VARCHAR(255) AFTER taskable_id, CHANGE COLUMN item_id taskable_id INT; INSERT INTO t VALUES (2, 4, 'Task', 5);"},
	{"B057", "", "CREATE TABLE t (id INT PRIMARY KEY, a INT); INSERT INTO t VALUES (1, 1); ALTER TABLE t RENAME COLUMN a TO b; INSERT INTO t VALUES (2, 2); UPDATE t SET b = 9 WHERE id = 1;"},
	{"B058", "", "CREATE TABLE t1 (id INT PRIMARY KEY, v INT); INSERT INTO t1 VALUES (1, 1); CREATE TABLE _t1_gho LIKE t1; ALTER TABLE _t1_gho ADD w INT FIRST; INSERT INTO _t1_gho (id, v) SELECT id, v FROM t1; UPDATE t1 SET v = 2; REPLACE INTO _t1_gho (id, v) SELECT id, v FROM t1; RENAME TABLE t1 TO _t1_del, _t1_gho TO t1; UPDATE t1 SET w = 5; INSERT INTO t1 VALUES (6, 2, 7); DROP TABLE _t1_del;"},
	{"B060", "", "CREATE TABLE e1 (id INT PRIMARY KEY); INSERT INTO e1 VALUES (1); RENAME TABLE e1 TO e2; INSERT INTO e2 VALUES (2);"},
	{"B062", "", "CREATE TABLE t (id INT PRIMARY KEY, UserName INT); INSERT INTO t (ID, username) VALUES (1, 2); ALTER TABLE t RENAME COLUMN USERNAME TO userName2; INSERT INTO t VALUES (2, 3);"},
	{"B063", "", "CREATE TABLE t (id INT PRIMARY KEY, `status` INT, `order` INT, `key` INT); INSERT INTO t VALUES (1, 2, 3, 4);"},
	{"B070", "", "CREATE TABLE tb (a INT PRIMARY KEY, b INT UNIQUE); INSERT INTO tb VALUES (1, 2), (3, 4), (4, 1);"},
	{"B071", "", "CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3); BEGIN; UPDATE t SET id = 4 WHERE id = 3; UPDATE t SET id = 3 WHERE id = 2; UPDATE t SET id = 2 WHERE id = 1; COMMIT;"},
	{"B072", "", "CREATE TABLE t (id INT PRIMARY KEY, u INT, UNIQUE (u)); INSERT INTO t VALUES (1, 1); BEGIN; UPDATE t SET u = 2 WHERE id = 1; INSERT INTO t VALUES (2, 1); COMMIT;"},
	{"B073", "", "CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1); UPDATE t SET id = 2 WHERE id = 1; INSERT INTO t VALUES (1, 9);"},
	{"B074", "", "CREATE TABLE t (id INT PRIMARY KEY, v CHAR(1)); BEGIN; INSERT INTO t VALUES (1, 'a'); UPDATE t SET v = 'b' WHERE id = 1; COMMIT;"},
	{"B080", "", "CREATE TABLE t (a INT, b INT, c INT, d INT, e INT, f INT, g INT, h INT, i INT, j INT, k INT); INSERT INTO t (a) VALUES (1), (1), (NULL), (2); DELETE FROM t WHERE a IS NULL; DELETE FROM t WHERE a = 1 LIMIT 1;"},
	{"B081", "", "CREATE TABLE t (a INT, b INT, c INT); INSERT INTO t VALUES (1, 2, NULL), (3, 4, 5); UPDATE t SET b = 9 WHERE a = 1;"},
	{"B083", "", "SET SESSION binlog_row_image = MINIMAL; CREATE TABLE tnull (id INT PRIMARY KEY, c1null INT, c2null INT, c3 INT); INSERT INTO tnull VALUES (1, 4, 4, 4); UPDATE tnull SET c1null = 44 WHERE c3 = 4; UPDATE tnull SET c2null = NULL;"},
	{"B085", "", "SET SESSION binlog_row_image = MINIMAL; CREATE TABLE t (id INT PRIMARY KEY, v INT DEFAULT 7, s VARCHAR(9) DEFAULT 'x'); INSERT INTO t (id) VALUES (1); INSERT INTO t VALUES (2, NULL, 'y');"},
	{"B093", "", "CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT); INSERT INTO t VALUES (1, REPEAT('0123456789abcdef', 1310720)), (2, 'small');"},
	{"B098", "mysql", "CREATE TABLE t (id INT PRIMARY KEY, v TEXT); SET SESSION binlog_transaction_compression = ON; BEGIN; INSERT INTO t VALUES (1, REPEAT('a', 5000)); INSERT INTO t VALUES (2, 'b'); COMMIT; SET SESSION binlog_transaction_compression = OFF; INSERT INTO t VALUES (3, 'c');"},
	{"B101", "mariadb", "CREATE TABLE t (id INT PRIMARY KEY); BEGIN; INSERT INTO t VALUES (1); INSERT INTO t VALUES (2); COMMIT; INSERT INTO t VALUES (3);"},
	{"B122", "", "CREATE TABLE i (id INT PRIMARY KEY) ENGINE=InnoDB; CREATE TABLE m (id INT PRIMARY KEY) ENGINE=MyISAM; BEGIN; INSERT INTO i VALUES (1); SAVEPOINT s; INSERT INTO i VALUES (2); INSERT INTO m VALUES (1); ROLLBACK TO SAVEPOINT s; INSERT INTO i VALUES (3); COMMIT; BEGIN; INSERT INTO m VALUES (2); INSERT INTO i VALUES (4); ROLLBACK;"},
	{"B136", "", "CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (19), (20), (21), (22), (24); DELETE FROM t WHERE id >= 20;"},
	{"B137", "", "CREATE TABLE t (a VARCHAR(9), b VARCHAR(9), v INT, PRIMARY KEY (a, b)); INSERT INTO t VALUES ('a|b', 'c', 1), ('a', 'b|c', 2); UPDATE t SET v = 3 WHERE b = 'c';"},
	{"B138", "", "CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1); DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (1, 2);"},
}

// TestCases reads all of them over the connection, without names in the log.
func TestCases(t *testing.T) {
	for _, s := range []struct{ kind, server, option string }{
		{"mysql", "mysql", "--binlog-row-metadata=MINIMAL"}, {"mariadb", "mariadb", "--binlog-row-metadata=NO_LOG"}, {"mariadb", "mariadb11", "--binlog-row-metadata=NO_LOG"},
	} {
		t.Run(s.server, func(t *testing.T) {
			skipOptional(t, s.server)
			options := []string{s.option, "--max-allowed-packet=256M", "--log-bin-trust-function-creators=1"}
			if s.kind == "mysql" {
				options = append(options, "--gtid-mode=OFF", "--enforce-gtid-consistency=OFF") // B122 mixes engines
			}
			srv := stack.Start(t, s.server, options...)
			var script strings.Builder
			script.WriteString("CREATE DATABASE d; CREATE TABLE d.mark (id INT PRIMARY KEY);\n")
			for _, c := range fieldCases {
				if c.only == "" || c.only == s.kind {
					script.WriteString("CREATE DATABASE " + c.id + " CHARACTER SET utf8mb4; USE " + c.id + ";\nSET NAMES utf8mb4, sql_mode = '', time_zone = '+00:00', binlog_row_image = FULL;\n" + c.sql + "\n")
				}
			}
			script.WriteString("CREATE DATABASE `my-schema`; CREATE TABLE `my-schema`.`my-table` (id INT PRIMARY KEY); INSERT INTO `my-schema`.`my-table` VALUES (1);\nINSERT INTO d.mark VALUES (1);")
			srv.SQL(script.String())
			f := liveFollower(srv, "earliest", func(c *Config) { c.Tables = sdk.Strings{"B*.*", "my-schema.*", "d.*"} })
			f.Limits = batch.Limits{Events: 1000}
			if err := until(t, f, 1); err != nil {
				t.Fatal(err)
			}
			db, err := sql.Open("mysql", "root@tcp("+srv.Addr()+")/?maxAllowedPacket=0")
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			conn, err := db.Conn(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			for _, c := range fieldCases {
				if c.only == "" || c.only == s.kind {
					t.Run(c.id, func(t *testing.T) { compareCase(t, f, conn, c.id) })
				}
			}
			t.Run("B064", func(t *testing.T) { compareCase(t, f, conn, "my-schema") })
		})
	}
}

func compareCase(t *testing.T, f *replica.Follower, conn *sql.Conn, database string) {
	t.Helper()
	d, err := f.Replica.Compare(context.Background(), conn, database, nil)
	if err != nil || len(d.Found) > 0 || d.Rows == 0 || d.Unknown > 2 {
		t.Errorf("%d rows, %d values not known, %v, differences:\n%s", d.Rows, d.Unknown, err, strings.Join(d.Found, "\n"))
	}
}
