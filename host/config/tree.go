package config

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

type kind uint8

const (
	nullKind kind = iota
	boolKind
	intKind
	floatKind
	textKind
	listKind
	mapKind
)

// node is one value of the file with its place.
type node struct {
	kind  kind
	place Place
	text  string // scalars, as JSON has them; texts unquoted
	list  []*node
	keys  []*key
}

type key struct {
	name  string
	place Place
	value *node
}

func (n *node) get(name string) *key {
	if n == nil {
		return nil
	}
	for _, k := range n.keys {
		if k.name == name {
			return k
		}
	}
	return nil
}

// describe says what a value is, for messages.
func (n *node) describe() string {
	switch n.kind {
	case nullKind:
		return "nothing"
	case textKind:
		return strconv.Quote(shorten(n.text))
	case listKind:
		return fmt.Sprintf("a list of %d", len(n.list))
	case mapKind:
		return fmt.Sprintf("a mapping of %d keys", len(n.keys))
	}
	return n.text
}

// scalar returns a text, number or truth value as text.
func (n *node) scalar() (string, bool) {
	switch n.kind {
	case boolKind, intKind, floatKind, textKind:
		return n.text, true
	}
	return "", false
}

func shorten(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:57]) + "…"
	}
	return s
}

// json appends the value as JSON. Text goes through text first.
func (n *node) json(out []byte, text func(*node) string) []byte {
	switch n.kind {
	case textKind:
		return appendText(out, text(n))
	case listKind:
		out = append(out, '[')
		for i, e := range n.list {
			if i > 0 {
				out = append(out, ',')
			}
			out = e.json(out, text)
		}
		return append(out, ']')
	case mapKind:
		out = append(out, '{')
		for i, k := range n.keys {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendText(out, k.name), ':')
			out = k.value.json(out, text)
		}
		return append(out, '}')
	}
	return append(out, n.text...)
}

func appendText(out []byte, s string) []byte {
	b, _ := json.Marshal(s) // of a string: never fails
	return append(out, b...)
}

// Bounds of a document; aliases can make a small file a huge value.
const (
	maxDepth = 64
	maxNodes = 100_000
)

// builder turns the parser's nodes into ours.
type builder struct {
	file     string
	problems Problems
	anchors  map[string]ast.Node
	open     map[string]bool // anchors that are being expanded
	nodes    int
}

func (b *builder) at(t *token.Token) Place {
	if t == nil || t.Position == nil {
		return Place{File: b.file}
	}
	return Place{b.file, t.Position.Line, t.Position.Column}
}

func (b *builder) add(p Place, message, found, expected string) {
	b.problems = append(b.problems, Problem{Place: p, Message: message, Found: found, Expected: expected})
}

func (b *builder) build(n ast.Node, depth int) *node {
	if n == nil {
		return &node{place: Place{File: b.file}, text: "null"}
	}
	out := &node{place: b.at(first(n))}
	if b.nodes++; b.nodes > maxNodes || depth > maxDepth {
		if b.nodes == maxNodes+1 || depth == maxDepth+1 {
			b.add(out.place, "the document is too large", fmt.Sprintf("more than %d values or %d levels", maxNodes, maxDepth), "a task")
		}
		out.text = "null"
		return out
	}
	switch v := n.(type) {
	case *ast.NullNode:
		out.text = "null"
	case *ast.BoolNode:
		out.kind, out.text = boolKind, strconv.FormatBool(v.Value)
	case *ast.IntegerNode:
		out.kind, out.text = intKind, fmt.Sprint(v.Value)
	case *ast.FloatNode:
		out.kind, out.text = floatKind, strconv.FormatFloat(v.Value, 'g', -1, 64)
		if math.IsInf(v.Value, 0) || math.IsNaN(v.Value) {
			b.add(out.place, "not a number that JSON has", v.String(), "a finite number")
		}
	case *ast.InfinityNode, *ast.NanNode:
		out.text = "null"
		b.add(out.place, "not a number that JSON has", n.String(), "a finite number")
	case *ast.StringNode:
		out.kind, out.text = textKind, v.Value
	case *ast.LiteralNode:
		out.kind, out.text = textKind, v.Value.Value
	case *ast.MappingNode:
		out.kind = mapKind
		b.mapping(out, v.Values, depth)
	case *ast.MappingValueNode:
		out.kind = mapKind
		b.mapping(out, []*ast.MappingValueNode{v}, depth)
	case *ast.SequenceNode:
		out.kind = listKind
		for _, e := range v.Values {
			out.list = append(out.list, b.build(e, depth+1))
		}
	case *ast.AnchorNode:
		b.anchors[v.Name.String()] = v.Value
		return b.build(v.Value, depth+1)
	case *ast.AliasNode:
		return b.alias(v, out, depth)
	case *ast.TagNode:
		out.text = "null"
		b.add(out.place, "tags are not used here", v.Start.Value, "a plain value")
	default:
		out.text = "null"
		b.add(out.place, "unexpected YAML", n.Type().String(), "a value")
	}
	return out
}

func (b *builder) alias(v *ast.AliasNode, out *node, depth int) *node {
	name := v.Value.String()
	target, ok := b.anchors[name]
	out.text = "null"
	switch {
	case !ok:
		b.add(out.place, "alias of nothing", "*"+name, "an anchor &"+name+" before it")
	case b.open[name]:
		b.add(out.place, "alias within its own anchor", "*"+name, "a value that does not contain itself")
	default:
		b.open[name] = true
		out = b.build(target, depth+1)
		delete(b.open, name)
	}
	return out
}

func (b *builder) mapping(out *node, values []*ast.MappingValueNode, depth int) {
	seen := map[string]Place{}
	for _, v := range values {
		at := b.at(first(v.Key))
		var name string
		switch k := v.Key.(type) {
		case *ast.StringNode:
			name = k.Value
		case *ast.MergeKeyNode:
			b.add(at, "merge keys are not used here", "<<", "the keys written out")
			continue
		default:
			name = strings.TrimSpace(v.Key.String())
		}
		if was, twice := seen[name]; twice {
			b.add(at, "key is there twice", strconv.Quote(name), fmt.Sprintf("it once (also in line %d)", was.Line))
			continue
		}
		seen[name] = at
		out.keys = append(out.keys, &key{name, at, b.build(v.Value, depth+1)})
	}
	if len(out.keys) > 0 {
		out.place = out.keys[0].place
	}
}

// first returns the token at which a node begins; that of a mapping is its colon
// otherwise.
func first(n ast.Node) *token.Token {
	switch v := n.(type) {
	case *ast.MappingNode:
		if len(v.Values) > 0 && !v.IsFlowStyle {
			return first(v.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return first(v.Key)
	case *ast.SequenceNode:
		return v.Start
	case *ast.LiteralNode:
		return v.Start
	}
	return n.GetToken()
}
