package schema

import (
	"slices"
	"strings"
)

// Action is one step of a change of a table, for those who pass it on.
type Action struct {
	Kind    ActionKind
	Column  Column
	OldName string // column or table before a rename
	After   string
	First   bool
	Index   Index
}

// ActionKind is what an Action does.
type ActionKind uint8

// The kinds. RemoveRows is a change of partitions that takes rows away which the
// log does not list.
const (
	AddColumn ActionKind = iota
	DropColumn
	RenameColumn
	ChangeColumn
	AddUnique
	DropUnique
	AddPrimary
	DropPrimary
	RenameTable
	RemoveRows
	OtherChange
)

// alteration gathers the steps of an ALTER TABLE. The server takes columns away
// and changes them in place first, and then puts new and moved ones where they
// belong; names in AFTER are the new ones (sql_table.cc, prepare_fields_and_keys).
type alteration struct {
	p        *parser
	t        *Table
	partial  bool // the table's layout is not known: gather actions only
	actions  []Action
	drops    []string
	changes  []change
	adds     []change
	later    []func()
	ndb, nto string // RENAME TO
	// convertTo is CONVERT TO CHARACTER SET: every text column changes.
	convertTo collations
}

type change struct {
	old string
	c   Column
	x   extras
}

// alterBody reads the actions of ALTER TABLE. With a nil table only the actions
// are gathered.
func (p *parser) alterBody(t *Table) *alteration {
	a := &alteration{p: p, t: t}
	if t == nil {
		a.partial, a.t = true, &Table{}
	}
	p.coll = collations{a.t.Charset, a.t.Collation}
	for !p.done() {
		a.action()
		if p.done() {
			break
		}
		if p.is("PARTITION", "BY") || p.is("REMOVE", "PARTITIONING") {
			continue
		}
		if !p.take(",") && !tableOption(p) {
			p.refuse("expected , between changes")
		}
	}
	if !a.partial {
		a.apply()
	}
	return a
}

// tableOption reports whether a table option may follow without a comma.
func tableOption(p *parser) bool {
	t := p.peek(0)
	return t.kind == word
}

func (a *alteration) did(k ActionKind) *Action {
	a.actions = append(a.actions, Action{Kind: k})
	return &a.actions[len(a.actions)-1]
}

func (a *alteration) action() {
	p := a.p
	switch {
	case p.take("ADD"):
		a.add()
	case p.take("DROP"):
		a.drop()
	case p.take("MODIFY"):
		p.take("COLUMN")
		p.take("IF", "EXISTS")
		name := p.name()
		a.change(name, name)
	case p.take("CHANGE"):
		p.take("COLUMN")
		p.take("IF", "EXISTS")
		old := p.name()
		a.change(old, p.name())
	case p.take("RENAME", "COLUMN"):
		p.take("IF", "EXISTS")
		old := p.name()
		p.want("TO")
		a.rename(old, p.name())
	case p.take("RENAME", "INDEX"), p.take("RENAME", "KEY"):
		p.take("IF", "EXISTS")
		old := p.name()
		p.want("TO")
		name := p.name()
		a.later = append(a.later, func() {
			if i := a.t.unique(old); i >= 0 {
				a.t.Uniques[i].Name = name
			}
		})
	case p.take("RENAME"):
		if _, ok := p.one("TO", "AS", "="); !ok && p.done() {
			p.refuse("expected a name")
		}
		a.ndb, a.nto = p.tableName()
	case p.take("ALTER"):
		a.alterColumn()
	case p.take("CONVERT", "TO"):
		a.convert()
	case p.take("CONVERT", "PARTITION"), p.take("CONVERT", "TABLE"):
		a.did(RemoveRows)
		a.skip()
	case p.take("TRUNCATE", "PARTITION"), p.take("EXCHANGE", "PARTITION"), p.take("DISCARD", "PARTITION"), p.take("IMPORT", "PARTITION"),
		p.take("DISCARD", "TABLESPACE"), p.take("IMPORT", "TABLESPACE"):
		a.did(RemoveRows)
		a.skip()
	case p.take("PARTITION", "BY"):
		a.skip()
	case p.is("ORDER", "BY"):
		for !p.done() { // its columns are separated by commas too
			p.i++
		}
	case p.take("COALESCE", "PARTITION"), p.take("REORGANIZE", "PARTITION"), p.take("ANALYZE", "PARTITION"), p.take("CHECK", "PARTITION"),
		p.take("OPTIMIZE", "PARTITION"), p.take("REBUILD", "PARTITION"), p.take("REPAIR", "PARTITION"), p.take("REMOVE", "PARTITIONING"):
		for !p.done() { // names of partitions are separated by commas
			if p.is("(") {
				p.parens()
			} else {
				p.i++
			}
		}
	case p.take("ENABLE", "KEYS"), p.take("DISABLE", "KEYS"), p.take("FORCE"), p.take("WITH", "VALIDATION"), p.take("WITHOUT", "VALIDATION"),
		p.take("SECONDARY_LOAD"), p.take("SECONDARY_UNLOAD"), p.take("NOWAIT"):
	case p.take("WAIT"):
		p.int()
	case p.take("LOCK"), p.take("ALGORITHM"):
		p.take("=")
		p.name()
	default:
		before := p.i
		if a.partial {
			p.tableOptions(&Table{})
		} else {
			p.tableOptions(a.t)
			p.coll = collations{a.t.Charset, a.t.Collation}
		}
		if p.i == before {
			p.refuse("change of a table")
		}
	}
}

