package postgres

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk/batch"
)

// plan is how the rows of one source schema are written to one target table. It
// does not change but for the statements it remembers.
type plan struct {
	schema *batch.Schema
	t      *table
	table  string   // quoted
	cols   []column // one for each column of the schema
	key    []int    // places of the key
	// apart: an upsert is an update and, where it finds no row, an insert. ON
	// CONFLICT takes no deferrable key.
	apart      bool
	always     bool  // has a column that counts by itself whatever it is given
	others     []int // columns in unique keys beside the one rows are found by
	deferrable bool  // keys that are checked at the end

	mu    sync.Mutex
	texts map[string]string
}

// column is the column that a source's column goes to.
type column struct {
	name     string // quoted; "" = left out
	info     *info
	wire     wire
	nullable bool
	inKey    bool
}

// plans are what is known of the target's tables.
type plans struct {
	mu    sync.Mutex
	known map[*batch.Schema]*plan
}

func (p *plans) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = map[*batch.Schema]*plan{}
}

func (p *plans) get(s *batch.Schema) *plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known[s]
}

func (p *plans) put(s *batch.Schema, x *plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known[s] = x
}

func newPlan(s *batch.Schema, t *table, m *target.Match) *plan {
	p := &plan{schema: s, t: t, table: tableName(t.Namespace, t.Name), key: s.Key, texts: map[string]string{}}
	for i := range s.Columns {
		at := m.Columns[i]
		if at < 0 {
			p.cols = append(p.cols, column{})
			continue
		}
		c := column{name: quote(t.Columns[at].Name), info: &t.cols[at], wire: wireOf(&s.Columns[i], &t.cols[at]), nullable: t.Columns[at].Nullable, inKey: slices.Contains(s.Key, i)}
		p.always = p.always || c.info.always
		p.cols = append(p.cols, c)
	}
	found := false
	for k := range t.Uniques {
		u := &t.Uniques[k]
		if !found && u.Plain && p.isKey(u, m) {
			found, p.apart = true, t.keys[k].deferrable
			continue
		}
		p.deferrable = p.deferrable || t.keys[k].deferrable
		for _, at := range u.Columns {
			if place := slices.Index(m.Columns, at); at >= 0 && place >= 0 && !p.cols[place].inKey && !slices.Contains(p.others, place) {
				p.others = append(p.others, place)
			}
		}
	}
	return p
}

func (p *plan) isKey(u *target.Unique, m *target.Match) bool {
	var want []int
	for _, k := range p.key {
		want = append(want, m.Columns[k])
	}
	return len(want) > 0 && slices.Equal(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(u.Columns)))
}

// mask writes which columns of an image have values into dst: one byte each.
func (p *plan) mask(dst []byte, vals []batch.Value) []byte {
	for i := range vals {
		b := byte('-')
		if p.cols[i].name != "" && vals[i].State != batch.Absent && vals[i].State != batch.Unchanged {
			b = '+'
		}
		dst = append(dst, b)
	}
	return dst
}

func places(mask string) []int {
	var out []int
	for i := range len(mask) {
		if mask[i] == '+' {
			out = append(out, i)
		}
	}
	return out
}

// text returns the statement for an operation and a mask.
func (p *plan) text(op opText, mask string) string {
	name := string(rune(op)) + mask
	p.mu.Lock()
	defer p.mu.Unlock()
	q, ok := p.texts[name]
	if !ok {
		if len(p.texts) >= maxStatements {
			clear(p.texts)
		}
		q = p.write(op, places(mask))
		p.texts[name] = q
	}
	return q
}

// opText chooses a statement.
type opText byte

const (
	insertText opText = 'i'
	upsertText opText = 'u'
	mergeText  opText = 'g' // upsert from the temporary table of a COPY
	updateText opText = 'p'
	deleteText opText = 'd'
	releaseTxt opText = 'r'
	matchDel   opText = 'x'
	matchSet   opText = 'm'
)

// params lists the columns whose values a statement takes, in order: those that it
// writes, then those that it finds rows by.
func (p *plan) params(op opText, set []int) (write, find []int) {
	switch op {
	case updateText:
		return set, p.key
	case deleteText, releaseTxt:
		return nil, p.key
	}
	return set, nil
}

func (p *plan) write(op opText, set []int) string {
	write, find := p.params(op, set)
	from := p.unnest(write, find)
	where := make([]string, len(find))
	for n, i := range find {
		where[n] = "t." + p.cols[i].name + " = " + p.param(i, len(write)+n)
	}
	found := strings.Join(where, " AND ")
	switch op {
	case insertText, upsertText, mergeText:
		return p.insert(op, write, from)
	case updateText:
		return "UPDATE " + p.table + " AS t SET " + p.sets(write) + " FROM " + from + " WHERE " + found
	case deleteText:
		return "DELETE FROM " + p.table + " AS t USING " + from + " WHERE " + found
	}
	var nulls []string
	for _, i := range set {
		nulls = append(nulls, p.cols[i].name+" = NULL")
	}
	return "UPDATE " + p.table + " AS t SET " + strings.Join(nulls, ", ") + " FROM " + from + " WHERE " + found
}

