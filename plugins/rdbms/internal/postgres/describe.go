package postgres

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
)

// table is a table of the target as PostgreSQL describes it.
type table struct {
	target.Table
	oid      int64
	cols     []info // beside Table.Columns
	keys     []keyInfo
	truncate bool // the user may TRUNCATE it
	triggers string
}

// info is what an encoder needs to know of a column.
type info struct {
	oid      uint32 // of the type; of the type under a domain
	mod      int32
	category byte   // of the type
	kind     byte   // b base, d domain, e enum, c composite, r range
	cast     string // the type without a modifier, for casts from text
	array    uint32
	always   bool // GENERATED ALWAYS AS IDENTITY
	folds    bool // its collation, or type, takes different bytes for equal
	c        bool // its collation orders by bytes
}

type keyInfo struct {
	deferrable bool
	exclusion  bool
}

const describeTable = `SELECT c.oid::bigint, c.relkind, c.relpersistence, c.relname,
 EXISTS (SELECT 1 FROM pg_catalog.pg_constraint f WHERE f.contype = 'f' AND f.confrelid = c.oid),
 has_table_privilege(c.oid, 'TRUNCATE'),
 (SELECT coalesce(string_agg(g.tgname, ', '), '') FROM pg_catalog.pg_trigger g WHERE g.tgrelid = c.oid AND NOT g.tgisinternal
  AND g.tgenabled = ANY (CASE current_setting('session_replication_role') WHEN 'replica' THEN ARRAY['A','R'] ELSE ARRAY['A','O'] END::"char"[]))
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relkind IN ('r','p','v','m','f') AND lower(c.relname) = lower($2) ORDER BY c.relname <> $2, c.relname`

const describeColumns = `SELECT a.attname, format_type(a.atttypid, a.atttypmod), t.typtype,
 CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE a.atttypid END::bigint, CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END,
 NOT a.attnotnull AND NOT t.typnotnull, a.atthasdef OR t.typdefault IS NOT NULL, a.attidentity, a.attgenerated,
 coalesce(co.collname, ''), coalesce(NOT (to_jsonb(co)->>'collisdeterministic')::boolean, false) OR b.typname = 'citext' OR b.oid = 1042,
 b.typcategory, format_type(a.atttypid, -1), b.typarray::bigint, b.typtype
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
JOIN pg_catalog.pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
LEFT JOIN pg_catalog.pg_collation co ON co.oid = a.attcollation
WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`

const describeKeys = `SELECT x.relname, i.indisprimary, i.indpred IS NULL AND i.indexprs IS NULL,
 (SELECT json_agg(a.attname ORDER BY k.n) FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(att, n)
  JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.att WHERE k.n <= i.indnkeyatts),
 coalesce((to_jsonb(i)->>'indnullsnotdistinct')::boolean, false), NOT i.indimmediate, i.indisexclusion
FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid
WHERE i.indrelid = $1::oid AND (i.indisunique OR i.indisexclusion) AND i.indisvalid AND i.indislive ORDER BY i.indisprimary DESC, NOT i.indimmediate, x.relname`

const describeForeign = `SELECT f.conname, n.nspname, r.relname,
 (SELECT json_agg(a.attname ORDER BY k.n) FROM unnest(f.conkey) WITH ORDINALITY AS k(att, n) JOIN pg_catalog.pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = k.att),
 (SELECT json_agg(a.attname ORDER BY k.n) FROM unnest(f.confkey) WITH ORDINALITY AS k(att, n) JOIN pg_catalog.pg_attribute a ON a.attrelid = f.confrelid AND a.attnum = k.att),
 f.confdeltype, f.confupdtype
FROM pg_catalog.pg_constraint f JOIN pg_catalog.pg_class r ON r.oid = f.confrelid JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace
WHERE f.contype = 'f' AND f.conrelid = $1::oid AND f.conparentid = 0 ORDER BY f.conname`

