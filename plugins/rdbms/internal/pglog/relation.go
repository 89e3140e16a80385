package pglog

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgcat"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgout"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgtypes"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// relation is a table as the log describes it from here on.
type relation struct {
	id      uint32
	name    string
	skip    bool // the task does not read it
	kind    byte // as pg_class says
	schema  *batch.Schema
	columns []*pgtypes.Column
	key     []bool // columns of the key
	changes []batch.Change
	item    *tableItem // to be stored with the next change
	win     *window    // while chunks of it lie ahead of the stream
}

// tableItem is what is kept of a table in the reader's state: its columns, and how
// far its snapshot has got.
type tableItem struct {
	Namespace string       `json:"namespace"`
	Table     string       `json:"table"`
	Columns   []itemColumn `json:"columns"`
	Done      bool         `json:"done"`              // the snapshot is complete
	Hi        []byte       `json:"hi,omitempty"`      // key up to which it is
	Ranges    []itemRange  `json:"ranges,omitempty"`  // under which snapshots
	Singles   []itemRange  `json:"singles,omitempty"` // rows that were read for themselves, by key
	version   uint64
}

type itemColumn struct {
	Name string `json:"name"`
	Num  int    `json:"num"` // 0 = not known
	Type uint32 `json:"type"`
	Mod  int32  `json:"mod"`
}

// itemRange says that the rows up to a key were read under a snapshot. Changes
// before Until may be in it.
type itemRange struct {
	Hi       []byte `json:"hi,omitempty"` // empty = the end of the table
	Snapshot string `json:"snapshot"`
	Until    string `json:"until"`
}

const tableKey = "pg-table:"

// stateItem is the item as it is stored.
func (r *Reader) stateItem(oid uint32, it *tableItem) (*batch.StateItem, error) {
	it.version++
	v, err := json.Marshal(it)
	if err != nil {
		return nil, err
	}
	r.items[oid] = it
	return &batch.StateItem{Key: tableKey + strconv.FormatUint(uint64(oid), 10), Version: it.version, Value: v}, nil
}

// relate takes what a Relation message says.
func (r *Reader) relate(ctx context.Context, m []byte) error {
	msg, err := pgout.ReadRelation(m)
	if err != nil {
		return r.corrupt(err)
	}
	rel := &relation{id: msg.ID, name: msg.Namespace + "." + msg.Table, kind: 'r'}
	old := r.rels[msg.ID]
	r.rels[msg.ID] = rel
	if rel.skip = !r.filter.Wants(msg.Namespace, msg.Table); rel.skip {
		return nil
	}
	t, err := r.describe(ctx, msg.ID)
	if err != nil {
		return err
	}
	if err := r.layout(ctx, rel, &msg, t); err != nil {
		return err
	}
	rel.win = r.windows[msg.ID]
	item := &tableItem{Namespace: msg.Namespace, Table: msg.Table, Done: true}
	for i := range msg.Columns {
		c := &msg.Columns[i]
		ic := itemColumn{Name: c.Name, Type: c.Type, Mod: c.Mod}
		if t != nil {
			if k := slices.IndexFunc(t.Columns, func(x pgcat.Column) bool { return x.Name == c.Name }); k >= 0 {
				ic.Num = t.Columns[k].Num
			}
		}
		item.Columns = append(item.Columns, ic)
	}
	known := r.items[msg.ID]
	if known == nil {
		rel.item = item
		return nil
	}
	item.Done, item.Hi, item.Ranges, item.Singles, item.version = known.Done, known.Hi, known.Ranges, known.Singles, known.version
	if old != nil && old.schema != nil && sameColumns(known.Columns, item.Columns) && known.Namespace == item.Namespace && known.Table == item.Table {
		if sameLayout(old.schema, rel.schema) {
			// Only a sign that the server has looked again.
			rel.schema, rel.changes, rel.item = old.schema, old.changes, old.item
			return nil
		}
	}
	rel.changes, err = r.diff(rel, known, item)
	if err != nil {
		return err
	}
	if len(rel.changes) > 0 || !sameColumns(known.Columns, item.Columns) {
		rel.item = item
	}
	return nil
}

func sameColumns(a, b []itemColumn) bool {
	return slices.EqualFunc(a, b, func(x, y itemColumn) bool { return x.Name == y.Name && x.Type == y.Type && x.Mod == y.Mod })
}

