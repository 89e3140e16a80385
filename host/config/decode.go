package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// decoder reads a task from a tree and collects what is wrong.
type decoder struct {
	problems Problems
}

func (d *decoder) add(p Place, path, message, found, expected string) {
	d.problems = append(d.problems, Problem{p, path, message, found, expected})
}

func (d *decoder) wrong(n *node, path, expected string) {
	d.add(n.place, path, "wrong value", n.describe(), expected)
}

// fields checks that n is a mapping with known keys only.
func (d *decoder) fields(n *node, path string, known ...string) bool {
	if n.kind != mapKind {
		d.wrong(n, path, "a mapping with "+strings.Join(known, ", "))
		return false
	}
	for _, k := range n.keys {
		if slices.Contains(known, k.name) {
			continue
		}
		message := "unknown key"
		if near := nearest(k.name, known); near != "" {
			message += ", did you mean " + near + "?"
		}
		d.add(k.place, under(path, k.name), message, strconv.Quote(shorten(k.name)), "one of "+strings.Join(known, ", "))
	}
	return true
}

// need returns the value of a key that must be there.
func (d *decoder) need(n *node, path, name, expected string) *node {
	k := n.get(name)
	if k == nil {
		d.add(n.place, under(path, name), "key is missing", "", expected)
		return nil
	}
	return k.value
}

// text reads the text under a key; "" where it is not there.
func (d *decoder) text(n *node, path, name, expected string) (string, Place) {
	k := n.get(name)
	switch {
	case k == nil:
		return "", n.place
	case k.value.kind != textKind || k.value.text == "":
		d.wrong(k.value, under(path, name), expected)
		return "", k.value.place
	}
	return k.value.text, k.value.place
}

// texts reads a list of texts, or one text alone.
func (d *decoder) texts(n *node, path, name, expected string) []string {
	k := n.get(name)
	if k == nil {
		return nil
	}
	at := under(path, name)
	switch k.value.kind {
	case textKind:
		return []string{k.value.text}
	case listKind:
		var out []string
		for i, e := range k.value.list {
			if e.kind != textKind || e.text == "" {
				d.wrong(e, item(at, i), expected)
				continue
			}
			out = append(out, e.text)
		}
		if len(k.value.list) > 0 {
			return out
		}
	}
	d.wrong(k.value, at, "a list of "+expected)
	return nil
}

// table reads a mapping of texts.
func (d *decoder) table(n *node, path, name, expected string) map[string]string {
	k := n.get(name)
	if k == nil {
		return nil
	}
	at := under(path, name)
	if k.value.kind != mapKind {
		d.wrong(k.value, at, expected)
		return nil
	}
	out := map[string]string{}
	for _, e := range k.value.keys {
		if e.value.kind != textKind {
			d.wrong(e.value, under(at, e.name), "a text")
			continue
		}
		out[e.name] = e.value.text
	}
	return out
}

// oneOf reads a text that is one of a few.
func (d *decoder) oneOf(n *node, path, name string, values ...string) string {
	k := n.get(name)
	if k == nil {
		return values[0]
	}
	if k.value.kind != textKind || !slices.Contains(values, k.value.text) {
		d.wrong(k.value, under(path, name), "one of "+strings.Join(values, ", "))
		return values[0]
	}
	return k.value.text
}

func under(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func item(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

var (
	taskName   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,126}[a-z0-9])?$`)
	pluginName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)
	version    = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
	writerName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
)
