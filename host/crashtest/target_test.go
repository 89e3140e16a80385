package crashtest

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	_ "modernc.org/sqlite" // reads targets without code of the connector
)

// open opens a target, a SQLite file or the url of a database, for a look; the
// connection is closed with the test or by the caller.
func open(t *testing.T, path string) *sql.DB {
	t.Helper()
	driver, source := "sqlite", "file:"+path+"?_pragma=busy_timeout(20000)"
	if isURL(path) {
		driver, source = dsn(path)
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	return db
}

// expected is what a target has to hold, by table.
type expected struct {
	rows    map[string][]string // each as text, sorted
	columns map[string][]string // in which order; nil = as they are in the target
}

// missing compares a target with it; "" = they are equal.
func (e expected) missing(t *testing.T, path string) string {
	t.Helper()
	return differences(e.rows, rowsOf(t, path, e.columns))
}

// rowsOf returns the rows of all tables but the bookkeeping.
func rowsOf(t *testing.T, path string, columns map[string][]string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	if _, err := os.Stat(path); err != nil && !isURL(path) {
		return out
	}
	db := open(t, path)
	defer db.Close()
	for _, name := range tablesOf(t, db, path) {
		if strings.HasPrefix(name, "datalink_") {
			continue
		}
		list := []string{"*"}
		if c := columns[name]; c != nil {
			list = list[:0]
			for _, n := range c {
				list = append(list, quote(n))
			}
		}
		out[name] = rowsAsText(t, db, "SELECT "+strings.Join(list, ", ")+" FROM "+within(path, name))
		slices.Sort(out[name])
	}
	return out
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// rowsAsText returns each row of a query as one string.
func rowsAsText(t *testing.T, db *sql.DB, query string, args ...any) []string {
	t.Helper()
	rows, err := db.Query(query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	cols, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	_, inBytes := db.Driver().(*mysql.MySQLDriver) // which gives all text as bytes
	out := []string{}
	vals, ptrs := make([]any, len(cols)), make([]any, len(cols))
	for i := range vals {
		ptrs[i] = &vals[i]
	}
	for rows.Next() {
		if err := rows.Scan(ptrs...); err != nil {
			t.Fatal(err)
		}
		text := make([]string, len(vals))
		for i, v := range vals {
			if b, ok := v.([]byte); ok && inBytes {
				v = string(b)
			}
			text[i] = show(v)
		}
		out = append(out, strings.Join(text, "|"))
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return out
}

func show(v any) string {
	switch v := v.(type) {
	case nil:
		return `\N`
	case []byte:
		return fmt.Sprintf("%X", v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

// differences compares tables and says what is missing and what is too much.
func differences(want, got map[string][]string) string {
	var out []string
	for name, w := range want {
		g, ok := got[name]
		if !ok && len(w) > 0 {
			out = append(out, fmt.Sprintf("table %s: %d rows are missing, all of them", name, len(w)))
			continue
		}
		if missing, more := minus(w, g), minus(g, w); len(missing)+len(more) > 0 {
			out = append(out, fmt.Sprintf("table %s: got %d rows, want %d; missing %d: %s; too much %d: %s", name, len(g), len(w), len(missing), few(missing), len(more), few(more)))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			out = append(out, "table "+name+" is too much")
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// minus returns what a has more often than b. Both are sorted.
func minus(a, b []string) []string {
	var out []string
	for j, i := 0, 0; i < len(a); i++ {
		for j < len(b) && b[j] < a[i] {
			j++
		}
		if j < len(b) && b[j] == a[i] {
			j++
			continue
		}
		out = append(out, a[i])
	}
	return out
}

func few(rows []string) string {
	if len(rows) > 5 {
		return strings.Join(rows[:5], ", ") + ", …"
	}
	return strings.Join(rows, ", ")
}

// progress is the row of one lane.
type progress struct {
	execution       string
	claim, batch    int64
	file            string
	offset, ordinal int64
}

func progressOf(t *testing.T, path string) map[string]progress {
	t.Helper()
	out := map[string]progress{}
	if _, err := os.Stat(path); err != nil && !isURL(path) {
		return out
	}
	db := open(t, path)
	defer db.Close()
	if !slices.Contains(tablesOf(t, db, path), "datalink_progress") {
		return out
	}
	rows, err := db.Query("SELECT task, writer, lane, execution_id, claim_no, batch_no, position FROM datalink_progress WHERE lane >= 0")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var task, writer, lane string
		var position sql.NullString
		var p progress
		if err := rows.Scan(&task, &writer, &lane, &p.execution, &p.claim, &p.batch, &position); err != nil {
			t.Fatal(err)
		}
		if position.String != "" {
			p.place(t, position.String)
		}
		out[task+"/"+writer+"/"+lane] = p
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// place reads {"source":"FILE:OFFSET@…","ordinal":N}.
func (p *progress) place(t *testing.T, text string) {
	var pos struct {
		Source  string
		Ordinal int64
	}
	if err := json.Unmarshal([]byte(text), &pos); err != nil {
		t.Fatalf("position %q: %v", text, err)
	}
	where, _, _ := strings.Cut(pos.Source, "@")
	i := strings.LastIndexByte(where, ':')
	offset, err := strconv.ParseInt(where[i+1:], 10, 64)
	if err != nil {
		t.Fatalf("position %q: %v", text, err)
	}
	p.file, p.offset, p.ordinal = where[:i], offset, pos.Ordinal
}

// behind reports whether p lies before q.
func (p progress) behind(q progress) bool {
	switch {
	case p.claim < q.claim || p.batch < q.batch:
		return true
	case p.file != q.file:
		return p.file < q.file
	case p.offset != q.offset:
		return p.offset < q.offset
	}
	return p.ordinal < q.ordinal
}