func sameLayout(a, b *batch.Schema) bool {
	x, y := *a, *b
	x.ID, x.Version, y.ID, y.Version = 1, 0, 1, 0
	return string(batch.AppendSchema(nil, &x)) == string(batch.AppendSchema(nil, &y))
}

// describe asks the catalog, which may be ahead of the log: nil where the table is
// gone by now.
func (r *Reader) describe(ctx context.Context, oid uint32) (*pgcat.Table, error) {
	var ts []*pgcat.Table
	err := r.asking(ctx, func() error {
		var err error
		r.cat.ForgetTypes()
		ts, err = r.cat.Describe(ctx, r.sql, []uint32{oid})
		return err
	})
	if err != nil || len(ts) == 0 {
		return nil, err
	}
	return ts[0], nil
}

// asking runs f with a connection for SQL, a new one where the old one was lost.
func (r *Reader) asking(ctx context.Context, f func() error) error {
	if r.sql == nil || r.sql.IsClosed() {
		c, err := r.srv.Connect(ctx)
		if err != nil {
			return err
		}
		r.sql = c
	}
	if err := f(); err != nil {
		return r.srv.Fault("look into the catalog of "+r.srv.Name(), err)
	}
	return nil
}

// layout makes the schema of a relation: names and types are those of the message,
// the rest is the catalog's where it still knows the column.
func (r *Reader) layout(ctx context.Context, rel *relation, msg *pgout.RelationMsg, t *pgcat.Table) error {
	r.nextID++
	r.versions[msg.ID]++
	view := &pgcat.Table{OID: msg.ID, Namespace: msg.Namespace, Name: msg.Table, Kind: 'r', Identity: msg.Identity}
	at := map[int]int{} // place in the catalog's table → place in the message
	for i := range msg.Columns {
		mc := &msg.Columns[i]
		col := pgcat.Column{Name: mc.Name, Type: mc.Type, Mod: mc.Mod}
		k := -1
		if t != nil {
			k = slices.IndexFunc(t.Columns, func(c pgcat.Column) bool { return c.Name == mc.Name && c.Type == mc.Type })
		}
		if k >= 0 {
			col = t.Columns[k]
			col.Mod = mc.Mod
			at[k] = i
		}
		if col.Read == nil || k >= 0 && t.Columns[k].Mod != mc.Mod {
			err := r.asking(ctx, func() error {
				var err error
				col.Read, err = r.cat.Column(ctx, r.sql, mc.Type, mc.Mod)
				return err
			})
			if err != nil {
				return sdk.Faultf(sdk.CodeUnknownTable, "column %s of %s: %v", mc.Name, rel.name, err).Suggest("the type was dropped after the change; take the table anew")
			}
		}
		view.Columns = append(view.Columns, col)
		rel.columns = append(rel.columns, col.Read)
	}
	move := func(places []int) []int {
		var out []int
		for _, p := range places {
			i, ok := at[p]
			if !ok {
				return nil
			}
			out = append(out, i)
		}
		return out
	}
	if t != nil {
		view.Kind, rel.kind = t.Kind, t.Kind
		view.Primary, view.Replica = move(t.Primary), move(t.Replica)
		for _, u := range t.Uniques {
			if c := move(u.Columns); c != nil {
				view.Uniques = append(view.Uniques, pgcat.Unique{Name: u.Name, Columns: c})
			}
		}
		for _, f := range t.Foreign {
			if c := move(f.Columns); c != nil {
				f.Columns = c
				view.Foreign = append(view.Foreign, f)
			}
		}
	}
	if msg.Identity == 'd' || msg.Identity == 'i' {
		// The message is right where the catalog has gone on.
		var flagged []int
		for i := range msg.Columns {
			if msg.Columns[i].Key {
				flagged = append(flagged, i)
			}
		}
		key, _ := view.Key()
		if sorted := slices.Sorted(slices.Values(key)); len(flagged) > 0 && !slices.Equal(sorted, flagged) {
			view.Replica, view.Identity = flagged, 'i'
			if msg.Identity == 'd' {
				view.Primary = flagged
			}
		}
	}
	rel.schema = view.Schema(r.nextID, r.versions[msg.ID], r.source())
	rel.key = make([]bool, len(rel.schema.Columns))
	for _, k := range rel.schema.Key {
		rel.key[k] = true
	}
	return nil
}

