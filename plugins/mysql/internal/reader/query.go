package reader

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/datalink-go/datalink/plugins/internal/charset"
	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/schema"
	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// query works off a statement.
func (r *Reader) query(out *batch.Builder, ev *binlog.Event) error {
	var st binlog.Statement
	if err := binlog.DecodeQuery(ev.Type, ev.Body, &st); err != nil {
		return err
	}
	switch verb, arg := binlog.Control(st.Text); verb {
	case binlog.XACommit:
		if err := r.commitPrepared(arg); err != nil {
			return err
		}
		r.tx.xa = xid(arg)
		return nil
	case binlog.XARollback:
		delete(r.xa, xid(arg))
		r.tx.xa = xid(arg)
		return nil
	case binlog.Other:
	default:
		return nil
	}
	if r.group.Pending {
		return nil
	}
	eff := r.apply(&st)
	if foreign, err := r.foreignDDL(textOf(&st), ev); err != nil {
		return err
	} else if foreign {
		r.tx.ignored = true
	}
	if r.tx.ignored && eff.Class != schema.Definition {
		return nil
	}
	switch eff.Class {
	case schema.NotUnderstood:
		if r.cfg.OnStatement == "ignore" {
			r.log.Warn("statement is not understood and left out", "file", r.scan.Name(), "offset", ev.At, "statement", shorten(st.Text), "reason", eff.Err)
			return nil
		}
		return sdk.Faultf(sdk.CodeUnsupportedEvent, "%s at offset %d: %v; the statement is: %s", r.scan.Name(), ev.At, eff.Err, shorten(st.Text)).
			Suggest("see whether it changes rows or tables that are read; onStatement: ignore passes over it")
	case schema.Rows:
		if !r.concerns(eff.Tables) {
			return nil
		}
		return r.statement(ev, shorten(st.Text))
	case schema.TruncateTable:
		return r.truncate(out, eff.Table)
	case schema.Definition:
		return r.definition(out, ev, &st, &eff)
	}
	return nil
}

// apply takes a statement into the history of layouts.
func (r *Reader) apply(st *binlog.Statement) schema.Effect {
	r.hist.SetPlace(r.placeOfStatement())
	return r.hist.Apply(statementOf(st, &r.scan.Format))
}

func statementOf(st *binlog.Statement, f *binlog.Format) schema.Statement {
	s := schema.Statement{
		Text: textOf(st), Database: string(st.Database),
		Dialect: schema.Dialect{MariaDB: f.MariaDB, Version: serverVersion(f.Server)},
	}
	if st.HasMode {
		s.Dialect.ANSIQuotes = st.SQLMode&binlog.ModeANSIQuotes != 0
		s.Dialect.NoBackslashEscapes = st.SQLMode&binlog.ModeNoBackslashEscapes != 0
	}
	for _, id := range []uint16{st.Default, st.Server} {
		if c, ok := charset.ByID(uint32(id)); ok && id != 0 {
			s.Collation = c.Name
			break
		}
	}
	return s
}

// textOf is a statement's text in UTF-8; it is in the client's character set.
func textOf(st *binlog.Statement) string {
	if c, ok := charset.ByID(uint32(st.Charset)); ok && st.Charset != 0 && !charset.UTF8(c.Charset) && c.Charset != "binary" {
		if dec := charset.For(c.Charset); dec != nil {
			if text, ok := dec(nil, st.Text); ok {
				return string(text)
			}
		}
	}
	return strings.ToValidUTF8(string(st.Text), "\uFFFD")
}

// serverVersion turns 10.11.19-MariaDB into 101119 and 8.0.36 into 80036.
func serverVersion(s string) int {
	v := 0
	for range 3 {
		n := 0
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		d, _ := strconv.Atoi(s[:n])
		v = v*100 + min(d, 99)
		if n < len(s) {
			n++
		}
		s = s[n:]
	}
	return v
}

func shorten[T string | []byte](text T) string {
	s := strings.Join(strings.Fields(string(text)), " ")
	if len(s) > 200 {
		n := 200
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n] + "…"
	}
	return s
}

// statement is a change that the log holds as a statement.
func (r *Reader) statement(ev *binlog.Event, what string) error {
	if r.cfg.OnStatement == "ignore" || r.sw.StmtOff {
		return nil
	}
	return sdk.Faultf(sdk.CodeUnsupportedEvent, "%s at offset %d: the log holds a change as a statement, not as rows: %s", r.scan.Name(), ev.At, what).
		Suggest("set binlog_format=ROW at the source, for all sessions; or name its tables in ignoreStatements, or set onStatement: ignore, which leaves such changes out")
}

