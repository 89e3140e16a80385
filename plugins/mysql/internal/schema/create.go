package schema

import (
	"slices"
	"strconv"
	"strings"
)

// hiddenKeys counts the expression parts of indexes: MySQL makes a hidden column
// of each.
type indexDef struct {
	name        string
	parts       []Part
	expressions []string // nil entries do not occur; one for each expression part
	unique      bool
}

// createBody reads what follows CREATE TABLE name, from the definitions on.
func (p *parser) createBody(t *Table, like func(db, table string) *Table) *Table {
	if p.is("LIKE") || p.is("(", "LIKE") {
		p.take("(")
		p.want("LIKE")
		src := like(p.tableName())
		if src == nil {
			p.refuse("the table it is like is not known")
		}
		c := src.clone()
		c.Database, c.Name, c.ForeignKeys = t.Database, t.Name, nil
		return c
	}
	if !p.is("(") || p.is("(", "SELECT") || p.is("(", "WITH") {
		p.refuse("columns that a SELECT gives")
	}
	// The options behind the definitions say what the definitions default to.
	start := p.i
	p.parens()
	p.tableOptions(t)
	if !p.done() {
		if !p.is("START", "TRANSACTION") {
			if p.is("SELECT") || p.is("AS") || p.is("(") || p.is("WITH") || p.is("IGNORE") || p.is("REPLACE") || p.is("VALUES") || p.is("TABLE") {
				p.refuse("columns that a SELECT gives")
			}
			p.refuse("table option")
		}
	}
	rest := p.i
	p.coll = collations{t.Charset, t.Collation}
	p.i = start
	p.want("(")
	for {
		p.definition(t)
		if !p.take(",") {
			break
		}
	}
	p.want(")")
	p.i = rest
	if t.versioned {
		t.addBounds()
	}
	return t
}

// addBounds adds the hidden columns of a system-versioned table that declares no
// bounds of its own (MariaDB, sql/handler.cc, Vers_parse_info).
func (t *Table) addBounds() {
	if slices.ContainsFunc(t.Columns, func(c Column) bool { return c.System != NoBound }) {
		return
	}
	for _, b := range []struct {
		name string
		s    System
	}{{"row_start", RowStart}, {"row_end", RowEnd}} {
		t.Columns = append(t.Columns, Column{
			Name: b.name, Base: "timestamp", Native: "timestamp(6)", Length: 6, Scale: -1, NotNull: true, Generated: true, Hidden: true, System: b.s,
		})
	}
}

// dropBounds takes the hidden bounds away; declared ones become plain columns.
func (t *Table) dropBounds() {
	t.Columns = slices.DeleteFunc(t.Columns, func(c Column) bool { return c.System != NoBound && c.Hidden })
	for i := range t.Columns {
		t.Columns[i].System = NoBound
	}
}

// definition reads one column, key or constraint.
func (p *parser) definition(t *Table) {
	if p.constraint(t) {
		return
	}
	c, x := p.column(p.name())
	t.add(c, x)
	t.finishColumn(c.Name, x)
}

// add puts a column into the table where x says.
func (t *Table) add(c Column, x extras) bool {
	at := len(t.Columns)
	for at > 0 && (t.Columns[at-1].Functional || t.Columns[at-1].System != NoBound && t.Columns[at-1].Hidden) {
		at-- // hidden columns stay last
	}
	switch {
	case x.first:
		at = 0
	case x.placed:
		if at = t.Column(x.after) + 1; at == 0 {
			return false
		}
	}
	t.Columns = slices.Insert(t.Columns, at, c)
	return true
}

// finishColumn adds the keys that a column definition brings.
func (t *Table) finishColumn(name string, x extras) {
	t.versioned = t.versioned || x.versioned
	if x.primary {
		t.setPrimary([]Part{{Column: name}})
	}
	if x.unique {
		t.addUnique(indexDef{parts: []Part{{Column: name}}, unique: true})
	}
	if x.fk != nil {
		t.addForeignKey(*x.fk)
	}
}

func (t *Table) setPrimary(parts []Part) {
	t.Primary = parts
	for _, p := range parts {
		if at := t.Column(p.Column); at >= 0 {
			t.Columns[at].NotNull = true
		}
	}
}

func (t *Table) addUnique(ix indexDef) {
	if ix.name == "" {
		// The server names an index after its first column, with a number when taken.
		base := "functional_index"
		if len(ix.parts) > 0 && len(ix.expressions) == 0 {
			base = ix.parts[0].Column
		}
		ix.name = base
		for n := 2; slices.ContainsFunc(t.Uniques, func(u Index) bool { return strings.EqualFold(u.Name, ix.name) }); n++ {
			ix.name = base + "_" + strconv.Itoa(n)
		}
	}
	t.Uniques = append(t.Uniques, Index{Name: ix.name, Parts: ix.parts, Expression: len(ix.expressions) > 0})
}

