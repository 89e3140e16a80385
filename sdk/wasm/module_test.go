package wasm

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/wire"
)

type config struct {
	N int `config:"n" doc:"a number" min:"1" default:"1"`
}

// nop passes rows on.
type nop struct{ n int }

func (*nop) Check(context.Context) ([]sdk.Finding, error) {
	return []sdk.Finding{{Severity: sdk.Warning, Subject: "x"}}, nil
}
func (*nop) Close(context.Context) error { return nil }

func (t *nop) Schema(_ context.Context, s *batch.Schema) (*batch.Schema, error) {
	switch s.Table {
	case "pass":
		return sdk.Pass, nil
	case "drop":
		return nil, nil
	case "other":
		s = s.Clone()
		s.Table = "renamed"
	case "wrong":
		s = s.Clone()
		s.ID++
	}
	return s, nil
}

func (t *nop) Apply(_ context.Context, e *batch.Event, s *batch.Schema, out *batch.Builder) error {
	return out.EditRow(e, s, make([]bool, len(s.Columns)), nil)
}

func newModule() *Module {
	return New(sdk.Plugin{Name: "nop", Version: "1.0.0", Transform: sdk.TransformOf(func(_ sdk.Env, c config) (*nop, error) { return &nop{c.N}, nil })})
}

func call(t *testing.T, m *Module, name string, req, reply wire.Message) error {
	t.Helper()
	for _, w := range wire.Methods() {
		if w.Name == name {
			in := m.alloc(uint32(len(req.Append(nil))))
			copy(in, req.Append(nil))
			return wire.DecodeReply(m.Call(w.ID, in), reply)
		}
	}
	t.Fatalf("no method %s", name)
	return nil
}

func TestModule(t *testing.T) {
	m := newModule()
	var d wire.DescribeReply
	if err := call(t, m, wire.Describe, &wire.DescribeRequest{}, &d); err != nil || !strings.Contains(string(d.Manifest), `"kind":"wasm"`) {
		t.Errorf("manifest %s, %v", d.Manifest, err)
	}
	schema := func(table string, id uint32) (*wire.SchemaReply, error) {
		var r wire.SchemaReply
		s := &batch.Schema{ID: id, Table: table, Columns: []batch.Column{{Name: "a", Type: batch.Int32}}}
		err := call(t, m, wire.TransformSchema, &wire.SchemaRequest{Schema: batch.AppendSchema(nil, s)}, &r)
		return &r, err
	}
	var f *sdk.Fault
	if _, err := schema("t", 1); !errors.As(err, &f) || f.Code != sdk.CodeInternal {
		t.Errorf("before it is configured: %v", err)
	}
	var c wire.ConfigureReply
	if err := call(t, m, wire.Configure, &wire.ConfigureRequest{Role: "reader"}, &c); !errors.As(err, &f) || f.Code != sdk.CodeUnimplemented {
		t.Errorf("as a reader: %v", err)
	}
	if err := call(t, m, wire.Configure, &wire.ConfigureRequest{Role: "transform", Config: []byte(`{"n": 0}`)}, &c); err != nil || len(c.Problems) != 1 {
		t.Errorf("bad configuration: %+v, %v", c, err)
	}
	if err := call(t, m, wire.Configure, &wire.ConfigureRequest{Role: "transform", Config: []byte(`{"n": 3}`)}, &c); err != nil || len(c.Problems) != 0 {
		t.Fatalf("configuration: %+v, %v", c, err)
	}
	if err := call(t, m, wire.Configure, &wire.ConfigureRequest{Role: "transform"}, &c); err == nil {
		t.Error("configured twice")
	}
	var ch wire.CheckReply
	if err := call(t, m, wire.Check, &wire.CheckRequest{}, &ch); err != nil || len(ch.Findings) != 1 {
		t.Errorf("check: %+v, %v", ch, err)
	}
	for i, w := range []struct {
		table      string
		pass, drop bool
		schema     bool
		fails      bool
	}{{table: "same"}, {table: "pass", pass: true}, {table: "drop", drop: true}, {table: "other", schema: true}, {table: "wrong", fails: true}} {
		r, err := schema(w.table, uint32(i+1))
		if (err != nil) != w.fails || r.Pass != w.pass || r.Drop != w.drop || (len(r.Schema) > 0) != w.schema {
			t.Errorf("%s: %+v, %v", w.table, r, err)
		}
	}
	var e wire.Empty
	for _, name := range []string{wire.Open, wire.Scan, wire.Claim} {
		if err := call(t, m, name, &e, &e); !errors.As(err, &f) || f.Code != sdk.CodeUnimplemented {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, id := range []uint32{0, 1000} {
		if err := wire.DecodeReply(m.Call(id, nil), &e); !errors.As(err, &f) || f.Code != sdk.CodeUnimplemented {
			t.Errorf("method %d: %v", id, err)
		}
	}
	if err := wire.DecodeReply(m.Call(24, []byte{0xff}), &e); !errors.As(err, &f) {
		t.Errorf("a corrupt request: %v", err)
	}
	if err := call(t, m, wire.Close, &e, &e); err != nil {
		t.Error(err)
	}
}

func TestHandler(t *testing.T) {
	var got string
	var level int32
	log := slog.New(&handler{write: func(l int32, p []byte) { level, got = l, string(p) }})
	log = log.With("a", 1).WithGroup("g").With("b", "two words")
	log.Warn("said", "c", true, slog.Group("h", "d", 4))
	if want := `said a="1" g.b="two words" g.c="true" g.h.d="4"`; got != want || level != 4 {
		t.Errorf("level %d, %s, want 4, %s", level, got, want)
	}
}

// A module links the standard library and the SDK alone: with protobuf or gRPC
// it is ten times as large, and as slow to compile.
func TestLinksNoProtobuf(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", ".")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for pkg := range strings.Lines(string(out)) {
		pkg = strings.TrimSpace(pkg)
		first, _, _ := strings.Cut(pkg, "/")
		switch {
		case strings.HasPrefix(pkg, "github.com/datalink-go/datalink/sdk"):
			n++
		case strings.Contains(first, "."):
			t.Errorf("sdk/wasm links %s", pkg)
		}
	}
	if n < 4 {
		t.Errorf("only %d packages of the SDK listed", n)
	}
}
