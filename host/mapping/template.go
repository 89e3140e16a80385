package mapping

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// template is a text with places: {schema} and {table} are names of the source
// table, {1} and on what its pattern captured, {row.COLUMN} a value of the row and
// {row.COLUMN:%Y%m} parts of a date in it.
type template struct {
	text  string
	parts []part
	rows  bool // some part needs a row
	names bool // some part tells source tables apart
}

type part struct {
	text   string // where place is empty
	place  string // "schema", "table", "row", or ""
	group  int    // > 0: a capture
	column string
	format string
}

func parseTemplate(s string, groups int) (*template, error) {
	t := &template{text: s}
	for rest := s; rest != ""; {
		open := strings.IndexByte(rest, '{')
		if open < 0 {
			t.parts = append(t.parts, part{text: rest})
			break
		}
		if open > 0 {
			t.parts = append(t.parts, part{text: rest[:open]})
		}
		inside, after, ok := strings.Cut(rest[open+1:], "}")
		if !ok {
			return nil, fmt.Errorf("%q: { without }", s)
		}
		rest = after
		p, err := parsePlace(inside, groups)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", s, err)
		}
		t.rows = t.rows || p.place == "row"
		t.names = t.names || p.place == "table" || p.group > 0
		t.parts = append(t.parts, p)
	}
	return t, nil
}

func parsePlace(s string, groups int) (part, error) {
	switch {
	case s == "schema" || s == "table":
		return part{place: s}, nil
	case digits(s):
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > groups {
			return part{}, fmt.Errorf("{%s}: the table pattern has %d captures", s, groups)
		}
		return part{group: n}, nil
	case strings.HasPrefix(s, "row."):
		column, format, _ := strings.Cut(s[len("row."):], ":")
		if column == "" {
			return part{}, fmt.Errorf("{%s}: no column follows", s)
		}
		for f := format; f != ""; {
			i := strings.IndexByte(f, '%')
			if i < 0 {
				break
			}
			if i+1 == len(f) || !strings.ContainsRune("YmdH", rune(f[i+1])) {
				return part{}, fmt.Errorf("{%s}: %%Y, %%m, %%d and %%H are known", s)
			}
			f = f[i+2:]
		}
		return part{place: "row", column: column, format: format}, nil
	}
	return part{}, fmt.Errorf("{%s}: {schema}, {table}, {1} for a capture of the table pattern and {row.COLUMN} are known", s)
}

// columns are those that the parts read.
func (t *template) columns() (names []string) {
	for _, p := range t.parts {
		if p.place == "row" {
			names = append(names, p.column)
		}
	}
	return names
}

// fill replaces the places of a table's name; value gives those of the row.
func (t *template) fill(s *batch.Schema, captures []string, value func(*part) (string, error)) (string, error) {
	var b strings.Builder
	for i := range t.parts {
		p := &t.parts[i]
		switch {
		case p.place == "schema":
			b.WriteString(s.Namespace)
		case p.place == "table":
			b.WriteString(s.Table)
		case p.group > 0:
			b.WriteString(captures[p.group])
		case p.place == "row":
			if value == nil {
				b.WriteString("{row." + p.column + "}")
				continue
			}
			v, err := value(p)
			if err != nil {
				return "", err
			}
			b.WriteString(v)
		default:
			b.WriteString(p.text)
		}
	}
	return b.String(), nil
}

// show returns the part of the value that the place asks for.
func (p *part) show(s *batch.Schema, c *batch.Column, v *batch.Value) (string, error) {
	bad := func(found, advice string) (string, error) {
		return "", sdk.Faultf(sdk.CodeRefused, "the name of a row's target table needs column %s of %s, which is %s", p.column, s.Name(), found).Suggest("%s", advice)
	}
	switch v.State {
	case batch.Null:
		return bad("NULL", "filter such rows out, or name the table by another column")
	case batch.Absent, batch.Unchanged:
		return bad("not in the source's log", "set the source's row image to full")
	}
	text, ok := batch.AppendText(nil, c, v)
	if !ok {
		text = v.Bytes()
	}
	if p.format == "" {
		return string(text), nil
	}
	if len(text) < len("2006-01-02") || text[4] != '-' || text[7] != '-' || !digits(string(text[:4])) {
		return bad(strconv.Quote(string(text)), "a format fits dates of the years 0000 to 9999")
	}
	hour := "00"
	if len(text) >= len("2006-01-02 15") {
		hour = string(text[11:13])
	}
	return strings.NewReplacer("%Y", string(text[:4]), "%m", string(text[5:7]), "%d", string(text[8:10]), "%H", hour).Replace(p.format), nil
}
