package endtoend

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/examples/stack"
)

// store is a real server as source and as target.
type store struct {
	*stack.Server
	reader string // plugin and configuration
	url    string
	types  map[string]string // by the name that the tables below have for a type
	text   func(table string, cols []col) string
}

type col struct{ name, kind string }

var things = []col{
	{"id", "key"},
	{"n", "decimal"},
	{"f", "double"},
	{"s", "text"},
	{"b", "bytes"},
	{"d", "date"},
	{"dt", "datetime"},
	{"ts", "timestamp"},
	{"yes", "bool"},
	{"j", "json"},
	{"big", "bigint"},
}

var pairs = []col{{"a", "name"}, {"b", "int"}, {"v", "text"}}

// mysqlText prints a row of a MySQL or MariaDB table so that each store prints it
// alike.
func mysqlText(table string, cols []col) string {
	var out []string
	for _, c := range cols {
		e := "`" + c.name + "`"
		switch c.kind {
		case "bytes":
			e = "HEX(" + e + ")"
		case "double":
			e = "CAST(" + e + " * 4 AS SIGNED)"
		case "datetime", "timestamp":
			e = "DATE_FORMAT(" + e + ", '%Y-%m-%d %H:%i:%s.%f')"
		}
		out = append(out, "IFNULL(CONVERT("+e+" USING utf8mb4) COLLATE utf8mb4_bin, 'NULL')")
	}
	return "SET time_zone = '+00:00'; SELECT CONCAT_WS('|', " + strings.Join(out, ", ") + ") FROM `" + strings.ReplaceAll(table, ".", "`.`") + "`"
}

func postgresText(table string, cols []col) string {
	var out []string
	for _, c := range cols {
		e := `"` + c.name + `"`
		switch c.kind {
		case "bytes":
			e = "upper(encode(" + e + ", 'hex'))"
		case "double":
			e = "(" + e + " * 4)::bigint::text"
		case "datetime":
			e = "to_char(" + e + ", 'YYYY-MM-DD HH24:MI:SS.US')"
		case "timestamp":
			e = "to_char(" + e + "::timestamptz AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')"
		case "bool":
			e += "::int::text"
		default:
			e += "::text"
		}
		out = append(out, "coalesce("+e+", 'NULL')")
	}
	return "SELECT concat_ws('|', " + strings.Join(out, ", ") + `) FROM "` + strings.ReplaceAll(table, ".", `"."`) + `"`
}

func sqliteText(table string, cols []col) string {
	var out []string
	for _, c := range cols {
		e := `"` + c.name + `"`
		switch c.kind {
		case "bytes":
			e = "hex(" + e + ")"
		case "double":
			e = "CAST(" + e + " * 4 AS INTEGER)"
		case "datetime", "timestamp":
			e = "substr(" + e + ", 1, 26)"
		}
		out = append(out, `CASE WHEN "`+c.name+`" IS NULL THEN 'NULL' ELSE `+e+` END`)
	}
	return "SELECT " + strings.Join(out, " || '|' || ") + ` FROM "` + table + `"`
}

func stores(t *testing.T) map[string]*store {
	mysqlTypes := map[string]string{
		"key": "BIGINT PRIMARY KEY", "decimal": "DECIMAL(30,6)", "double": "DOUBLE", "text": "VARCHAR(200)", "bytes": "VARBINARY(200)", "date": "DATE",
		"datetime": "DATETIME(6)", "timestamp": "TIMESTAMP(6) NULL", "bool": "TINYINT(1)", "json": "JSON", "bigint": "BIGINT", "name": "VARCHAR(40) COLLATE utf8mb4_bin", "int": "INT",
	}
	all := map[string]*store{}
	for _, kind := range []string{"mysql", "mariadb"} {
		s := stack.Start(t, kind)
		all[kind] = &store{
			Server: s, url: fmt.Sprintf("%s://root@%s/datalink", kind, s.Addr()), types: mysqlTypes, text: mysqlText,
			reader: fmt.Sprintf("{plugin: mysql, config: {address: %q, user: root, password: \"\", tables: [\"shop.*\"], start: snapshot}}", s.Addr()),
		}
		s.SQL("CREATE DATABASE datalink; CREATE DATABASE shop CHARACTER SET utf8mb4;")
	}
	s := stack.Start(t, "postgres", "-c", "wal_level=logical", "-c", "timezone=Asia/Kolkata")
	url := fmt.Sprintf("postgres://postgres@%s/postgres", s.Addr())
	all["postgres"] = &store{
		Server: s, url: url, text: postgresText,
		reader: fmt.Sprintf("{plugin: rdbms, config: {url: %q, mode: stream, tables: [\"shop.*\"], start: snapshot}}", url),
		types: map[string]string{
			"key": "bigint PRIMARY KEY", "decimal": "numeric(30,6)", "double": "double precision", "text": "varchar(200)", "bytes": "bytea", "date": "date",
			"datetime": "timestamp(6)", "timestamp": "timestamptz(6)", "bool": "boolean", "json": "jsonb", "bigint": "bigint", "name": "varchar(40)", "int": "integer",
		},
	}
	s.SQL("CREATE SCHEMA shop")
	return all
}

