package reader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/catalog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/schema"
	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// endOf is the end of the log, as positions of this task are.
func (r *Reader) endOf(ctx context.Context, c *server.Conn, k kind) (spot, error) {
	f, err := learn(ctx, c)
	if err != nil {
		return spot{}, err
	}
	s := spot{kind: k, server: f.name, set: f.executed, dom: f.binlogPos}
	if k == spotFile {
		if err := f.status(ctx, c); err != nil {
			return spot{}, err
		}
		s.file.setName(f.file)
		s.file.off = f.off
	}
	return s, nil
}

// readCatalog reads the layouts of tables and the place at which they hold.
func (r *Reader) readCatalog(ctx context.Context, c *server.Conn, k kind, want func(db, table string) bool, patience time.Duration) (*catalog.Catalog, spot, error) {
	var at spot
	cat, err := catalog.Read(ctx, c, catalog.Request{
		Want: want, Dialect: schema.Dialect{MariaDB: c.MariaDB, Version: c.Number}, Patience: patience,
		Position: func(ctx context.Context) (string, error) {
			var err error
			at, err = r.endOf(ctx, c, k)
			return at.String(), err
		},
	})
	return cat, at, err
}

// bootstrap gives the tables that are read the layouts that the server has, where
// they hold at the place at which reading begins: it is the end of the log, or no
// statement between the two touched the table. Others stay unknown until a
// statement in the log tells of them, unless the log has names itself.
func (r *Reader) bootstrap(ctx context.Context, c *server.Conn, cat *catalog.Catalog, at spot) error {
	here := r.spotHere()
	if cat == nil {
		var err error
		if cat, at, err = r.readCatalog(ctx, c, here.kind, r.filter.wants, 0); err != nil {
			return err
		}
	}
	touched := func(schema.Name) bool { return false }
	if !here.holds(&at) {
		v, err := c.Variables(ctx, "binlog_row_metadata")
		if err != nil {
			return err
		}
		if strings.EqualFold(v["binlog_row_metadata"], "FULL") {
			return nil // the log says what the tables are
		}
		r.log.Info("reading the statements from the start to the end of the log, for the layouts of tables", "from", here.String(), "to", at.String())
		if touched, err = r.touchedSince(ctx, &here); err != nil {
			return err
		}
	}
	for db, d := range cat.Databases {
		r.hist.RestoreDatabase(db, d)
		r.unsavedItems = append(r.unsavedItems, databaseItem(db, d, r.hist.Generation()+1))
	}
	base := schema.Place{Base: here.String()}
	for _, t := range cat.Tables {
		if n := (schema.Name{Database: t.Database, Table: t.Name}); !touched(n) {
			r.hist.Adopt(t, base)
			r.unsaved = append(r.unsaved, n)
		}
	}
	for _, n := range slices.SortedFunc(maps.Keys(cat.Refused), func(a, b schema.Name) int { return strings.Compare(a.String(), b.String()) }) {
		r.log.Warn("the definition of a table is not understood: its rows need names in the log (binlog_row_metadata=FULL)", "table", n.String(), "reason", cat.Refused[n])
	}
	return nil
}

// touchedSince reads the statements of the log from a place to its end and says
// which tables they touch.
func (r *Reader) touchedSince(ctx context.Context, from *spot) (func(schema.Name) bool, error) {
	tables, databases, all := map[schema.Name]bool{}, map[string]bool{}, false
	scratch := schema.NewHistory()
	err := r.view(ctx, from, func(scan *binlog.Scanner, next func(*binlog.Event) error) error {
		var ev binlog.Event
		for {
			if err := next(&ev); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			if ev.Type != binlog.Query && ev.Type != binlog.QueryCompressed {
				continue
			}
			var st binlog.Statement
			if err := binlog.DecodeQuery(ev.Type, ev.Body, &st); err != nil {
				return fmt.Errorf("%s: %w", scan.Place(ev.At), err)
			}
			if v, _ := binlog.Control(st.Text); v != binlog.Other {
				continue
			}
			eff := scratch.Apply(statementOf(&st, &scan.Format))
			all = all || eff.Class == schema.NotUnderstood
			if eff.Class == schema.Definition && len(eff.Changes) == 0 {
				databases[string(st.Database)], databases[eff.Charset] = true, true
				all = all || eff.Verb == "DROP"
			}
			for i := range eff.Changes {
				tables[eff.Changes[i].Table] = true
				if eff.Changes[i].Kind == schema.Renamed {
					tables[eff.Changes[i].Old] = true
				}
			}
		}
	})
	return func(n schema.Name) bool { return all || tables[n] || databases[n.Database] }, err
}

// saveLayouts puts layouts that did not come from statements into the stream, in
// entries of their own between two transactions. Those of a first start give the
// task its first position.
func (r *Reader) saveLayouts(out *batch.Builder) error {
	if len(r.unsaved)+len(r.unsavedItems) == 0 {
		return nil
	}
	if err := out.BeginTx(batch.Tx{Begins: true}); err != nil {
		return err
	}
	for len(r.unsavedItems) > 0 && !out.Full() {
		if err := out.StateItem(&r.unsavedItems[0]); err != nil {
			return err
		}
		r.unsavedItems = r.unsavedItems[1:]
	}
	for len(r.unsaved) > 0 && !out.Full() {
		if err := r.stateOf(out, r.unsaved[0]); err != nil {
			return err
		}
		r.unsaved = r.unsaved[1:]
	}
	if len(r.unsaved)+len(r.unsavedItems) > 0 || !r.first {
		return out.EndTx(true, nil, nil) // stored with what comes next
	}
	r.first = false
	return out.EndTx(true, nil, r.mark(nil))
}

