package sdk_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Config are the options of the transform.
type Config struct {
	Column string `config:"column" required:"true" doc:"name of a text column"`
}

// upper makes one text column upper case.
type upper struct{ column string }

func open(_ sdk.Env, cfg Config) (*upper, error) { return &upper{cfg.Column}, nil }

func (*upper) Check(context.Context) ([]sdk.Finding, error) { return nil, nil }
func (*upper) Close(context.Context) error                  { return nil }

// Schema is asked once for each layout: tables without the column pass.
func (u *upper) Schema(_ context.Context, in *batch.Schema) (*batch.Schema, error) {
	i := in.Column(u.column)
	switch {
	case i < 0:
		return sdk.Pass, nil
	case in.Columns[i].Type != batch.String:
		return nil, sdk.Faultf(sdk.CodeInvalidConfig, "column %s of %s is %s, expected string", u.column, in.Name(), in.Columns[i].Type)
	}
	return in, nil
}

// Apply writes the row with another value in one column. Images before and after
// the change pass through it alike; NULL and what was left out are not asked for.
func (u *upper) Apply(_ context.Context, in *batch.Event, out *batch.Schema, to *batch.Builder) error {
	edit := make([]bool, len(out.Columns))
	edit[out.Column(u.column)] = true
	raw := false // bytes that are not valid in their charset
	err := to.EditRow(in, out, edit, func(dst []byte, _ int, v *batch.Value) []byte {
		raw = raw || v.State == batch.Raw
		return append(dst, bytes.ToUpper(v.Bytes())...)
	})
	if err == nil && raw {
		err = sdk.Faultf(sdk.CodeUnfit, "column %s of %s holds bytes that are no text", u.column, in.Schema.Name())
	}
	return err
}

// A program hands this to serve.Main, a WASM module to wasm.Export.
var plugin = sdk.Plugin{Name: "upper", Version: "1.0.0", Transform: sdk.TransformOf(open)}

func ExampleTransform() {
	people := &batch.Schema{ID: 1, Table: "people", Key: []int{0}, Columns: []batch.Column{
		{Name: "id", Type: batch.Int64}, {Name: "name", Type: batch.String, Flags: batch.Nullable},
	}}
	c, problems, err := plugin.Transform.Open(sdk.Env{}, []byte(`{"column": "name"}`))
	if err != nil || len(problems) > 0 {
		fmt.Println(problems, err)
		return
	}
	t := c.(sdk.Transform)
	schema, _ := t.Schema(context.Background(), people)

	in, out := batch.NewBuilder(batch.Limits{}), batch.NewBuilder(batch.Limits{})
	_ = in.BeginTx(batch.Tx{Begins: true})
	_ = in.BeginRow(batch.Insert, people)
	in.BeginImage(batch.AfterImage)
	in.PutInt(1)
	in.PutString("Ann")
	in.EndImage()
	_ = in.EndRow()
	_ = in.EndTx(true, nil, nil)

	event := first(in)
	_ = out.BeginTx(batch.Tx{Begins: true})
	if err := t.Apply(context.Background(), event, schema, out); err != nil {
		fmt.Println(err)
		return
	}
	_ = out.EndTx(true, nil, nil)
	row, _ := first(out).After.Values(nil)
	fmt.Printf("%d %s\n", row[0].Int64(), row[1].Bytes())
	// Output: 1 ANN
}

// first decodes the first event of a block.
func first(b *batch.Builder) *batch.Event {
	data, err := b.Finish()
	if err != nil {
		panic(err)
	}
	var block batch.Block
	if err := block.Decode(data, batch.NewRegistry(), batch.Limits{}); err != nil {
		panic(err)
	}
	e := new(batch.Event)
	if err := block.Event(0, e); err != nil {
		panic(err)
	}
	return e
}
