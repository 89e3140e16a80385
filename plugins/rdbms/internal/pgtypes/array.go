package pgtypes

import (
	"bytes"

	"github.com/datalink-go/datalink/sdk/batch"
)

// array reads an array as the server prints it: [2:3][1:2]={{1,2},{3,NULL}}.
func (c *Column) array(text []byte) ([]byte, status) {
	a := arrayText{p: text, delim: c.delim}
	if !a.bounds() || !a.walk(0) || len(a.p) > 0 {
		return nil, wrong
	}
	dims := make([]batch.Dim, len(a.dims))
	total := 0
	for i, n := range a.dims {
		lower := 1
		if i < len(a.lower) {
			lower = a.lower[i]
		}
		dims[i] = batch.Dim{Len: n, Lower: lower}
		if total *= n; i == 0 {
			total = n
		}
	}
	if total == 0 {
		return batch.AppendArray(nil, nil, nil), parsed
	}
	if total != len(a.elems) {
		return nil, wrong
	}
	elems := make([][]byte, total)
	for i, e := range a.elems {
		if e == nil {
			continue
		}
		v, st := c.elem.element(make([]byte, 0, len(e)+8), e)
		if st != parsed {
			return nil, st
		}
		elems[i] = v
	}
	return batch.AppendArray(nil, dims, elems), parsed
}

// arrayText walks the text of an array.
type arrayText struct {
	p     []byte
	delim byte
	lower []int
	dims  []int
	elems [][]byte
}

// bounds reads the dimensions that stand before an array whose lower bounds are
// not 1.
func (a *arrayText) bounds() bool {
	if len(a.p) == 0 || a.p[0] != '[' {
		return true
	}
	for len(a.p) > 0 && a.p[0] == '[' {
		to := bytes.IndexByte(a.p, ']')
		colon := bytes.IndexByte(a.p, ':')
		if to < 0 || colon < 0 || colon > to {
			return false
		}
		lo, ok := parseInt(a.p[1:colon])
		if !ok {
			return false
		}
		a.lower = append(a.lower, int(lo))
		a.p = a.p[to+1:]
	}
	if len(a.p) == 0 || a.p[0] != '=' {
		return false
	}
	a.p = a.p[1:]
	return true
}

// walk reads one pair of braces at a depth.
func (a *arrayText) walk(depth int) bool {
	if len(a.p) == 0 || a.p[0] != '{' || depth > 6 {
		return false
	}
	a.p = a.p[1:]
	n := 0
	for {
		if len(a.p) == 0 {
			return false
		}
		switch a.p[0] {
		case '}':
			a.p = a.p[1:]
			for len(a.dims) <= depth {
				a.dims = append(a.dims, -1)
			}
			if a.dims[depth] >= 0 && a.dims[depth] != n {
				return false
			}
			a.dims[depth] = n
			return true
		case '{':
			for len(a.dims) <= depth {
				a.dims = append(a.dims, -1)
			}
			if !a.walk(depth + 1) {
				return false
			}
		default:
			if !a.value() {
				return false
			}
		}
		n++
		if len(a.p) > 0 && a.p[0] == a.delim {
			a.p = a.p[1:]
		} else if len(a.p) == 0 || a.p[0] != '}' {
			return false
		}
	}
}

// value reads one element: NULL, in quotes with backslashes, or plain.
func (a *arrayText) value() bool {
	if a.p[0] == '"' {
		e := make([]byte, 0, 16)
		for i := 1; i < len(a.p); i++ {
			switch a.p[i] {
			case '\\':
				i++
				if i == len(a.p) {
					return false
				}
			case '"':
				a.p = a.p[i+1:]
				a.elems = append(a.elems, e)
				return true
			}
			e = append(e, a.p[i])
		}
		return false
	}
	n := 0
	for n < len(a.p) && a.p[n] != a.delim && a.p[n] != '}' {
		n++
	}
	if e := a.p[:n:n]; string(e) == "NULL" {
		a.elems = append(a.elems, nil)
	} else if n == 0 {
		return false
	} else {
		a.elems = append(a.elems, e)
	}
	a.p = a.p[n:]
	return true
}
