package config

import (
	"strings"

	"github.com/datalink-go/datalink/host/mapping"
)

// Patterns select tables, see mapping.Pattern; those that begin with ! leave out. A list without any positive one begins with all tables.
type Patterns []string

// Match reports whether the table is selected.
func (ps Patterns) Match(name string) bool {
	in, positive := false, false
	for _, p := range ps {
		if not, ok := strings.CutPrefix(p, "!"); ok {
			if matches(not, name) {
				return false
			}
			continue
		}
		positive = true
		in = in || matches(p, name)
	}
	return in || !positive
}

// matches reports whether a pattern selects a table. Patterns were checked when the
// task was read.
func matches(pattern, name string) bool {
	p, err := mapping.ParsePattern(pattern)
	if err != nil {
		return false
	}
	_, ok := p.Match(name)
	return ok
}

// oneSchema reports whether all selected tables are of one schema.
func (ps Patterns) oneSchema() bool {
	one := ""
	for _, p := range ps {
		if strings.HasPrefix(p, "!") {
			continue
		}
		schema, _, ok := strings.Cut(p, ".")
		if !ok || strings.ContainsAny(schema, `*?[\`) || one != "" && one != schema {
			return false
		}
		one = schema
	}
	return one != ""
}

// reach reports whether some table could match both the pattern and ps.
func (ps Patterns) reach(pattern string) bool {
	if strings.HasPrefix(pattern, "/") {
		return true // what a regular expression could match is not worked out
	}
	if !strings.ContainsAny(pattern, `*?[\`) {
		return ps.Match(pattern)
	}
	positive := false
	for _, p := range ps {
		if strings.HasPrefix(p, "!") {
			continue
		}
		positive = true
		if overlap(p, pattern) {
			return true
		}
	}
	return !positive
}

// overlap reports whether a name matches both patterns; where they hold character
// classes it says yes.
func overlap(a, b string) bool {
	switch {
	case strings.ContainsAny(a+b, `[\`) || strings.HasPrefix(a, "/"):
		return true
	case a == "" && b == "":
		return true
	case a != "" && a[0] == '*':
		return overlap(a[1:], b) || b != "" && overlap(a, b[1:])
	case b != "" && b[0] == '*':
		return overlap(b, a)
	case a == "" || b == "":
		return false
	}
	return (a[0] == b[0] || a[0] == '?' || b[0] == '?') && overlap(a[1:], b[1:])
}

// rules repeats a rule for each positive pattern. Tables that are left out come
// first, with a rule that changes nothing: the first match counts.
func (ps Patterns) rules(r mapping.Rule) []mapping.Rule {
	var out, in []mapping.Rule
	for _, p := range ps {
		if not, ok := strings.CutPrefix(p, "!"); ok {
			out = append(out, mapping.Rule{From: not})
			continue
		}
		c := r
		c.From = p
		in = append(in, c)
	}
	if len(in) == 0 {
		in = []mapping.Rule{r}
	}
	return append(out, in...)
}

// ParsePatterns checks patterns that do not come from a task file.
func ParsePatterns(list []string) (Patterns, error) {
	for _, p := range list {
		if _, err := mapping.ParsePattern(strings.TrimPrefix(p, "!")); err != nil {
			return nil, err
		}
	}
	return Patterns(list), nil
}
