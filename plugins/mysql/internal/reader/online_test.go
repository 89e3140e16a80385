package reader

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/mysql/internal/replica"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// The statements that gh-ost and pt-online-schema-change send, in their order. What
// gh-ost carries over from the log row by row is one copy under the lock here.
var onlineRuns = []struct {
	name  string
	steps []string
	want  []string // schema changes of t as targets are told
}{
	{
		name: "gh-ost",
		steps: []string{
			"DROP TABLE IF EXISTS `d`.`_t_gho`", "DROP TABLE IF EXISTS `d`.`_t_ghc`",
			"CREATE /* gh-ost */ TABLE `d`.`_t_ghc` (id bigint unsigned auto_increment, last_update timestamp not null DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, hint varchar(64) charset ascii not null, value varchar(4096) charset ascii not null, primary key(id), unique key hint_uidx(hint)) auto_increment=256 comment='gh-ost'",
			"CREATE /* gh-ost */ TABLE `d`.`_t_gho` LIKE `d`.`t`",
			"ALTER /* gh-ost */ TABLE `d`.`_t_gho` RENAME COLUMN v TO v2, ADD COLUMN note VARCHAR(20) NULL AFTER id",
			"INSERT /* gh-ost */ INTO `d`.`_t_ghc` (id, hint, value) VALUES (1, 'state', 'GhostTableMigrated') ON DUPLICATE KEY UPDATE last_update=NOW(), value=VALUES(value)",
			"INSERT /* gh-ost */ IGNORE INTO `d`.`_t_gho` (id, v2, b) SELECT id, v, b FROM `d`.`t` FORCE INDEX (`PRIMARY`) WHERE id <= 100 LOCK IN SHARE MODE",
			"REPLACE /* gh-ost */ INTO `d`.`_t_gho` (id, v2, b) SELECT id, v, b FROM `d`.`t`",
			"CREATE /* gh-ost */ TABLE `d`.`_t_del` (id int auto_increment primary key) engine=InnoDB comment='ghost-cut-over-sentry'",
			"DROP TABLE `d`.`_t_del`",
			"SWAP DELETE FROM `d`.`_t_gho`; INSERT INTO `d`.`_t_gho` (id, v2, b) SELECT id, v, b FROM `d`.`t`; RENAME /* gh-ost */ TABLE `d`.`t` TO `d`.`_t_del`, `d`.`_t_gho` TO `d`.`t`",
			"DROP TABLE IF EXISTS `d`.`_t_ghc`", "DROP TABLE IF EXISTS `d`.`_t_del`",
		},
		want: []string{"rename column v to v2", "add column note"},
	},
	{
		name: "gh-ost in two steps with a time in the name",
		steps: []string{
			"CREATE /* gh-ost */ TABLE `d`.`_t_gho` LIKE `d`.`t`",
			"ALTER /* gh-ost */ TABLE `d`.`_t_gho` MODIFY b BIGINT, ADD UNIQUE KEY u (id, b)",
			"REPLACE /* gh-ost */ INTO `d`.`_t_gho` SELECT * FROM `d`.`t`",
			"SWAP DELETE FROM `d`.`_t_gho`; INSERT INTO `d`.`_t_gho` SELECT * FROM `d`.`t`; ALTER TABLE `d`.`t` RENAME `d`.`_t_20261130010203_del`; ALTER TABLE `d`.`_t_gho` RENAME `d`.`t`",
			"DROP TABLE `d`.`_t_20261130010203_del`",
		},
		want: []string{"change column b to b", "add index u"},
	},
	{
		name: "pt-online-schema-change",
		steps: []string{
			"CREATE TABLE `d`.`_t_new` (`id` int NOT NULL, `v` varchar(30) DEFAULT NULL, `b` int DEFAULT NULL, PRIMARY KEY (`id`)) DEFAULT CHARSET=utf8mb4",
			"ALTER TABLE `d`.`_t_new` DROP COLUMN b, ADD COLUMN c2 INT NULL, ADD COLUMN c3 INT NULL",
			"CREATE TRIGGER `d`.`pt_osc_d_t_del` AFTER DELETE ON `d`.`t` FOR EACH ROW DELETE IGNORE FROM `d`.`_t_new` WHERE `d`.`_t_new`.`id` <=> OLD.`id`",
			"CREATE TRIGGER `d`.`pt_osc_d_t_upd` AFTER UPDATE ON `d`.`t` FOR EACH ROW BEGIN DELETE IGNORE FROM `d`.`_t_new` WHERE !(OLD.`id` <=> NEW.`id`) AND `d`.`_t_new`.`id` <=> OLD.`id`; REPLACE INTO `d`.`_t_new` (`id`, `v`) VALUES (NEW.`id`, NEW.`v`); END",
			"CREATE TRIGGER `d`.`pt_osc_d_t_ins` AFTER INSERT ON `d`.`t` FOR EACH ROW REPLACE INTO `d`.`_t_new` (`id`, `v`) VALUES (NEW.`id`, NEW.`v`)",
			"INSERT LOW_PRIORITY IGNORE INTO `d`.`_t_new` (`id`, `v`) SELECT `id`, `v` FROM `d`.`t` LOCK IN SHARE MODE",
			"ANALYZE TABLE `d`.`_t_new`",
			"RENAME TABLE `d`.`t` TO `d`.`_t_old`, `d`.`_t_new` TO `d`.`t`",
			"DROP TABLE IF EXISTS `d`.`_t_old`",
			"DROP TRIGGER IF EXISTS `d`.`pt_osc_d_t_del`", "DROP TRIGGER IF EXISTS `d`.`pt_osc_d_t_upd`", "DROP TRIGGER IF EXISTS `d`.`pt_osc_d_t_ins`",
		},
		want: []string{"drop column b", "add column c2", "add column c3"},
	},
	{
		name: "pt-online-schema-change that drops first",
		steps: []string{
			"CREATE TABLE `d`.`__t_new` LIKE `d`.`t`",
			"ALTER TABLE `d`.`__t_new` ADD COLUMN x INT NULL",
			"SWAP REPLACE INTO `d`.`__t_new` (id, v, b) SELECT id, v, b FROM `d`.`t`; SET foreign_key_checks=0; DROP TABLE IF EXISTS `d`.`t`; RENAME TABLE `d`.`__t_new` TO `d`.`t`",
		},
		want: []string{"add column x"},
	},
	{
		name: "run that is given up",
		steps: []string{
			"CREATE /* gh-ost */ TABLE `d`.`_t_gho` LIKE `d`.`t`",
			"ALTER TABLE `d`.`_t_gho` DROP COLUMN b",
			"DROP TABLE `d`.`_t_gho`",
			"ALTER TABLE `d`.`t` ADD COLUMN later INT NULL",
		},
		want: []string{"add column later"},
	},
}

