package reader

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// TestIgnoreOrigins reads a log in which users and two DataLink tasks wrote.
func TestIgnoreOrigins(t *testing.T) {
	const books = `CREATE DATABASE d CHARACTER SET utf8mb4; USE d;
CREATE TABLE datalink_progress (task VARCHAR(128) NOT NULL, task_uid VARCHAR(64) NOT NULL, writer VARCHAR(128) NOT NULL, lane INT NOT NULL, batch_no BIGINT UNSIGNED NOT NULL, position LONGTEXT NOT NULL, PRIMARY KEY (task, writer, lane)) COLLATE utf8mb4_bin;
INSERT INTO datalink_progress VALUES ('back', 'uid-back', 'w', 0, 0, ''), ('back', 'uid-back', 'w', 1, 0, ''), ('other', 'uid-other', 'w', 0, 0, '');
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(10));
`
	const writes = `INSERT INTO t VALUES (1, 'user');
BEGIN; UPDATE datalink_progress SET batch_no = batch_no + 1 WHERE task = 'back'; INSERT INTO t VALUES (2, 'back'); UPDATE t SET v = 'back2' WHERE id = 1; COMMIT;
BEGIN; UPDATE datalink_progress SET batch_no = batch_no + 1 WHERE task = 'other'; INSERT INTO t VALUES (3, 'other'); COMMIT;
BEGIN; INSERT INTO t VALUES (4, 'user'); UPDATE datalink_progress SET batch_no = batch_no + 1 WHERE task = 'back'; INSERT INTO t VALUES (5, 'user'); COMMIT;
/* datalink task=uid-back */ ALTER TABLE t ADD COLUMN w INT;
INSERT INTO t VALUES (6, 'user', 6);
/* datalink task=uid-other */ ALTER TABLE t ADD COLUMN x INT;
BEGIN; UPDATE datalink_progress SET batch_no = batch_no + 1 WHERE task = 'back'; DELETE FROM t WHERE id = 6; COMMIT;
`
	user := []string{"insert 1"}
	mixed := []string{"insert 4", "insert 5"}
	for _, s := range []struct {
		kind    string
		options []string
	}{{"mysql", []string{"--binlog-row-image=MINIMAL"}}, {"mariadb", []string{"--binlog-row-metadata=NO_LOG", "--binlog-row-image=MINIMAL"}}, {"mariadb", nil}} {
		t.Run(fmt.Sprint(s.kind, s.options), func(t *testing.T) {
			srv := stack.Start(t, s.kind, append(s.options, "--log-bin=log")...)
			srv.SQL(books+"FLUSH BINARY LOGS;\n"+writes+"FLUSH BINARY LOGS;", "--comments")
			for _, c := range []struct {
				name   string
				ignore []string
				want   [][]string
			}{
				{"all are read", nil, [][]string{user, {"insert 2", "update 1"}, {"insert 3"}, mixed, {"add w"}, {"insert 6"}, {"add x"}, {"delete 6"}}},
				{"all are left out", []string{"*"}, [][]string{user, mixed, {"insert 6"}}},
				{"one is left out", []string{"back=uid-back"}, [][]string{user, {"insert 3"}, mixed, {"insert 6"}, {"add x"}}},
			} {
				t.Run(c.name, func(t *testing.T) {
					var want, got []string
					for _, w := range c.want {
						want = append(want, w...)
					}
					cfg := Config{Files: sdk.Strings{filepath.Join(srv.Facts["datadir"], "log.0*")}, Tables: sdk.Strings{"d.*"}, IgnoreOrigins: c.ignore}
					err := collect(t, cfg, func(_ *batch.Tx, e *batch.Event) {
						switch e.Kind {
						case batch.DDL:
							if ch, _ := e.Change(); ch.Kind == batch.DDLAddColumn {
								got = append(got, "add "+ch.Column.Name)
							}
						case batch.Insert, batch.Update, batch.Delete:
							im := e.After
							if e.Kind != batch.Insert {
								im = e.Before
							}
							if e.Schema.Table != "t" {
								t.Errorf("%s of %s", e.Kind, e.Schema.Name())
							}
							v, err := im.Values(nil)
							if err != nil {
								t.Fatal(err)
							}
							got = append(got, fmt.Sprint(e.Kind, " ", v[0].Int64()))
						}
					})
					if err != nil {
						t.Fatal(err)
					}
					if d := cmp.Diff(want, got); d != "" {
						t.Error(d)
					}
				})
			}
		})
	}
}
