package schema

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrRefused is wrapped when a statement is not understood.
var ErrRefused = errors.New("statement is not understood")

// parser walks the tokens of a statement.
type parser struct {
	sql  string
	t    []token
	i    int
	d    Dialect
	db   string // default database
	coll collations
}

// refusal is thrown by the parser and caught where it is called.
type refusal struct{ error }

func (p *parser) refuse(msg string, args ...any) {
	at := len(p.sql)
	if p.i < len(p.t) {
		at = p.t[p.i].from
	}
	near := p.sql[at:min(len(p.sql), at+30)]
	panic(refusal{fmt.Errorf("%w: %s near %q", ErrRefused, fmt.Sprintf(msg, args...), near)})
}

func (p *parser) peek(n int) token {
	if p.i+n < 0 {
		return token{kind: end}
	}
	if p.i+n < len(p.t) {
		return p.t[p.i+n]
	}
	return token{kind: end}
}

func (p *parser) done() bool { return p.i >= len(p.t) }

// is reports whether the next tokens are these words or signs.
func (p *parser) is(words ...string) bool {
	for n, w := range words {
		t := p.peek(n)
		switch t.kind {
		case word:
			if !strings.EqualFold(t.s, w) {
				return false
			}
		case punct:
			if t.s != w {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// take passes over the words if they are next.
func (p *parser) take(words ...string) bool {
	if p.is(words...) {
		p.i += len(words)
		return true
	}
	return false
}

// one takes one of the words and returns it.
func (p *parser) one(words ...string) (string, bool) {
	for _, w := range words {
		if p.take(w) {
			return w, true
		}
	}
	return "", false
}

func (p *parser) want(words ...string) {
	if !p.take(words...) {
		p.refuse("expected %s", strings.Join(words, " "))
	}
}

// name reads an identifier.
func (p *parser) name() string {
	t := p.peek(0)
	if t.kind != word && t.kind != quoted {
		p.refuse("expected a name")
	}
	p.i++
	return t.s
}

// tableName reads [database.]table.
func (p *parser) tableName() (db, table string) {
	if p.is(".") { // ODBC form .table
		p.i++
	}
	table = p.name()
	if p.take(".") {
		return table, p.name()
	}
	return p.db, table
}

func (p *parser) text() string {
	t := p.peek(0)
	if t.kind != text {
		p.refuse("expected a string")
	}
	p.i++
	return t.s
}

func (p *parser) int() int {
	t := p.peek(0)
	n, err := strconv.Atoi(t.s)
	if t.kind != number || err != nil || n < 0 {
		p.refuse("expected a number")
	}
	p.i++
	return n
}

// parens passes over a group in parentheses and returns its text with them.
func (p *parser) parens() string {
	if !p.is("(") {
		p.refuse("expected (")
	}
	from, depth := p.peek(0).from, 0
	for !p.done() {
		t := p.peek(0)
		p.i++
		if t.kind == punct {
			switch t.s {
			case "(":
				depth++
			case ")":
				if depth--; depth == 0 {
					return p.sql[from:t.to]
				}
			}
		}
	}
	p.refuse("parenthesis is not closed")
	return ""
}

// names reads (a, b, c).
func (p *parser) names() []string {
	p.want("(")
	var out []string
	for {
		out = append(out, p.name())
		if !p.take(",") {
			break
		}
	}
	p.want(")")
	return out
}
