package schema

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/plugins/internal/charset"
)

// collations are the defaults that apply to columns without one of their own.
type collations struct{ charset, collation string }

// extras is what a column definition says beside the column itself.
type extras struct {
	primary, unique bool
	after           string // column it stands after
	first           bool
	placed          bool
	fk              *ForeignKey
	versioned       bool // MariaDB: the column's history is kept, and with it the table's
}

// synonyms of types.
var synonyms = map[string]string{
	"int1": "tinyint", "int2": "smallint", "int3": "mediumint", "middleint": "mediumint", "int4": "int", "integer": "int", "int8": "bigint",
	"dec": "decimal", "fixed": "decimal", "numeric": "decimal", "number": "decimal", "float4": "float", "float8": "double", "real": "double",
	"character": "char", "nchar": "char", "nvarchar": "varchar", "varcharacter": "varchar", "varchar2": "varchar", "raw": "varbinary",
	"clob": "longtext", "geomcollection": "geometrycollection", "bool": "tinyint", "boolean": "tinyint", "serial": "bigint",
}

var knownTypes = map[string]bool{
	"tinyint": true, "smallint": true, "mediumint": true, "int": true, "bigint": true, "decimal": true, "float": true, "double": true, "bit": true,
	"date": true, "time": true, "datetime": true, "timestamp": true, "year": true,
	"char": true, "varchar": true, "binary": true, "varbinary": true, "tinyblob": true, "blob": true, "mediumblob": true, "longblob": true,
	"tinytext": true, "text": true, "mediumtext": true, "longtext": true, "enum": true, "set": true, "json": true, "vector": true,
	"geometry": true, "point": true, "linestring": true, "polygon": true, "multipoint": true, "multilinestring": true, "multipolygon": true,
	"geometrycollection": true, "uuid": true, "inet6": true, "inet4": true,
}

