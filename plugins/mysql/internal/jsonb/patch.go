package jsonb

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
)

// Operations of a difference.
const (
	opReplace = 0
	opInsert  = 1
	opRemove  = 2
)

// Editor applies differences to documents. Its buffers are kept.
type Editor struct{ out []byte }

// node is a value of a document that is being edited: a scalar keeps its binary
// form, containers are taken apart when they are entered.
type node struct {
	v      value
	open   bool
	object bool
	keys   [][]byte
	elems  []*node
}

// Apply returns the text of document doc (binary form) after the differences in
// diffs: for each an operation, a path and, save for removals, a value in binary
// form, both preceded by their length. The result is valid until the next call.
func (ed *Editor) Apply(doc, diffs []byte) ([]byte, error) {
	v, err := parse(doc)
	if err != nil {
		return nil, err
	}
	root := &node{v: v}
	for len(diffs) > 0 {
		op := diffs[0]
		path, rest, err := counted(diffs[1:])
		if err != nil {
			return nil, err
		}
		if op > opRemove {
			return nil, corrupt("difference of kind %d", op)
		}
		var val *node
		if op != opRemove {
			var raw []byte
			if raw, rest, err = counted(rest); err != nil {
				return nil, err
			}
			pv, err := parse(raw)
			if err != nil {
				return nil, err
			}
			val = &node{v: pv}
		}
		diffs = rest
		legs, err := parsePath(path)
		if err != nil {
			return nil, err
		}
		if root, err = root.edit(op, legs, val); err != nil {
			return nil, err
		}
	}
	ed.out, err = root.appendText(ed.out[:0], 0)
	return ed.out, err
}

func counted(b []byte) (v, rest []byte, err error) {
	n, k := binlog.LenEnc(b)
	if k == 0 || n > uint64(len(b)-k) {
		return nil, nil, corrupt("difference cut off")
	}
	return b[k : k+int(n)], b[k+int(n):], nil
}

// leg is one step of a path: a member or an array cell.
type leg struct {
	key  []byte
	cell int // -1 = member
}

// parsePath reads $.member, $."quoted member" and $[cell].
func parsePath(p []byte) ([]leg, error) {
	if len(p) == 0 {
		return nil, nil
	}
	bad := func() ([]leg, error) { return nil, corrupt("path %q", p) }
	if p[0] != '$' {
		return bad()
	}
	var legs []leg
	for i := 1; i < len(p); {
		switch p[i] {
		case ' ':
			i++
		case '[':
			end := bytes.IndexByte(p[i:], ']')
			if end < 0 {
				return bad()
			}
			n, err := strconv.ParseUint(strings.TrimSpace(string(p[i+1:i+end])), 10, 31)
			if err != nil {
				return bad()
			}
			legs = append(legs, leg{cell: int(n)})
			i += end + 1
		case '.':
			i++
			if i < len(p) && p[i] == '"' {
				key, n, ok := unescape(p[i+1:])
				if !ok {
					return bad()
				}
				legs = append(legs, leg{key, -1})
				i += 1 + n
				continue
			}
			end := i
			for end < len(p) && p[end] != '.' && p[end] != '[' {
				end++
			}
			if end == i {
				return bad()
			}
			legs = append(legs, leg{p[i:end], -1})
			i = end
		default:
			return bad()
		}
	}
	return legs, nil
}

// unescape reads a JSON string up to its closing quote.
func unescape(p []byte) (s []byte, n int, ok bool) {
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '"':
			return s, i + 1, true
		case '\\':
			i++
			if i >= len(p) {
				return nil, 0, false
			}
			switch p[i] {
			case 'b':
				s = append(s, '\b')
			case 'f':
				s = append(s, '\f')
			case 'n':
				s = append(s, '\n')
			case 'r':
				s = append(s, '\r')
			case 't':
				s = append(s, '\t')
			case 'u':
				if i+4 >= len(p) {
					return nil, 0, false
				}
				v, err := strconv.ParseUint(string(p[i+1:i+5]), 16, 16)
				if err != nil {
					return nil, 0, false
				}
				s = append(s, string(rune(v))...)
				i += 4
			default:
				s = append(s, p[i])
			}
		default:
			s = append(s, p[i])
		}
	}
	return nil, 0, false
}

func (n *node) enter() error {
	if n.open {
		return nil
	}
	c, is, err := n.v.container()
	if err != nil {
		return err
	}
	if !is {
		return corrupt("a path leads into a value of type %#02x", n.v.kind)
	}
	n.open, n.object = true, c.object
	for i := range c.n {
		if c.object {
			k, err := c.key(i)
			if err != nil {
				return err
			}
			n.keys = append(n.keys, k)
		}
		v, err := c.value(i)
		if err != nil {
			return err
		}
		n.elems = append(n.elems, &node{v: v})
	}
	return nil
}

// compareKeys is the order of members: shorter ones first.
func compareKeys(a, b []byte) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return bytes.Compare(a, b)
}

func (n *node) edit(op byte, legs []leg, val *node) (*node, error) {
	if len(legs) == 0 {
		if op != opReplace {
			return nil, corrupt("difference of kind %d at the root", op)
		}
		return val, nil
	}
	// Cell 0 of something that is not an array is the thing itself.
	l := legs[0]
	if _, is, err := n.v.container(); err == nil && !n.open && !is && l.cell == 0 {
		return n.edit(op, legs[1:], val)
	}
	if err := n.enter(); err != nil {
		return nil, err
	}
	if n.object == (l.cell >= 0) {
		return nil, corrupt("a path has a cell for an object or a member for an array")
	}
	at, found := l.cell, l.cell >= 0 && l.cell < len(n.elems)
	if n.object {
		at, found = slices.BinarySearchFunc(n.keys, l.key, compareKeys)
	}
	if len(legs) > 1 {
		if !found {
			return nil, corrupt("a path leads to nothing")
		}
		e, err := n.elems[at].edit(op, legs[1:], val)
		if err != nil {
			return nil, err
		}
		n.elems[at] = e
		return n, nil
	}
	switch {
	case op == opReplace && found:
		n.elems[at] = val
	case op == opRemove && found:
		n.elems = slices.Delete(n.elems, at, at+1)
		if n.object {
			n.keys = slices.Delete(n.keys, at, at+1)
		}
	case op == opInsert && n.object && !found:
		n.keys = slices.Insert(n.keys, at, l.key)
		n.elems = slices.Insert(n.elems, at, val)
	case op == opInsert && !n.object:
		n.elems = slices.Insert(n.elems, min(at, len(n.elems)), val)
	default:
		return nil, corrupt("difference of kind %d does not fit the document", op)
	}
	return n, nil
}

func (n *node) appendText(dst []byte, depth int) ([]byte, error) {
	if !n.open {
		return appendValue(dst, n.v, depth)
	}
	if depth++; depth > maxDepth {
		return dst, corrupt("nested deeper than %d", maxDepth)
	}
	open, end := byte('['), byte(']')
	if n.object {
		open, end = '{', '}'
	}
	dst = append(dst, open)
	var err error
	for i, e := range n.elems {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		if n.object {
			if dst, err = appendString(dst, n.keys[i]); err != nil {
				return dst, err
			}
			dst = append(dst, ": "...)
		}
		if dst, err = e.appendText(dst, depth); err != nil {
			return dst, err
		}
	}
	return append(dst, end), nil
}