// TestOnlineSchemaChanges replays what the tools send, on real servers and with
// writes to the table in flight, with and without column names in the log. The
// reader is stopped and begun anew all the time, and the target must hold what the
// source does.
func TestOnlineSchemaChanges(t *testing.T) {
	for _, s := range []struct{ kind, option string }{{"mysql", "--binlog-row-metadata=MINIMAL"}, {"mariadb", "--binlog-row-metadata=FULL"}} {
		t.Run(s.kind+s.option, func(t *testing.T) {
			srv := stack.Start(t, s.kind, "--log-bin=log", s.option)
			for i, run := range onlineRuns {
				t.Run(run.name, func(t *testing.T) {
					srv.SQL("RESET " + map[string]string{"mysql": "BINARY LOGS AND GTIDS", "mariadb": "MASTER"}[s.kind] + "; DROP DATABASE IF EXISTS d; CREATE DATABASE d CHARACTER SET utf8mb4; CREATE TABLE d.t (id INT NOT NULL PRIMARY KEY, v VARCHAR(30), b INT);")
					c := writeOnline(t, srv, run.steps)
					srv.SQL("FLUSH BINARY LOGS")
					var got, foreign []string
					f := &replica.Follower{
						New: func() (sdk.Reader, error) {
							return New(sdk.Env{}, Config{Files: sdk.Strings{filepath.Join(srv.Facts["datadir"], "log.0*")}, Tables: sdk.Strings{"d.*"}, Start: "earliest", DDL: "apply"})
						},
						Limits: batch.Limits{Events: 7}, Replica: replica.New(),
						Each: func(_ *batch.Tx, e *batch.Event) {
							name := ""
							if e.Kind == batch.DDL {
								ch, _ := e.Change()
								name = ch.Table
								if s := stepText(ch); s != "" {
									got = append(got, s)
								}
								if strings.Contains(ch.Statement, "_t_") {
									foreign = append(foreign, ch.Statement)
								}
							} else {
								name = e.Schema.Table
							}
							if name != "t" {
								foreign = append(foreign, fmt.Sprint(e.Kind, " of ", name))
							}
						},
					}
					followInPieces(t, f)
					if d := cmp.Diff(run.want, got); d != "" {
						t.Errorf("schema changes (-want +got):\n%s", d)
					}
					if len(foreign) > 0 {
						t.Errorf("events of other tables: %q", foreign)
					}
					d, err := f.Replica.Compare(context.Background(), c, "d", func(n string) bool { return n != "t" })
					if err != nil || len(d.Found) > 0 || d.Rows < 50 {
						t.Errorf("%d rows, %v, differences:\n%s", d.Rows, err, strings.Join(d.Found, "\n"))
					}
					if i > 0 {
						return
					}
					// Taken as tables like others they stop the task or are made at the target.
					foreign = nil
					off := &replica.Follower{New: func() (sdk.Reader, error) {
						return New(sdk.Env{}, Config{Files: sdk.Strings{filepath.Join(srv.Facts["datadir"], "log.0*")}, Tables: sdk.Strings{"d.*"}, Start: "earliest", DDL: "apply", OnlineChanges: "off"})
					}, Replica: replica.New(), Each: f.Each}
					if err := off.Run(context.Background(), 0); err == nil && len(foreign) == 0 {
						t.Error("onlineChanges: off makes no difference: the test shows nothing")
					}
				})
			}
		})
	}
}

