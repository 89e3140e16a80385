package continuous

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// ids is how many rows a table can have.
const ids = 200

// change is a statement that changes rows.
func (t *table) change(r *rand.Rand) string {
	id := r.IntN(ids)
	value := func(c column) string { return c.values[r.IntN(len(c.values))] }
	some := slices.DeleteFunc(slices.Clone(t.columns), func(column) bool { return r.IntN(3) == 0 })
	switch n := r.IntN(10); {
	case n < 4:
		names, vals := []string{"id"}, []string{fmt.Sprint(id)}
		for _, c := range some {
			names, vals = append(names, c.name), append(vals, value(c))
		}
		verb := "INSERT"
		if r.IntN(3) == 0 && !t.keyless {
			verb = "REPLACE"
		}
		q := fmt.Sprintf("%s INTO %s (%s) VALUES (%s)", verb, t.name, strings.Join(names, ", "), strings.Join(vals, ", "))
		if verb == "INSERT" && r.IntN(4) == 0 && len(some) > 0 {
			q += fmt.Sprintf(" ON DUPLICATE KEY UPDATE %s = %s", some[0].name, value(some[0]))
		}
		return q
	case n < 8 && len(some) > 0:
		var sets []string
		for _, c := range some {
			sets = append(sets, c.name+" = "+value(c))
		}
		if r.IntN(5) == 0 {
			sets = append(sets, fmt.Sprintf("id = %d", r.IntN(ids)))
		}
		return fmt.Sprintf("UPDATE %s SET %s WHERE id BETWEEN %d AND %d LIMIT 3", t.name, strings.Join(sets, ", "), id, id+r.IntN(6))
	case n < 9:
		return fmt.Sprintf("DELETE FROM %s WHERE id BETWEEN %d AND %d", t.name, id, id+r.IntN(3))
	}
	return fmt.Sprintf("INSERT IGNORE INTO %s (id) VALUES (%d), (%d), (%d)", t.name, id, id+1, id+2)
}

// alter is a schema change: the statement, and what it does to the catalog.
func (c *catalog) alter(r *rand.Rand) (sql string, done func()) {
	t := c.pick(r)
	c.mu.Lock()
	fresh, made := c.column(r), c.table(r)
	c.mu.Unlock()
	at := 0
	if len(t.columns) > 0 {
		at = r.IntN(len(t.columns))
	}
	named := func(f func(t *table)) func() { return func() { c.change(t.name, f) } }
	switch n := r.IntN(12); {
	case n < 3 || len(t.columns) < 2:
		place := ""
		if r.IntN(2) == 0 {
			place = " FIRST"
		}
		return fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s %s%s", t.name, fresh.name, fresh.def, place), named(func(t *table) { t.columns = append(t.columns, fresh) })
	case n < 5:
		gone := t.columns[at].name
		return fmt.Sprintf("ALTER TABLE %s DROP COLUMN %s", t.name, gone), named(func(t *table) {
			t.columns = slices.DeleteFunc(t.columns, func(c column) bool { return c.name == gone })
		})
	case n < 7:
		from, to := t.columns[at].name, fresh.name
		return fmt.Sprintf("ALTER TABLE %s RENAME COLUMN %s TO %s", t.name, from, to), named(func(t *table) {
			for i := range t.columns {
				if t.columns[i].name == from {
					t.columns[i].name = to
				}
			}
		})
	case n < 8:
		k := t.columns[at]
		return fmt.Sprintf("ALTER TABLE %s MODIFY COLUMN %s %s AFTER id, ADD INDEX i%d (id)", t.name, k.name, k.def, r.IntN(1e6)), func() {}
	case n < 9 && !t.keyless && c.retype: // values that do not fit make the server refuse it; rows without a key could not be told apart afterwards
		from := t.columns[at].name
		return fmt.Sprintf("ALTER TABLE %s CHANGE %s %s %s", t.name, from, fresh.name, fresh.def), named(func(t *table) {
			for i := range t.columns {
				if t.columns[i].name == from {
					t.columns[i] = fresh
				}
			}
		})
	case n < 10:
		to := made.name
		return fmt.Sprintf("RENAME TABLE %s TO %s", t.name, to), named(func(t *table) { t.name = to })
	case n < 11:
		return "TRUNCATE TABLE " + t.name, func() {}
	}
	return fmt.Sprintf("DROP TABLE %s; %s", t.name, made.create()), named(func(t *table) { *t = *made })
}