// bytesOf writes a byte string in the store's own notation.
func (s *store) bytesOf(hex string) string {
	if s.Kind == "postgres" {
		return `'\x` + hex + `'`
	}
	return "x'" + hex + "'"
}

func (s *store) flag(v bool) string {
	if s.Kind != "postgres" {
		return map[bool]string{true: "1", false: "0"}[v]
	}
	return fmt.Sprint(v)
}

func (s *store) create(table string, cols []col, more string) string {
	var parts []string
	for _, c := range cols {
		parts = append(parts, c.name+" "+s.types[c.kind])
	}
	return "CREATE TABLE shop." + table + " (" + strings.Join(parts, ", ") + more + ");\n"
}

// before is what is there when the task begins, after what comes while it streams.
func (s *store) before() string {
	zone := "SET time_zone = '+00:00';\n"
	if s.Kind == "postgres" {
		zone = "SET timezone = 'UTC';\n"
	}
	sql := zone + s.create("things", things, "") + s.create("pairs", pairs, ", PRIMARY KEY (a, b)")
	for i := 1; i <= 40; i++ {
		sql += fmt.Sprintf("INSERT INTO shop.things VALUES (%d, %d.%06d, %d.25, 'name %d é 😀', %s, '2026-02-%02d', '1999-12-31 23:59:%02d.%06d', '2026-03-29 01:%02d:00.%06d', %s, '{\"a\": [%d, null], \"é\": \"x\"}', %d);\n",
			i, i*7919, i, i*3-60, i, s.bytesOf(fmt.Sprintf("00ff%02x00", i)), 1+i%28, i%60, i*1000+1, i%60, i*7+1, s.flag(i%2 == 0), i, int64(i)<<56)
	}
	sql += "INSERT INTO shop.things (id) VALUES (1000);\n"
	sql += "INSERT INTO shop.pairs VALUES ('a|b', 1, 'one'), ('a', 1, 'two'), ('', -2147483648, ''), ('ü', 2147483647, NULL);\n"
	return sql
}

func (s *store) after() string {
	sql := "UPDATE shop.things SET n = n + 0.000001, s = NULL WHERE id % 3 = 0;\n" +
		"DELETE FROM shop.things WHERE id % 5 = 0;\n" +
		"UPDATE shop.things SET id = id + 5000 WHERE id = 7;\nINSERT INTO shop.things (id, s) VALUES (7, 'again');\n" +
		"UPDATE shop.pairs SET a = 'moved' WHERE a = 'a';\nDELETE FROM shop.pairs WHERE a = 'ü';\n" +
		"BEGIN;\nUPDATE shop.things SET big = 9223372036854775807 WHERE id = 1;\nUPDATE shop.things SET big = -9223372036854775807 WHERE id = 2;\nCOMMIT;\n" +
		"BEGIN;\nDELETE FROM shop.things;\nROLLBACK;\n" +
		"ALTER TABLE shop.things ADD COLUMN extra INT;\nINSERT INTO shop.things (id, extra) VALUES (2000, 42);\nUPDATE shop.things SET extra = 1 WHERE id = 2;\n" +
		s.create("late", []col{{"id", "key"}, {"s", "text"}}, "") + "INSERT INTO shop.late VALUES (1, 'late'), (2, NULL);\n"
	return sql
}

// matrix is a source beside all targets.
type matrix struct {
	all  map[string]*store
	from string
}

// allTargets are the kinds of targets, in the order of reports.
var allTargets = []string{"mysql", "mariadb", "postgres", "sqlite"}

