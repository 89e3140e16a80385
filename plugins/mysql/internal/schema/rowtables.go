package schema

// rowTables names the tables whose rows a statement changes, or may: with several
// tables in it all of them count. Nil: it cannot be told.
func (c *change1) rowTables(verb string) (out []Name) {
	p := c.p
	start := p.i
	defer func() { p.i = start }()
	err := p.catch(func() {
		p.i++ // the verb
		switch verb {
		case "INSERT", "REPLACE":
			for {
				if _, ok := p.one("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE"); !ok {
					break
				}
			}
			p.take("INTO")
			out = append(out, c.name())
		case "LOAD":
			for !p.done() && !p.is("INTO", "TABLE") {
				p.i++
			}
			p.want("INTO", "TABLE")
			out = append(out, c.name())
		case "UPDATE":
			p.modifiers()
			out = c.references("SET")
		case "DELETE":
			p.modifiers()
			if p.take("FROM") {
				out = c.references("WHERE", "ORDER", "LIMIT", "USING", "RETURNING")
				if p.take("USING") {
					out = append(out, c.references("WHERE")...)
				}
				return
			}
			for !p.done() && !p.is("FROM") {
				p.i++ // aliases of what follows
			}
			p.want("FROM")
			out = c.references("WHERE")
		default:
			p.refuse("tables of %s", verb)
		}
	})
	if err != nil {
		return nil
	}
	return out
}

func (p *parser) modifiers() {
	for {
		if _, ok := p.one("LOW_PRIORITY", "QUICK", "IGNORE"); !ok {
			return
		}
	}
}

// references reads the tables of a list or join up to one of the words.
func (c *change1) references(until ...string) (out []Name) {
	p := c.p
	stop := func() bool {
		for _, w := range until {
			if p.is(w) {
				return true
			}
		}
		return p.done()
	}
	for {
		if p.is("(") {
			p.refuse("a query among the tables")
		}
		out = append(out, c.name())
		for !stop() && !p.is(",") && !p.is("JOIN") && !p.is("STRAIGHT_JOIN") {
			if p.is("(") {
				p.parens() // of ON or USING
			} else {
				p.i++
			}
		}
		if stop() {
			return out
		}
		p.i++
	}
}