// column reads the definition that follows a column's name.
func (p *parser) column(name string) (Column, extras) {
	c := Column{Name: name, Length: -1, Scale: -1}
	var x extras
	national := p.take("NATIONAL")
	base := strings.ToLower(p.name())
	switch {
	case base == "long":
		base = "mediumtext"
		if p.take("VARBINARY") {
			base = "mediumblob"
		} else if p.take("VARCHAR") || p.take("CHAR", "VARYING") || p.take("CHARACTER", "VARYING") || p.take("VARCHARACTER") {
			base = "mediumtext"
		}
	case base == "double":
		p.take("PRECISION")
	case (base == "char" || base == "character" || base == "nchar") && (p.take("VARYING") || p.take("VARCHAR") || p.take("VARCHARACTER")):
		base, national = "varchar", national || base == "nchar"
	}
	national = national || base == "nchar" || base == "nvarchar"
	bool_ := base == "bool" || base == "boolean"
	serial := base == "serial"
	if s := synonyms[base]; s != "" {
		base = s
	}
	if !knownTypes[base] {
		p.refuse("type %s of column %s", base, name)
	}
	c.Base = base
	var args []string
	if p.is("(") {
		args = p.args(&c)
	}
	cs, coll, binaryAttr := "", "", false
	if national {
		cs = "utf8mb3"
	}
	switch {
	case serial:
		c.Unsigned, c.NotNull, c.Auto, x.unique = true, true, true, true
	case bool_:
		c.Length = 1
	}
	zerofill := false
	for !p.done() && !p.is(",") && !p.is(")") {
		switch {
		case p.take("UNSIGNED"):
			c.Unsigned = true
		case p.take("SIGNED"):
		case p.take("ZEROFILL"):
			c.Unsigned, zerofill = true, true
		case p.take("CHARACTER", "SET"), p.take("CHAR", "SET"), p.take("CHARSET"):
			p.take("=")
			cs = p.nameOrText()
		case p.take("ASCII"):
			cs = "latin1"
		case p.take("UNICODE"):
			cs = "ucs2"
		case p.take("BYTE"):
			cs = "binary"
		case p.take("BINARY"):
			binaryAttr = true
		case p.take("COLLATE"):
			p.take("=")
			coll = p.nameOrText()
		case p.take("NOT", "NULL"):
			c.NotNull = true
			p.one("ENABLE", "DISABLE") // Oracle mode
		case p.take("NULL"):
		case p.take("DEFAULT"):
			c.Default = p.expression()
		case p.take("ON", "UPDATE"):
			p.expression()
		case p.take("AUTO_INCREMENT"):
			c.Auto = true
		case p.take("SERIAL", "DEFAULT", "VALUE"):
			c.NotNull, c.Auto, x.unique = true, true, true
		case p.take("PRIMARY", "KEY"), p.take("PRIMARY"), p.take("KEY"):
			x.primary, c.NotNull = true, true
		case p.take("UNIQUE"):
			p.take("KEY")
			x.unique = true
		case p.take("COMMENT"):
			p.text()
		case p.take("COLUMN_FORMAT"), p.take("STORAGE"):
			p.name()
		case p.take("ENGINE_ATTRIBUTE"), p.take("SECONDARY_ENGINE_ATTRIBUTE"):
			p.take("=")
			p.text()
		case p.take("GENERATED", "ALWAYS", "AS", "ROW"), p.take("AS", "ROW"):
			switch {
			case p.take("START"):
				c.System = RowStart
			case p.take("END"):
				c.System = RowEnd
			default:
				p.refuse("expected START or END")
			}
			c.Generated = true
			p.take("INVISIBLE")
		case p.take("GENERATED", "ALWAYS"):
			p.want("AS")
			p.i--
		case p.take("AS"):
			p.parens()
			c.Virtual = true
			if p.take("STORED") || p.take("PERSISTENT") {
				c.Virtual, c.Generated = false, true
			} else {
				p.take("VIRTUAL")
			}
		case p.take("VISIBLE"):
		case p.take("INVISIBLE"):
			c.Hidden = true
		case p.take("SRID"):
			c.SRID = uint32(p.int())
		case p.take("REF_SYSTEM_ID"):
			p.take("=")
			c.SRID = uint32(p.int())
		case p.take("COMPRESSED"):
			if p.take("=") {
				p.i++
			}
		case p.take("WITH", "SYSTEM", "VERSIONING"):
			x.versioned = true
		case p.take("NOT", "SECONDARY"), p.take("WITHOUT", "SYSTEM", "VERSIONING"):
		case p.take("CONSTRAINT"):
			if !p.is("CHECK") {
				p.name()
			}
		case p.take("CHECK"):
			p.parens()
			p.take("NOT")
			p.take("ENFORCED")
		case p.is("REFERENCES"):
			fk := ForeignKey{Columns: []string{name}}
			p.references(&fk)
			if p.d.MariaDB { // MySQL before 9.0 reads and forgets it
				x.fk = &fk
			}
		case p.take("FIRST"):
			x.first, x.placed = true, true
		case p.take("AFTER"):
			x.after, x.placed = p.name(), true
		case (p.peek(0).kind == word || p.peek(0).kind == quoted) && p.peek(1).kind == punct && p.peek(1).s == "=" && p.d.MariaDB:
			p.i += 3 // an attribute of the engine
		default:
			p.refuse("attribute of column %s", name)
		}
	}
	if c.Base == "vector" && c.Length < 0 && !p.d.MariaDB {
		c.Length = 2048
	}
	p.charset(&c, cs, coll, binaryAttr)
	if (c.Base == "blob" || c.Base == "text") && c.Length > 0 {
		c.sized()
		args = nil
	}
	c.native(args, zerofill)
	return c, x
}

// args reads the arguments of a type.
func (p *parser) args(c *Column) []string {
	p.want("(")
	var out []string
	for !p.is(")") {
		switch t := p.peek(0); t.kind {
		case text:
			c.Labels = append(c.Labels, t.s)
			out = append(out, "'"+strings.ReplaceAll(t.s, "'", "''")+"'")
		case number:
			n, err := strconv.Atoi(t.s)
			if err != nil {
				if strings.HasPrefix(strings.ToLower(t.s), "0x") || strings.HasPrefix(strings.ToLower(t.s), "x'") {
					p.refuse("label in hexadecimal")
				}
				p.refuse("size %s", t.s)
			}
			if c.Length < 0 {
				c.Length = n
			} else {
				c.Scale = n
			}
			out = append(out, t.s)
		case word:
			// VARCHAR2(10 CHAR) and sizes of Oracle mode.
			if !strings.EqualFold(t.s, "CHAR") && !strings.EqualFold(t.s, "BYTE") {
				p.refuse("argument of a type")
			}
		default:
			p.refuse("argument of a type")
		}
		p.i++
		if !p.take(",") && !p.is(")") && p.peek(0).kind != word {
			p.refuse("argument of a type")
		}
	}
	p.want(")")
	return out
}

func (p *parser) nameOrText() string {
	if t := p.peek(0); t.kind == text {
		p.i++
		return t.s
	}
	return p.name()
}