// unnest is the source of rows: one array for each column.
func (p *plan) unnest(write, find []int) string {
	var arrays, names []string
	for n, i := range slices.Concat(write, find) {
		arrays = append(arrays, "$"+strconv.Itoa(n+1)+"::"+p.cols[i].wire.array())
		names = append(names, "a"+strconv.Itoa(n))
	}
	return "unnest(" + strings.Join(arrays, ", ") + ") AS u(" + strings.Join(names, ", ") + ")"
}

// param is the n-th column of the source of rows as a value for column i.
func (p *plan) param(i, n int) string {
	q := "u.a" + strconv.Itoa(n)
	if c := p.cols[i].wire.cast; c != "" {
		q += "::" + c
	}
	return q
}

func (p *plan) sets(write []int) string {
	var sets []string
	for n, i := range write {
		sets = append(sets, p.cols[i].name+" = "+p.param(i, n))
	}
	if len(sets) == 0 {
		// Touches the row, so that its absence is seen.
		name := p.cols[p.key[0]].name
		sets = []string{name + " = t." + name}
	}
	return strings.Join(sets, ", ")
}

// insert adds the columns and, where the key exists, updates them. The conflict
// target is the key alone: a hit on another unique key is an error.
func (p *plan) insert(op opText, write []int, from string) string {
	var names, values, sets []string
	for n, i := range write {
		c := &p.cols[i]
		names, values = append(names, c.name), append(values, p.param(i, n))
		if !c.inKey {
			sets = append(sets, c.name+" = excluded."+c.name)
		}
	}
	q := "INSERT INTO " + p.table
	if len(names) == 0 {
		return q + " DEFAULT VALUES"
	}
	q += " (" + strings.Join(names, ", ") + ")"
	if p.always {
		q += " OVERRIDING SYSTEM VALUE"
	}
	if op == mergeText {
		from = copyTable + " AS u"
	}
	q += " SELECT " + strings.Join(values, ", ") + " FROM " + from
	switch {
	case op == insertText || len(p.key) == 0 || p.apart:
		return q
	case len(sets) == 0:
		return q + " ON CONFLICT (" + p.keyNames() + ") DO NOTHING"
	}
	return q + " ON CONFLICT (" + p.keyNames() + ") DO UPDATE SET " + strings.Join(sets, ", ")
}

func (p *plan) keyNames() string {
	names := make([]string, len(p.key))
	for i, k := range p.key {
		names[i] = p.cols[k].name
	}
	return strings.Join(names, ", ")
}

// matchText changes or deletes one row that equals an image in the columns old, of
// several equal ones any: NULL equals NULL, and values are equal where nothing
// tells them apart.
func (p *plan) matchText(set, old []int) string {
	var where []string
	for n, i := range old {
		where = append(where, p.alike(i, "x."+p.cols[i].name, p.param(i, len(set)+n)))
	}
	one := "(SELECT x.tableoid AS o, x.ctid AS i, u.* FROM " + p.table + " AS x, " + p.unnest(set, old) + " WHERE " + strings.Join(where, " AND ") + " LIMIT 1) AS u"
	if set == nil {
		return "DELETE FROM " + p.table + " AS t USING " + one + " WHERE t.ctid = u.i AND t.tableoid = u.o"
	}
	var sets []string
	for n, i := range set {
		sets = append(sets, p.cols[i].name+" = "+p.param(i, n))
	}
	return "UPDATE " + p.table + " AS t SET " + strings.Join(sets, ", ") + " FROM " + one + " WHERE t.ctid = u.i AND t.tableoid = u.o"
}

// alike compares a column with a value. Types without an equality, and those whose
// equality takes values for the same that read differently (0.0 and -0.0, 1.0 and
// 1.00, 1 month and 30 days), are compared as text.
func (p *plan) alike(i int, have, value string) string {
	in := p.cols[i].info
	switch in.oid {
	case oidBool, oidInt2, oidInt4, oidInt8, oidBytea, oidDate, oidTime, oidTimestamp, oidTimestampTZ, oidUUID, oidBit, oidVarbit:
		return have + " IS NOT DISTINCT FROM " + value
	case oidText, oidVarchar:
		return have + ` COLLATE "C" IS NOT DISTINCT FROM ` + value
	case oidBpchar:
		return have + ` COLLATE "C" IS NOT DISTINCT FROM ` + value + "::bpchar"
	}
	mod := ""
	if p, s, ok := in.digits(); ok {
		mod = "::" + typeText("numeric", p, s)
	}
	return have + "::text IS NOT DISTINCT FROM (" + value + mod + ")::text"
}
