package sqlite

import (
	"strings"

	"github.com/datalink-go/datalink/sdk/batch"
)

// class is how the values of a column are stored.
type class uint8

const (
	asInteger class = iota // INTEGER
	asNumber               // INTEGER up to 2^63-1, above it TEXT digits
	asReal                 // REAL, NaN as TEXT
	asText                 // TEXT
	asBlob                 // BLOB
)

// classOf returns the class of a column's values.
func classOf(c *batch.Column) class {
	switch c.Type {
	case batch.Bool, batch.Int8, batch.Int16, batch.Int32, batch.Int64, batch.Uint8, batch.Uint16, batch.Uint32:
		return asInteger
	case batch.Uint64:
		return asNumber
	case batch.Bit:
		if c.Length >= 1 && c.Length <= 64 {
			return asNumber
		}
		return asBlob
	case batch.Float32, batch.Float64:
		return asReal
	case batch.Bytes, batch.Geometry, batch.Array, batch.Vector:
		return asBlob
	case batch.Map, batch.Native:
		if c.Flags&batch.TextValue == 0 {
			return asBlob
		}
	}
	return asText
}

// declared is the type a column is created with. Two classes have none: a column
// without a declared type has no affinity, while NUMERIC and INTEGER would turn
// digits above 2^63-1 into a REAL and REAL would lose the sign of -0.0
// (https://www.sqlite.org/datatype3.html, sections 3 and 3.1).
func (c class) declared() string {
	return [...]string{asInteger: "INTEGER", asNumber: "", asReal: "", asText: "TEXT", asBlob: "BLOB"}[c]
}

// affinity is what SQLite makes of a declared type.
type affinity uint8

const (
	affBlob affinity = iota // none: values stay as they are
	affText
	affNumeric
	affInteger
	affReal
)

func (a affinity) String() string {
	return [...]string{affBlob: "no affinity", affText: "TEXT affinity", affNumeric: "NUMERIC affinity", affInteger: "INTEGER affinity", affReal: "REAL affinity"}[a]
}

// affinityOf follows the rules of https://www.sqlite.org/datatype3.html, section
// 3.1. In STRICT tables the declared type is a demand instead.
func affinityOf(declared string, strict bool) affinity {
	d := strings.ToUpper(declared)
	switch {
	case strict && d == "ANY":
		return affBlob
	case strings.Contains(d, "INT"):
		return affInteger
	case strings.Contains(d, "CHAR"), strings.Contains(d, "CLOB"), strings.Contains(d, "TEXT"):
		return affText
	case strings.Contains(d, "BLOB") && !strict, d == "":
		return affBlob
	case strict:
		// BLOB and REAL take nothing else.
		return affReal
	case strings.Contains(d, "REAL"), strings.Contains(d, "FLOA"), strings.Contains(d, "DOUB"):
		return affReal
	}
	return affNumeric
}

// fits reports whether a column with the affinity holds the values of the source
// column as they are. A number column with INTEGER affinity is let through:
// what it cannot hold is refused value by value.
func fits(c *batch.Column, declared string, strict bool) bool {
	a := affinityOf(declared, strict)
	k := classOf(c)
	if strict && !strings.EqualFold(declared, "ANY") {
		want := map[class]string{asInteger: "INT", asNumber: "INT", asReal: "REAL", asText: "TEXT", asBlob: "BLOB"}[k]
		return strings.HasPrefix(strings.ToUpper(declared), want)
	}
	switch k {
	case asInteger, asNumber:
		return a == affBlob || a == affInteger || a == affNumeric
	case asReal:
		return a == affBlob || a == affReal
	case asBlob:
		return true // SQLite converts no BLOB
	}
	switch c.Type {
	case batch.Date, batch.Time, batch.DateTime, batch.Timestamp, batch.TimeTZ, batch.UUID:
		// Their text never looks like a number, which is all that NUMERIC converts.
		return a == affBlob || a == affText || a == affNumeric && c.Type != batch.UUID
	}
	return a == affBlob || a == affText
}