var actions = map[string]string{"c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}

// describe reads the layout of a table, nil where there is none. A name that
// differs in the case of letters counts where no other is there.
func describe(ctx context.Context, s *session, namespace, name string) (*table, error) {
	rows, err := s.query(ctx, describeTable, namespace, name)
	if err != nil || len(rows) == 0 || len(rows) > 1 && rows[0].text(3) != name {
		return nil, err
	}
	r := rows[0]
	t := &table{oid: r.int(0), truncate: r.bool(5), triggers: r.text(6)}
	t.Namespace, t.Name, t.Referenced = namespace, r.text(3), r.bool(4)
	full := tableName(namespace, t.Name)
	switch r.text(1) {
	case "v", "m", "f":
		what := map[string]string{"v": "view", "m": "materialized view", "f": "foreign table"}[r.text(1)]
		t.Faults = append(t.Faults, target.Fault{Found: "it is a " + what + ", expected a table", Mend: "drop the " + what + " or give the source table another name by a mapping"})
	}
	if r.text(2) == "u" {
		t.Faults = append(t.Faults, target.Fault{Found: "it is UNLOGGED: a crash of the server empties it, and the progress stays", Mend: "ALTER TABLE " + full + " SET LOGGED"})
	}
	t.Options = []string{r.text(1)}
	if err := t.describeColumns(ctx, s); err != nil {
		return nil, err
	}
	if err := t.describeKeys(ctx, s); err != nil {
		return nil, err
	}
	return t, t.describeForeign(ctx, s)
}

func (t *table) describeColumns(ctx context.Context, s *session) error {
	rows, err := s.query(ctx, describeColumns, t.oid)
	if err != nil {
		return err
	}
	for _, r := range rows {
		c := target.Column{Name: r.text(0), Type: r.text(1), Nullable: r.bool(5), HasValue: r.bool(6) || r.text(7) != "", Generated: r.text(8) != "", Collation: r.text(9)}
		i := info{
			oid: uint32(r.int(3)), mod: int32(r.int(4)), always: r.text(7) == "a", folds: r.bool(10), category: r.text(11)[0],
			cast: r.text(12), array: uint32(r.int(13)), kind: r.text(14)[0], c: r.text(9) == "C" || r.text(9) == "POSIX",
		}
		t.Columns, t.cols = append(t.Columns, c), append(t.cols, i)
	}
	return nil
}

func (t *table) places(names []byte) []int {
	var list []string
	_ = json.Unmarshal(names, &list)
	var out []int
	for _, n := range list {
		out = append(out, slices.IndexFunc(t.Columns, func(c target.Column) bool { return c.Name == n }))
	}
	return out
}

func (t *table) describeKeys(ctx context.Context, s *session) error {
	rows, err := s.query(ctx, describeKeys, t.oid)
	if err != nil {
		return err
	}
	for _, r := range rows {
		t.Uniques = append(t.Uniques, target.Unique{
			Name: r.text(0), Primary: r.bool(1), Plain: r.bool(2) && !r.bool(6), Columns: t.places(r[3]), NullsEqual: r.bool(4),
		})
		t.keys = append(t.keys, keyInfo{deferrable: r.bool(5), exclusion: r.bool(6)})
	}
	return nil
}

func (t *table) describeForeign(ctx context.Context, s *session) error {
	rows, err := s.query(ctx, describeForeign, t.oid)
	if err != nil {
		return err
	}
	for _, r := range rows {
		f := target.ForeignKey{Name: r.text(0), RefNamespace: r.text(1), RefTable: r.text(2), Columns: t.places(r[3]), OnDelete: actions[r.text(5)], OnUpdate: actions[r.text(6)]}
		if err := json.Unmarshal(r[4], &f.RefColumns); err != nil {
			return err
		}
		t.ForeignKeys = append(t.ForeignKeys, f)
	}
	return nil
}

// limit is the n of varchar(n), char(n), bit(n), timestamp(n); -1 = none.
func (i *info) limit() int {
	switch i.oid {
	case oidVarchar, oidBpchar:
		if i.mod >= 4 {
			return int(i.mod) - 4
		}
	case oidBit, oidVarbit, oidTime, oidTimeTZ, oidTimestamp, oidTimestampTZ:
		if i.mod >= 0 {
			return int(i.mod)
		}
	}
	return -1
}

// digits are the precision and scale of numeric(p,s); ok is false where there are
// none.
func (i *info) digits() (p, s int, ok bool) {
	if i.oid != oidNumeric || i.mod < 4 {
		return 0, 0, false
	}
	m := i.mod - 4
	s = int(m & 0x7ff)
	if s >= 1024 {
		s -= 2048
	}
	return int(m>>16) & 0xffff, s, true
}

func tableName(namespace, name string) string { return quote(namespace) + "." + quote(name) }

// typeText names a type of a column definition with its numbers.
func typeText(name string, numbers ...int) string {
	var parts []string
	for _, n := range numbers {
		parts = append(parts, strconv.Itoa(n))
	}
	return name + "(" + strings.Join(parts, ",") + ")"
}