// concerns reports whether one of the tables is read, and statements on it are not
// passed over; without names it may be.
func (r *Reader) concerns(tables []schema.Name) bool {
	for _, n := range tables {
		if r.wants(n.Database, n.Table) && !r.passes.match(n.Database, n.Table) {
			return true
		}
	}
	return len(tables) == 0
}

// quiet reports whether the transaction lies before the configured start time.
func (r *Reader) quiet() bool { return r.since != 0 && int64(r.tx.bounds.Time) < r.since }

func (r *Reader) truncate(out *batch.Builder, n schema.Name) error {
	if !r.wants(n.Database, n.Table) || r.quiet() {
		return nil
	}
	s, err := r.schemaOf(n)
	if err != nil {
		return err
	}
	r.noteChange(n)
	r.begin1(out)
	return out.Truncate(s)
}

// schemaOf is the schema of a table as it is now: that of its last rows, else
// that of the statements in the log, else one without columns.
func (r *Reader) schemaOf(n schema.Name) (*batch.Schema, error) {
	if s := r.tables.current[n]; s != nil {
		return s, nil
	}
	opt := r.options(n.String())
	if def := r.hist.Get(n.Database, n.Table); def != nil {
		s, err := r.schemaFrom(def, opt)
		if err == nil {
			r.tables.nextID++
			r.tables.current[n] = s
			return s, nil
		}
	}
	r.tables.nextID++
	s := &batch.Schema{ID: opt.ID, Version: opt.Version, Source: opt.Source, Namespace: n.Database, Table: n.Table}
	r.tables.current[n] = s
	return s, nil
}

func (r *Reader) definition(out *batch.Builder, ev *binlog.Event, st *binlog.Statement, eff *schema.Effect) error {
	for i := range eff.Changes {
		delete(r.tables.current, eff.Changes[i].Table)
		if err := r.changed(out, &eff.Changes[i]); err != nil {
			return err
		}
	}
	if r.quiet() {
		return nil
	}
	changes, touched := r.meaning(eff.Changes, r.hist.Place())
	for i := range changes {
		c := &changes[i]
		wanted := r.wants(c.Table.Database, c.Table.Table) || c.Kind == schema.Renamed && r.wants(c.Old.Database, c.Old.Table)
		if !wanted {
			continue
		}
		r.noteChange(c.Table)
		switch c.Kind {
		case schema.Renamed:
			r.noteChange(c.Old)
			if r.live != nil && r.live.weaver != nil && !r.tx.ignored {
				r.live.weaver.Renamed(c.Old.Database, c.Old.Table, c.Table.Database, c.Table.Table)
			}
		case schema.Created:
			if r.live != nil && !r.tx.ignored {
				r.live.weaver.Created(c.Table.Database, c.Table.Table)
			}
		}
		if c.Err != nil {
			r.log.Warn("schema change is not understood: the table's layout is not known from here on", "file", r.scan.Name(), "offset", ev.At, "table", c.Table.String(), "reason", c.Err)
		}
		if r.tx.ignored {
			continue
		}
		if r.cfg.DDL == "stop" {
			return sdk.Faultf(sdk.CodeRefused, "%s at offset %d: a schema change of %s, and ddl is stop: %s", r.scan.Name(), ev.At, c.Table, shorten(st.Text)).
				Suggest("make the change at the target, then set the position to %s:%d; or set ddl: apply or ignore", r.scan.Name(), r.tx.bounds.End)
		}
		if c.Kind == schema.Renamed && r.cfg.DDL == "apply" && !r.wants(c.Old.Database, c.Old.Table) {
			return sdk.Faultf(sdk.CodeUnsupportedEvent, "%s at offset %d: %s takes the place of %s, which is read, and the rows that it brings were not: %s", r.scan.Name(), ev.At, c.Old, c.Table, shorten(st.Text)).
				Suggest("add %s to tables and begin before its first row; or set ddl: ignore, which leaves the target's table as it is, for a tool that swaps in a copy with the same rows", c.Old)
		}
		for k := range c.Actions {
			if c.Actions[k].Kind == schema.RemoveRows && r.cfg.OnStatement != "ignore" {
				return sdk.Faultf(sdk.CodeUnsupportedEvent, "%s at offset %d: the statement may change rows of %s that the log does not list: %s", r.scan.Name(), ev.At, c.Table, shorten(st.Text)).
					Suggest("bring the target's rows in line and set the position to %s:%d, or set onStatement: ignore", r.scan.Name(), r.tx.bounds.End)
			}
		}
		if r.cfg.DDL == "apply" {
			if err := r.emit(out, st, c); err != nil {
				return err
			}
		}
	}
	if err := r.rememberOnline(out, touched); err != nil {
		return err
	}
	return r.remember(out, eff)
}