// stepText is a schema change in words; "" for those that make the table.
func stepText(c *batch.Change) string {
	switch c.Kind {
	case batch.DDLAddColumn:
		return "add column " + c.Column.Name
	case batch.DDLDropColumn:
		return "drop column " + c.Column.Name
	case batch.DDLRenameColumn:
		return "rename column " + c.OldName + " to " + c.Column.Name
	case batch.DDLChangeColumn:
		return "change column " + c.OldName + " to " + c.Column.Name
	case batch.DDLAddIndex:
		return "add index " + c.Index.Name
	case batch.DDLCreateTable:
		return ""
	}
	return fmt.Sprintf("kind %d of %s: %s", c.Kind, c.Table, c.Statement)
}

// followInPieces reads to the end, with a new reader after each few blocks.
func followInPieces(t *testing.T, f *replica.Follower) {
	t.Helper()
	newReader := f.New
	for i := 0; ; i++ {
		f.New = func() (sdk.Reader, error) {
			r, err := newReader()
			return &limited{Reader: r, left: 3 + i%5}, err
		}
		before := string(f.Position().Source) + fmt.Sprint(f.Position().Ordinal)
		if err := f.Run(context.Background(), 0); err != nil {
			t.Fatal(err)
		}
		if before == string(f.Position().Source)+fmt.Sprint(f.Position().Ordinal) {
			f.New = newReader
			if err := f.Run(context.Background(), 0); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
}

// writeOnline runs the steps while other sessions write to the table; steps that
// begin with SWAP run while these are held.
func writeOnline(t *testing.T, srv *stack.Server, steps []string) *sql.Conn {
	t.Helper()
	db, err := sql.Open("mysql", "root@tcp("+srv.Addr()+")/d?multiStatements=true")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var gate sync.RWMutex
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := rand.New(rand.NewPCG(uint64(w), 9))
			for ctx.Err() == nil {
				gate.RLock()
				id := r.IntN(120)
				switch r.IntN(4) {
				case 0:
					_, _ = db.ExecContext(ctx, "DELETE FROM t WHERE id = ?", id)
				case 1:
					_, _ = db.ExecContext(ctx, "UPDATE t SET id = ? WHERE id = ?", r.IntN(120), id)
				default:
					_, _ = db.ExecContext(ctx, "REPLACE INTO t (id) VALUES (?)", id)
				}
				gate.RUnlock()
			}
		}()
	}
	for i := range 120 {
		if _, err := db.ExecContext(ctx, "INSERT IGNORE INTO t VALUES (?, ?, ?)", i, fmt.Sprint("row ", i), i*7); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range steps {
		q, swap := strings.CutPrefix(q, "SWAP ")
		if swap {
			gate.Lock()
		}
		_, err := db.ExecContext(ctx, q)
		if swap {
			gate.Unlock()
		}
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		for i := range 10 { // writes between the steps
			_, _ = db.ExecContext(ctx, "REPLACE INTO t (id) VALUES (?)", 200+i)
		}
	}
	stop()
	wg.Wait()
	c, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return c
}
