package schema

import "strings"

func (c *change1) alter() {
	p := c.p
	p.prefix()
	switch {
	case p.take("TABLE"):
	case p.take("SEQUENCE"):
		return
	case p.take("DATABASE"), p.take("SCHEMA"):
		db := p.db
		if k := p.peek(0); k.kind == quoted || k.kind == word && !p.is("DEFAULT") && !p.is("CHARACTER") && !p.is("CHARSET") && !p.is("COLLATE") {
			db = p.name()
		}
		c.h.databases[db] = c.databaseOptions(c.databaseDefault(db))
		c.eff.Class, c.eff.Charset = Definition, db
		return
	default:
		if !objects[strings.ToUpper(p.peek(0).s)] {
			p.refuse("ALTER of something else than is known")
		}
		return
	}
	p.take("IF", "EXISTS")
	n := c.name()
	if p.take("WAIT") {
		p.int()
	}
	p.take("NOWAIT")
	c.eff.Class = Definition
	c.touched = append(c.touched, n)
	before := c.h.Get(n.Database, n.Table)
	var t *Table
	if before != nil {
		t = before.clone()
	}
	from := p.peek(0).from
	a := p.alterBody(t)
	c.touched = nil
	ch := Change{Kind: Altered, Table: n, Before: before, After: t, Actions: a.actions, Body: c.st.Text[min(from, len(c.st.Text)):]}
	if t != nil {
		c.h.put(n, t, nil)
	}
	if a.nto == "" || len(a.actions) > 0 {
		c.eff.Changes = append(c.eff.Changes, ch)
	}
	if a.nto != "" {
		c.move(n, Name{a.ndb, a.nto})
	}
}

// move renames a table and notes it.
func (c *change1) move(from, to Name) {
	c.eff.Class = Definition
	table, unknown := c.h.tables[from].get()
	ch := Change{Kind: Renamed, Table: to, Old: from}
	c.h.drop(from)
	if table == nil && unknown == nil {
		c.h.drop(to)
	} else {
		if table != nil {
			ch.Before = table
			ch.After = table.clone()
			// References within the database move along.
			c.h.put(to, ch.After, nil)
		} else {
			c.h.put(to, nil, unknown)
		}
	}
	c.eff.Changes = append(c.eff.Changes, ch)
}

func (c *change1) drop() {
	p := c.p
	temporary := p.take("TEMPORARY")
	switch {
	case p.take("TABLE"), p.take("TABLES"), p.take("SEQUENCE"):
		p.take("IF", "EXISTS")
		for {
			n := c.name()
			if !temporary {
				c.dropped(n)
			}
			if !p.take(",") {
				break
			}
		}
	case p.take("INDEX"), p.take("ONLINE", "INDEX"), p.take("OFFLINE", "INDEX"):
		p.take("IF", "EXISTS")
		index := p.name()
		p.want("ON")
		n := c.name()
		c.eff.Class = Definition
		c.alterWith(n, func(t *Table) []Action {
			a := &alteration{p: p, t: t, partial: t.Name == ""}
			if strings.EqualFold(index, "PRIMARY") {
				t.Primary = nil
				return []Action{{Kind: DropPrimary}}
			}
			a.dropIndex(index)
			return a.actions
		})
	case p.take("DATABASE"), p.take("SCHEMA"):
		p.take("IF", "EXISTS")
		db := p.name()
		for _, n := range c.h.in(db) {
			c.dropped(n)
		}
		delete(c.h.databases, db)
		c.eff.Class = Definition
	default:
		if p.prefix(); !objects[strings.ToUpper(p.peek(0).s)] {
			p.refuse("DROP of something else than is known")
		}
	}
}

func (c *change1) dropped(n Name) {
	c.eff.Class = Definition
	before := c.h.Get(n.Database, n.Table)
	c.h.drop(n)
	c.eff.Changes = append(c.eff.Changes, Change{Kind: Dropped, Table: n, Before: before})
}

func (c *change1) rename() {
	p := c.p
	if p.take("USER") {
		return
	}
	if _, ok := p.one("TABLE", "TABLES"); !ok {
		p.refuse("RENAME of something else than a table")
	}
	p.take("IF", "EXISTS")
	for {
		from := c.name()
		if p.take("WAIT") {
			p.int()
		}
		p.take("NOWAIT")
		p.want("TO")
		c.move(from, c.name())
		if !p.take(",") {
			break
		}
	}
}
