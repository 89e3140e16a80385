package reader

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/datalink-go/datalink/plugins/mysql/internal/schema"
	"github.com/datalink-go/datalink/sdk/batch"
)

// onlineKey begins the keys of state items that hold what is known of an online
// schema change.
const onlineKey = "online:"

// online is an online schema change of a table: a copy of it gets the new layout
// and then takes its place. What was seen of it is kept with its places, so that
// reading can begin anywhere.
type online struct {
	Copy   schema.Name
	Steps  []onlineStep // changes of the copy
	Away   []awayStep   // the table lost its name: renamed, or dropped for the copy to follow
	Number uint64       // of the state item
}

type onlineStep struct {
	At      schema.Place
	Made    bool            // the copy was created here: what was before is of another run
	Done    bool            `json:",omitempty"` // it took the table's place
	Actions []schema.Action `json:",omitempty"`
	Body    string          `json:",omitempty"`
}

type awayStep struct {
	At   schema.Place
	Name schema.Name   // what it is called; zero = dropped
	Back bool          `json:",omitempty"`
	Was  *schema.Table `json:",omitempty"`
}

// run returns the steps of the present run.
func (o *online) run() []onlineStep {
	for i := len(o.Steps) - 1; i >= 0; i-- {
		if o.Steps[i].Done {
			return nil
		}
		if o.Steps[i].Made {
			return o.Steps[i:]
		}
	}
	return nil
}

// away returns where the table is while it has lost its name.
func (o *online) away() *awayStep {
	if n := len(o.Away); n > 0 && !o.Away[n-1].Back {
		return &o.Away[n-1]
	}
	return nil
}

// keptSteps bounds what is kept of each list.
const keptSteps = 64

// wants reports whether a table is read: it is among tables, and is none of those
// that a tool for online schema changes makes beside one that is.
func (r *Reader) wants(db, table string) bool {
	return r.filter.wants(db, table) && !bookkeeping[table] && r.ghost(schema.Name{Database: db, Table: table}) == schema.NoRole
}

// bookkeeping are the tables in which DataLink's writers keep their progress.
// They belong to the server that they are on.
var bookkeeping = map[string]bool{"datalink_progress": true, "datalink_state": true, "datalink_dead_letters": true, "datalink_ddl": true}

// ghost says which part a table has in the online schema change of a table that is
// read and exists. One that tables names in full is a table like any other.
func (r *Reader) ghost(n schema.Name) schema.Role {
	base, role := schema.Online(n.Table)
	if role == schema.NoRole || r.cfg.OnlineChanges == "off" {
		return schema.NoRole
	}
	b := schema.Name{Database: n.Database, Table: base}
	if !r.filter.wants(b.Database, b.Table) || r.filter.names(n.Database, n.Table) {
		return schema.NoRole
	}
	if r.online[b] == nil && r.hist.Get(b.Database, b.Table) == nil && r.hist.Unknown(b.Database, b.Table) == nil && r.tables.current[b] == nil {
		return schema.NoRole
	}
	return role
}

// names reports whether a pattern without wildcards includes the table.
func (f filter) names(db, table string) bool {
	return slices.ContainsFunc(f, func(p pattern) bool { return !p.exclude && p.database == db && p.table == table })
}

func baseOf(n schema.Name) schema.Name {
	base, _ := schema.Online(n.Table)
	return schema.Name{Database: n.Database, Table: base}
}

