package mysql

import (
	"slices"
	"strings"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk/batch"
)

// plan is how the rows of one source schema are written to one target table. It
// does not change, and serves all lanes.
type plan struct {
	schema     *batch.Schema
	table      string // quoted, with its database
	columns    []column
	key        []int
	others     bool // a row can meet another one in a unique key beside its own
	maria      bool
	referenced bool      // rows of other tables refer to its own
	full       statement // of rows that have every column
	loadable   bool      // LOAD DATA can fill its columns
}

// column is the column that a source column goes to.
type column struct {
	name    string // quoted; "" = left out
	source  *batch.Column
	have    *target.Column
	to      declared
	notNull bool
	inKey   bool
	narrow  bool // values are looked at one by one
	maria   bool
}

// statement is the text around the rows of an INSERT.
type statement struct{ head, tail string }

func newPlan(s *batch.Schema, t *target.Table, m *target.Match, maria bool) *plan {
	p := &plan{schema: s, table: tableName(t.Namespace, t.Name), key: s.Key, others: m.Others || len(s.Key) > 0 && !m.Primary, maria: maria, referenced: m.Constraints.Referenced}
	for i := range s.Columns {
		c := column{source: &s.Columns[i], maria: maria}
		if at := m.Columns[i]; at >= 0 {
			c.have = &t.Columns[at]
			c.name, c.to = quote(c.have.Name), parseType(c.have.Type)
			c.notNull, c.inKey, c.narrow = !c.have.Nullable, slices.Contains(s.Key, i), m.Narrow[i]
		}
		p.columns = append(p.columns, c)
	}
	all := make([]byte, len(s.Columns))
	for i := range all {
		all[i] = '+'
	}
	p.full, p.loadable = p.insert(all), loadable(p.columns)
	return p
}

// mask writes which columns of an image have values into dst: one byte each.
func (p *plan) mask(dst []byte, vals []batch.Value) []byte {
	for i := range vals {
		b := byte('-')
		if p.columns[i].name != "" && vals[i].State != batch.Absent && vals[i].State != batch.Unchanged {
			b = '+'
		}
		dst = append(dst, b)
	}
	return dst
}

// insert writes the text around rows of the masked columns. Where the key exists
// they are updated; a row that meets another one in another unique key is made
// an error by a subquery of two rows, which is evaluated in that case only.
func (p *plan) insert(mask []byte) statement {
	const fresh = "datalink_row"
	value := func(n string) string {
		if p.maria {
			return "VALUES(" + n + ")"
		}
		return fresh + "." + n
	}
	var cols, sets, same []string
	for i := range p.columns {
		c := &p.columns[i]
		if c.name == "" || mask[i] != '+' {
			continue
		}
		cols = append(cols, c.name)
		switch {
		case !c.inKey:
			sets = append(sets, c.name+"="+value(c.name))
		case p.others:
			same = append(same, p.table+"."+c.name+"="+value(c.name))
		}
	}
	st := statement{head: "INSERT INTO " + p.table + " (" + strings.Join(cols, ",") + ") VALUES "}
	if len(p.key) == 0 || len(cols) == 0 {
		return st
	}
	for i, k := range p.key {
		n := p.columns[k].name
		switch {
		case p.others && i == 0:
			sets = append([]string{n + "=IF(" + strings.Join(same, " AND ") + "," + value(n) + ",(SELECT 1 UNION ALL SELECT 2))"}, sets...)
		case len(sets) == 0 || p.columns[k].have.Collation != "":
			// Equal under the collation is not equal in all bytes.
			sets = append(sets, n+"="+value(n))
		}
	}
	if !p.maria {
		st.tail = " AS " + fresh
	}
	st.tail += " ON DUPLICATE KEY UPDATE " + strings.Join(sets, ",")
	return st
}

// floating reports whether a column is compared by its sign too: 0 and -0 are
// equal numbers.
func (c *column) floating() bool { return c.to.base == "float" || c.to.base == "double" }
