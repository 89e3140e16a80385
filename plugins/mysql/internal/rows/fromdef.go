package rows

import (
	"github.com/datalink-go/datalink/plugins/internal/charset"
	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/schema"
	"github.com/datalink-go/datalink/sdk/batch"
)

// SchemaOf returns the schema that rows of a table with that definition have.
func SchemaOf(def *schema.Table, opt Options) (*batch.Schema, error) {
	l, err := NewLayout(mapTable(def, opt), def, opt)
	if err != nil {
		return nil, err
	}
	return l.Schema, nil
}

// mapTable is the table map of a table with that definition.
func mapTable(def *schema.Table, opt Options) *TableMap {
	tm := &TableMap{Database: def.Database, Table: def.Name, HasNames: true}
	for i := range def.Columns {
		if c := &def.Columns[i]; !c.Functional {
			tm.Columns = append(tm.Columns, mapOf(c, opt.Format.MariaDB))
		}
	}
	return tm
}

// ColumnOf returns a column as rows have it.
func ColumnOf(def *schema.Column, f *binlog.Format) (batch.Column, error) {
	cm := mapOf(def, f.MariaDB)
	var c column
	bc, err := c.make(&cm, def, f.MariaDB)
	bc.Name = def.Name
	return bc, err
}

// mapOf is what a table map says about a column with that definition.
func mapOf(dc *schema.Column, maria bool) ColumnMap {
	cm := ColumnMap{Name: dc.Name, Nullable: !dc.NotNull, Hidden: dc.Hidden}
	if types := wireTypes(dc, maria); len(types) > 0 {
		cm.Type = types[len(types)-1]
	}
	width := charset.MaxLen(dc.Charset)
	switch dc.Base {
	case "tinyint", "smallint", "mediumint", "int", "bigint", "year", "date":
		cm.Type = wireTypes(dc, maria)[0]
	case "float":
		cm.Type, cm.Meta = typeFloat, 4
	case "double":
		cm.Type, cm.Meta = typeDouble, 8
	case "decimal":
		cm.Meta = uint16(dc.Length)<<8 | uint16(max(dc.Scale, 0))
	case "bit":
		cm.Meta = uint16(dc.Length/8)<<8 | uint16(dc.Length%8)
	case "time", "datetime", "timestamp":
		cm.Meta = uint16(max(dc.Length, 0))
	case "char", "binary":
		cm.Meta = uint16(dc.Length * width)
	case "uuid", "inet6":
		cm.Meta = 16
	case "inet4":
		cm.Meta = 4
	case "varchar", "varbinary":
		cm.Type, cm.Meta = typeVarchar, uint16(min(max(dc.Length, 0)*width, 65535))
	case "enum":
		cm.Meta = 1
		if len(dc.Labels) > 255 {
			cm.Meta = 2
		}
	case "set":
		if cm.Meta = uint16((len(dc.Labels) + 7) / 8); cm.Meta > 4 {
			cm.Meta = 8
		} else if cm.Meta == 0 {
			cm.Meta = 1
		}
	case "vector":
		cm.Type, cm.Meta = typeVector, 4
	default:
		cm.Meta = 4
		if dc.Base != "json" || maria {
			if n := blobSize(dc); n > 0 {
				cm.Meta = uint16(n)
			} else if cm.Type == typeBlobCompr || cm.Type == typeBlob {
				cm.Type, cm.Meta = typeBlob, blobFor(max(dc.Length, 0)*width)
			}
			if cm.Type == typeBlobCompr {
				cm.Type = typeBlob
			}
		}
	}
	return cm
}

// blobFor is the length size of the smallest BLOB that holds n bytes.
func blobFor(n int) uint16 {
	switch {
	case n < 1<<8:
		return 1
	case n < 1<<16:
		return 2
	case n < 1<<24:
		return 3
	}
	return 4
}
