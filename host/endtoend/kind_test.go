package endtoend

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/big"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// kind is what a column's values are, whatever a store calls its type. It decides
// how a store is asked to print them and when two prints are of one value.
type kind string

const (
	kindNumber   kind = "number" // integers, decimals, years
	kindFloat    kind = "float"
	kindBits     kind = "bits"
	kindDate     kind = "date"
	kindTime     kind = "time"
	kindMoment   kind = "datetime"
	kindInstant  kind = "timestamp"
	kindText     kind = "text"
	kindEnum     kind = "enum"
	kindBytes    kind = "bytes" // geometry too
	kindDocument kind = "json"
	kindAddress  kind = "inet"
	kindVector   kind = "vector"
)

var leading = regexp.MustCompile(`^[A-Z]+`)

// kindOf reads the type of a column of MySQL or MariaDB.
func kindOf(typ string) kind {
	up := strings.ToUpper(typ)
	switch leading.FindString(up) {
	case "TINYINT", "BOOLEAN", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "DECIMAL", "YEAR":
		return kindNumber
	case "FLOAT", "DOUBLE":
		return kindFloat
	case "BIT":
		return kindBits
	case "DATE":
		return kindDate
	case "TIME":
		return kindTime
	case "DATETIME":
		return kindMoment
	case "TIMESTAMP":
		return kindInstant
	case "BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB",
		"POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION", "GEOMETRY":
		return kindBytes
	case "CHAR":
		if strings.HasSuffix(up, " BYTE") {
			return kindBytes
		}
	case "ENUM":
		return kindEnum
	case "JSON":
		return kindDocument
	case "VECTOR":
		return kindVector
	case "INET":
		return kindAddress
	}
	return kindText
}

// canonical brings a print of a value into the form in which equal values are
// equal. What it cannot read stays as it is, and differs.
func canonical(k kind, s string) string {
	switch k {
	case kindNumber:
		if r, ok := new(big.Rat).SetString(s); ok {
			return r.RatString()
		}
	case kindFloat:
		if f, err := strconv.ParseFloat(s, 64); err == nil || math.IsInf(f, 0) {
			return fmt.Sprintf("%v %x", f, math.Float64bits(f))
		}
	case kindTime, kindMoment, kindInstant:
		if strings.Contains(s, ".") { // stores print as many zeros behind the point as they like
			return strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
	case kindAddress:
		if a, err := netip.ParseAddr(s); err == nil {
			return a.String()
		}
	}
	return s
}

// meaning is a document without what MySQL does not keep: blanks, the order of
// names, and how a number is written.
func meaning(s string) string {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return s
	}
	if _, err := d.Token(); err != io.EOF {
		return s
	}
	var numbers func(v any) any
	numbers = func(v any) any {
		switch v := v.(type) {
		case json.Number:
			return canonical(kindNumber, v.String())
		case []any:
			for i := range v {
				v[i] = numbers(v[i])
			}
		case map[string]any:
			for k := range v {
				v[k] = numbers(v[k])
			}
		}
		return v
	}
	out, _ := json.Marshal(numbers(v))
	return string(out)
}

// vectorText prints the bytes of a vector as PostgreSQL prints an array of them.
func vectorText(data string) string {
	var out []string
	for b := []byte(data); len(b) >= 4; b = b[4:] {
		out = append(out, strconv.FormatFloat(float64(math.Float32frombits(binary.LittleEndian.Uint32(b))), 'g', -1, 32))
	}
	return "{" + strings.Join(out, ",") + "}"
}
