package rows

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/plugins/internal/charset"
	"github.com/datalink-go/datalink/plugins/mysql/internal/decimal"
	"github.com/datalink-go/datalink/plugins/mysql/internal/schema"
	"github.com/datalink-go/datalink/sdk/batch"
)

// op says how the bytes of a value are read.
type op uint8

const (
	opInt8 op = iota
	opUint8
	opInt16
	opUint16
	opInt24
	opUint24
	opInt32
	opUint32
	opInt64
	opUint64
	opFloat32
	opFloat64
	opDecimal
	opYear
	opBit
	opDate
	opTime
	opTime2
	opDateTime
	opDateTime2
	opTimestamp
	opTimestamp2
	opText   // length, then characters
	opBytes  // length, then bytes
	opPadded // length, then bytes that are padded with NULs to meta
	opEnum
	opSet
	opJSON
	opGeometry
	opVector
	opUUID
	opInet6
	opInet4
	opTextCompr // MariaDB: length, then a compressed column value
	opBytesCompr
)

// make decides how values of a column are read and what they become.
func (c *column) make(cm *ColumnMap, dc *schema.Column, maria bool) (batch.Column, error) {
	bc := batch.Column{}
	if cm.Nullable {
		bc.Flags |= batch.Nullable
	}
	if cm.Hidden {
		bc.Flags |= batch.Hidden
	}
	if dc != nil {
		bc.Default = dc.Default
		bc.SRID = dc.SRID
		for _, f := range []struct {
			on bool
			f  batch.ColumnFlags
		}{{dc.Auto, batch.AutoIncrement}, {dc.Generated, batch.Generated}, {dc.Virtual, batch.Virtual}, {dc.Hidden, batch.Hidden}} {
			if f.on {
				bc.Flags |= f.f
			}
		}
	}
	if dc != nil && dc.Length > 0 && (cm.Type == typeTime || cm.Type == typeDateTime || cm.Type == typeTimestamp) {
		return bc, fmt.Errorf("%w: %s in the format of MariaDB before 10.1 (mysql56_temporal_format=OFF), whose size the log does not tell; rebuild the table (ALTER TABLE … FORCE) at the source", ErrUnknownTable, dc.Native)
	}
	unsigned := cm.Signed < 0 || cm.Signed == 0 && dc != nil && dc.Unsigned
	ints := func(name string, size int, signed op, t, u batch.Type) {
		c.op, c.size, bc.Type, bc.Native = signed, size, t, name
		if unsigned {
			c.op, bc.Type, bc.Native = signed+1, u, name+" unsigned"
		}
		if dc != nil && dc.Unsigned == unsigned {
			bc.Native = dc.Native
		}
	}
	fraction := func(name string) {
		c.scale, bc.Scale, bc.Native = uint8(cm.Meta), uint32(cm.Meta), name
		if cm.Meta > 0 {
			bc.Native = fmt.Sprintf("%s(%d)", name, cm.Meta)
		}
	}
	switch cm.Type {
	case typeTiny:
		ints("tinyint", 1, opInt8, batch.Int8, batch.Uint8)
	case typeShort:
		ints("smallint", 2, opInt16, batch.Int16, batch.Uint16)
	case typeInt24:
		ints("mediumint", 3, opInt24, batch.Int32, batch.Uint32)
	case typeLong:
		ints("int", 4, opInt32, batch.Int32, batch.Uint32)
	case typeLongLong:
		ints("bigint", 8, opInt64, batch.Int64, batch.Uint64)
	case typeFloat:
		c.op, c.size, bc.Type, bc.Native = opFloat32, 4, batch.Float32, "float"
		if cm.Meta == 8 {
			c.op, c.size, bc.Type, bc.Native = opFloat64, 8, batch.Float64, "double"
		}
	case typeDouble:
		c.op, c.size, bc.Type, bc.Native = opFloat64, 8, batch.Float64, "double"
	case typeNewDecimal:
		p, s := int(cm.Meta>>8), int(cm.Meta&0xFF)
		if p < 1 || p > 65 || s > p {
			return bc, fmt.Errorf("%w: decimal(%d,%d)", ErrCorrupt, p, s)
		}
		c.op, c.prec, c.scale, c.size = opDecimal, uint8(p), uint8(s), decimal.Size(p, s)
		bc.Type, bc.Precision, bc.Scale, bc.Native = batch.Decimal, uint32(p), uint32(s), fmt.Sprintf("decimal(%d,%d)", p, s)
	case typeYear:
		c.op, c.size, bc.Type, bc.Native = opYear, 1, batch.Year, "year"
	case typeBit:
		n := int(cm.Meta>>8)*8 + int(cm.Meta&0xFF)
		if n < 1 || n > 64 {
			return bc, fmt.Errorf("%w: bit(%d)", ErrCorrupt, n)
		}
		c.op, c.size, bc.Type, bc.Length, bc.Native = opBit, (n+7)/8, batch.Bit, uint32(n), fmt.Sprintf("bit(%d)", n)
	case typeDate, typeNewDate:
		c.op, c.size, bc.Type, bc.Native = opDate, 3, batch.Date, "date"
	case typeTime:
		c.op, c.size, bc.Type, bc.Native = opTime, 3, batch.Time, "time"
	case typeDateTime:
		c.op, c.size, bc.Type, bc.Native = opDateTime, 8, batch.DateTime, "datetime"
	case typeTimestamp:
		c.op, c.size, bc.Type, bc.Native = opTimestamp, 4, batch.Timestamp, "timestamp"
	case typeTime2, typeDateTime2, typeTimestamp2:
		if cm.Meta > 6 {
			return bc, fmt.Errorf("%w: %d fractional digits", ErrCorrupt, cm.Meta)
		}
		frac := (int(cm.Meta) + 1) / 2
		switch cm.Type {
		case typeTime2:
			c.op, c.size, bc.Type = opTime2, 3+frac, batch.Time
			fraction("time")
		case typeDateTime2:
			c.op, c.size, bc.Type = opDateTime2, 5+frac, batch.DateTime
			fraction("datetime")
		default:
			c.op, c.size, bc.Type = opTimestamp2, 4+frac, batch.Timestamp
			fraction("timestamp")
		}
	case typeVarchar, typeVarString, typeString, typeVarcharCompr:
		c.meta, c.size = cm.Meta, 1
		if cm.Meta > 255 {
			c.size = 2
		}
		return bc, c.text(cm, dc, &bc)
	case typeBlob, typeTinyBlob, typeMediumBlob, typeLongBlob, typeBlobCompr:
		if cm.Meta < 1 || cm.Meta > 4 {
			return bc, fmt.Errorf("%w: blob with lengths of %d bytes", ErrCorrupt, cm.Meta)
		}
		c.size = int(cm.Meta)
		return bc, c.text(cm, dc, &bc)
	case typeEnum, typeSet:
		return bc, c.labelled(cm, dc, &bc)
	case typeJSON:
		c.op, c.size, c.json, bc.Type, bc.Native = opJSON, int(cm.Meta), true, batch.JSON, "json"
	case typeGeometry:
		c.op, c.size, bc.Type = opGeometry, int(cm.Meta), batch.Geometry
		names := [...]string{"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geomcollection"}
		bc.Native = names[min(int(cm.Geometry), len(names)-1)]
		if cm.Geometry == 0 && dc != nil {
			bc.Native = dc.Base
		}
	case typeVector:
		c.op, c.size, bc.Type, bc.Native = opVector, int(cm.Meta), batch.Vector, "vector"
		bc.Length = cm.Dims
		if bc.Length == 0 && dc != nil && dc.Length > 0 {
			bc.Length = uint32(dc.Length)
		}
		if bc.Length > 0 {
			bc.Native = fmt.Sprintf("vector(%d)", bc.Length)
		}
	case typeDecimal:
		return bc, fmt.Errorf("%w: decimal of MySQL before 5.0; rebuild the table (ALTER TABLE … FORCE) at the source", ErrUnknownTable)
	default:
		return bc, fmt.Errorf("%w: column type %d cannot be in a row", ErrCorrupt, cm.Type)
	}
	switch {
	case c.size < 1 || c.size > 1<<10, (c.op == opJSON || c.op == opGeometry || c.op == opVector) && c.size > 4:
		return bc, fmt.Errorf("%w: column type %d with lengths of %d bytes", ErrCorrupt, cm.Type, c.size)
	}
	return bc, nil
}

