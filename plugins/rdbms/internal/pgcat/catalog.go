package pgcat

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgtypes"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Catalog reads tables through a connection and keeps the types it has seen.
type Catalog struct {
	types   pgtypes.Types
	raw     bool // server encoding SQL_ASCII
	collate string
}

// NewCatalog returns an empty Catalog.
func NewCatalog() *Catalog { return &Catalog{types: pgtypes.Types{}} }

// List returns the tables whose names want accepts, with columns and keys, parents
// of foreign keys first. Partitions belong to their table; temporary and foreign
// tables and views are none.
func (c *Catalog) List(ctx context.Context, conn *pgconn.PgConn, want func(namespace, table string) bool) ([]*Table, error) {
	rows, err := Query(ctx, conn, `SELECT c.oid, n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence <> 't' AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
		ORDER BY n.nspname, c.relname`)
	if err != nil {
		return nil, err
	}
	var oids []uint32
	for _, r := range rows {
		if want(string(r[1]), string(r[2])) {
			oids = append(oids, u32(r[0]))
		}
	}
	tables, err := c.Describe(ctx, conn, oids)
	if err != nil {
		return nil, err
	}
	return parentsFirst(tables), nil
}

// parentsFirst sorts tables so that those that foreign keys refer to come first;
// cycles keep the order of names.
func parentsFirst(tables []*Table) []*Table {
	byName := map[string]*Table{}
	for _, t := range tables {
		byName[t.Full()] = t
	}
	var out []*Table
	seen := map[*Table]bool{}
	var visit func(t *Table)
	visit = func(t *Table) {
		if seen[t] {
			return
		}
		seen[t] = true
		for _, f := range t.Foreign {
			if p := byName[f.RefSchema+"."+f.RefTable]; p != nil {
				visit(p)
			}
		}
		out = append(out, t)
	}
	for _, t := range tables {
		visit(t)
	}
	return out
}

// Describe returns the tables with those oids, in that order; those that are gone
// are left out.
func (c *Catalog) Describe(ctx context.Context, conn *pgconn.PgConn, oids []uint32) ([]*Table, error) {
	if len(oids) == 0 {
		return nil, nil
	}
	if c.collate == "" {
		rows, err := Query(ctx, conn, `SELECT datcollate, pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()`)
		if err != nil {
			return nil, err
		}
		c.collate, c.raw = string(rows[0][0]), string(rows[0][1]) == "SQL_ASCII"
	}
	list := make([]string, len(oids))
	for i, o := range oids {
		list[i] = strconv.FormatUint(uint64(o), 10)
	}
	in := "{" + strings.Join(list, ",") + "}"
	byOID := map[uint32]*Table{}
	rows, err := Query(ctx, conn, `SELECT c.oid, n.nspname, c.relname, c.relkind, c.relreplident FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = ANY($1::oid[])`, in)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		byOID[u32(r[0])] = &Table{OID: u32(r[0]), Namespace: string(r[1]), Name: string(r[2]), Kind: r[3][0], Identity: r[4][0]}
	}
	if err := c.columns(ctx, conn, in, byOID); err != nil {
		return nil, err
	}
	if err := indexes(ctx, conn, in, byOID); err != nil {
		return nil, err
	}
	if err := foreign(ctx, conn, in, byOID); err != nil {
		return nil, err
	}
	var out []*Table
	for _, o := range oids {
		if t := byOID[o]; t != nil {
			out = append(out, t)
		}
	}
	return out, nil
}

func (c *Catalog) columns(ctx context.Context, conn *pgconn.PgConn, in string, byOID map[uint32]*Table) error {
	rows, err := Query(ctx, conn, `SELECT a.attrelid, a.attname, a.attnum, a.atttypid, a.atttypmod, a.attnotnull, a.attidentity,
			coalesce(pg_get_expr(d.adbin, d.adrelid), ''), coalesce(co.collname, ''), coalesce(co.collisdeterministic, true), coalesce(co.collcollate, '')
		FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum LEFT JOIN pg_collation co ON co.oid = a.attcollation
		WHERE a.attrelid = ANY($1::oid[]) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attrelid, a.attnum`, in)
	if err != nil {
		return err
	}
	for _, r := range rows {
		t := byOID[u32(r[0])]
		if t == nil {
			continue
		}
		col := Column{Name: string(r[1]), Num: int(u32(r[2])), Type: u32(r[3]), NotNull: string(r[5]) == "t", Default: string(r[7])}
		mod, _ := strconv.ParseInt(string(r[4]), 10, 32)
		col.Mod = int32(mod)
		col.Auto = len(r[6]) > 0 || strings.HasPrefix(col.Default, "nextval(")
		if col.Auto {
			col.Default = ""
		}
		if col.Read, err = c.Column(ctx, conn, col.Type, col.Mod); err != nil {
			return fmt.Errorf("column %s of %s: %w", col.Name, t.Full(), err)
		}
		name, collate := string(r[8]), string(r[10])
		if name == "default" {
			collate = c.collate
		}
		col.Bytewise = bytewise(col.Read.Batch().Type, name, collate)
		if string(r[9]) != "t" {
			col.Collation = name
		}
		t.Columns = append(t.Columns, col)
	}
	return nil
}

