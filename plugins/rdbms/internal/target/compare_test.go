package target

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// plain is a dialect without cases, in which every type is "int" or wrong.
type plain struct{}

func (plain) Fold(s string) string          { return strings.ToLower(s) }
func (plain) Quote(s string) string         { return "`" + s + "`" }
func (plain) TableName(ns, n string) string { return n }
func (plain) Folded(have *Column) bool      { return have.Collation == "ci" }
func (plain) Define(c *batch.Column, _ bool) string {
	return c.Name + " int"
}

func (plain) Fits(_ *batch.Column, have *Column, _ bool) (string, bool) {
	switch have.Type {
	case "int":
		return "", false
	case "small":
		return "too narrow", true
	}
	return "wrong", false
}

func (plain) Retype(_ *Table, have *Column, _ *batch.Column, _ bool) string {
	return "RETYPE " + have.Name
}

func (plain) AddKey(_ *Table, columns []string) string { return "KEY " + strings.Join(columns, ",") }

func (plain) AddColumn(_ *Table, c *batch.Column) string { return "ADD " + c.Name }

func schema() *batch.Schema {
	return &batch.Schema{ID: 1, Table: "t", Key: []int{0}, Columns: []batch.Column{
		{Name: "id", Type: batch.Int32}, {Name: "a", Type: batch.Int32}, {Name: "b", Type: batch.Int32},
	}}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	pk := Unique{Name: "PRIMARY", Primary: true, Columns: []int{0}, Plain: true}
	col := func(name, typ string) Column { return Column{Name: name, Type: typ, Nullable: true} }
	for _, c := range []struct {
		name    string
		o       Options
		t       Table
		want    []string // of the fault
		columns []int
		missing []int
		one     bool
		uniques int
	}{
		{"all there, in other cases and order", Options{}, Table{Columns: []Column{col("ID", "int"), col("B", "int"), col("A", "int")}, Uniques: []Unique{pk}}, nil, []int{0, 2, 1}, nil, false, 0},
		{"a column is added", Options{}, Table{Columns: []Column{col("id", "int"), col("a", "int")}, Uniques: []Unique{pk}}, nil, []int{0, 1, -1}, []int{2}, false, 0},
		{"a column is left out", Options{OnMissingColumn: Ignore}, Table{Columns: []Column{col("id", "int"), col("a", "int")}, Uniques: []Unique{pk}}, nil, []int{0, 1, -1}, nil, false, 0},
		{
			"everything is wrong",
			Options{OnMissingColumn: Stop},
			Table{Columns: []Column{col("id", "small"), col("a", "odd"), {Name: "x", Type: "int"}}, Faults: []Fault{{"engine", "FIX"}}},
			[]string{"engine", "id is small: too narrow", "a is odd: wrong", "b (int32) is missing", "x is NOT NULL", "no primary key", "FIX", "RETYPE id", "RETYPE a", "ADD b", "DROP COLUMN `x`", "KEY id"},
			nil, nil, false, 0,
		},
		{"too narrow for some values, by choice", Options{OnUnfit: Null}, Table{Columns: []Column{col("id", "int"), col("a", "small"), col("b", "int")}, Uniques: []Unique{pk}}, nil, []int{0, 1, 2}, nil, false, 0},
		{
			"another key",
			Options{},
			Table{Columns: []Column{col("id", "int"), col("a", "int"), col("b", "int")}, Uniques: []Unique{pk, {Name: "u", Columns: []int{2, 1}, Plain: true}}},
			nil,
			[]int{0, 1, 2},
			nil, false, 1,
		},
		{
			"a key of which nothing is known",
			Options{},
			Table{Columns: []Column{col("id", "int"), col("a", "int"), col("b", "int")}, Uniques: []Unique{pk, {Name: "u", Columns: []int{2}}}},
			nil,
			[]int{0, 1, 2},
			nil, true, 0,
		},
	} {
		o := c.o.WithDefaults()
		m, err := Compare(plain{}, &o, schema(), &c.t)
		if c.want != nil {
			if !errors.Is(err, &sdk.Fault{Code: sdk.CodeSchemaMismatch}) {
				t.Errorf("%s: got %v, want a mismatch", c.name, err)
				continue
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%s: %q lacks %q", c.name, err, w)
				}
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if d := cmp.Diff(c.columns, m.Columns) + cmp.Diff(c.missing, m.Missing); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		if m.Constraints.OneLane != c.one || len(m.Constraints.Uniques) != c.uniques {
			t.Errorf("%s: got constraints %+v, want one lane %t and %d uniques", c.name, m.Constraints, c.one, c.uniques)
		}
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	a, b := schema(), schema()
	seg := []sdk.Change{
		{Op: sdk.Upsert, Schema: a, Kind: batch.Read},
		{Op: sdk.Remove, Schema: a},
		{Op: sdk.Upsert, Schema: b, Kind: batch.Insert},
		{Op: sdk.Upsert, Schema: a, Kind: batch.Read},
		{Op: sdk.Upsert, Schema: b, Kind: batch.Read},
	}
	var g Groups
	for range 2 {
		var got [][]int32
		var read []bool
		for _, x := range g.Of(seg) {
			got, read = append(got, x.At), append(read, x.Read)
		}
		if d := cmp.Diff([][]int32{{0, 3}, {1}, {2, 4}}, got) + cmp.Diff([]bool{true, false, false}, read); d != "" {
			t.Error(d)
		}
	}
}