// stateOf appends the layouts of a table as a state item.
func (r *Reader) stateOf(out *batch.Builder, n schema.Name) error {
	versions, number := r.hist.Versions(n)
	if len(versions) > 1 && broken("mysql-layouts-lost") {
		versions, number = versions[:1], 1
	}
	value, err := json.Marshal(versions)
	if err != nil {
		return err
	}
	return out.StateItem(&batch.StateItem{Key: tableKey + n.String(), Version: number, Value: value})
}

// doubt is a table whose layout by statements is still to be held against the
// server's, and what the server says of a place that is not reached yet.
type doubt struct {
	want *schema.Table // nil: not asked yet
	gone bool          // the server has no such table at that place
	at   spot
}

// doubtKey begins the keys of state items that name such tables, so that a reader
// that dies before it has compared them leaves that to the next.
const doubtKey = "check:"

func databaseItem(db string, d schema.Default, version uint64) batch.StateItem {
	value, _ := json.Marshal(d) // two strings
	return batch.StateItem{Key: databaseKey + db, Version: version, Value: value}
}

// settled forgets a doubt.
func (r *Reader) settled(n schema.Name) {
	delete(r.doubts, n)
	r.unsavedItems = append(r.unsavedItems, batch.StateItem{Key: doubtKey + n.String(), Version: r.live.nextVersion(), Deleted: true})
}

// restoreDoubt puts back what was not compared yet.
func (r *Reader) restoreDoubt(it *batch.StateItem) error {
	var n schema.Name
	if err := json.Unmarshal(it.Value, &n); err != nil {
		return err
	}
	if r.doubts == nil {
		r.doubts = map[schema.Name]*doubt{}
	}
	r.doubts[n] = &doubt{}
	return nil
}

// changed notes that a statement changed a table: what was read of it for a place
// that this statement comes after is compared with what it was before.
func (r *Reader) changed(out *batch.Builder, c *schema.Change) error {
	if r.live == nil || !r.wants(c.Table.Database, c.Table.Table) {
		return nil
	}
	if err := r.newCascade(c); err != nil {
		return err
	}
	here := r.spotHere()
	if d := r.doubts[c.Table]; d != nil && d.want != nil && here.holds(&d.at) {
		if err := r.compareLayout(c.Table, c.Before, d); err != nil {
			return err
		}
	}
	if r.doubts == nil {
		r.doubts = map[schema.Name]*doubt{}
	}
	if d := r.doubts[c.Table]; d != nil && !here.holds(&d.at) {
		return nil
	}
	r.doubts[c.Table] = &doubt{}
	value, err := json.Marshal(c.Table)
	if err != nil {
		return err
	}
	r.begin1(out)
	return out.StateItem(&batch.StateItem{Key: doubtKey + c.Table.String(), Version: r.live.nextVersion(), Value: value})
}

// compareLayout holds a layout by statements against the server's at the same
// place.
func (r *Reader) compareLayout(n schema.Name, have *schema.Table, d *doubt) error {
	diff := ""
	switch {
	case have == nil || d.gone:
		return nil // not known, so that its rows stop the reader
	default:
		diff = schema.Differs(have, d.want)
	}
	if diff == "" {
		return nil
	}
	err := sdk.Faultf(sdk.CodeUnsupportedEvent, "table %s by the statements in the log and by the server at %s: %s", n, d.at.String(), diff).
		Suggest("set binlog_row_metadata=FULL at the source, and take the table anew; rows of it since the last schema change may be wrong")
	r.hist.Doubt(n, err)
	return err
}

// settleDoubts asks the server for the layouts of tables that statements changed,
// and compares those whose place is reached. It is called between transactions.
func (r *Reader) settleDoubts(ctx context.Context) error {
	if len(r.doubts) == 0 {
		return nil
	}
	here := r.spotHere()
	ask := false
	for n, d := range r.doubts {
		if d.want == nil && !d.gone {
			ask = true
			continue
		}
		if !here.holds(&d.at) {
			continue
		}
		have := r.hist.Get(n.Database, n.Table)
		if have == nil && !d.gone {
			// Not understood: the server's word counts from here on.
			r.hist.Adopt(d.want, r.placeHere())
			r.unsaved = append(r.unsaved, n)
		} else if err := r.compareLayout(n, have, d); err != nil {
			return err
		}
		r.settled(n)
	}
	if !ask || time.Since(r.asked) < askEvery {
		return nil
	}
	r.asked = time.Now()
	c, err := r.dial(ctx)
	if err != nil {
		return nil // later: the stream goes on without it
	}
	defer func() { _ = c.Close() }()
	if err := c.Pin(ctx, false); err != nil {
		return nil
	}
	cat, at, err := r.readCatalog(ctx, c, here.kind, func(db, table string) bool {
		d := r.doubts[schema.Name{Database: db, Table: table}]
		return d != nil && d.want == nil
	}, 3*time.Second)
	if err != nil {
		r.log.Warn("layouts of tables could not be read again after schema changes", "reason", err)
		return nil
	}
	for n, d := range r.doubts {
		if d.want != nil || d.gone {
			continue
		}
		i := slices.IndexFunc(cat.Tables, func(t *schema.Table) bool { return t.Database == n.Database && t.Name == n.Table })
		d.at = at
		switch {
		case i >= 0:
			d.want = cat.Tables[i]
		case cat.Refused[n] != nil:
			r.settled(n)
		default:
			d.gone = true
		}
	}
	return nil
}

// askEvery bounds how often the server is asked for layouts.
const askEvery = 100 * time.Millisecond

// placeHere is the place of statements that stand behind the last transaction.
func (r *Reader) placeHere() schema.Place {
	if r.live != nil && r.live.kind != spotFile {
		s := r.spotHere()
		return schema.Place{Base: s.String()}
	}
	return schema.Place{File: r.here.number, Offset: r.here.off}
}
