package mysql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk/batch"
)

// dialect writes and judges column types for one of the two servers.
type dialect struct {
	names
	maria      bool
	collations map[string]string // that the server has, with their charsets
}

var _ target.Dialect = (*dialect)(nil)

// TableName writes the quoted name of a table.
func (*dialect) TableName(database, name string) string { return tableName(database, name) }

// exact is the collation that tells apart whatever differs in a byte, trailing
// blanks too.
func (d *dialect) exact() string {
	if d.maria {
		return "utf8mb4_nopad_bin"
	}
	return "utf8mb4_0900_bin"
}

// text writes charset and collation of a text column: the source's where the
// server has them, else those that tell apart the most.
func (d *dialect) text(c *batch.Column) string {
	name := strings.ToLower(c.Collation)
	if name == "utf8mb3_bin" || strings.HasPrefix(name, "utf8_") {
		if _, ok := d.collations[name]; !ok {
			name = "utf8mb3_" + strings.TrimPrefix(strings.TrimPrefix(name, "utf8_"), "utf8mb3_")
		}
	}
	if cs, ok := d.collations[name]; ok && cs != "binary" && cs != "" {
		return " CHARACTER SET " + cs + " COLLATE " + name
	}
	return " CHARACTER SET utf8mb4 COLLATE " + d.exact()
}

// Type writes the type of the column that holds the values of c. Key says that it
// has to be short enough for an index.
func (d *dialect) Type(c *batch.Column, key bool) string {
	native := strings.ToLower(c.Native)
	switch c.Type {
	case batch.Bool:
		return "tinyint(1)"
	case batch.Int8:
		return "tinyint"
	case batch.Int16:
		return "smallint"
	case batch.Int32:
		if strings.HasPrefix(native, "mediumint") {
			return "mediumint"
		}
		return "int"
	case batch.Int64:
		return "bigint"
	case batch.Uint8:
		return "tinyint unsigned"
	case batch.Uint16:
		return "smallint unsigned"
	case batch.Uint32:
		if strings.HasPrefix(native, "mediumint") {
			return "mediumint unsigned"
		}
		return "int unsigned"
	case batch.Uint64:
		return "bigint unsigned"
	case batch.Float32:
		return "float"
	case batch.Float64:
		return "double"
	case batch.Decimal:
		if c.Precision == 0 {
			return "decimal(65,30)"
		}
		return fmt.Sprintf("decimal(%d,%d)", min(c.Precision, 65), min(c.Scale, 30, c.Precision))
	case batch.Bit:
		if c.Length >= 1 && c.Length <= 64 {
			return fmt.Sprintf("bit(%d)", c.Length)
		}
		return d.bytes(c.Length/8+1, key, "")
	case batch.Date:
		return "date"
	case batch.Time:
		return fraction("time", c)
	case batch.DateTime:
		return fraction("datetime", c)
	case batch.Timestamp:
		if isTimestamp(native) {
			return fraction("timestamp", c)
		}
		return fraction("datetime", c)
	case batch.Year:
		return "year"
	case batch.JSON:
		return "json"
	case batch.String:
		return d.string(c, key, native) + d.text(c)
	case batch.Bytes:
		if strings.HasPrefix(native, "binary(") && c.Length > 0 && c.Length <= 255 {
			return fmt.Sprintf("binary(%d)", c.Length)
		}
		return d.bytes(c.Length, key, native)
	case batch.Enum, batch.Set:
		if len(c.Values) == 0 || c.Type == batch.Set && len(c.Values) > 64 {
			return "varchar(512)" + d.text(c)
		}
		base := "enum("
		if c.Type == batch.Set {
			base = "set("
		}
		labels := make([]string, len(c.Values))
		for i, v := range c.Values {
			labels[i] = literal(v)
		}
		return base + strings.Join(labels, ",") + ")" + d.text(c)
	case batch.Geometry:
		for _, g := range []string{"point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection", "geomcollection"} {
			if native == g {
				return g
			}
		}
		return "geometry"
	case batch.UUID:
		if d.maria {
			return "uuid"
		}
		return "char(36) CHARACTER SET ascii COLLATE ascii_bin"
	case batch.Vector:
		if !d.maria && c.Length > 0 && c.Length <= 16383 {
			return fmt.Sprintf("vector(%d)", c.Length)
		}
		return d.bytes(4*c.Length, key, "")
	case batch.Interval:
		return "varchar(80) CHARACTER SET ascii COLLATE ascii_bin"
	case batch.TimeTZ, batch.Inet:
		return "varchar(50) CHARACTER SET ascii COLLATE ascii_bin"
	case batch.Map, batch.Native:
		if c.Flags&batch.TextValue != 0 {
			if key {
				return "varchar(190)" + d.text(c)
			}
			return "longtext" + d.text(c)
		}
	}
	return d.bytes(0, key, "")
}

