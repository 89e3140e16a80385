package mapping

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// filter says as what kind the row passes; KindInvalid = not at all.
func (s *Stage) filter(p *plan, e *batch.Event) (batch.Kind, error) {
	if p.rule == nil || p.rule.program == nil {
		return e.Kind, nil
	}
	switch e.Kind {
	case batch.Delete:
		ok, err := s.passes(p, e, e.Before, 0)
		return choose(ok, e.Kind), err
	case batch.Update:
		now, err := s.passes(p, e, e.After, 1)
		if err != nil {
			return batch.KindInvalid, err
		}
		if e.Before.IsZero() {
			return batch.KindInvalid, sdk.Faultf(sdk.CodeRefused,
				"filter %q on %s: the update has no image of the row before it", p.rule.Filter, p.in.Name()).
				Suggest("set the source's row image to full")
		}
		was, err := s.passes(p, e, e.Before, 0)
		if err != nil {
			return batch.KindInvalid, err
		}
		switch {
		case now && was:
			return batch.Update, nil
		case was:
			return batch.Delete, nil
		case now:
			return batch.Insert, nil
		}
		return batch.KindInvalid, nil
	}
	ok, err := s.passes(p, e, e.After, 1)
	return choose(ok, e.Kind), err
}

func choose(ok bool, k batch.Kind) batch.Kind {
	if ok {
		return k
	}
	return batch.KindInvalid
}

func (s *Stage) passes(p *plan, e *batch.Event, im batch.Image, side int) (bool, error) {
	v, err := im.Values(s.vals[side])
	if err != nil {
		return false, err
	}
	s.vals[side] = v
	clear(s.env)
	for _, i := range p.filter {
		c := &p.in.Columns[i]
		val, err := native(c, &v[i])
		if err != nil {
			return false, sdk.Faultf(sdk.CodeRefused, "filter %q on %s, column %s of a %s: %v", p.rule.Filter, p.in.Name(), c.Name, e.Kind, err)
		}
		s.env[c.Name] = val
	}
	out, err := expr.Run(p.rule.program, s.env)
	if err != nil {
		cause, _, _ := strings.Cut(err.Error(), "\n") // a picture of the expression follows
		return false, sdk.Faultf(sdk.CodeRefused, "filter %q on a row of %s: %s", p.rule.Filter, p.in.Name(), cause).
			Suggest("compare values of one type; NULL is nil")
	}
	return out.(bool), nil
}

// native returns the value as a filter sees it: integers as int, numbers beyond
// that, floats and decimals as float64 (comparisons of more than 15 digits are
// approximate), NULL as nil, all else as the text that the source prints.
func native(c *batch.Column, v *batch.Value) (any, error) {
	switch v.State {
	case batch.Null:
		return nil, nil
	case batch.Absent, batch.Unchanged:
		return nil, fmt.Errorf("the source's log does not hold its value; set the source's row image to full")
	case batch.Raw:
		_, data, _ := v.Raw()
		return string(data), nil
	}
	switch c.Type {
	case batch.Bool:
		return v.Uint64() != 0, nil
	case batch.Int8, batch.Int16, batch.Int32, batch.Int64:
		return int(v.Int64()), nil
	case batch.Uint8, batch.Uint16, batch.Uint32, batch.Year:
		return int(v.Uint64()), nil
	case batch.Uint64:
		if u := v.Uint64(); u > math.MaxInt64 {
			return float64(u), nil
		}
		return int(v.Uint64()), nil
	case batch.Float32, batch.Float64:
		return v.Float64(), nil
	case batch.Decimal:
		return strconv.ParseFloat(string(v.Bytes()), 64)
	}
	if text, ok := batch.AppendText(nil, c, v); ok {
		return string(text), nil
	}
	return string(v.Bytes()), nil
}

// names collects the identifiers of an expression.
type names struct{ found []string }

func walk(n *ast.Node, v *names) { ast.Walk(n, v) }

// Visit is called by the expression library for each node.
func (v *names) Visit(n *ast.Node) {
	if id, ok := (*n).(*ast.IdentifierNode); ok {
		for _, f := range v.found {
			if f == id.Value {
				return
			}
		}
		v.found = append(v.found, id.Value)
	}
}
