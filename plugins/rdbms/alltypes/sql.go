package alltypes

import (
	"fmt"
	"strings"

	"github.com/datalink-go/datalink/sdk/batch"
)

// Case is a column of a type and the values it is given.
type Case struct {
	Name   string
	Type   string
	Want   batch.Type // logical type that a reader gives it
	Values []string
}

// Types makes the types and extensions that the columns need.
const Types = `CREATE EXTENSION IF NOT EXISTS hstore SCHEMA public; CREATE EXTENSION IF NOT EXISTS citext SCHEMA public;
CREATE TYPE public.mood AS ENUM ('sad', 'very "happy"'); CREATE DOMAIN public.posint AS int CHECK (VALUE > 0); CREATE DOMAIN public.shorttext AS varchar(5); CREATE TYPE public.pair AS (a int, b text);
`

// Create gives the statement that makes the table; more goes behind its columns,
// with a comma in front.
func Create(table, more string) string {
	var b strings.Builder
	b.WriteString("CREATE TABLE " + table + " (id int PRIMARY KEY")
	for _, c := range Cases {
		b.WriteString(", " + c.Name + " " + c.Type)
	}
	return b.String() + more + ");\n"
}

// Insert gives the statements that write all values.
func Insert(table string, first int) string {
	var b strings.Builder
	for i := range Rows() {
		fmt.Fprintf(&b, "INSERT INTO %s VALUES (%d", table, first+i)
		for _, c := range Cases {
			v := "NULL"
			if i < len(c.Values) {
				v = c.Values[i]
			}
			b.WriteString(", " + v)
		}
		b.WriteString(");\n")
	}
	return b.String()
}

// Rows is how many rows Insert writes.
func Rows() int {
	n := 0
	for _, c := range Cases {
		n = max(n, len(c.Values))
	}
	return n + 1 // the last one has no values
}