// text decides about strings of all kinds: their character set says whether they
// are text or bytes, and MariaDB sends some types as bytes that only the
// statement names.
func (c *column) text(cm *ColumnMap, dc *schema.Column, bc *batch.Column) error {
	cs, coll := "", ""
	if cm.Collation != 0 {
		info, ok := charset.ByID(cm.Collation)
		if !ok {
			// Later servers add collations: bytes travel raw under the number.
			info.Name = "collation " + strconv.Itoa(int(cm.Collation))
			info.Charset = info.Name
		}
		cs, coll = info.Charset, info.Name
	} else if dc != nil {
		cs, coll = dc.Charset, dc.Collation
		if cs == "" {
			cs, coll = "binary", "binary"
		}
	}
	compressed := cm.Type == typeVarcharCompr || cm.Type == typeBlobCompr
	if dc != nil && cm.Type == typeString {
		switch {
		case dc.Base == "uuid" && cm.Meta == 16:
			c.op, bc.Type, bc.Native = opUUID, batch.UUID, "uuid"
			return nil
		case dc.Base == "inet6" && cm.Meta == 16:
			c.op, bc.Type, bc.Native = opInet6, batch.Inet, "inet6"
			return nil
		case dc.Base == "inet4" && cm.Meta == 4:
			c.op, bc.Type, bc.Native = opInet4, batch.Inet, "inet4"
			return nil
		}
	}
	bc.Native = nativeText(cm, cs)
	if dc != nil && dc.Native != "" {
		bc.Native = dc.Native
	}
	if cs == "" || cs == "binary" {
		// Without a character set the bytes are all that is known.
		c.op, bc.Type = opBytes, batch.Bytes
		if cm.Type == typeString && cs == "binary" {
			c.op = opPadded
		}
		if compressed {
			c.op = opBytesCompr
		}
		if cm.Type != typeBlob && cm.Type != typeBlobCompr {
			bc.Length = uint32(cm.Meta)
		}
		return nil
	}
	c.op, bc.Type, bc.Charset, bc.Collation = opText, batch.String, cs, coll
	if compressed {
		c.op = opTextCompr
	}
	if c.size <= 2 && cm.Type != typeBlob && cm.Type != typeBlobCompr {
		bc.Length = uint32(int(cm.Meta) / charset.MaxLen(cs))
	}
	c.name, c.utf8, c.ascii, c.decode = cs, charset.UTF8(cs), cs == "ascii", charset.For(cs)
	return nil
}