func (a *alteration) skip() {
	for p := a.p; !p.done() && !p.is(","); {
		if p.is("(") {
			p.parens()
		} else {
			p.i++
		}
	}
}

func (a *alteration) add() {
	p := a.p
	switch {
	case p.take("PARTITION"):
		for !p.done() {
			p.i++
		}
		return
	case p.take("SYSTEM", "VERSIONING"):
		a.did(OtherChange)
		a.later = append(a.later, a.t.addBounds)
		return
	}
	// Keys are put in last, on the columns as they are then.
	at := p.i
	scratch := &Table{Database: a.t.Database, Name: a.t.Name}
	if p.constraint(scratch) {
		next := p.i
		a.later = append(a.later, func() {
			p.i = at
			p.constraint(a.t)
			p.i = next
		})
		switch {
		case len(scratch.Primary) > 0:
			a.did(AddPrimary).Index = Index{Name: "PRIMARY", Parts: scratch.Primary}
		case len(scratch.Uniques) > 0:
			a.did(AddUnique).Index = scratch.Uniques[0]
		default:
			a.did(OtherChange)
		}
		return
	}
	p.take("COLUMN")
	ifNot := p.take("IF", "NOT", "EXISTS")
	one := func() {
		c, x := p.column(p.name())
		if ifNot && a.t.Column(c.Name) >= 0 {
			return
		}
		a.adds = append(a.adds, change{c: c, x: x})
		act := a.did(AddColumn)
		act.Column, act.After, act.First = c, x.after, x.first
	}
	if !p.take("(") {
		one()
		return
	}
	for {
		at := p.i
		if p.constraint(scratch) {
			next := p.i
			a.later = append(a.later, func() {
				p.i = at
				p.constraint(a.t)
				p.i = next
			})
			a.did(OtherChange)
		} else {
			one()
		}
		if !p.take(",") {
			break
		}
	}
	p.want(")")
}

