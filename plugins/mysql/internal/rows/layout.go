package rows

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/plugins/internal/charset"
	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/schema"
	"github.com/datalink-go/datalink/sdk/batch"
)

// ErrUnknownTable is wrapped when neither the log nor the history of statements
// says what the columns of a table are.
var ErrUnknownTable = errors.New("layout of the table is not known")

// Layout says how rows under one table map become rows of a schema.
type Layout struct {
	Schema *batch.Schema
	Def    *schema.Table // from the statements in the log; nil where there is none that fits
	cols   []column
	nJSON  int
	rowEnd int // place in the log of a versioned row's end; -1 = not versioned

	// Sequence says that the table is a MariaDB sequence, whose one row every
	// insert replaces.
	Sequence bool
}

// column is one column of the log's row.
type column struct {
	op      op
	skip    bool // not part of the schema
	json    bool // counts among those that a partial update may give as a difference
	meta    uint16
	size    int // bytes of a fixed value, or of the length before a variable one
	prec    uint8
	scale   uint8
	name    string // of the charset or type, for raw values
	labels  []string
	decode  charset.Decode
	utf8    bool
	ascii   bool
	display string // column name for messages
	fill    fill   // of an INSERT whose image leaves the column out
}

// Options of NewLayout.
type Options struct {
	Format     *binlog.Format
	ID         uint32
	Source     string
	Version    uint64
	Positional bool // make do with @1, @2, … where the layout is not known
}

// NewLayout makes the layout of rows under tm. Names and types come from the
// table map where it has them, else from def. Def may be nil.
func NewLayout(tm *TableMap, def *schema.Table, opt Options) (*Layout, error) {
	match, why := matchDef(tm, def, opt.Format.MariaDB)
	positional := false
	if !tm.HasNames && match == nil {
		if !opt.Positional {
			return nil, fmt.Errorf("%w: %s.%s: %s", ErrUnknownTable, tm.Database, tm.Table, why)
		}
		positional = true
	}
	if match == nil {
		def = nil
	}
	l := &Layout{Def: def, cols: make([]column, len(tm.Columns)), rowEnd: -1}
	s := &batch.Schema{
		ID: opt.ID, Version: opt.Version, Source: opt.Source, Namespace: tm.Database, Table: tm.Table, Positional: positional,
	}
	place := make([]int, len(tm.Columns)) // of the log's columns in the schema
	for i := range tm.Columns {
		cm := &tm.Columns[i]
		var dc *schema.Column
		if match != nil && match[i] >= 0 {
			dc = &def.Columns[match[i]]
		}
		c := &l.cols[i]
		bc, err := c.make(cm, dc, opt.Format.MariaDB)
		if err != nil {
			return nil, fmt.Errorf("%s.%s, column %d %s: %w", tm.Database, tm.Table, i+1, cm.Name, err)
		}
		switch {
		case positional:
			bc.Name = "@" + strconv.Itoa(i+1)
		case cm.Name != "":
			bc.Name = cm.Name
		case dc != nil:
			bc.Name = dc.Name
		}
		c.display, c.fill = bc.Name, fillFor(&bc, dc)
		if c.json {
			l.nJSON++
		}
		bound := boundOf(tm, i, dc, opt.Format.MariaDB)
		if bound == schema.RowEnd {
			l.rowEnd = i
		}
		if dropped(cm, dc) || bound != schema.NoBound && (dc == nil || dc.Hidden) || match != nil && match[i] < 0 && !tm.HasNames {
			c.skip, place[i] = true, -1
			continue
		}
		place[i] = len(s.Columns)
		s.Columns = append(s.Columns, bc)
	}
	l.Schema = s
	l.Sequence = isSequence(tm, def, opt.Format.MariaDB)
	l.keys(tm, def, place)
	return l, nil
}

// dropped reports whether the server made the column for itself: those of
// functional indexes, and the key that a hosted MySQL adds to keyless tables.
func dropped(cm *ColumnMap, dc *schema.Column) bool {
	return strings.HasPrefix(cm.Name, "!hidden!") || cm.Name == "#alibaba_rds_row_id#" || dc != nil && dc.Functional
}