// bytewise reports whether values of the type are sorted by the server as this
// program sorts them.
func bytewise(t batch.Type, collation, collate string) bool {
	switch t {
	case batch.Bool, batch.Int16, batch.Int32, batch.Int64, batch.Uint32, batch.Bytes, batch.UUID, batch.Date, batch.DateTime, batch.Timestamp:
		return true
	case batch.String:
		switch strings.ToLower(collate) {
		case "c", "posix", "c.utf-8", "c.utf8":
			return true
		}
		return collation == "C" || collation == "POSIX"
	}
	return false
}

// Column returns the reader of values of a type, which is looked up when it is not
// known yet.
func (c *Catalog) Column(ctx context.Context, conn *pgconn.PgConn, oid uint32, mod int32) (*pgtypes.Column, error) {
	for {
		r, missing := pgtypes.NewColumn(c.types, oid, mod, c.raw)
		if r != nil {
			return r, nil
		}
		rows, err := Query(ctx, conn, `SELECT format_type(t.oid, NULL), t.typtype, t.typcategory, t.typbasetype, t.typtypmod, t.typelem, t.typdelim,
				(SELECT string_agg(e.enumlabel, E'\x01' ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = t.oid)
			FROM pg_type t WHERE t.oid = $1::oid`, strconv.FormatUint(uint64(missing), 10))
		if err != nil {
			return nil, err
		}
		if len(rows) == 0 {
			return nil, fmt.Errorf("type %d is not in the catalog any more", missing)
		}
		row := rows[0]
		mod, _ := strconv.ParseInt(string(row[4]), 10, 32)
		t := &pgtypes.Type{
			OID: missing, Name: string(row[0]), Kind: row[1][0], Category: row[2][0], Base: u32(row[3]), BaseMod: int32(mod), Elem: u32(row[5]), Delim: row[6][0],
		}
		if row[7] != nil {
			t.Labels = strings.Split(string(row[7]), "\x01")
		}
		c.types[missing] = t
	}
}

// ForgetTypes drops what is known of types that ALTER TYPE and ALTER DOMAIN may
// have changed: those that are not the server's own.
func (c *Catalog) ForgetTypes() {
	const firstNormalOID = 16384
	for oid := range c.types {
		if oid >= firstNormalOID {
			delete(c.types, oid)
		}
	}
}

func indexes(ctx context.Context, conn *pgconn.PgConn, in string, byOID map[uint32]*Table) error {
	rows, err := Query(ctx, conn, `SELECT i.indrelid, c.relname, i.indisprimary, i.indisreplident, array_to_string((i.indkey::int2[])[0:i.indnkeyatts - 1], ' ')
		FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
		WHERE i.indrelid = ANY($1::oid[]) AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indimmediate
		ORDER BY i.indrelid, i.indisprimary DESC, c.relname`, in)
	if err != nil {
		return err
	}
	for _, r := range rows {
		t := byOID[u32(r[0])]
		if t == nil {
			continue
		}
		var places []int
		for _, num := range strings.Fields(string(r[4])) {
			n, _ := strconv.Atoi(num)
			places = append(places, slices.IndexFunc(t.Columns, func(c Column) bool { return c.Num == n }))
		}
		if len(places) == 0 || slices.Contains(places, -1) {
			continue // on a generated column
		}
		if string(r[2]) == "t" {
			t.Primary = places
		} else {
			t.Uniques = append(t.Uniques, Unique{string(r[1]), places})
		}
		if string(r[3]) == "t" {
			t.Replica = places
		}
	}
	return nil
}

func foreign(ctx context.Context, conn *pgconn.PgConn, in string, byOID map[uint32]*Table) error {
	rows, err := Query(ctx, conn, `SELECT k.conrelid, k.conname, array_to_string(k.conkey, ' '), n.nspname, r.relname, k.confdeltype, k.confupdtype,
			(SELECT string_agg(a.attname, E'\x01' ORDER BY o.i) FROM unnest(k.confkey) WITH ORDINALITY o(num, i) JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = o.num)
		FROM pg_constraint k JOIN pg_class r ON r.oid = k.confrelid JOIN pg_namespace n ON n.oid = r.relnamespace
		WHERE k.conrelid = ANY($1::oid[]) AND k.contype = 'f' ORDER BY k.conrelid, k.conname`, in)
	if err != nil {
		return err
	}
	actions := map[byte]string{'c': "CASCADE", 'n': "SET NULL", 'd': "SET DEFAULT"}
	for _, r := range rows {
		t := byOID[u32(r[0])]
		if t == nil {
			continue
		}
		f := batch.ForeignKey{
			Name: string(r[1]), RefSchema: string(r[3]), RefTable: string(r[4]), RefColumns: strings.Split(string(r[7]), "\x01"),
			OnDelete: actions[r[5][0]], OnUpdate: actions[r[6][0]],
		}
		for _, num := range strings.Fields(string(r[2])) {
			n, _ := strconv.Atoi(num)
			f.Columns = append(f.Columns, slices.IndexFunc(t.Columns, func(c Column) bool { return c.Num == n }))
		}
		if !slices.Contains(f.Columns, -1) {
			t.Foreign = append(t.Foreign, f)
		}
	}
	return nil
}

func u32(p []byte) uint32 {
	v, _ := strconv.ParseUint(string(p), 10, 32)
	return uint32(v)
}
