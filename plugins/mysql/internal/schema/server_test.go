package schema

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"

	"github.com/datalink-go/datalink/examples/stack"
)

// TestAgainstServer runs random schema changes on real servers and compares after
// each what this package makes of the statements with what the server says the
// tables are. DATALINK_DDL_STEPS and DATALINK_SEED vary it.
func TestAgainstServer(t *testing.T) {
	steps := 100
	if n, err := strconv.Atoi(os.Getenv("DATALINK_DDL_STEPS")); err == nil {
		steps = n
	}
	seed := uint64(1)
	if n, err := strconv.ParseUint(os.Getenv("DATALINK_SEED"), 10, 64); err == nil {
		seed = n
	}
	for _, kind := range []string{"mysql", "mariadb"} {
		t.Run(kind, func(t *testing.T) {
			s := stack.Start(t, kind)
			db, err := sql.Open("mysql", "root@tcp("+s.Addr()+")/")
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			ctx := context.Background()
			c, err := db.Conn(ctx)
			if err != nil {
				t.Fatal(err)
			}
			g := &ddl{r: rand.New(rand.NewPCG(seed, 7)), maria: kind == "mariadb", h: NewHistory(), n: map[string]int{}}
			for _, q := range []string{"CREATE DATABASE d CHARACTER SET utf8mb4", "CREATE DATABASE e CHARACTER SET latin1", "USE d", "SET sql_mode = ''"} {
				if _, err := c.ExecContext(ctx, q); err != nil {
					t.Fatal(err)
				}
				g.apply(q)
			}
			done := 0
			for i := 0; done < steps && i < 10*steps; i++ {
				q := g.statement()
				if _, err := c.ExecContext(ctx, q); err != nil {
					continue // the server refuses some of what is thought up
				}
				done++
				if eff := g.apply(q); eff.Class != Definition && !(eff.Class == Nothing && strings.Contains(q, " EXISTS ")) {
					t.Errorf("%s: class %d (%v), want a definition", q, eff.Class, eff.Err)
				}
				g.compare(t, c, q)
				if t.Failed() {
					t.Fatalf("seed %d, step %d", seed, i)
				}
			}
			if done < steps {
				t.Errorf("%d statements of %d were possible", done, steps)
			}
			if g.unknown > 1+done/50 {
				t.Errorf("%d of %d statements were not understood", g.unknown, done)
			}
			t.Logf("%d statements: %v", done, g.n)
		})
	}
}

// ddl thinks up statements.
type ddl struct {
	r       *rand.Rand
	maria   bool
	h       *History
	n       map[string]int
	unknown int
}

func (g *ddl) dialect() Dialect {
	if g.maria {
		return Dialect{MariaDB: true, Version: 101119}
	}
	return Dialect{Version: 90700}
}

func (g *ddl) apply(q string) Effect {
	coll := "utf8mb4_0900_ai_ci"
	if g.maria {
		coll = "utf8mb4_general_ci"
	}
	g.n[strings.Join(strings.Fields(q)[:2], " ")]++
	return g.h.Apply(Statement{Text: q, Database: "d", Dialect: g.dialect(), Collation: coll})
}

// compare looks at all tables as the server has them.
func (g *ddl) compare(t *testing.T, c *sql.Conn, after string) {
	t.Helper()
	ctx := context.Background()
	rows, err := c.QueryContext(ctx, "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ('d', 'e')")
	if err != nil {
		t.Fatal(err)
	}
	var names []Name
	for rows.Next() {
		var n Name
		if err := rows.Scan(&n.Database, &n.Table); err != nil {
			t.Fatal(err)
		}
		names = append(names, n)
	}
	for _, n := range names {
		var name, create string
		if err := c.QueryRowContext(ctx, fmt.Sprintf("SHOW CREATE TABLE `%s`.`%s`", n.Database, n.Table)).Scan(&name, &create); err != nil {
			t.Fatal(err)
		}
		h := NewHistory()
		eff := h.Apply(Statement{Text: create, Database: n.Database, Dialect: g.dialect()})
		want, got := h.Get(n.Database, n.Table), g.h.Get(n.Database, n.Table)
		switch {
		case want == nil:
			t.Errorf("%s is not understood: %v\n%s", create, eff.Err, h.Unknown(n.Database, n.Table))
		case got == nil:
			// Allowed, if seldom: rows of it would stop the reader.
			t.Logf("after %s: %s is not known: %v", after, n, g.h.Unknown(n.Database, n.Table))
			g.unknown++
			g.h.Adopt(want, Place{})
		default:
			if d := Differs(got, want); d != "" {
				t.Errorf("after %s: %s by the statements and by the server: %s\n%s", after, n, d, create)
			}
		}
	}
	for _, n := range g.h.Tables() {
		if g.h.Get(n.Database, n.Table) != nil && !contains(names, n) {
			t.Errorf("after %s: %s is known and the server has none", after, n)
		}
	}
}

