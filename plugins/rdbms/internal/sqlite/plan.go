package sqlite

import (
	"strings"

	"github.com/datalink-go/datalink/sdk/batch"
)

// plan is how the rows of one source schema are written to one target table.
type plan struct {
	schema  *batch.Schema
	table   string // as it is named in the target
	columns []into // one for each column of the schema
	key     []int  // places of the key
	rowID   string // keyless tables: name of the row number
	full    *stmt  // upsert of a row that has every column
	// apart: an upsert is an update and, where it finds no row, an insert. SQLite's
	// ON CONFLICT does not find the index of a key that holds, among others, the
	// column which is the row number.
	apart bool
	stmts map[string]*stmt
}

// Statements a plan keeps at most: minimal row images can name columns in any
// combination.
const maxStatements = 256

// stmt returns the statement of that name (operation and masks), which text
// writes where it is not known.
func (p *plan) stmt(c *conn, name []byte, text func() string) (*stmt, error) {
	if s := p.stmts[string(name)]; s != nil {
		return s, nil
	}
	if len(p.stmts) >= maxStatements {
		p.close()
	}
	s, err := c.compile(text())
	if err != nil {
		return nil, err
	}
	p.stmts[string(name)] = s
	return s, nil
}

func (p *plan) close() {
	for _, s := range p.stmts {
		_ = s.closer.Close()
	}
	clear(p.stmts)
	if p.full != nil {
		_ = p.full.closer.Close()
		p.full = nil
	}
}

// into is the column that a source column goes to.
type into struct {
	name    string // "" = left out
	notNull bool
	// narrow: a number above 2^63-1 would become a REAL in it.
	narrow bool
	inKey  bool
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

// upsertText inserts the masked columns and, where the key exists, updates them.
// The conflict target is the key alone: a hit on another unique key is an error.
func (p *plan) upsertText(mask []byte) string {
	var names, marks, sets []string
	for i := range p.columns {
		if mask[i] != '+' {
			continue
		}
		n := quote(p.columns[i].name)
		names, marks = append(names, n), append(marks, "?")
		if !p.columns[i].inKey {
			sets = append(sets, n+"=excluded."+n)
		}
	}
	q := "INSERT INTO " + quote(p.table)
	if len(names) == 0 {
		return q + " DEFAULT VALUES"
	}
	q += " (" + strings.Join(names, ",") + ") VALUES (" + strings.Join(marks, ",") + ")"
	switch {
	case len(p.key) == 0 || p.apart:
		return q
	case len(sets) == 0:
		return q + " ON CONFLICT (" + p.keyNames(",") + ") DO NOTHING"
	}
	return q + " ON CONFLICT (" + p.keyNames(",") + ") DO UPDATE SET " + strings.Join(sets, ",")
}

// updateText sets the masked columns of the row that has the key. Without
// columns to set it touches the row, so that its absence is seen.
func (p *plan) updateText(mask []byte) string {
	var sets []string
	for i := range p.columns {
		if mask[i] == '+' {
			sets = append(sets, quote(p.columns[i].name)+"=?")
		}
	}
	if len(sets) == 0 {
		n := quote(p.columns[p.key[0]].name)
		sets = []string{n + "=" + n}
	}
	return "UPDATE " + quote(p.table) + " SET " + strings.Join(sets, ",") + " WHERE " + p.keyWhere()
}

func (p *plan) deleteText() string {
	return "DELETE FROM " + quote(p.table) + " WHERE " + p.keyWhere()
}

func (p *plan) keyNames(sep string) string {
	names := make([]string, len(p.key))
	for i, k := range p.key {
		names[i] = quote(p.columns[k].name)
	}
	return strings.Join(names, sep)
}

func (p *plan) keyWhere() string {
	where := make([]string, len(p.key))
	for i, k := range p.key {
		where[i] = p.compared(k) + "=?"
	}
	return strings.Join(where, " AND ")
}

// compared names a column so that its texts are compared byte by byte, whatever
// collation the target gave it.
func (p *plan) compared(i int) string {
	n := quote(p.columns[i].name)
	if classOf(&p.schema.Columns[i]) == asText {
		n += " COLLATE BINARY"
	}
	return n
}

// matchText finds one row equal to an image: NULL equals NULL, and of several
// equal rows one is taken. REAL values are bound twice: 0.0 and -0.0 are
// equal, and only atan2 shows the sign (π and -π).
func (p *plan) matchText(mask []byte) string {
	var where []string
	for i := range p.columns {
		if mask[i] == '+' {
			where = append(where, p.compared(i)+" IS ?")
			if classOf(&p.schema.Columns[i]) == asReal {
				where = append(where, "atan2("+quote(p.columns[i].name)+",-1) IS atan2(?,-1)")
			}
		}
	}
	return p.rowID + " = (SELECT " + p.rowID + " FROM " + quote(p.table) + " WHERE " + strings.Join(where, " AND ") + " LIMIT 1)"
}

func (p *plan) matchDeleteText(mask []byte) string {
	return "DELETE FROM " + quote(p.table) + " WHERE " + p.matchText(mask)
}

func (p *plan) matchUpdateText(set, mask []byte) string {
	var sets []string
	for i := range p.columns {
		if set[i] == '+' {
			sets = append(sets, quote(p.columns[i].name)+"=?")
		}
	}
	if len(sets) == 0 {
		sets = []string{p.rowID + "=" + p.rowID}
	}
	return "UPDATE " + quote(p.table) + " SET " + strings.Join(sets, ",") + " WHERE " + p.matchText(mask)
}