// TestMatrix copies tables of each source to each target, first what is there, then
// what changes, and lets the stores' own clients print both sides.
func TestMatrix(t *testing.T) {
	all := stores(t)
	for _, from := range []string{"mysql", "mariadb", "postgres"} {
		m := &matrix{all: all, from: from}
		t.Run(from, func(t *testing.T) {
			t.Run("rows", m.rows)
			t.Run("keys", m.keys)
			t.Run("changes", m.changes)
			if from == "postgres" {
				t.Run("types", m.pgTypes)
			} else {
				t.Run("types", m.allTypes)
			}
		})
	}
}

// matrixJob is a task from a source to one home in each target.
type matrixJob struct {
	t          *testing.T
	file, data string
	home       string // schema or database
	lite       string // file of the SQLite target
}

// job makes a task that reads a database of the source. More goes to the writers.
func (m *matrix) job(t *testing.T, name, database, more string) *matrixJob {
	t.Helper()
	dir := t.TempDir()
	j := &matrixJob{t: t, file: filepath.Join(dir, "task.yaml"), data: filepath.Join(dir, "data"), home: name + "_" + m.from, lite: filepath.Join(dir, "target.db")}
	text := "apiVersion: datalink/v1\ntask: " + name + "-" + m.from + "\nreader: " + strings.ReplaceAll(m.all[m.from].reader, "shop.*", database+".*") + "\nwriters:\n"
	for _, to := range allTargets {
		url, lanes := "sqlite://"+j.lite, 1
		if dst := m.all[to]; dst != nil {
			url, lanes = dst.url, 2
			if to == "postgres" {
				dst.SQL("CREATE SCHEMA " + j.home)
			} else {
				dst.SQL("CREATE DATABASE " + j.home + " CHARACTER SET utf8mb4")
			}
		}
		config := fmt.Sprintf("url: %q, lanes: %d", url, lanes)
		if more != "" {
			config += ", " + more
		}
		text += fmt.Sprintf("  - {name: %s, plugin: rdbms, config: {%s}, mappings: [{from: %s.*, to: \"%s.{table}\"}]}\n", to, config, database, j.home)
	}
	if err := os.WriteFile(j.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return j
}

// run runs the task until all that is there has been written.
func (j *matrixJob) run() {
	j.t.Helper()
	ctx, cancel := context.WithTimeout(j.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, built.datalink, "run", j.file, "--until", "caught-up", "--data-dir", j.data, "--output", "json")
	var errs strings.Builder
	cmd.Stderr, cmd.Cancel = &errs, func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 40 * time.Second
	if out, err := cmd.Output(); err != nil {
		j.t.Fatalf("%v\n%s\n%s", err, out, errs.String())
	}
}

// same compares a table of the source, NAMESPACE.TABLE, with all targets.
func (m *matrix) same(t *testing.T, j *matrixJob, table string, cols []col) {
	t.Helper()
	lines := func(out string) []string {
		return slices.Sorted(slices.Values(strings.Split(strings.TrimSpace(out), "\n")))
	}
	src := m.all[m.from]
	want := lines(src.SQL(src.text(table, cols), flags(m.from)...))
	_, table, _ = strings.Cut(table, ".")
	for _, to := range allTargets {
		var got []string
		if to == "sqlite" {
			for _, r := range query(t, j.lite, sqliteText(j.home+"."+table, cols)) {
				got = append(got, strings.Join(r, "|"))
			}
			slices.Sort(got)
		} else {
			got = lines(m.all[to].SQL(m.all[to].text(j.home+"."+table, cols), flags(to)...))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s → %s, table %s (-source +target):\n%s", m.from, to, table, d)
		}
	}
}

// rows are tables whose types all stores have, with key changes and the first
// changes of the layout.
func (m *matrix) rows(t *testing.T) {
	src := m.all[m.from]
	src.SQL(src.before())
	j := m.job(t, "from", "shop", "")
	j.run()
	m.same(t, j, "shop.things", things)
	m.same(t, j, "shop.pairs", pairs)
	src.SQL(src.after())
	j.run()
	m.same(t, j, "shop.things", append(things[:len(things):len(things)], col{"extra", "int"}))
	m.same(t, j, "shop.pairs", pairs)
	m.same(t, j, "shop.late", []col{{"id", "key"}, {"s", "text"}})
}

// flags make a client print rows alone.
func flags(kind string) []string {
	if kind == "postgres" {
		return []string{"-A", "-t", "-q"}
	}
	return []string{"-N", "-r", "--default-character-set=utf8mb4"}
}
