package schema

import (
	"errors"
	"fmt"
	"strings"

	"github.com/datalink-go/datalink/plugins/mysql/internal/charset"
)

// Statement is a statement of the log and what its meaning depends on.
type Statement struct {
	Text      string // UTF-8
	Database  string // default
	Dialect   Dialect
	Collation string // of the server; the default of databases that no statement made
}

// Class is what a statement does.
type Class uint8

// The classes. Rows: it changes rows, and the log does not list which.
const (
	Nothing Class = iota // no table is touched
	Definition
	Rows
	TruncateTable
	NotUnderstood
)

// Change is what a statement did to one table.
type Change struct {
	Kind    ChangeKind
	Table   Name
	Old     Name // before a rename
	Before  *Table
	After   *Table // nil: dropped, or not known
	Actions []Action
	Err     error // why After is not known
}

// ChangeKind is what happened to a table.
type ChangeKind uint8

// The kinds of Change.
const (
	Created ChangeKind = iota
	Altered
	Dropped
	Renamed
)

// Effect is what a statement does.
type Effect struct {
	Class   Class
	Changes []Change
	Table   Name // of TruncateTable and of some of Rows
	Verb    string
	Charset string // database whose default character set changed
	Err     error  // NotUnderstood
}

// Apply reads a statement and changes the history accordingly. Tables that a
// statement changes in a way that is not understood become unknown.
func (h *History) Apply(st Statement) (eff Effect) {
	toks, ok := tokenize(st.Text, st.Dialect)
	p := &parser{sql: st.Text, t: toks, d: st.Dialect, db: st.Database}
	if !ok {
		p.t = nil
		return Effect{Class: NotUnderstood, Err: fmt.Errorf("%w: a comment or literal is not closed", ErrRefused)}
	}
	c := &change1{h: h, p: p, st: st, eff: &eff}
	if err := p.catch(c.statement); err != nil && eff.Err == nil {
		c.failed(err)
	}
	return eff
}

// catch runs f and returns what the parser refused in it.
func (p *parser) catch(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			ref, ok := r.(refusal)
			if !ok {
				panic(r)
			}
			err = ref.error
		}
	}()
	f()
	return nil
}

// change1 is the working off of one statement.
type change1 struct {
	h       *History
	p       *parser
	st      Statement
	eff     *Effect
	touched []Name // tables that become unknown when the rest is not understood
}

func (c *change1) failed(err error) {
	if len(c.touched) == 0 {
		c.eff.Class, c.eff.Err = NotUnderstood, err
		return
	}
	c.eff.Class = Definition
	for _, n := range c.touched {
		ch := Change{Kind: Altered, Table: n, Before: c.h.Get(n.Database, n.Table), Err: err}
		if ch.Before == nil && c.h.tables[n] == nil {
			ch.Kind = Created
		}
		c.h.put(n, nil, err)
		c.eff.Changes = append(c.eff.Changes, ch)
	}
}

// verbs that touch no table's rows or layout.
var harmless = map[string]bool{
	"GRANT": true, "REVOKE": true, "SET": true, "FLUSH": true, "ANALYZE": true, "OPTIMIZE": true, "REPAIR": true, "CHECK": true,
	"INSTALL": true, "UNINSTALL": true, "RESET": true, "CHANGE": true, "START": true, "STOP": true, "USE": true, "SHOW": true,
	"LOCK": true, "UNLOCK": true, "BINLOG": true, "KILL": true, "CACHE": true, "RESTART": true, "SHUTDOWN": true, "PURGE": true,
	"BEGIN": true, "COMMIT": true, "ROLLBACK": true, "SAVEPOINT": true, "RELEASE": true, "XA": true, "SIGNAL": true, "HANDLER": true,
	"PREPARE": true, "DEALLOCATE": true, "EXPLAIN": true, "DESCRIBE": true, "CLONE": true, "BACKUP": true,
}

// objects that are no tables.
var objects = map[string]bool{
	"VIEW": true, "TRIGGER": true, "PROCEDURE": true, "FUNCTION": true, "EVENT": true, "USER": true, "ROLE": true, "SERVER": true,
	"TABLESPACE": true, "LOGFILE": true, "UNDO": true, "RESOURCE": true, "SPATIAL": true, "AGGREGATE": true, "PACKAGE": true,
	"INSTANCE": true, "LIBRARY": true, "JSON": true, "MATERIALIZED": true, "PREPARE": true, "CATALOG": true,
}

func (c *change1) statement() {
	p := c.p
	if p.done() {
		return
	}
	if p.take("SET", "STATEMENT") {
		for !p.done() && !p.take("FOR") {
			p.i++
		}
	}
	for p.is("(") {
		p.i++
	}
	verb := strings.ToUpper(p.peek(0).s)
	c.eff.Verb = verb
	switch verb {
	case "CREATE":
		p.i++
		c.create()
	case "ALTER":
		p.i++
		c.alter()
	case "DROP":
		p.i++
		c.drop()
	case "RENAME":
		p.i++
		c.rename()
	case "TRUNCATE":
		p.i++
		p.take("TABLE")
		c.eff.Class = TruncateTable
		c.eff.Table.Database, c.eff.Table.Table = p.tableName()
	case "DELETE":
		c.eff.Class = Rows
		// The server writes this for a MEMORY table that lost its rows in a restart.
		if p.i++; p.take("FROM") {
			c.eff.Table.Database, c.eff.Table.Table = p.tableName()
			if p.done() {
				c.eff.Class = TruncateTable
			}
		}
	case "INSERT", "UPDATE", "REPLACE", "LOAD", "WITH", "CALL", "DO", "SELECT", "VALUES", "IMPORT", "EXECUTE", "MERGE":
		c.eff.Class = Rows
	default:
		if !harmless[verb] {
			p.refuse("verb %q", verb)
		}
	}
}

// prefix passes over what may stand between CREATE or ALTER and what is made.
func (p *parser) prefix() {
	for {
		switch {
		case p.take("OR", "REPLACE"), p.take("ONLINE"), p.take("OFFLINE"), p.take("IGNORE"):
		case p.take("DEFINER"):
			p.want("=")
			p.i++ // user, which the tokenizer may have cut at @
			if p.is("(") {
				p.parens()
			}
			for p.is("@") || p.peek(0).kind == word && strings.HasPrefix(p.peek(0).s, "@") {
				p.i++
				if k := p.peek(0).kind; (k == quoted || k == text) && p.peek(-1).s == "@" {
					p.i++
				}
			}
		case p.take("ALGORITHM"):
			p.want("=")
			p.i++
		case p.take("SQL", "SECURITY"):
			p.i++
		default:
			return
		}
	}
}

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
	a := p.alterBody(t)
	c.touched = nil
	ch := Change{Kind: Altered, Table: n, Before: before, After: t, Actions: a.actions}
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

// IsRefused reports whether err says that a statement was not understood.
func IsRefused(err error) bool { return errors.Is(err, ErrRefused) }