func nativeText(cm *ColumnMap, cs string) string {
	bin := cs == "binary" || cs == ""
	n := int(cm.Meta) / charset.MaxLen(cs)
	pick := func(b, t string) string {
		if bin {
			return b
		}
		return t
	}
	switch cm.Type {
	case typeString:
		return fmt.Sprintf("%s(%d)", pick("binary", "char"), n)
	case typeVarchar, typeVarString, typeVarcharCompr:
		return fmt.Sprintf("%s(%d)", pick("varbinary", "varchar"), n)
	}
	return [...]string{"", "tiny", "", "medium", "long"}[cm.Meta] + pick("blob", "text")
}

func (c *column) labelled(cm *ColumnMap, dc *schema.Column, bc *batch.Column) error {
	name := "enum"
	c.op, bc.Type = opEnum, batch.Enum
	if cm.Type == typeSet {
		name, c.op, bc.Type = "set", opSet, batch.Set
	}
	c.size = int(cm.Meta)
	if c.size < 1 || c.size > 8 || name == "enum" && c.size > 2 {
		return fmt.Errorf("%w: %s of %d bytes", ErrCorrupt, name, c.size)
	}
	c.name = name + " index"
	switch {
	case cm.HasLabels:
		cs := "utf8mb4"
		if info, ok := charset.ByID(cm.Collation); ok && cm.Collation != 0 {
			cs, bc.Charset, bc.Collation = info.Charset, info.Charset, info.Name
		}
		for _, l := range cm.Labels {
			u := l
			if dec := charset.For(cs); dec != nil {
				if out, ok := dec(nil, []byte(l)); ok {
					u = string(out)
				}
			}
			c.labels = append(c.labels, u)
		}
	case dc != nil:
		c.labels = slices.Clone(dc.Labels)
		bc.Charset, bc.Collation = dc.Charset, dc.Collation
	default:
		// Positional: the number is all there is, and says so.
		bc.Type = batch.Native
		bc.Native = name
		bc.Flags |= batch.TextValue
		return nil
	}
	bc.Values = c.labels
	quoted := make([]string, len(c.labels))
	for i, l := range c.labels {
		quoted[i] = "'" + strings.ReplaceAll(l, "'", "''") + "'"
	}
	bc.Native = name + "(" + strings.Join(quoted, ",") + ")"
	return nil
}

