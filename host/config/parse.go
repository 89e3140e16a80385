package config

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFile bounds a task file.
const maxFile = 4 << 20

// Load reads task files. The error is a Problems where the files are at fault.
func Load(paths ...string) ([]*Task, error) {
	var all []*Task
	var problems Problems
	for _, p := range paths {
		data, err := read(p)
		if err != nil {
			problems = append(problems, Problem{Place: Place{File: p}, Message: err.Error()})
			continue
		}
		tasks, bad := parse(p, data)
		all = append(all, tasks...)
		problems = append(problems, bad...)
	}
	return all, checked(all, problems)
}

// Text is the content of a task file and its name for messages.
type Text struct {
	File string
	Data []byte
}

// Parse reads the tasks of one file's text; file is its name for messages.
func Parse(file string, data []byte) ([]*Task, error) { return ParseAll(Text{file, data}) }

// ParseAll reads the tasks of several texts.
func ParseAll(texts ...Text) ([]*Task, error) {
	var all []*Task
	var problems Problems
	for _, t := range texts {
		tasks, bad := parse(t.File, t.Data)
		all = append(all, tasks...)
		problems = append(problems, bad...)
	}
	return all, checked(all, problems)
}

func read(path string) ([]byte, error) {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot be read: %w", errors.Unwrap(err))
	case st.IsDir():
		return nil, errors.New("found a folder, expected a task file")
	case st.Size() > maxFile:
		return nil, fmt.Errorf("has %d bytes, expected a task file of %d at most", st.Size(), maxFile)
	}
	return os.ReadFile(path)
}

// checked adds what concerns several tasks.
func checked(tasks []*Task, problems Problems) error {
	seen := map[string]Place{}
	for _, t := range tasks {
		if t.Name == "" {
			continue
		}
		if was, twice := seen[t.Name]; twice {
			problems = append(problems, Problem{t.Place, "task", "task is there twice", strconv.Quote(t.Name), "a name that is not used in " + was.String()})
			continue
		}
		seen[t.Name] = t.Place
	}
	if len(problems) == 0 {
		return nil
	}
	return problems.sorted()
}

func parse(file string, data []byte) ([]*Task, Problems) {
	f, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, Problems{syntax(file, err)}
	}
	var tasks []*Task
	var problems Problems
	for i, doc := range f.Docs {
		if empty(doc.Body) {
			continue
		}
		b := &builder{file: file, anchors: map[string]ast.Node{}, open: map[string]bool{}}
		tree := b.build(doc.Body, 0)
		d := &decoder{problems: b.problems}
		t := d.task(tree)
		t.Spec = text(data, f.Docs, i)
		problems = append(problems, d.problems...)
		tasks = append(tasks, t)
	}
	if len(tasks) == 0 {
		problems = append(problems, Problem{Place: Place{file, 1, 1}, Message: "no task", Found: "an empty file", Expected: "a task"})
	}
	return tasks, problems
}

func empty(n ast.Node) bool {
	if n == nil {
		return true
	}
	switch n.Type() {
	case ast.NullType, ast.CommentType, ast.DirectiveType:
		return true
	}
	return false
}

func syntax(file string, err error) Problem {
	p := Problem{Place: Place{file, 1, 1}, Message: "not YAML: " + err.Error()}
	var s *yaml.SyntaxError
	if errors.As(err, &s) {
		p.Message = "not YAML: " + s.Message
		if s.Token != nil && s.Token.Position != nil {
			p.Line, p.Column = s.Token.Position.Line, s.Token.Position.Column
		}
	}
	return p
}

// text returns the lines of one document, without its separators.
func text(data []byte, docs []*ast.DocumentNode, i int) string {
	lines := strings.SplitAfter(string(data), "\n")
	from, to := 0, len(lines)
	if s := docs[i].Start; s != nil && s.Position != nil {
		from = s.Position.Line
	}
	if i+1 < len(docs) {
		if s := docs[i+1].Start; s != nil && s.Position != nil {
			to = s.Position.Line - 1
		}
	}
	return strings.Join(lines[min(from, len(lines)):max(min(to, len(lines)), min(from, len(lines)))], "")
}