func (a *alteration) drop() {
	p := a.p
	switch {
	case p.take("PRIMARY", "KEY"):
		a.did(DropPrimary)
		a.t.Primary = nil
	case p.take("FOREIGN", "KEY"):
		p.take("IF", "EXISTS")
		a.t.dropForeignKey(p.name())
		a.did(OtherChange)
	case p.take("INDEX"), p.take("KEY"):
		p.take("IF", "EXISTS")
		a.dropIndex(p.name())
	case p.take("CHECK"):
		p.name()
		a.did(OtherChange)
	case p.take("CONSTRAINT"):
		p.take("IF", "EXISTS")
		name := p.name()
		if strings.EqualFold(name, "PRIMARY") {
			a.did(DropPrimary)
			a.t.Primary = nil
			return
		}
		a.t.dropForeignKey(name)
		a.dropIndex(name)
	case p.take("PARTITION"):
		a.did(RemoveRows)
		for !p.done() {
			p.i++
		}
	case p.take("SYSTEM", "VERSIONING"):
		a.did(OtherChange)
		a.t.dropBounds()
	case p.take("PERIOD", "FOR"):
		p.name()
	default:
		p.take("COLUMN")
		ifExists := p.take("IF", "EXISTS")
		name := p.name()
		p.one("RESTRICT", "CASCADE")
		if !a.partial && a.t.Column(name) < 0 {
			if ifExists {
				return
			}
			p.refuse("column %s is not known", name)
		}
		a.drops = append(a.drops, name)
		a.did(DropColumn).OldName = name
	}
}

func (a *alteration) dropIndex(name string) {
	for i, n := 0, len(a.t.Columns); i < n; {
		c := &a.t.Columns[i]
		if c.Functional && strings.HasPrefix(strings.ToLower(c.Name), "!hidden!"+strings.ToLower(name)+"!") {
			a.t.Columns = slices.Delete(a.t.Columns, i, i+1)
			n--
			continue
		}
		i++
	}
	if i := a.t.unique(name); i >= 0 {
		a.t.Uniques = slices.Delete(a.t.Uniques, i, i+1)
		a.did(DropUnique).Index = Index{Name: name}
		return
	}
	act := a.did(DropUnique)
	if !a.partial {
		act.Kind = OtherChange
	}
	act.Index = Index{Name: name}
}

func (a *alteration) change(old, name string) {
	c, x := a.p.column(name)
	a.changes = append(a.changes, change{old: old, c: c, x: x})
	act := a.did(ChangeColumn)
	act.Column, act.OldName, act.After, act.First = c, old, x.after, x.first
}

func (a *alteration) rename(old, name string) {
	act := a.did(RenameColumn)
	act.OldName, act.Column = old, Column{Name: name}
	if a.partial {
		return
	}
	i := a.t.Column(old)
	if i < 0 {
		a.p.refuse("column %s is not known", old)
	}
	c := a.t.Columns[i]
	c.Name = name
	a.changes = append(a.changes, change{old: old, c: c})
	act.Column = c
}

func (a *alteration) alterColumn() {
	p := a.p
	switch {
	case p.take("INDEX"), p.take("KEY"):
		p.take("IF", "EXISTS")
		p.name()
		p.one("VISIBLE", "INVISIBLE", "IGNORED")
		p.take("NOT", "IGNORED")
	case p.take("CHECK"), p.take("CONSTRAINT"):
		p.name()
		p.take("NOT")
		p.take("ENFORCED")
	default:
		p.take("COLUMN")
		p.take("IF", "EXISTS")
		name := p.name()
		i := a.t.Column(name)
		set := func(f func(*Column)) {
			if i >= 0 {
				f(&a.t.Columns[i])
			}
		}
		switch {
		case p.take("SET", "DEFAULT"):
			d := p.expression()
			set(func(c *Column) { c.Default = d })
		case p.take("DROP", "DEFAULT"):
			set(func(c *Column) { c.Default = "" })
		case p.take("SET", "VISIBLE"):
			set(func(c *Column) { c.Hidden = false })
		case p.take("SET", "INVISIBLE"):
			set(func(c *Column) { c.Hidden = true })
		default:
			p.refuse("change of column %s", name)
		}
	}
	a.did(OtherChange)
}

