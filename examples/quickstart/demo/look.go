package main

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	_ "modernc.org/sqlite" // driver
)

// firstRows is how many rows of a table are shown.
const firstRows = 3

// look prints the first rows of each table and compares all rows with what the
// recorded server held.
func look(ctx context.Context, j job) error {
	db, err := sql.Open("sqlite", "file:"+j.target+"?mode=ro")
	if err != nil {
		return err
	}
	defer db.Close()
	files, err := filepath.Glob(filepath.Join(j.expect, "shop.*.tsv"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("%s: found no recorded tables: %w", j.expect, err)
	}
	fmt.Printf("\n== %s\n", j.target)
	same := 0
	for _, f := range files {
		table := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f), "shop."), ".tsv")
		want, err := recorded(f, table)
		if err != nil {
			return err
		}
		got, err := contents(ctx, db, table, want.columns)
		if err != nil {
			return err
		}
		show(table, want.columns, got)
		if d := difference(want.rows, got); d != "" {
			return fmt.Errorf("%s, table %s: not what the server held: %s", j.target, table, d)
		}
		same++
	}
	fmt.Printf("all rows of %d tables equal those of the recorded server (phone numbers masked)\n", same)
	return nil
}

type rows struct {
	columns []string
	rows    [][]string
}

// recorded reads a table as the server printed it; see binlogs/INDEX.md.
func recorded(path, table string) (*rows, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	r := &rows{}
	for in.Scan() {
		fields := strings.Split(in.Text(), "\t")
		if r.columns == nil {
			r.columns = fields
			continue
		}
		for i, v := range fields {
			if table == "customers" && r.columns[i] == "phone" && v != `\N` {
				fields[i] = masked(v, 4)
			}
		}
		r.rows = append(r.rows, fields)
	}
	return r, in.Err()
}

// masked is what the transform of the tasks makes of a text.
func masked(s string, keep int) string {
	n := max(utf8.RuneCountInString(s)-keep, 0)
	r := []rune(s)
	return strings.Repeat("*", n) + string(r[n:])
}

var escape = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\x00", `\0`)

// contents reads a target table in the form of the recordings.
func contents(ctx context.Context, db *sql.DB, table string, columns []string) ([][]string, error) {
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = `"` + strings.ReplaceAll(c, `"`, `""`) + `"`
	}
	q, err := db.QueryContext(ctx, fmt.Sprintf(`SELECT %s FROM "%s"`, strings.Join(quoted, ", "), table))
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", table, err)
	}
	defer q.Close()
	var out [][]string
	for q.Next() {
		vals := make([]sql.NullString, len(columns))
		ptrs := make([]any, len(columns))
		for i := range vals {
			ptrs[i] = &vals[i]
		}
		if err := q.Scan(ptrs...); err != nil {
			return nil, fmt.Errorf("table %s: %w", table, err)
		}
		row := make([]string, len(columns))
		for i, v := range vals {
			row[i] = `\N`
			if v.Valid {
				row[i] = escape.Replace(v.String)
			}
		}
		out = append(out, row)
	}
	return out, q.Err()
}

func show(table string, columns []string, all [][]string) {
	fmt.Printf("%s (%d rows)\n", table, len(all))
	line := func(fields []string) {
		s := strings.Join(fields, " | ")
		if r := []rune(s); len(r) > 118 {
			s = string(r[:117]) + "…"
		}
		fmt.Println("  " + s)
	}
	line(columns)
	for _, r := range all[:min(firstRows, len(all))] {
		line(r)
	}
}

// difference compares two sets of rows whatever their order.
func difference(want, got [][]string) string {
	flat := func(rows [][]string) []string {
		out := make([]string, len(rows))
		for i, r := range rows {
			out[i] = strings.Join(r, "\t")
		}
		slices.Sort(out)
		return out
	}
	w, g := flat(want), flat(got)
	if slices.Equal(w, g) {
		return ""
	}
	for i := range max(len(w), len(g)) {
		switch {
		case i >= len(w):
			return fmt.Sprintf("%d rows, expected %d; one too many is %q", len(g), len(w), g[i])
		case i >= len(g):
			return fmt.Sprintf("%d rows, expected %d; one that lacks is %q", len(g), len(w), w[i])
		case w[i] != g[i]:
			return fmt.Sprintf("found row %q, expected %q", g[i], w[i])
		}
	}
	return ""
}