// fits says why the type of a column in the log cannot be that of the
// definition; "" when it can.
func fits(cm *ColumnMap, dc *schema.Column, maria bool) string {
	want := wireTypes(dc, maria)
	if want == nil || dc.Functional {
		return ""
	}
	ok := slices.Contains(want, cm.Type)
	if ok && cm.Type == typeBlob && dc.Base != "json" {
		if n := blobSize(dc); n != 0 {
			ok = int(cm.Meta) == n
		}
	}
	if ok && cm.Type == typeNewDecimal && dc.Length >= 0 {
		ok = int(cm.Meta>>8) == dc.Length && int(cm.Meta&0xFF) == max(dc.Scale, 0)
	}
	if ok && (cm.Type == typeVarchar || cm.Type == typeString) && dc.Length >= 0 {
		cs := dc.Charset
		if info, known := charset.ByID(cm.Collation); known && cm.Collation != 0 {
			cs = info.Charset
		}
		if cs != "" && cs != "binary" {
			ok = int(cm.Meta) == dc.Length*charset.MaxLen(cs)
		} else {
			ok = int(cm.Meta) == dc.Length
		}
	}
	if ok && (cm.Type == typeTime2 || cm.Type == typeDateTime2 || cm.Type == typeTimestamp2) {
		ok = int(cm.Meta) == max(dc.Length, 0)
	}
	if !ok {
		return fmt.Sprintf("the log has type %d (metadata %d), the statements give %s for %s", cm.Type, cm.Meta, dc.Native, dc.Name)
	}
	return ""
}

func blobSize(dc *schema.Column) int {
	switch dc.Base {
	case "tinyblob", "tinytext":
		return 1
	case "blob", "text":
		if dc.Length < 0 {
			return 2
		}
	case "mediumblob", "mediumtext":
		return 3
	case "longblob", "longtext":
		return 4
	}
	return 0
}

func wireTypes(dc *schema.Column, maria bool) []uint8 {
	switch dc.Base {
	case "tinyint", "bool", "boolean":
		return []uint8{typeTiny}
	case "smallint":
		return []uint8{typeShort}
	case "mediumint":
		return []uint8{typeInt24}
	case "int", "integer":
		return []uint8{typeLong}
	case "bigint", "serial":
		return []uint8{typeLongLong}
	case "float":
		return []uint8{typeFloat, typeDouble}
	case "double", "real":
		return []uint8{typeDouble, typeFloat}
	case "decimal":
		return []uint8{typeNewDecimal}
	case "bit":
		return []uint8{typeBit}
	case "year":
		return []uint8{typeYear}
	case "date":
		return []uint8{typeDate, typeNewDate}
	case "time":
		return []uint8{typeTime, typeTime2}
	case "datetime":
		return []uint8{typeDateTime, typeDateTime2}
	case "timestamp":
		return []uint8{typeTimestamp, typeTimestamp2}
	case "char", "binary", "uuid", "inet6", "inet4":
		return []uint8{typeString}
	case "varchar", "varbinary":
		return []uint8{typeVarchar, typeVarString, typeVarcharCompr}
	case "tinyblob", "tinytext", "blob", "text", "mediumblob", "mediumtext", "longblob", "longtext":
		return []uint8{typeBlob, typeBlobCompr}
	case "json":
		if maria {
			return []uint8{typeBlob, typeBlobCompr}
		}
		return []uint8{typeJSON}
	case "enum":
		return []uint8{typeEnum}
	case "set":
		return []uint8{typeSet}
	case "vector":
		return []uint8{typeVector, typeVarchar}
	case "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection", "geomcollection":
		return []uint8{typeGeometry}
	}
	return []uint8{}
}
