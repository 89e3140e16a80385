package config

import (
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/sdk"
)

// At returns the place of an option by its path, such as tls.mode or tables[2];
// of an option that is not there, the place of what it would be in.
func (b Block) At(path string) Place {
	if b.root == nil {
		return Place{}
	}
	n, at := b.root, b.root.place
	for _, step := range steps(path) {
		if i, err := strconv.Atoi(step); err == nil && n.kind == listKind {
			if i < 0 || i >= len(n.list) {
				return at
			}
			n = n.list[i]
			at = n.place
			continue
		}
		k := n.get(step)
		if k == nil {
			return at
		}
		n, at = k.value, k.place
	}
	if n.kind != mapKind && n.kind != listKind {
		return n.place
	}
	return at
}

// steps splits a path: a.b[2]["odd key"] has a, b, 2 and odd key.
func steps(path string) []string {
	var out []string
	for path != "" {
		switch {
		case strings.HasPrefix(path, `["`):
			q, err := strconv.QuotedPrefix(path[1:])
			if err != nil {
				return out
			}
			name, _ := strconv.Unquote(q)
			out = append(out, name)
			path = strings.TrimPrefix(path[1+len(q):], "]")
		case path[0] == '[':
			i := strings.IndexByte(path, ']')
			if i < 0 {
				return out
			}
			out = append(out, path[1:i])
			path = path[i+1:]
		case path[0] == '.':
			path = path[1:]
		default:
			i := strings.IndexAny(path, ".[")
			if i < 0 {
				i = len(path)
			}
			out = append(out, path[:i])
			path = path[i:]
		}
	}
	return out
}

// Problems turns what a connector found wrong with its options into problems of
// the file. Values that came from references are not shown.
func (b Block) Problems(found []sdk.Problem, r Resolved) Problems {
	var out Problems
	for _, p := range found {
		path := b.path
		if p.Path != "" {
			path = under(path, p.Path)
			if p.Path[0] == '[' {
				path = b.path + p.Path
			}
		}
		out = append(out, Problem{
			Place: b.At(p.Path), Path: path,
			Message: r.Conceal(p.Message), Found: r.Conceal(p.Found), Expected: p.Expected,
		})
	}
	return out.sorted()
}

// Problem returns a problem of the place where the plugin is named.
func (r Ref) Problem(path, message, expected string) Problem {
	return Problem{Place: r.Place, Path: path, Message: message, Found: strconv.Quote(r.String()), Expected: expected}
}

// Int returns an option that is an integer, 0 where it is none.
func (b Block) Int(name string) int64 {
	k := b.root.get(name)
	if k == nil || k.value.kind != intKind {
		return 0
	}
	i, _ := strconv.ParseInt(k.value.text, 10, 64)
	return i
}

// Text returns an option that is a text, "" where it is none.
func (b Block) Text(name string) string {
	k := b.root.get(name)
	if k == nil || k.value.kind != textKind {
		return ""
	}
	return k.value.text
}

// Empty reports whether no option is given.
func (b Block) Empty() bool { return b.root == nil || len(b.root.keys) == 0 }