func (t *Table) addForeignKey(fk ForeignKey) {
	if fk.RefDatabase == "" {
		fk.RefDatabase = t.Database
	}
	if fk.Name == "" {
		for n := 1; ; n++ {
			fk.Name = t.Name + "_ibfk_" + strconv.Itoa(n)
			if !slices.ContainsFunc(t.ForeignKeys, func(f ForeignKey) bool { return strings.EqualFold(f.Name, fk.Name) }) {
				break
			}
		}
	}
	t.ForeignKeys = append(t.ForeignKeys, fk)
}

// constraint reads a key or constraint, if one is next.
func (p *parser) constraint(t *Table) bool {
	name := ""
	if p.take("CONSTRAINT") {
		if !p.is("PRIMARY") && !p.is("UNIQUE") && !p.is("FOREIGN") && !p.is("CHECK") {
			name = p.name()
		}
	}
	switch {
	case p.take("PRIMARY", "KEY"):
		p.indexType()
		parts, _ := p.parts()
		p.indexOptions()
		t.setPrimary(parts)
	case p.take("UNIQUE"):
		if ix := p.index(true); ix.name != "" || name == "" {
			t.putIndex(ix, p.d)
		} else {
			ix.name = name
			t.putIndex(ix, p.d)
		}
	case p.take("FOREIGN", "KEY"):
		p.take("IF", "NOT", "EXISTS")
		if !p.is("(") {
			if n := p.name(); name == "" {
				name = n
			}
		}
		fk := ForeignKey{Name: name, Columns: p.names()}
		p.references(&fk)
		t.addForeignKey(fk)
	case p.take("CHECK"):
		p.parens()
		p.take("NOT")
		p.take("ENFORCED")
	case p.is("FULLTEXT"), p.is("SPATIAL"), p.is("VECTOR", "INDEX"), p.is("VECTOR", "KEY"):
		p.i++
		p.index(false)
	case p.is("INDEX"), p.is("KEY"):
		t.putIndex(p.index(false), p.d)
	case p.is("PERIOD", "FOR"):
		p.i += 2
		p.name()
		p.names()
	default:
		if name != "" {
			p.refuse("constraint")
		}
		return false
	}
	return true
}

// index reads [INDEX|KEY] [IF NOT EXISTS] [name] [USING …] (parts) options.
func (p *parser) index(unique bool) indexDef {
	p.one("INDEX", "KEY")
	p.take("IF", "NOT", "EXISTS")
	ix := indexDef{unique: unique}
	if !p.is("(") && !p.is("USING") && !p.is("TYPE") {
		ix.name = p.name()
	}
	p.indexType()
	ix.parts, ix.expressions = p.parts()
	p.indexOptions()
	return ix
}

func (p *parser) indexType() {
	if p.take("USING") || p.take("TYPE") {
		p.name()
	}
}

func (p *parser) indexOptions() {
	for {
		switch {
		case p.take("KEY_BLOCK_SIZE"):
			p.take("=")
			p.int()
		case p.is("USING"), p.is("TYPE"):
			p.indexType()
		case p.take("COMMENT"):
			p.take("=")
			p.text()
		case p.take("WITH", "PARSER"):
			p.name()
		case p.take("VISIBLE"), p.take("INVISIBLE"), p.take("IGNORED"), p.take("NOT", "IGNORED"), p.take("CLUSTERING", "=", "YES"):
		case p.take("ENGINE_ATTRIBUTE"), p.take("SECONDARY_ENGINE_ATTRIBUTE"):
			p.take("=")
			p.text()
		case p.peek(0).kind == word && p.peek(1).kind == punct && p.peek(1).s == "=" && p.d.MariaDB:
			p.i += 3
		default:
			return
		}
	}
}

// parts reads the columns of an index: name, name(prefix), (expression).
func (p *parser) parts() (parts []Part, expressions []string) {
	p.want("(")
	for {
		if p.is("(") {
			expressions = append(expressions, p.parens())
		} else {
			part := Part{Column: p.name()}
			if p.take("WITHOUT", "OVERLAPS") {
				expressions = append(expressions, part.Column)
			}
			if p.take("(") {
				part.Prefix = p.int()
				p.want(")")
			}
			parts = append(parts, part)
		}
		p.one("ASC", "DESC")
		if !p.take(",") {
			break
		}
	}
	p.want(")")
	return parts, expressions
}

// putIndex adds an index: unique ones are kept, and each expression part is a
// hidden column of MySQL.
func (t *Table) putIndex(ix indexDef, d Dialect) {
	if !d.MariaDB {
		for n := range ix.expressions {
			t.Columns = append(t.Columns, Column{
				Name: "!hidden!" + ix.name + "!" + strconv.Itoa(n) + "!0", Length: -1, Scale: -1, Base: "!hidden", Virtual: true, Functional: true,
			})
		}
	}
	if ix.unique {
		t.addUnique(ix)
	}
}