// matchDef finds for each column of the table map its column in def, -1 for one
// that the server added for itself. It returns nil and a reason when they do not
// fit.
func matchDef(tm *TableMap, def *schema.Table, maria bool) (match []int, why string) {
	if def == nil {
		return nil, "the log holds no column names (binlog_row_metadata is not FULL) and no CREATE TABLE of it was read"
	}
	match = make([]int, len(tm.Columns))
	if tm.HasNames {
		used := 0
		for i := range tm.Columns {
			cm := &tm.Columns[i]
			match[i] = def.Column(cm.Name)
			if match[i] < 0 && !dropped(cm, nil) {
				return nil, fmt.Sprintf("the table map has a column %s that the statements in the log do not have", cm.Name)
			}
			if match[i] >= 0 {
				if why := fits(cm, &def.Columns[match[i]], maria); why != "" {
					return nil, why
				}
				used++
			}
		}
		declared := 0
		for i := range def.Columns {
			if !def.Columns[i].Functional {
				declared++
			}
		}
		if used < declared {
			return nil, fmt.Sprintf("the table map has %d of %d columns", used, declared)
		}
		return match, ""
	}
	// MySQL 8.0 logs the hidden columns of functional indexes, later ones do not.
	var declared []int
	for i := range def.Columns {
		if !def.Columns[i].Functional || len(tm.Columns) == len(def.Columns) {
			declared = append(declared, i)
		}
	}
	n := len(declared)
	extra := len(tm.Columns) - n
	if extra == 1 && len(def.Primary) == 0 && tm.Columns[n].Type == typeLongLong {
		extra = 0 // the key that a hosted MySQL adds
	}
	if extra != 0 {
		return nil, fmt.Sprintf("the table map has %d columns, the statements in the log give %d", len(tm.Columns), n)
	}
	for i := range tm.Columns {
		match[i] = -1
		if i >= n {
			continue
		}
		match[i] = declared[i]
		if why := fits(&tm.Columns[i], &def.Columns[declared[i]], maria); why != "" {
			return nil, fmt.Sprintf("column %d: %s", i+1, why)
		}
	}
	return match, ""
}

func (l *Layout) keys(tm *TableMap, def *schema.Table, place []int) {
	s := l.Schema
	byName := func(name string) int {
		return slices.IndexFunc(s.Columns, func(c batch.Column) bool { return strings.EqualFold(c.Name, name) })
	}
	whole := func(parts []schema.Part) ([]int, bool) {
		var cols []int
		for _, p := range parts {
			at := byName(p.Column)
			if at < 0 {
				return nil, false
			}
			cols = append(cols, at)
		}
		return cols, len(cols) > 0
	}
	switch {
	case tm.HasKey:
		for _, at := range tm.Key {
			if at == l.rowEnd {
				continue // makes the rows of the past distinct, which are not delivered
			}
			if place[at] < 0 {
				s.Key = nil
				break
			}
			s.Key = append(s.Key, place[at])
		}
		s.PrimaryKey = len(s.Key) > 0
	case def != nil && len(def.Primary) > 0:
		if cols, ok := whole(def.Primary); ok {
			s.Key, s.PrimaryKey = cols, true
		}
	}
	if def == nil {
		return
	}
	for _, u := range def.Uniques {
		cols, ok := whole(u.Parts)
		if !ok || u.Expression {
			continue
		}
		s.Uniques = append(s.Uniques, batch.Index{Name: u.Name, Columns: cols})
		// The first unique key without NULLs and prefixes stands in for a missing
		// primary key, as it does for the server.
		full := !slices.ContainsFunc(u.Parts, func(p schema.Part) bool { return p.Prefix > 0 })
		notNull := !slices.ContainsFunc(cols, func(i int) bool { return s.Columns[i].Flags&batch.Nullable != 0 })
		if len(s.Key) == 0 && full && notNull {
			s.Key = cols
		}
	}
	for _, f := range def.ForeignKeys {
		fk := batch.ForeignKey{Name: f.Name, RefSchema: f.RefDatabase, RefTable: f.RefTable, RefColumns: f.RefColumns, OnDelete: f.OnDelete, OnUpdate: f.OnUpdate}
		ok := true
		for _, n := range f.Columns {
			at := byName(n)
			ok = ok && at >= 0
			fk.Columns = append(fk.Columns, at)
		}
		if ok {
			s.ForeignKeys = append(s.ForeignKeys, fk)
		}
	}
}

// Places says for each column of the log where in the schema it is; -1 = nowhere.
func (l *Layout) Places() []int {
	out, n := make([]int, len(l.cols)), 0
	for i := range l.cols {
		if out[i] = -1; !l.cols[i].skip {
			out[i] = n
			n++
		}
	}
	return out
}