// expression passes over a value: a literal, a function with its arguments, or
// anything in parentheses, and returns it as written.
func (p *parser) expression() string {
	from := p.peek(0).from
	p.one("-", "+")
	switch t := p.peek(0); {
	case p.is("("):
		p.parens()
	case t.kind == end || t.kind == punct:
		p.refuse("expected a value")
	case p.is("NEXT", "VALUE", "FOR"), p.is("PREVIOUS", "VALUE", "FOR"):
		p.i += 3
		p.tableName()
	default:
		p.i++
		for p.is(".") && t.kind != text {
			p.i += 2
		}
		if p.is("(") {
			p.parens()
		}
		// DATE '…', TIMESTAMP '…'
		if t.kind == word && p.peek(0).kind == text && (strings.EqualFold(t.s, "date") || strings.EqualFold(t.s, "time") || strings.EqualFold(t.s, "timestamp")) {
			p.i++
		}
	}
	return p.sql[from:p.t[p.i-1].to]
}

// isText reports whether values of the type have a character set.
func isText(base string) bool {
	switch base {
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set":
		return true
	}
	return false
}

// charset decides about the character set of a text column; CHARACTER SET binary
// makes another type of it.
func (p *parser) charset(c *Column, cs, coll string, binaryAttr bool) {
	if c.Base == "json" && p.d.MariaDB {
		c.Charset, c.Collation = "utf8mb4", "utf8mb4_bin"
		return
	}
	if !isText(c.Base) {
		return
	}
	cs, coll = p.resolve(cs, coll, p.coll)
	if binaryAttr && cs != "binary" && cs != "" {
		coll = cs + "_bin"
	}
	c.Charset, c.Collation = cs, coll
	if cs != "binary" {
		return
	}
	if b := map[string]string{"char": "binary", "varchar": "varbinary", "tinytext": "tinyblob", "text": "blob", "mediumtext": "mediumblob", "longtext": "longblob"}[c.Base]; b != "" {
		c.Base, c.Charset, c.Collation = b, "", ""
	}
}

// resolve completes a character set and a collation of which one may be missing.
func (p *parser) resolve(cs, coll string, def collations) (string, string) {
	cs, coll = strings.ToLower(cs), strings.ToLower(coll)
	if cs == "default" {
		cs, coll = "", ""
	}
	switch {
	case coll != "" && coll != "default":
		if info, ok := charset.ByName(coll); ok {
			if cs == "" || !strings.HasPrefix(coll, "uca1400_") {
				return info.Charset, info.Name
			}
		}
		if cs == "" {
			cs = def.charset
		}
		n, ok := charset.Name(cs)
		if !ok {
			p.refuse("collation %s", coll)
		}
		return n, coll
	case cs != "":
		n, ok := charset.Name(cs)
		if !ok {
			p.refuse("character set %s", cs)
		}
		return n, charset.Default(n, p.d.MariaDB)
	}
	return def.charset, def.collation
}

// native puts the type together as the server shows it.
func (c *Column) native(args []string, zerofill bool) {
	switch c.Base {
	case "decimal":
		if c.Length <= 0 {
			c.Length = 10
		}
		if c.Scale < 0 {
			c.Scale = 0
		}
		c.Native = fmt.Sprintf("decimal(%d,%d)", c.Length, c.Scale)
	case "char", "binary":
		if c.Length < 0 {
			c.Length = 1
		}
		c.Native = fmt.Sprintf("%s(%d)", c.Base, c.Length)
	case "bit":
		if c.Length <= 0 {
			c.Length = 1
		}
		c.Native = fmt.Sprintf("bit(%d)", c.Length)
	case "float":
		if c.Length >= 0 && c.Scale < 0 {
			if c.Length > 24 {
				c.Base = "double"
			}
			c.Length = -1
			args = nil
		}
		c.Native = withArgs(c.Base, args)
	case "tinyint", "smallint", "mediumint", "int", "bigint", "year":
		c.Native = c.Base // widths mean nothing
	default:
		c.Native = withArgs(c.Base, args)
	}
	if c.Unsigned {
		c.Native += " unsigned"
	}
	if zerofill {
		c.Native += " zerofill"
	}
}

func withArgs(base string, args []string) string {
	if len(args) == 0 {
		return base
	}
	return base + "(" + strings.Join(args, ",") + ")"
}

// sized replaces BLOB(n) and TEXT(n) by the smallest type that holds n, as the
// server does.
func (c *Column) sized() {
	n, kind := c.Length*charset.MaxLen(c.Charset), c.Base
	switch {
	case n < 1<<8:
		c.Base = "tiny" + kind
	case n < 1<<16:
	case n < 1<<24:
		c.Base = "medium" + kind
	default:
		c.Base = "long" + kind
	}
	c.Length = -1
}
