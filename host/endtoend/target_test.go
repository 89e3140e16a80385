package endtoend

import (
	"crypto/sha256"
	"database/sql"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // reads targets without code of the connector
)

// null stands for NULL, as it does in the recorded tables.
const null = `\N`

// query returns rows of a target as text.
func query(t testing.TB, path, text string) [][]string {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	cols, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	vals, ptrs := make([]any, len(cols)), make([]any, len(cols))
	for i := range vals {
		ptrs[i] = &vals[i]
	}
	var out [][]string
	for rows.Next() {
		if err := rows.Scan(ptrs...); err != nil {
			t.Fatal(err)
		}
		cells := make([]string, len(vals))
		for i, v := range vals {
			cells[i] = show(v)
		}
		out = append(out, cells)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

var escape = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\x00", `\0`)

// show writes a value as the recorded tables have it.
func show(v any) string {
	var s string
	switch v := v.(type) {
	case nil:
		return null
	case []byte:
		s = fmt.Sprintf("%X", v)
	case float64:
		s = strconv.FormatFloat(v, 'g', -1, 64)
	default:
		s = fmt.Sprint(v)
	}
	if len(s) > 4096 {
		return fmt.Sprintf("sha256:%x:%d", sha256.Sum256([]byte(s)), len(s))
	}
	return escape.Replace(s)
}

var (
	clock  = regexp.MustCompile(`^-?[0-9]{2,3}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?$`)
	number = regexp.MustCompile(`^-?[0-9.]+([eE][-+]?[0-9]+)?$`)
)

// same compares a value with the recorded one. The digits of floating point
// numbers, the zeros before ZEROFILL numbers and the zeros behind a TIME say
// nothing about the value.
func same(got, want string) bool {
	switch {
	case got == want:
		return true
	case clock.MatchString(got) && clock.MatchString(want):
		trim := func(s string) string { return strings.TrimRight(strings.TrimRight(s, "0"), ".:") }
		return trim(got) == trim(want)
	case number.MatchString(got) && number.MatchString(want):
		if !strings.ContainsAny(got+want, ".eE") {
			return strings.TrimLeft(got, "0") == strings.TrimLeft(want, "0")
		}
		a, err1 := strconv.ParseFloat(got, 64)
		b, err2 := strconv.ParseFloat(want, 64)
		return err1 == nil && err2 == nil && a == b
	}
	return false
}