// emit passes a change of a table on, one event for each step.
func (r *Reader) emit(out *batch.Builder, st *binlog.Statement, c *schema.Change) error {
	base := batch.Change{Namespace: c.Table.Database, Table: c.Table.Table, Statement: textOf(st), Default: string(st.Database)}
	if c.Body != "" { // of the table itself, also where its copy was altered
		base.Statement = "ALTER TABLE " + server.Quote(c.Table.Database) + "." + server.Quote(c.Table.Table) + " " + c.Body
	}
	if c.After != nil {
		s, err := r.schemaOf(c.Table)
		if err != nil {
			return err
		}
		base.Schema = s
	}
	send := func(ch batch.Change) error {
		r.begin1(out)
		return out.Change(&ch)
	}
	switch {
	case c.Err != nil:
		base.Kind = batch.DDLOther
		return send(base)
	case c.Kind == schema.Created:
		base.Kind = batch.DDLCreateTable
		return send(base)
	case c.Kind == schema.Dropped:
		base.Kind = batch.DDLDropTable
		return send(base)
	case c.Kind == schema.Renamed:
		base.Kind = batch.DDLRenameTable
		base.SetOldTable(c.Old.Database, c.Old.Table)
		return send(base)
	}
	n, silent := 0, true // silent: nothing that a target has to follow, such as a plain index or an engine
	for i := range c.Actions {
		silent = silent && (c.Actions[i].Kind == schema.OtherChange || c.Actions[i].Kind == schema.RenameTable)
		ch, ok, err := r.changeOf(base, &c.Actions[i])
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		n++
		if err := send(ch); err != nil {
			return err
		}
	}
	if n == 0 && !silent {
		base.Kind = batch.DDLOther
		return send(base)
	}
	return nil
}

// changeOf is one step as targets are told.
func (r *Reader) changeOf(ch batch.Change, a *schema.Action) (batch.Change, bool, error) {
	column := func() error {
		if a.Column.Base == "" { // a rename, and the layout is not known
			ch.Column = &batch.Column{Name: a.Column.Name, Type: batch.Native}
			return nil
		}
		c, err := columnOf(&a.Column, &r.scan.Format)
		ch.Column = &c
		return err
	}
	after := func() {
		if ch.After = a.After; a.First {
			ch.After = "\x00"
		}
	}
	switch a.Kind {
	case schema.AddColumn:
		ch.Kind = batch.DDLAddColumn
		after()
		return ch, true, column()
	case schema.ChangeColumn:
		ch.Kind, ch.OldName = batch.DDLChangeColumn, a.OldName
		after()
		return ch, true, column()
	case schema.RenameColumn:
		ch.Kind, ch.OldName = batch.DDLRenameColumn, a.OldName
		return ch, true, column()
	case schema.DropColumn:
		ch.Kind, ch.OldName = batch.DDLDropColumn, a.OldName
		ch.Column = &batch.Column{Name: a.OldName, Type: batch.Native}
		return ch, true, nil
	case schema.AddUnique, schema.AddPrimary:
		ch.Kind = batch.DDLAddIndex
		ix := &batch.Index{Name: a.Index.Name}
		if ch.Schema == nil {
			return ch, false, nil
		}
		for _, p := range a.Index.Parts {
			at := ch.Schema.Column(p.Column)
			if at < 0 {
				return ch, false, nil
			}
			ix.Columns = append(ix.Columns, at)
		}
		ch.Index = ix
		return ch, len(ix.Columns) > 0, nil
	case schema.DropUnique, schema.DropPrimary:
		ch.Kind = batch.DDLDropIndex
		ch.Index = &batch.Index{Name: a.Index.Name}
		if a.Kind == schema.DropPrimary {
			ch.Index.Name = "PRIMARY"
		}
		return ch, true, nil
	}
	return ch, false, nil
}

// xid brings the name of an XA transaction into one notation: X'…',X'…',1.
func xid(arg []byte) string {
	s := strings.ReplaceAll(string(arg), " ", "")
	return strings.ToUpper(strings.TrimSuffix(s, "ONEPHASE"))
}
