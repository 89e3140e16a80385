package config

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Sources says where the values of references come from; the zero value is the
// process's environment and the file system.
type Sources struct {
	Env  func(name string) (string, bool)
	File func(path string) ([]byte, error)
}

func (s Sources) withDefaults() Sources {
	if s.Env == nil {
		s.Env = os.LookupEnv
	}
	if s.File == nil {
		s.File = os.ReadFile
	}
	return s
}

// reference finds ${scheme:name} and its escape $${.
var reference = regexp.MustCompile(`\$?\$\{([^}]*)\}?`)

// Resolved is a configuration with its secrets, for one instance. It is neither
// stored nor printed.
type Resolved struct {
	json    []byte
	secrets []string
}

// JSON returns the configuration as the connector gets it.
func (r Resolved) JSON() []byte { return r.json }

// String hides the secrets.
func (r Resolved) String() string { return "(configuration with secrets)" }

// GoString hides the secrets.
func (r Resolved) GoString() string { return r.String() }

// Conceal replaces what came from references by ***.
func (r Resolved) Conceal(s string) string {
	for _, v := range r.secrets {
		s = strings.ReplaceAll(s, v, "***")
		if b, _ := json.Marshal(v); len(b) > 2 { // as it looks inside of JSON or %q
			s = strings.ReplaceAll(s, string(b[1:len(b)-1]), "***")
		}
	}
	return s
}

// Block is the options of a connector, as written.
type Block struct {
	root *node
	path string
}

// JSON returns the options as JSON, references not resolved.
func (b Block) JSON() []byte {
	if b.root == nil {
		return []byte("{}")
	}
	return b.root.json(nil, func(n *node) string { return n.text })
}

// Resolve returns the options with the references' values. All that is missing
// is reported at once, as Problems.
func (b Block) Resolve(from Sources) (Resolved, error) {
	from = from.withDefaults()
	var r Resolved
	var problems Problems
	if b.root == nil {
		return Resolved{json: []byte("{}")}, nil
	}
	r.json = b.root.json(nil, func(n *node) string {
		return reference.ReplaceAllStringFunc(n.text, func(m string) string {
			if strings.HasPrefix(m, "$$") {
				return m[1:]
			}
			v, err := from.value(m[2 : len(m)-1])
			if err != nil {
				problems = append(problems, Problem{Place: n.place, Path: b.path, Message: err.Error(), Found: m})
			}
			if len(v) >= 3 { // shorter ones would blacken half of every message
				r.secrets = append(r.secrets, v)
			}
			return v
		})
	})
	// The longest first: one secret may be a part of another.
	slices.SortFunc(r.secrets, func(x, y string) int { return len(y) - len(x) })
	if len(problems) > 0 {
		return Resolved{}, problems
	}
	return r, nil
}

// Expand replaces the references in a text by their values.
func (s Sources) Expand(text string) (string, error) {
	s = s.withDefaults()
	var first error
	out := reference.ReplaceAllStringFunc(text, func(m string) string {
		if strings.HasPrefix(m, "$$") {
			return m[1:]
		}
		v, err := s.value(strings.TrimSuffix(m[2:], "}"))
		if err != nil && first == nil {
			first = err
		}
		return v
	})
	return out, first
}

func (s Sources) value(ref string) (string, error) {
	scheme, name, _ := strings.Cut(ref, ":")
	switch scheme {
	case "env":
		v, ok := s.Env(name)
		if !ok {
			return "", fmt.Errorf("environment variable %s is not set: set it for the process that runs the task", name)
		}
		return v, nil
	case "file":
		data, err := s.File(name)
		if err != nil {
			return "", fmt.Errorf("secret file cannot be read: %w", err)
		}
		return strings.TrimRight(string(data), "\r\n"), nil
	}
	return "", fmt.Errorf("unknown kind of reference %q", scheme)
}

// checkReferences reports references that no source could serve.
func (b Block) checkReferences() Problems {
	var out Problems
	b.root.walk(b.path, func(n *node, path string) {
		if n.kind != textKind {
			return
		}
		for _, m := range reference.FindAllString(n.text, -1) {
			if strings.HasPrefix(m, "$$") {
				continue
			}
			scheme, name, ok := strings.Cut(strings.TrimSuffix(m[2:], "}"), ":")
			good := ok && strings.HasSuffix(m, "}") && name != "" && (scheme == "env" || scheme == "file" && strings.HasPrefix(name, "/"))
			if !good {
				out = append(out, Problem{n.place, path, "wrong reference to a secret", fmt.Sprintf("%q", m), "${env:NAME} or ${file:/path}; $${ for a plain ${"})
			}
		}
	})
	return out
}

func (n *node) walk(path string, visit func(*node, string)) {
	visit(n, path)
	for i, e := range n.list {
		e.walk(item(path, i), visit)
	}
	for _, k := range n.keys {
		k.value.walk(under(path, k.name), visit)
	}
}
