package mysql

import (
	"errors"
	"testing"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/rowtest"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

func init() {
	suite["schema changes"] = schemaChanges
	suite["a schema change that has happened is not run twice"] = alterTwice
	suite["schema changes by policy"] = alterPolicy
	suite["tables that do not fit"] = unfitTables
}

func alterOf(d *batch.Change) sdk.Change { return sdk.Change{Op: sdk.Alter, Kind: batch.DDL, DDL: d} }

func schemaChanges(t *testing.T, s *testServer) {
	db, k := s.database(t), rowtest.Keyed()
	a := s.writer(t, db, nil)
	claim(t, a, execution("a", 1))
	rowtest.Must(t, write(a, next(0, 1), insert(t, k, 1, "a", 1)))
	batchNo := uint64(1)
	col := func(c batch.Column) *batch.Column { return &c }
	for _, c := range []struct {
		d     *batch.Change
		query string
		want  []string
	}{
		{
			&batch.Change{Kind: batch.DDLAddColumn, Table: "t", Column: col(batch.Column{Name: "x", Type: batch.Int32, Default: "7"}), After: "id", Statement: "add"},
			"SELECT * FROM t",
			[]string{"1 7 a 1"},
		},
		{
			&batch.Change{Kind: batch.DDLAddColumn, Table: "t", Column: col(batch.Column{Name: "note", Type: batch.String, Native: "text"}), Statement: "add"},
			"SELECT note = '', x FROM t",
			[]string{"1 7"},
		},
		{
			&batch.Change{Kind: batch.DDLRenameColumn, Table: "t", OldName: "x", Column: col(batch.Column{Name: "y", Type: batch.Int32}), Statement: "rename"},
			"SELECT y FROM t",
			[]string{"7"},
		},
		{
			&batch.Change{Kind: batch.DDLChangeColumn, Table: "t", OldName: "y", Column: col(batch.Column{Name: "z", Type: batch.Int64}), Statement: "change"},
			"SELECT DATA_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND COLUMN_NAME = 'z'",
			[]string{"bigint"},
		},
		{&batch.Change{Kind: batch.DDLDropColumn, Table: "t", Column: col(batch.Column{Name: "z", Type: batch.Int64}), Statement: "drop"}, "SELECT id, v, n FROM t", []string{"1 a 1"}},
		{&batch.Change{Kind: batch.DDLRenameTable, Table: "u", OldName: "t", Statement: "rename"}, "SELECT id FROM u", []string{"1"}},
		{
			&batch.Change{Kind: batch.DDLAddIndex, Table: "u", Statement: "key", Schema: &batch.Schema{ID: 1, Table: "u", Key: []int{2, 0}, PrimaryKey: true, Columns: k.Columns}},
			"SELECT COLUMN_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'u' ORDER BY SEQ_IN_INDEX",
			[]string{"n", "id"},
		},
		{&batch.Change{Kind: batch.DDLCreateTable, Table: "c", Schema: &batch.Schema{ID: 1, Table: "c", Key: []int{0}, Columns: k.Columns}, Statement: "create"}, "SELECT COUNT(*) FROM c", []string{"0"}},
		{&batch.Change{Kind: batch.DDLDropTable, Table: "c", Statement: "drop"}, "SHOW TABLES LIKE 'c'", nil},
		{&batch.Change{Kind: batch.DDLOther, Table: "u", Schema: k, Statement: "comment"}, "SELECT 1", []string{"1"}},
	} {
		batchNo++
		if err := write(a, next(0, batchNo), alterOf(c.d)); err != nil {
			t.Fatalf("%s of %s: %v", c.d.Statement, c.d.Table, err)
		}
		expect(t, s, db, c.query, c.want...)
		expect(t, s, db, "SELECT COUNT(*) FROM datalink_ddl", "0")
	}
	err := write(a, next(0, batchNo+1), alterOf(&batch.Change{Kind: batch.DDLOther, Table: "u", Statement: "unknown"}))
	if !errors.Is(err, &sdk.Fault{Code: sdk.CodeRefused}) {
		t.Errorf("a statement that cannot be translated: got %v", err)
	}
}

// alterTwice: the change took effect, the position after it was not stored. Two
// tables that swap their names show whether it is done once.
func alterTwice(t *testing.T, s *testServer) {
	db := s.database(t)
	s.SQL("CREATE TABLE a (id BIGINT PRIMARY KEY); CREATE TABLE b (id BIGINT PRIMARY KEY); INSERT INTO a VALUES (1); INSERT INTO b VALUES (2)", db)
	w := s.writer(t, db, nil)
	claim(t, w, execution("a", 1))
	n, epoch := uint64(0), uint64(1)
	for _, names := range [][2]string{{"a", "x"}, {"b", "a"}, {"x", "b"}} {
		d := alterOf(&batch.Change{Kind: batch.DDLRenameTable, Table: names[1], OldName: names[0], Statement: "RENAME TABLE a TO x, b TO a, x TO b"})
		for range 2 { // its transaction is lost twice
			tx, err := begin(w, next(0, n+1), d)
			rowtest.Must(t, err)
			rowtest.Must(t, tx.Rollback(bg))
			epoch++
			w = s.writer(t, db, nil)
			claim(t, w, execution("a", epoch))
		}
		n++
		rowtest.Must(t, write(w, next(0, n), d))
	}
	expect(t, s, db, "SELECT (SELECT id FROM a), (SELECT id FROM b)", "2 1")
}

func alterPolicy(t *testing.T, s *testServer) {
	for policy, code := range map[string]sdk.Code{target.Ignore: "", target.Stop: sdk.CodeRefused} {
		db, k := s.database(t), rowtest.Keyed()
		a := s.writer(t, db, func(c *Config) { c.DDL = policy })
		claim(t, a, execution("a", 1))
		rowtest.Must(t, write(a, next(0, 1), insert(t, k, 1, "a", 1)))
		err := write(a, next(0, 2), alterOf(&batch.Change{Kind: batch.DDLDropTable, Table: "t"}))
		if code == "" && err != nil || code != "" && !errors.Is(err, &sdk.Fault{Code: code}) {
			t.Errorf("%s: got %v", policy, err)
		}
		expect(t, s, db, "SELECT COUNT(*) FROM t", "1")
	}
}

// unfitTables: all that is wrong is said at once, and the statements mend it.
func unfitTables(t *testing.T, s *testServer) {
	db, k := s.database(t), rowtest.Keyed()
	s.SQL("CREATE TABLE t (v VARCHAR(10), n SMALLINT, extra INT NOT NULL) ENGINE=MyISAM", db)
	a := s.writer(t, db, func(c *Config) { c.OnMissingColumn = target.Stop })
	claim(t, a, execution("a", 1))
	_, err := a.Prepare(bg, k)
	f := sdk.AsFault(err)
	if err == nil || f.Code != sdk.CodeSchemaMismatch {
		t.Fatalf("got %v, want %s", err, sdk.CodeSchemaMismatch)
	}
	for _, want := range []string{"engine is MyISAM", "id (int64) is missing", "v is varchar(10)", "n is smallint", "extra is NOT NULL", "no primary key"} {
		if !contains(f.Message, want) {
			t.Errorf("%q lacks %q", f.Message, want)
		}
	}
	s.SQL(f.Suggestion, db)
	_, err = a.Prepare(bg, k)
	rowtest.Must(t, err)
	rowtest.Must(t, write(a, next(0, 1), insert(t, k, 1, "a", 1)))
	s.SQL("CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.n = 5", db)
	if _, err = a.Prepare(bg, k); !errors.Is(err, &sdk.Fault{Code: sdk.CodeSchemaMismatch}) {
		t.Errorf("a table with a trigger: got %v", err)
	}
	s.SQL("DROP TABLE datalink_ddl; CREATE TABLE datalink_ddl (task INT) ENGINE=MyISAM", db)
	if _, err := a.Claim(bg, execution("b", 2)); !errors.Is(err, &sdk.Fault{Code: sdk.CodeSchemaMismatch}) {
		t.Errorf("progress without transactions: got %v", err)
	}
}