// isTimestamp reports whether the source's type is the timestamp of MySQL, whose
// range ends in 2038: those of other sources become datetime, in UTC.
func isTimestamp(native string) bool {
	base, _, _ := strings.Cut(native, "(")
	return strings.TrimSpace(base) == "timestamp" && !strings.Contains(native, "zone")
}

func fraction(base string, c *batch.Column) string {
	if c.Scale == 0 {
		return base
	}
	return fmt.Sprintf("%s(%d)", base, min(c.Scale, 6))
}

// string is a text type without its charset. Texts of up to 16383 characters fit
// into a varchar of every charset; a row holds 65535 bytes of them, so only what
// the source declared so becomes one.
func (d *dialect) string(c *batch.Column, key bool, native string) string {
	switch {
	case strings.HasPrefix(native, "char(") && c.Length > 0 && c.Length <= 255:
		return fmt.Sprintf("char(%d)", c.Length)
	case native == "tinytext", native == "text", native == "mediumtext", native == "longtext":
		if !key {
			return native
		}
		return "varchar(190)"
	case c.Length > 0 && c.Length <= 16383 && (key && c.Length <= 768 || !key):
		return fmt.Sprintf("varchar(%d)", c.Length)
	case key:
		return "varchar(190)"
	}
	return "longtext"
}

func (d *dialect) bytes(length uint32, key bool, native string) string {
	switch {
	case native == "tinyblob", native == "blob", native == "mediumblob", native == "longblob":
		if !key {
			return native
		}
		return "varbinary(760)"
	case length > 0 && length <= 16383 && (!key || length <= 3072):
		return fmt.Sprintf("varbinary(%d)", length)
	case key:
		return "varbinary(760)"
	}
	return "longblob"
}

// Define writes a column's definition.
func (d *dialect) Define(c *batch.Column, key bool) string {
	null := " NULL"
	if key {
		null = " NOT NULL"
	}
	return quote(c.Name) + " " + d.Type(c, key) + null
}

// AddColumn writes the statement that adds a column.
func (d *dialect) AddColumn(t *target.Table, c *batch.Column) string {
	return "ALTER TABLE " + tableName(t.Namespace, t.Name) + " ADD COLUMN " + d.Define(c, false)
}

// Retype writes the statement that gives a column the type it needs.
func (d *dialect) Retype(t *target.Table, have *target.Column, c *batch.Column, key bool) string {
	to := *c
	to.Name = have.Name
	text := d.Define(&to, key)
	if !have.Nullable && !key {
		text = strings.TrimSuffix(text, " NULL") + " NOT NULL"
	}
	return "ALTER TABLE " + tableName(t.Namespace, t.Name) + " MODIFY COLUMN " + text
}

// AddKey writes the statement that makes the key rows are found by.
func (d *dialect) AddKey(t *target.Table, columns []string) string {
	on := "(" + target.List(d, columns) + ")"
	if !slices.ContainsFunc(t.Uniques, func(u target.Unique) bool { return u.Primary }) {
		return "ALTER TABLE " + tableName(t.Namespace, t.Name) + " ADD PRIMARY KEY " + on
	}
	return "ALTER TABLE " + tableName(t.Namespace, t.Name) + " ADD UNIQUE KEY datalink_key " + on
}

// Folded says whether the column's collation takes different bytes for equal. All
// but the binary ones without padding do.
func (d *dialect) Folded(have *target.Column) bool {
	switch name := strings.ToLower(have.Collation); {
	case name == "", name == "binary", name == "utf8mb4_0900_bin", strings.HasSuffix(name, "_nopad_bin"):
		return false
	}
	return true
}

// create writes the statement that makes the table of a schema, with its key as
// primary key. Other keys and NOT NULL stay at the source, which has checked
// them: here they would only demand an order of changes.
func (d *dialect) create(s *batch.Schema, database, table string) string {
	var parts []string
	for i := range s.Columns {
		parts = append(parts, d.Define(&s.Columns[i], slices.Contains(s.Key, i)))
	}
	if len(s.Key) > 0 {
		parts = append(parts, "PRIMARY KEY ("+target.List(d, target.KeyNames(s))+")")
	}
	return "CREATE TABLE IF NOT EXISTS " + tableName(database, table) + " (" + strings.Join(parts, ", ") + ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
}
