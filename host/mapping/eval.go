package mapping

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// errMissing is the error of a column whose value the source's log does not hold.
type errMissing struct {
	state  batch.ValueState
	column string
}

func (e errMissing) Error() string {
	return "column " + e.column + ": the source's log does not hold its value; set the source's row image to full"
}

// eval runs an expression on the columns at places of one image. The error is
// errMissing where none of them has a value.
func (s *Stage) eval(what string, program *vm.Program, in *batch.Schema, places []int, vals []batch.Value) (any, error) {
	clear(s.env)
	var missing []int
	for _, i := range places {
		val, err := native(&in.Columns[i], &vals[i])
		var m errMissing
		if errors.As(err, &m) {
			missing = append(missing, i)
			continue
		}
		if err != nil {
			return nil, sdk.Faultf(sdk.CodeRefused, "%s on %s, column %s: %v", what, in.Name(), in.Columns[i].Name, err)
		}
		s.env[in.Columns[i].Name] = val
	}
	if len(missing) > 0 {
		i := missing[0]
		if len(missing) == len(places) {
			return nil, errMissing{vals[i].State, in.Columns[i].Name}
		}
		return nil, sdk.Faultf(sdk.CodeRefused, "%s on %s: %v", what, in.Name(), errMissing{vals[i].State, in.Columns[i].Name})
	}
	out, err := expr.Run(program, s.env)
	if err != nil {
		cause, _, _ := strings.Cut(err.Error(), "\n") // a picture of the expression follows
		return nil, sdk.Faultf(sdk.CodeRefused, "%s on a row of %s: %s", what, in.Name(), cause).
			Suggest("compare values of one type; NULL is nil")
	}
	return out, nil
}

// native returns the value as an expression sees it: integers as int, numbers
// beyond that, floats and decimals as float64 (comparisons of more than 15 digits
// are approximate), NULL as nil, all else as the text that the source prints.
func native(c *batch.Column, v *batch.Value) (any, error) {
	switch v.State {
	case batch.Null:
		return nil, nil
	case batch.Absent, batch.Unchanged:
		return nil, errMissing{v.State, c.Name}
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
		f, err := strconv.ParseFloat(string(v.Bytes()), 64)
		if err != nil {
			return nil, fmt.Errorf("decimal %q: %w", v.Bytes(), err)
		}
		return f, nil
	}
	if text, ok := batch.AppendText(nil, c, v); ok {
		return string(text), nil
	}
	return string(v.Bytes()), nil
}

// identifiers lists the names that an expression reads.
func identifiers(p *vm.Program) []string {
	n, v := p.Node(), &names{}
	ast.Walk(&n, v)
	return v.found
}

type names struct{ found []string }

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
