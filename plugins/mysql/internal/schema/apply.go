package schema

import (
	"fmt"
	"strings"
)

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
		c.eff.Class, c.eff.Tables = Rows, c.rowTables(verb)
		// The server writes this for a MEMORY table that lost its rows in a restart.
		if p.i++; p.take("FROM") {
			c.eff.Table.Database, c.eff.Table.Table = p.tableName()
			if p.done() {
				c.eff.Class = TruncateTable
			}
		}
	case "INSERT", "UPDATE", "REPLACE", "LOAD", "WITH", "CALL", "DO", "SELECT", "VALUES", "IMPORT", "EXECUTE", "MERGE":
		c.eff.Class, c.eff.Tables = Rows, c.rowTables(verb)
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
