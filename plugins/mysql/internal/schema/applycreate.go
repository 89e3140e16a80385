package schema

import (
	"strings"

	"github.com/datalink-go/datalink/plugins/internal/charset"
)

func (c *change1) create() {
	p := c.p
	replace := p.is("OR", "REPLACE")
	p.prefix()
	temporary := p.take("TEMPORARY")
	switch {
	case p.take("TABLE"):
		if temporary {
			return // no row event is of a temporary table
		}
		exists := p.take("IF", "NOT", "EXISTS")
		n := c.name()
		if exists && c.h.Get(n.Database, n.Table) != nil {
			return
		}
		c.eff.Class = Definition
		c.touched = append(c.touched, n)
		t := &Table{Database: n.Database, Name: n.Table}
		p.coll = c.databaseDefault(n.Database)
		t = p.createBody(t, c.h.Get)
		before := c.h.Get(n.Database, n.Table)
		c.touched = nil
		if replace && before != nil {
			c.eff.Changes = append(c.eff.Changes, Change{Kind: Dropped, Table: n, Before: before})
		}
		c.h.put(n, t, nil)
		c.eff.Changes = append(c.eff.Changes, Change{Kind: Created, Table: n, After: t})
	case p.is("SEQUENCE"):
		p.i++
		exists := p.take("IF", "NOT", "EXISTS")
		n := c.name()
		if temporary || exists && c.h.Get(n.Database, n.Table) != nil {
			return
		}
		c.eff.Class = Definition
		t := sequence()
		c.h.put(n, t, nil)
		c.eff.Changes = append(c.eff.Changes, Change{Kind: Created, Table: n, After: t})
	case p.take("DATABASE"), p.take("SCHEMA"):
		exists := p.take("IF", "NOT", "EXISTS")
		db := p.name()
		if _, ok := c.h.databases[db]; ok && exists {
			return
		}
		c.h.databases[db] = c.databaseOptions(c.databaseDefault(""))
		c.eff.Class, c.eff.Charset = Definition, db
	case p.is("UNIQUE"), p.is("FULLTEXT"), p.is("SPATIAL", "INDEX"), p.is("SPATIAL", "KEY"), p.is("INDEX"), p.is("VECTOR", "INDEX"):
		c.createIndex()
	default:
		if !objects[strings.ToUpper(p.peek(0).s)] {
			p.refuse("CREATE of something else than is known")
		}
	}
}

func (c *change1) name() Name {
	db, table := c.p.tableName()
	return Name{db, table}
}

// databaseDefault is the character set of tables that name none.
func (c *change1) databaseDefault(db string) collations {
	if d, ok := c.h.databases[db]; ok && db != "" {
		return d
	}
	if info, ok := charset.ByName(c.st.Collation); ok {
		return collations{info.Charset, info.Name}
	}
	return collations{}
}

func (c *change1) databaseOptions(def collations) collations {
	p, cs, coll := c.p, "", ""
	for !p.done() {
		switch {
		case p.take("DEFAULT"):
		case p.take("CHARACTER", "SET"), p.take("CHARSET"):
			p.take("=")
			cs = p.nameOrText()
		case p.take("COLLATE"):
			p.take("=")
			coll = p.nameOrText()
		case p.take("ENCRYPTION"), p.take("COMMENT"):
			p.take("=")
			p.text()
		case p.take("READ", "ONLY"):
			p.take("=")
			p.i++
		case p.take("UPGRADE"):
			return def
		default:
			p.refuse("option of a database")
		}
	}
	cs, coll = p.resolve(cs, coll, def)
	return collations{cs, coll}
}

func (c *change1) createIndex() {
	p := c.p
	unique := p.take("UNIQUE")
	plain := unique || p.is("INDEX")
	if !plain {
		p.i++
	}
	p.one("INDEX", "KEY")
	p.take("IF", "NOT", "EXISTS")
	ix := indexDef{name: p.name(), unique: unique}
	p.indexType()
	if p.take("WAIT") {
		p.int()
	}
	p.take("NOWAIT")
	p.want("ON")
	n := c.name()
	c.eff.Class = Definition
	c.touched = append(c.touched, n)
	ix.parts, ix.expressions = p.parts()
	c.touched = nil
	c.alterWith(n, func(t *Table) []Action {
		if plain {
			t.putIndex(ix, p.d)
		}
		if unique {
			return []Action{{Kind: AddUnique, Index: Index{Name: ix.name, Parts: ix.parts, Expression: len(ix.expressions) > 0}}}
		}
		return []Action{{Kind: OtherChange}}
	})
}

// alterWith changes a table's layout, if it is known, and notes what was done.
func (c *change1) alterWith(n Name, f func(*Table) []Action) {
	ch := Change{Kind: Altered, Table: n, Before: c.h.Get(n.Database, n.Table)}
	if ch.Before == nil {
		ch.Actions = f(&Table{})
	} else {
		t := ch.Before.clone()
		ch.Actions = f(t)
		c.h.put(n, t, nil)
		ch.After = t
	}
	c.eff.Changes = append(c.eff.Changes, ch)
}

// sequence is the layout of the one row that a MariaDB sequence is.
func sequence() *Table {
	t := &Table{Sequence: true}
	for _, c := range []struct{ name, base, native string }{
		{"next_not_cached_value", "bigint", "bigint"},
		{"minimum_value", "bigint", "bigint"},
		{"maximum_value", "bigint", "bigint"},
		{"start_value", "bigint", "bigint"},
		{"increment", "bigint", "bigint"},
		{"cache_size", "bigint", "bigint unsigned"},
		{"cycle_option", "tinyint", "tinyint unsigned"},
		{"cycle_count", "bigint", "bigint"},
	} {
		t.Columns = append(t.Columns, Column{
			Name: c.name, Base: c.base, Native: c.native, Length: -1, Scale: -1, NotNull: true, Unsigned: strings.HasSuffix(c.native, "unsigned"),
		})
	}
	return t
}
