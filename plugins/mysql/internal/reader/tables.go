package reader

import (
	"bytes"
	"errors"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/rows"
	"github.com/datalink-go/datalink/plugins/mysql/internal/schema"
	"github.com/datalink-go/datalink/sdk/batch"
)

// tables keeps the table maps of the log and what they mean.
type tables struct {
	byID    map[uint64]*table
	layouts map[string]*rows.Layout // by the bytes of the table map without its id
	defs    map[string]*schema.Table
	version map[string]uint64
	nextID  uint32
	current map[schema.Name]*batch.Schema // the last one of each table
}

// table is a table as one table map describes it.
type table struct {
	raw    []byte // the table map, with its id
	gen    uint64 // of the history it was made under
	name   string
	skip   bool
	mark   *rows.Layout // of a progress table, where marks matter
	layout *rows.Layout
	err    error // why there is no layout
}

func newTables() tables {
	return tables{byID: map[uint64]*table{}, layouts: map[string]*rows.Layout{}, defs: map[string]*schema.Table{}, version: map[string]uint64{}, current: map[schema.Name]*batch.Schema{}}
}

// forget drops the ids, which a restart of the server gives out anew.
func (t *tables) forget() { clear(t.byID) }

// maxTables bounds what is kept: servers that open and close tables give each a
// new id every time.
const maxTables = 8192

// tableMap looks up what a table map means, or finds out.
func (r *Reader) tableMap(ev *binlog.Event) error {
	id, n, err := rows.TableID(ev.Type, &r.scan.Format, ev.Body)
	if err != nil {
		return err
	}
	t := r.tables.byID[id]
	if t != nil && t.gen == r.hist.Generation() && bytes.Equal(t.raw, ev.Body) {
		return nil
	}
	if len(r.tables.byID) >= maxTables {
		clear(r.tables.byID)
	}
	tm, err := rows.ParseTableMap(&r.scan.Format, ev.Body)
	if err != nil {
		return err
	}
	t = &table{raw: bytes.Clone(ev.Body), gen: r.hist.Generation(), name: tm.Database + "." + tm.Table}
	r.tables.byID[id] = t
	if tm.Table == progressTable && r.origins.any() {
		t.mark = r.markLayout(tm)
	}
	if t.skip = !r.wants(tm.Database, tm.Table); t.skip {
		return nil
	}
	def := r.hist.Get(tm.Database, tm.Table)
	key := string(ev.Body[n:])
	if l := r.tables.layouts[key]; l != nil && (r.tables.defs[key] == def || broken("mysql-stale-layout")) {
		t.layout = l
		r.tables.current[schema.Name{Database: tm.Database, Table: tm.Table}] = l.Schema
		return nil
	}
	l, err := rows.NewLayout(tm, def, r.options(t.name))
	if errors.Is(err, rows.ErrUnknownTable) {
		// Only rows of the table make it matter.
		if why := r.hist.Unknown(tm.Database, tm.Table); why != nil {
			err = errors.Join(err, why)
		}
		t.err = err
		return nil
	}
	if err != nil {
		return err
	}
	r.tables.nextID++
	r.tables.version[t.name]++
	if len(r.tables.layouts) >= maxTables {
		clear(r.tables.layouts)
		clear(r.tables.defs)
	}
	r.tables.layouts[key], r.tables.defs[key] = l, def
	t.layout = l
	r.tables.current[schema.Name{Database: tm.Database, Table: tm.Table}] = l.Schema
	return nil
}

// options are those of the next schema that is made.
func (r *Reader) options(table string) rows.Options {
	return rows.Options{
		Format: &r.scan.Format, ID: r.tables.nextID + 1, Source: r.source(), Version: r.tables.version[table] + 1,
		Positional: r.cfg.OnUnknownTable == "positional",
	}
}

func (r *Reader) schemaFrom(def *schema.Table, opt rows.Options) (*batch.Schema, error) {
	return rows.SchemaOf(def, opt)
}

func columnOf(c *schema.Column, f *binlog.Format) (batch.Column, error) { return rows.ColumnOf(c, f) }

// source names the log in schemas.
func (r *Reader) source() string {
	if r.live != nil {
		return r.live.addrs[0] // whatever server of the list it is
	}
	return r.here.base
}