func (a *alteration) convert() {
	p := a.p
	if !p.take("CHARACTER", "SET") && !p.take("CHARSET") {
		p.refuse("expected CHARACTER SET")
	}
	cs, coll := p.nameOrText(), ""
	if p.take("COLLATE") {
		coll = p.nameOrText()
	}
	cs, coll = p.resolve(cs, coll, p.coll)
	a.t.Charset, a.t.Collation = cs, coll
	p.coll = collations{cs, coll}
	a.convertTo = collations{cs, coll}
	a.did(OtherChange)
}

// converted gives all text columns, new and changed ones too, another character
// set; those are as large as they were declared.
func (t *Table) converted(to collations, declared []change) {
	for i := range t.Columns {
		c := &t.Columns[i]
		if !isText(c.Base) || c.Charset == "binary" {
			continue
		}
		// A text that would no longer hold as many characters becomes the next larger.
		is := func(d change) bool { return strings.EqualFold(d.c.Name, c.Name) }
		if grown := grow(c, to.charset); grown != "" && !slices.ContainsFunc(declared, is) {
			c.Base, c.Native = grown, grown
		}
		c.Charset, c.Collation = to.charset, to.collation
	}
}

// apply does what the server does with the gathered steps.
func (a *alteration) apply() {
	t := a.t
	for _, name := range a.drops {
		i := t.Column(name)
		if i < 0 {
			a.p.refuse("column %s is not known", name)
		}
		t.Columns = slices.Delete(t.Columns, i, i+1)
		// A column of that name that is added takes the place in keys.
		if !slices.ContainsFunc(a.adds, func(c change) bool { return strings.EqualFold(c.c.Name, name) }) {
			t.dropFromKeys(name)
		}
	}
	var moved []change
	renames := map[string]string{}
	before := slices.Clone(t.Columns)
	at := func(name string) int {
		return slices.IndexFunc(before, func(c Column) bool { return strings.EqualFold(c.Name, name) })
	}
	gone := map[int]bool{}
	for _, ch := range a.changes {
		i := at(ch.old)
		if i < 0 {
			a.p.refuse("column %s is not known", ch.old)
		}
		if ch.old != ch.c.Name {
			renames[strings.ToLower(ch.old)] = ch.c.Name
		}
		if ch.x.placed {
			gone[i] = true
			moved = append(moved, ch)
		} else {
			t.Columns[i] = ch.c
		}
	}
	kept := t.Columns[:0:0]
	for i := range t.Columns {
		if !gone[i] {
			kept = append(kept, t.Columns[i])
		}
	}
	t.Columns = kept
	t.renameInKeys(renames)
	for _, ch := range a.inOrder(moved) {
		if t.Column(ch.c.Name) >= 0 {
			a.p.refuse("column %s is there already", ch.c.Name)
		}
		if !t.add(ch.c, ch.x) {
			a.p.refuse("column %s is not known", ch.x.after)
		}
	}
	for _, ch := range a.changes {
		t.finishColumn(ch.c.Name, ch.x)
	}
	for _, ch := range a.adds {
		t.finishColumn(ch.c.Name, ch.x)
	}
	if a.convertTo.charset != "" {
		t.converted(a.convertTo, slices.Concat(a.adds, a.changes))
	}
	for _, f := range a.later {
		f()
	}
	t.setPrimary(t.Primary) // its columns stay NOT NULL
	if t.hasDuplicates() {
		a.p.refuse("two columns of one name")
	}
}

// inOrder gives moved and added columns in the order of the statement.
func (a *alteration) inOrder(moved []change) []change {
	var out []change
	m, n := 0, 0
	for _, act := range a.actions {
		switch {
		case act.Kind == ChangeColumn && m < len(moved) && strings.EqualFold(moved[m].c.Name, act.Column.Name) && (act.First || act.After != ""):
			out = append(out, moved[m])
			m++
		case act.Kind == AddColumn && n < len(a.adds):
			out = append(out, a.adds[n])
			n++
		}
	}
	return out
}
