package mapping

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Column is a column that a rule adds: a constant, or an expression over the
// source's columns.
type Column struct {
	Value string `json:",omitempty"` // may hold {schema}, {table} and captures
	Expr  string `json:",omitempty"` // instead of Value
	Type  string `json:",omitempty"` // see README.md; "" = string
	Key   bool   `json:",omitempty"` // the column comes first in the key: it tells merged tables apart
}

// added is a Column made ready.
type added struct {
	Column
	name    string
	layout  batch.Column
	value   *template
	program *vm.Program
	columns []string
}

// lengths are those of key columns that state none: what every target can index.
const keyLength = 191

var typeText = regexp.MustCompile(`^([a-z0-9]+)(?:\((\d+)(?:,(\d+))?\))?$`)

func compileColumn(name string, c Column, groups int) (*added, error) {
	a := &added{Column: c, name: name}
	if c.Value != "" && c.Expr != "" {
		return nil, fmt.Errorf("column %q: value and expr are given, expected one of them", name)
	}
	if err := a.typed(); err != nil {
		return nil, fmt.Errorf("column %q: %w", name, err)
	}
	if c.Expr == "" {
		t, err := parseTemplate(c.Value, groups)
		if err == nil && t.rows {
			err = fmt.Errorf("%q: values of the row are reached by an expr", c.Value)
		}
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", name, err)
		}
		a.value = t
		return a, nil
	}
	if c.Key {
		return nil, fmt.Errorf("column %q: a column of the key is a value, not an expr", name)
	}
	p, err := expr.Compile(c.Expr, expr.AllowUndefinedVariables())
	if err != nil {
		return nil, fmt.Errorf("column %q, expr %q: %w", name, c.Expr, err)
	}
	a.program, a.columns = p, identifiers(p)
	return a, nil
}

// typed reads the type's text.
func (a *added) typed() error {
	text := a.Type
	if text == "" {
		text = "string"
	}
	m := typeText.FindStringSubmatch(text)
	types := map[string]batch.Type{
		"bool": batch.Bool, "int32": batch.Int32, "int64": batch.Int64, "uint64": batch.Uint64, "float64": batch.Float64,
		"decimal": batch.Decimal, "string": batch.String, "json": batch.JSON, "date": batch.Date, "datetime": batch.DateTime,
	}
	var t batch.Type
	if m != nil {
		t = types[m[1]]
	}
	a.layout = batch.Column{Name: a.name, Type: t, Native: text}
	number := func(s string) uint32 { n, _ := strconv.ParseUint(s, 10, 32); return uint32(n) }
	switch {
	case t == batch.TypeInvalid:
		return fmt.Errorf("type %q: expected bool, int32, int64, uint64, float64, decimal(p,s), string, string(n), json, date or datetime", text)
	case t == batch.Decimal:
		if m[2] == "" || number(m[2]) < 1 || number(m[3]) > number(m[2]) {
			return fmt.Errorf("type %q: expected decimal(p,s) with 1 ≤ p and s ≤ p", text)
		}
		a.layout.Precision, a.layout.Scale = number(m[2]), number(m[3])
	case t == batch.String:
		if a.layout.Length = number(m[2]); a.Type == "" && a.Key {
			a.layout.Length = keyLength
		}
		a.layout.Native = "text"
		if a.layout.Length > 0 {
			a.layout.Native = fmt.Sprintf("varchar(%d)", a.layout.Length)
		}
	case m[2] != "":
		return fmt.Errorf("type %q: %s has no length", text, m[1])
	}
	if !a.Key {
		a.layout.Flags |= batch.Nullable
	}
	return nil
}

// put appends a value of the column's type.
func (a *added) put(out *batch.Builder, v any) error {
	bad := func() error {
		return sdk.Faultf(sdk.CodeRefused, "column %s of type %s: its value %v (%T) does not fit", a.name, a.layout.Native, v, v).
			Suggest("convert it in the expr, or choose another type")
	}
	if v == nil {
		out.PutNull()
		return nil
	}
	switch a.layout.Type {
	case batch.Bool:
		b, ok := v.(bool)
		if s, text := v.(string); text {
			p, err := strconv.ParseBool(s)
			b, ok = p, err == nil
		}
		if !ok {
			return bad()
		}
		n := uint64(0)
		if b {
			n = 1
		}
		out.PutUint(n)
	case batch.Int32, batch.Int64:
		n, ok := integer(v)
		if !ok || a.layout.Type == batch.Int32 && (n < math.MinInt32 || n > math.MaxInt32) {
			return bad()
		}
		out.PutInt(n)
	case batch.Uint64:
		n, ok := integer(v)
		if !ok || n < 0 {
			return bad()
		}
		out.PutUint(uint64(n))
	case batch.Float64:
		f, err := strconv.ParseFloat(fmt.Sprint(v), 64)
		if err != nil {
			return bad()
		}
		out.PutFloat(f)
	case batch.Decimal:
		text, ok := a.decimal(v)
		if !ok {
			return bad()
		}
		out.PutString(text)
	case batch.Date, batch.DateTime:
		c, ok := civil(fmt.Sprint(v))
		if !ok {
			return bad()
		}
		if a.layout.Type == batch.Date {
			out.PutInt(int64(batch.PackDate(c.Year, c.Month, c.Day)))
		} else {
			out.PutInt(c.Pack())
		}
	default:
		text := fmt.Sprint(v)
		if a.layout.Length > 0 && len([]rune(text)) > int(a.layout.Length) {
			return bad()
		}
		out.PutString(text)
	}
	return nil
}

func integer(v any) (int64, bool) {
	switch v := v.(type) {
	case int:
		return int64(v), true
	case float64:
		return int64(v), v == math.Trunc(v) && math.Abs(v) < 1<<53
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil
	}
	return 0, false
}

// decimal writes a number with the column's scale; text must not need rounding.
func (a *added) decimal(v any) (string, bool) {
	scale, text := int(a.layout.Scale), ""
	switch v := v.(type) {
	case int:
		text = strconv.Itoa(v)
	case float64:
		text = strconv.FormatFloat(v, 'f', scale, 64)
	case string:
		text = v
	}
	whole, frac, dot := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	if !digits(whole) || dot && !digits(frac) || len(frac) > scale {
		return "", false
	}
	if len(strings.TrimLeft(whole, "0"))+scale > int(a.layout.Precision) {
		return "", false
	}
	if scale == 0 {
		return text, true
	}
	if !dot {
		text += "."
	}
	return text + strings.Repeat("0", scale-len(frac)), true
}

func civil(s string) (batch.Civil, bool) {
	for _, layout := range []string{"2006-01-02", "2006-01-02 15:04:05.999999", "2006-01-02T15:04:05.999999"} {
		if t, err := time.Parse(layout, s); err == nil {
			return batch.Civil{
				Year: t.Year(), Month: int(t.Month()), Day: t.Day(),
				Hour: t.Hour(), Minute: t.Minute(), Second: t.Second(), Mic: t.Nanosecond() / 1000,
			}, true
		}
	}
	return batch.Civil{}, false
}
