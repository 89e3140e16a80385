package mapping

import (
	"fmt"
	"regexp"
	"strings"
)

// Pattern selects tables by name. A name between slashes is a regular expression
// (RE2) for the whole of "schema.table"; any other is a name with * and ? as in a
// shell, character classes as in [a-f], and ranges of numbers as in t_[00-31],
// whose bounds have the width that the names have.
type Pattern struct {
	re      *regexp.Regexp // nil = literal
	literal string
	ranges  []numbers // by group of re; a zero value limits nothing
}

type numbers struct{ lo, hi string }

// ParsePattern reads a pattern. Each *, ?, class, range and group of a regular
// expression is a capture, in order, which names may refer to as {1}, {2}, ….
func ParsePattern(s string) (*Pattern, error) {
	if inner, ok := strings.CutPrefix(s, "/"); ok {
		if inner, ok = strings.CutSuffix(inner, "/"); !ok || inner == "" {
			return nil, fmt.Errorf("table pattern %q: a regular expression stands between two slashes", s)
		}
		re, err := regexp.Compile(`^(?:` + inner + `)$`)
		if err != nil {
			return nil, fmt.Errorf("table pattern %q: %w", s, err)
		}
		return &Pattern{re: re, ranges: make([]numbers, re.NumSubexp()+1)}, nil
	}
	if !strings.ContainsAny(s, `*?[\`) {
		return &Pattern{literal: s}, nil
	}
	p := &Pattern{ranges: make([]numbers, 1)}
	re, err := p.shell(s)
	if err != nil {
		return nil, fmt.Errorf("table pattern %q: %w", s, err)
	}
	if p.re, err = regexp.Compile(`^` + re + `$`); err != nil {
		return nil, fmt.Errorf("table pattern %q: %w", s, err)
	}
	return p, nil
}

// shell writes a shell pattern as a regular expression.
func (p *Pattern) shell(s string) (string, error) {
	var b strings.Builder
	group := func(re string, n numbers) {
		b.WriteString("(" + re + ")")
		p.ranges = append(p.ranges, n)
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '*':
			group(`.*`, numbers{})
		case '?':
			group(`.`, numbers{})
		case '\\':
			if i++; i == len(s) {
				return "", fmt.Errorf(`nothing follows the last \`)
			}
			b.WriteString(regexp.QuoteMeta(s[i : i+1]))
		case '[':
			n := strings.IndexByte(s[i:], ']')
			if n < 2 {
				return "", fmt.Errorf("[ without ], or nothing between them")
			}
			class := s[i+1 : i+n]
			i += n
			if lo, hi, ok := strings.Cut(class, "-"); ok && digits(lo) && digits(hi) && len(lo)+len(hi) > 2 {
				if len(lo) != len(hi) || lo > hi {
					return "", fmt.Errorf("range [%s]: bounds of one width in ascending order are expected, as in [00-31]", class)
				}
				group(fmt.Sprintf(`[0-9]{%d}`, len(lo)), numbers{lo, hi})
				continue
			}
			group("["+strings.NewReplacer(`\`, `\\`, `[`, `\[`).Replace(class)+"]", numbers{})
		default:
			b.WriteString(regexp.QuoteMeta(s[i : i+1]))
		}
	}
	return b.String(), nil
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// One reports whether only one name fits.
func (p *Pattern) One() bool { return p.re == nil }

// Match reports whether the name fits and what the captures hold; captures[0] is
// the whole name.
func (p *Pattern) Match(name string) (captures []string, ok bool) {
	if p.re == nil {
		return []string{name}, name == p.literal
	}
	m := p.re.FindStringSubmatch(name)
	if m == nil {
		return nil, false
	}
	for i, n := range p.ranges {
		if n.lo != "" && (m[i] < n.lo || m[i] > n.hi) {
			return nil, false
		}
	}
	return m, true
}
