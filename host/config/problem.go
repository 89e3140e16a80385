package config

import (
	"fmt"
	"slices"
	"strings"
)

// Place is where something stands in a file. Line and column count from 1;
// columns count characters.
type Place struct {
	File         string `json:"file"`
	Line, Column int    `json:"-"`
}

// String returns file:line:column.
func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Problem is one fault of a task file.
type Problem struct {
	Place
	Path     string // of the key, e.g. "writers[0].config.lanes"
	Message  string // what is wrong
	Found    string
	Expected string
}

// String returns the problem as one line.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.Place.String() + ": ")
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	if p.Found != "" {
		b.WriteString(", found " + p.Found)
	}
	if p.Expected != "" {
		b.WriteString(", expected " + p.Expected)
	}
	return b.String()
}

// Problems is an error that holds all of them.
type Problems []Problem

// Error returns one line a problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// sorted orders by file, line and column.
func (ps Problems) sorted() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return ps
}

// nearest returns the name that key was probably meant to be, or "".
func nearest(key string, names []string) string {
	best, near := 1+max(1, min(3, len(key)/3)), ""
	for _, name := range names {
		if d := distance(strings.ToLower(key), strings.ToLower(name)); d < best {
			best, near = d, name
		}
	}
	return near
}

// distance counts insertions, deletions, replacements and swaps of neighbours.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