// diff finds the typed changes that lead from one layout to the next.
func (r *Reader) diff(rel *relation, from, to *tableItem) ([]batch.Change, error) {
	var out []batch.Change
	add := func(c batch.Change) {
		c.Namespace, c.Table, c.Default = to.Namespace, to.Table, to.Namespace
		out = append(out, c)
	}
	table := pgcat.Quote(to.Namespace) + "." + pgcat.Quote(to.Table)
	if from.Namespace != to.Namespace || from.Table != to.Table {
		c := batch.Change{Kind: batch.DDLRenameTable, Namespace: to.Namespace, Statement: "ALTER TABLE " + from.Namespace + "." + from.Table + " RENAME TO " + to.Table}
		c.SetOldTable(from.Namespace, from.Table)
		add(c)
	}
	match, err := pair(from.Columns, to.Columns)
	if err != nil {
		return nil, sdk.Faultf(sdk.CodeUnsupportedEvent, "table %s: %v", rel.name, err).
			Suggest("bring the target's table in line by hand and set ddl: ignore until the task has passed this place, or take the table anew")
	}
	used := map[int]bool{}
	for _, k := range match {
		used[k] = true
	}
	for i, c := range from.Columns {
		if match[i] < 0 {
			add(batch.Change{Kind: batch.DDLDropColumn, Column: &batch.Column{Name: c.Name, Type: batch.Native}, Statement: "ALTER TABLE " + table + " DROP COLUMN " + pgcat.Quote(c.Name)})
		}
	}
	for i, c := range from.Columns {
		k := match[i]
		if k < 0 {
			continue
		}
		n, col := &to.Columns[k], &rel.schema.Columns[k]
		if n.Name != c.Name {
			add(batch.Change{Kind: batch.DDLRenameColumn, OldName: c.Name, Column: col, Statement: "ALTER TABLE " + table + " RENAME COLUMN " + pgcat.Quote(c.Name) + " TO " + pgcat.Quote(n.Name)})
		}
		if n.Type != c.Type || n.Mod != c.Mod {
			add(batch.Change{Kind: batch.DDLChangeColumn, OldName: n.Name, Column: col, Statement: "ALTER TABLE " + table + " ALTER COLUMN " + pgcat.Quote(n.Name) + " TYPE " + col.Native})
		}
	}
	for k := range to.Columns {
		if !used[k] {
			col := &rel.schema.Columns[k]
			add(batch.Change{Kind: batch.DDLAddColumn, Column: col, Statement: "ALTER TABLE " + table + " ADD COLUMN " + pgcat.Quote(col.Name) + " " + col.Native})
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	if len(out) > maxBefore-2 {
		return nil, sdk.Faultf(sdk.CodeUnsupportedEvent, "table %s: %d schema changes at once", rel.name, len(out)).Suggest("take the table anew")
	}
	// Only after the last one is the layout the table's.
	out[len(out)-1].Schema = rel.schema
	switch r.cfg.DDL {
	case "ignore":
		return nil, nil
	case "stop":
		return nil, sdk.Faultf(sdk.CodeRefused, "table %s has changed: %s", rel.name, out[0].Statement).Suggest("bring the target in line, then set ddl: apply or ignore")
	}
	return out, nil
}

// pair finds for each old column the new one that it has become, -1 = dropped.
func pair(from, to []itemColumn) ([]int, error) {
	match := make([]int, len(from))
	taken := make([]bool, len(to))
	for i := range from {
		match[i] = slices.IndexFunc(to, func(c itemColumn) bool {
			return from[i].Num != 0 && c.Num == from[i].Num || (from[i].Num == 0 || c.Num == 0) && c.Name == from[i].Name
		})
		if match[i] >= 0 {
			taken[match[i]] = true
		}
	}
	for k := range to {
		if taken[k] || to[k].Num != 0 {
			continue
		}
		// The catalog does not know this column any more. It is a renamed one where it
		// stands before a column that is old: a new one would stand behind it.
		last := -1
		for i, m := range match {
			if m > k && (last < 0 || i < last) {
				last = i
			}
		}
		var lost []int
		for i, m := range match {
			if m < 0 && (last < 0 || i < last) && from[i].Type == to[k].Type {
				lost = append(lost, i)
			}
		}
		switch {
		case last >= 0 && len(lost) == 1:
			match[lost[0]], taken[k] = k, true
		case len(lost) > 0:
			return nil, fmt.Errorf("column %s has come and column %s has gone since, and the catalog cannot tell any more whether it is the same one", to[k].Name, from[lost[0]].Name)
		}
	}
	return match, nil
}

// source names the server in schemas.
func (r *Reader) source() string { return strconv.FormatUint(r.here.system, 10) }