func contains(names []Name, n Name) bool {
	for _, x := range names {
		if x == n {
			return true
		}
	}
	return false
}

func (g *ddl) pick(s ...string) string { return s[g.r.IntN(len(s))] }

func (g *ddl) maybe(s string) string { return g.pick("", s) }

func (g *ddl) table() string { return g.pick("t1", "t2", "`t 3`", "d.t1", "e.t4", "`e`.`t5`") }

// column is a name that may or may not be there.
func (g *ddl) column() string { return g.pick("a", "b", "c", "`d d`", "e1", "F", "id") }

func (g *ddl) typ() string {
	text := g.pick("", "", " CHARACTER SET latin1", " CHARSET utf8mb3 COLLATE utf8mb3_bin", " COLLATE utf8mb4_bin", " BINARY", " ASCII", " UNICODE")
	n := strconv.Itoa(1 + g.r.IntN(40))
	all := []string{
		"INT", "INTEGER(7) UNSIGNED", "BIGINT" + g.maybe(" UNSIGNED"), "TINYINT(1)", "BOOL", "SMALLINT ZEROFILL", "MEDIUMINT", "INT8", "DEC", "NUMERIC(20)", "DECIMAL(30,10) UNSIGNED",
		"FIXED(5,2)", "FLOAT", "FLOAT(30)", "FLOAT(7,3)", "DOUBLE PRECISION", "REAL", "BIT", "BIT(17)", "DATE", "TIME(3)", "DATETIME", "DATETIME(6)", "TIMESTAMP(2) NULL", "YEAR",
		"CHAR(" + n + ")" + text, "CHAR" + text, "VARCHAR(" + n + ")" + text, "CHARACTER VARYING(" + n + ")", "NATIONAL CHAR(" + n + ")", "NVARCHAR(" + n + ")", "NCHAR VARYING(" + n + ")",
		"BINARY(" + n + ")", "VARBINARY(" + n + ")", "TINYTEXT" + text, "TEXT" + text, "TEXT(" + n + "00)" + text, "MEDIUMTEXT", "LONG", "LONG VARCHAR", "LONGTEXT" + text, "BLOB", "BLOB(70000)", "LONGBLOB", "LONG VARBINARY",
		"ENUM('a','b''c','d,e')" + text, "SET('x','y')" + text, "JSON", "POINT", "GEOMETRY", "GEOMETRYCOLLECTION", "CHAR(4) BYTE", "VARCHAR(5) CHARACTER SET binary", "TEXT CHARACTER SET binary",
		"ENUM('a','b') CHARACTER SET binary",
	}
	if g.maria {
		all = append(all, "UUID", "INET6", "INET4", "TEXT COMPRESSED", "VARCHAR(100) COMPRESSED", "VARCHAR2(10)", "INT INVISIBLE", "NUMBER(5)")
	} else {
		all = append(all, "VECTOR(4)", "VECTOR", "INT INVISIBLE", "POINT SRID 4326", "GEOMCOLLECTION")
	}
	return g.pick(all...)
}

func (g *ddl) definition() string {
	if g.r.IntN(12) == 0 {
		return g.pick("INT", "VARCHAR(30)") + g.pick(" AS (1 + 1)", " GENERATED ALWAYS AS (length('(a,)')) STORED", " AS ('x') VIRTUAL COMMENT ', not a column'")
	}
	return g.typ() + g.pick("", "", " NOT NULL", " NULL", " COMMENT 'it''s, ALTER TABLE'", " UNIQUE", " DEFAULT NULL")
}

func (g *ddl) place() string {
	if g.r.IntN(3) > 0 {
		return ""
	}
	return g.pick(" FIRST", " AFTER "+g.column())
}