// meaning turns what a statement did into what it means for targets: the tables of
// online schema changes are left out, and where a copy takes a table's place the
// table was altered. It returns the tables whose online schema change went on.
func (r *Reader) meaning(changes []schema.Change, at schema.Place) (out []schema.Change, touched []schema.Name) {
	of := func(b schema.Name) *online {
		o := r.online[b]
		if o == nil {
			o = &online{}
			r.online[b] = o
		}
		if !slices.Contains(touched, b) {
			touched = append(touched, b)
		}
		return o
	}
	step := func(b schema.Name, s onlineStep) {
		o := of(b)
		s.At = at
		if o.Steps = append(o.Steps, s); len(o.Steps) > keptSteps {
			o.Steps = slices.Clone(o.Steps[1:])
		}
	}
	moved := func(b schema.Name, s awayStep) {
		o := of(b)
		s.At = at
		if o.Away = append(o.Away, s); len(o.Away) > keptSteps {
			o.Away = slices.Clone(o.Away[1:])
		}
	}
	// gone tells targets of a table that lost its name and gets another content.
	gone := func(b schema.Name) {
		if o := r.online[b]; o != nil && o.away() != nil {
			out = append(out, schema.Change{Kind: schema.Dropped, Table: b, Before: o.away().Was})
			moved(b, awayStep{Back: true})
		}
	}
	for i := range changes {
		c := changes[i]
		role := r.ghost(c.Table)
		base := baseOf(c.Table)
		switch {
		case c.Kind == schema.Renamed && r.ghost(c.Old) != schema.NoRole && c.Table == baseOf(c.Old):
			o := of(c.Table)
			away := o.away()
			switch {
			case away != nil && away.Name == c.Old: // back to what it was
				moved(c.Table, awayStep{Back: true})
			case away != nil && r.ghost(c.Old) == schema.Copy:
				out = append(out, r.cutOver(o, away.Was, c))
				step(c.Table, onlineStep{Done: true})
				moved(c.Table, awayStep{Back: true})
			default:
				out = append(out, c) // rows that were not read take the table's place
			}
		case c.Kind == schema.Renamed && r.ghost(c.Old) != schema.NoRole && role != schema.NoRole:
			// One name of the tool for another.
		case c.Kind == schema.Renamed && role == schema.Old && c.Old == base:
			moved(base, awayStep{Name: c.Table, Was: c.Before})
		case c.Kind == schema.Renamed && role == schema.NoRole:
			gone(c.Table)
			out = append(out, c)
		case c.Kind == schema.Created && role == schema.Copy:
			of(base).Copy = c.Table
			step(base, onlineStep{Made: true})
		case c.Kind == schema.Altered && role == schema.Copy:
			step(base, onlineStep{Actions: c.Actions, Body: c.Body})
		case c.Kind == schema.Dropped && role != schema.NoRole:
			if o := r.online[base]; o != nil && o.away() != nil && (o.away().Name == c.Table || o.away().Name == schema.Name{} && o.Copy == c.Table) {
				gone(base)
			}
			if role == schema.Copy {
				step(base, onlineStep{Done: true})
			}
		case role != schema.NoRole:
		case c.Kind == schema.Dropped && r.online[c.Table] != nil && len(r.online[c.Table].run()) > 0:
			// pt-online-schema-change may drop the table just before the copy takes its name.
			moved(c.Table, awayStep{Was: c.Before})
		case c.Kind == schema.Created:
			gone(c.Table)
			out = append(out, c)
		default:
			c.Body = "" // the statement is the source's own
			out = append(out, c)
		}
	}
	return out, touched
}

// cutOver is the alteration that a rename of the copy amounts to.
func (r *Reader) cutOver(o *online, before *schema.Table, c schema.Change) schema.Change {
	ch := schema.Change{Kind: schema.Altered, Table: c.Table, Before: before, After: c.After}
	var bodies []string
	for _, s := range o.run() {
		ch.Actions = append(ch.Actions, s.Actions...)
		if s.Body != "" {
			bodies = append(bodies, s.Body)
		}
	}
	switch {
	case len(o.run()) > 0: // its making was seen, and what was done to it
	case before != nil && c.After != nil:
		ch.Actions, ch.Err = schema.Steps(before, c.After)
	default:
		ch.Err = errors.New("the copy that took the table's place was changed before reading began, and the layouts are not known")
	}
	ch.Body = strings.Join(bodies, ", ")
	if ch.Err != nil {
		ch.After = nil
	}
	r.log.Info("an online schema change took effect", "table", c.Table.String(), "copy", c.Old.String(), "statement", shorten(ch.Body))
	return ch
}

// rememberOnline puts what is known of online schema changes into the stream.
func (r *Reader) rememberOnline(out *batch.Builder, touched []schema.Name) error {
	for _, b := range touched {
		o := r.online[b]
		o.Number++
		value, err := json.Marshal(o)
		if err != nil {
			return err
		}
		r.begin1(out)
		if err := out.StateItem(&batch.StateItem{Key: onlineKey + b.String(), Version: o.Number, Value: value}); err != nil {
			return err
		}
	}
	return nil
}

// restoreOnline puts back what rememberOnline gave, up to where reading begins.
func (r *Reader) restoreOnline(name string, value []byte, covered schema.Covered) error {
	var o online
	if err := json.Unmarshal(value, &o); err != nil {
		return err
	}
	o.Steps = slices.DeleteFunc(o.Steps, func(s onlineStep) bool { return !covered(s.At) })
	o.Away = slices.DeleteFunc(o.Away, func(s awayStep) bool { return !covered(s.At) })
	db, table, _ := strings.Cut(name, ".")
	r.online[schema.Name{Database: db, Table: table}] = &o
	return nil
}
