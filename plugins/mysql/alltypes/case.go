package alltypes

import (
	"slices"
	"strings"
)

// Server says which server has a case.
type Server uint8

// The servers.
const (
	Both Server = iota
	MySQL
	MariaDB
)

// Form says how the server is asked to print a column.
type Form uint8

// The forms. Each gives bytes that HEX then carries through the client.
const (
	Chars  Form = iota // CAST(v AS CHAR): numbers, times, addresses
	Number             // v + 0: integers without padding, bits
	Float              // v as a double, compared as a number
	Text               // v in utf8mb4
	Raw                // v as it is stored
)

// Column is a column of a case and the form in which it is compared.
type Column struct {
	Name string
	Type string
	Form Form
}

// Case is a table with one column of a type, and the values it is given.
type Case struct {
	Name   string
	Only   Server
	Type   string // of column v
	Form   Form
	Values []string
	More   []Column // columns that fill themselves
	Keys   string   // further definitions, with a comma in front
	// Unmapped says that values may be bytes which the character set cannot turn
	// into Unicode: they arrive raw, and compare with the stored bytes.
	Unmapped bool
}

// Columns lists what is compared: v, then More.
func (c *Case) Columns() []Column {
	return append([]Column{{"v", c.Type, c.Form}}, c.More...)
}

// Cases lists the cases of a server.
func Cases(s Server) []Case {
	var out []Case
	for _, group := range [][]Case{numbers, times, texts(), binaries, documents, shapes(), others} {
		for _, c := range group {
			if c.Only == Both || c.Only == s {
				c.Values = append(slices.Clip(c.Values), "NULL")
				if strings.Contains(c.Type, "NOT NULL") {
					c.Values = c.Values[:len(c.Values)-1]
				}
				out = append(out, c)
			}
		}
	}
	return out
}