// references reads REFERENCES table (columns) and what follows.
func (p *parser) references(fk *ForeignKey) {
	p.want("REFERENCES")
	db := p.db
	p.db = ""
	fk.RefDatabase, fk.RefTable = p.tableName()
	p.db = db
	if p.is("(") {
		fk.RefColumns = p.names()
	}
	for {
		switch {
		case p.take("MATCH"):
			p.name()
		case p.take("ON", "DELETE"):
			fk.OnDelete = p.action()
		case p.take("ON", "UPDATE"):
			fk.OnUpdate = p.action()
		default:
			return
		}
	}
}

// action reads what a foreign key does; "" = refuse.
func (p *parser) action() string {
	switch {
	case p.take("CASCADE"):
		return "CASCADE"
	case p.take("SET", "NULL"):
		return "SET NULL"
	case p.take("SET", "DEFAULT"):
		return "SET DEFAULT"
	case p.take("RESTRICT"), p.take("NO", "ACTION"):
		return ""
	}
	p.refuse("action of a foreign key")
	return ""
}

// tableOptions reads the options of CREATE TABLE, up to what is none.
func (p *parser) tableOptions(t *Table) {
	cs, coll := "", ""
	for !p.done() {
		next := p.peek(0)
		if next.kind == punct && next.s == "," {
			next = p.peek(1)
		}
		if next.kind == word && actions[strings.ToUpper(next.s)] {
			t.defaults(p, cs, coll)
			return // of ALTER TABLE: another change, and not an option with a value
		}
		p.take(",")
		switch {
		case p.is("START", "TRANSACTION"), p.is("SELECT"), p.is("AS"), p.is("IGNORE"), p.is("REPLACE"), p.is("WITH", "RECURSIVE"):
			t.defaults(p, cs, coll)
			return
		case p.take("DEFAULT", "CHARACTER", "SET"), p.take("CHARACTER", "SET"), p.take("DEFAULT", "CHARSET"), p.take("CHARSET"):
			p.take("=")
			cs = p.nameOrText()
		case p.take("DEFAULT", "COLLATE"), p.take("COLLATE"):
			p.take("=")
			coll = p.nameOrText()
		case p.take("ENGINE"), p.take("TYPE"):
			p.take("=")
			t.Engine = strings.ToLower(p.nameOrText())
		case p.take("PARTITION", "BY"):
			// Partitions say nothing about columns.
			for !p.done() && !p.is("START", "TRANSACTION") && !p.is("SELECT") && !p.is("AS") {
				if p.is("(") {
					p.parens()
				} else {
					p.i++
				}
			}
		case p.take("WITH", "SYSTEM", "VERSIONING"):
			t.versioned = true
		case p.take("WITHOUT", "SYSTEM", "VERSIONING"):
		case p.take("UNION"):
			p.take("=")
			p.parens()
		case p.take("DATA", "DIRECTORY"), p.take("INDEX", "DIRECTORY"):
			p.take("=")
			p.text()
		case p.take("TABLESPACE"):
			p.take("=")
			p.name()
			if p.take("STORAGE") {
				p.name()
			}
		case p.take("STORAGE"):
			p.name()
		default:
			// name [=] value
			if k := p.peek(0).kind; k != word && k != quoted {
				t.defaults(p, cs, coll)
				return
			}
			v := 1
			if n := p.peek(1); n.kind == punct && n.s == "=" {
				v = 2
			}
			if k := p.peek(v).kind; k == end || k == punct {
				t.defaults(p, cs, coll)
				return
			}
			p.i += v + 1
		}
	}
	t.defaults(p, cs, coll)
}

func (t *Table) defaults(p *parser, cs, coll string) {
	t.Charset, t.Collation = p.resolve(cs, coll, p.coll)
}

// actions are the words that begin a change in ALTER TABLE and no table option.
var actions = map[string]bool{
	"ADD": true, "DROP": true, "MODIFY": true, "CHANGE": true, "RENAME": true, "ALTER": true, "CONVERT": true, "TRUNCATE": true,
	"EXCHANGE": true, "DISCARD": true, "IMPORT": true, "ORDER": true, "COALESCE": true, "REORGANIZE": true, "ANALYZE": true, "CHECK": true,
	"OPTIMIZE": true, "REBUILD": true, "REPAIR": true, "REMOVE": true, "ENABLE": true, "DISABLE": true, "FORCE": true, "LOCK": true,
	"ALGORITHM": true, "SECONDARY_LOAD": true, "SECONDARY_UNLOAD": true, "NOWAIT": true, "WAIT": true,
}