func (g *ddl) index() string {
	col := g.column()
	return g.pick("INDEX i"+strconv.Itoa(g.r.IntN(3))+" ("+col+")", "KEY ("+col+", "+g.column()+")", "UNIQUE u"+strconv.Itoa(g.r.IntN(3))+" ("+col+")", "UNIQUE KEY ("+col+" DESC)",
		"CONSTRAINT UNIQUE INDEX u"+strconv.Itoa(g.r.IntN(3))+" USING BTREE ("+col+"(3))", "PRIMARY KEY ("+col+")", "CONSTRAINT pk PRIMARY KEY ("+col+", "+g.column()+")", "CHECK (1 > 0)", "CONSTRAINT ck"+strconv.Itoa(g.r.IntN(9))+" CHECK (1 <> 2)",
		"KEY f"+strconv.Itoa(g.r.IntN(3))+" ((length("+col+")))", "FULLTEXT ("+col+")")
}

func (g *ddl) step() string {
	switch g.r.IntN(16) {
	case 0, 1, 2:
		return "ADD " + g.maybe("COLUMN ") + g.column() + " " + g.definition() + g.place()
	case 3:
		return "ADD (" + g.column() + " " + g.definition() + ", " + g.column() + " " + g.definition() + ")"
	case 4, 5:
		return "DROP " + g.maybe("COLUMN ") + g.column()
	case 6, 7:
		return "MODIFY " + g.maybe("COLUMN ") + g.column() + " " + g.definition() + g.place()
	case 8:
		return "CHANGE " + g.column() + " " + g.column() + " " + g.definition() + g.place()
	case 9:
		return "RENAME COLUMN " + g.column() + " TO " + g.column()
	case 10, 11:
		return "ADD " + g.index()
	case 12:
		return g.pick("DROP PRIMARY KEY", "DROP INDEX u1", "DROP KEY u0", "RENAME INDEX u1 TO u2", "DROP INDEX f1", "DROP CONSTRAINT u2")
	case 13:
		return g.pick("ENGINE = InnoDB", "COMMENT = 'DROP COLUMN a, b'", "AUTO_INCREMENT 100", "ROW_FORMAT = DYNAMIC", "DEFAULT CHARSET latin1", "CONVERT TO CHARACTER SET utf8mb4", "CONVERT TO CHARACTER SET latin1", "CHARACTER SET = utf8mb3 COLLATE utf8mb3_bin", "FORCE", "ALGORITHM=COPY", "LOCK=SHARED")
	case 14:
		return "ALTER " + g.maybe("COLUMN ") + g.column() + g.pick(" SET DEFAULT '1'", " DROP DEFAULT")
	}
	if g.r.IntN(3) == 0 {
		return "RENAME " + g.pick("TO ", "AS ", "") + g.table()
	}
	return "ADD COLUMN IF NOT EXISTS z" + strconv.Itoa(g.r.IntN(3)) + " INT" // MariaDB
}

func (g *ddl) statement() string {
	switch g.r.IntN(20) {
	case 0, 1, 2, 3:
		return g.create()
	case 4:
		return "DROP TABLE " + g.maybe("IF EXISTS ") + g.table()
	case 5:
		return "RENAME TABLE " + g.pick("t1 TO t2", "t2 TO `t 3`", "t1 TO x9, t2 TO t1, x9 TO t2", "e.t4 TO d.t1", "`t 3` TO e.t4")
	case 6:
		return g.pick("CREATE "+g.maybe("UNIQUE ")+"INDEX u"+strconv.Itoa(g.r.IntN(3))+" ON "+g.table()+" ("+g.column()+")", "DROP INDEX u1 ON "+g.table(), "DROP INDEX `PRIMARY` ON "+g.table())
	case 7:
		return "CREATE TABLE " + g.table() + " LIKE " + g.table()
	}
	q := "ALTER " + g.maybe("/* a, b */ ") + "TABLE " + g.table() + " " + g.step()
	for g.r.IntN(2) == 0 {
		q += ", " + g.step()
	}
	return q
}

func (g *ddl) create() string {
	q := "CREATE TABLE " + g.maybe("IF NOT EXISTS ") + g.table() + " (id INT" + g.pick(" PRIMARY KEY", " NOT NULL AUTO_INCREMENT PRIMARY KEY", "")
	for _, c := range []string{"a", "b", "c", "`d d`"} {
		if g.r.IntN(2) == 0 {
			q += ", " + c + " " + g.definition()
		}
	}
	for g.r.IntN(3) == 0 {
		q += ", " + g.index()
	}
	return q + ")" + g.pick("", "", " ENGINE=InnoDB DEFAULT CHARSET=latin1", " CHARACTER SET utf8mb3", " COLLATE utf8mb4_bin COMMENT='x)'", " ENGINE=MyISAM")
}
