package wasmrt

import (
	"bytes"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/examples/mask-go/mask"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/wasm"
	"github.com/datalink-go/datalink/sdk/wire"
)

// native is the transform of mask-go called without WebAssembly.
type native struct{ m *wasm.Module }

func (n native) call(tb testing.TB, id uint32, req, reply wire.Message) {
	tb.Helper()
	if err := wire.DecodeReply(n.m.Call(id, req.Append(nil)), reply); err != nil {
		tb.Fatal(err)
	}
}

func newNative(tb testing.TB, config string, schemas ...*batch.Schema) native {
	tb.Helper()
	n := native{wasm.New(mask.Plugin())}
	var reply wire.ConfigureReply
	n.call(tb, 2, &wire.ConfigureRequest{Role: "transform", Config: []byte(config)}, &reply)
	if len(reply.Problems) > 0 {
		tb.Fatalf("problems: %v", reply.Problems)
	}
	for _, s := range schemas {
		n.call(tb, 23, &wire.SchemaRequest{Schema: batch.AppendSchema(nil, s)}, &wire.SchemaReply{})
	}
	return n
}

func (n native) apply(tb testing.TB, block []byte, ids ...uint64) []byte {
	tb.Helper()
	var reply wire.TransformReply
	n.call(tb, 24, &wire.TransformRequest{Block: block, Schemas: ids}, &reply)
	return reply.Block
}

// The module in Go, the one in Rust, which reads and writes blocks with code of
// its own, and the native code make the same of each block, byte for byte.
func TestSameResult(t *testing.T) {
	r := newRuntime(t)
	s, o := customers(1), orders(2)
	in := sample(t, s, o, 300)
	for _, c := range []struct {
		name, config string
		holds, lacks string
	}{
		{"stars", maskConfig, "**********er", "Hopper"},
		{"all stars", `{"columns": ["shop.customers.name", "shop.customers.note"]}`, "************", "Hopper"},
		{"hash", `{"columns": ["shop.customers.name", "shop.customers.note"], "mode": "hash", "secret": "0123456789abcdef"}`, "", "Hopper"},
		{"one column", `{"columns": ["shop.customers.name"], "keep": 1}`, "note of Grace Hopper", "\x0cGrace Hopper"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := bytes.Clone(newNative(t, c.config, s, o).apply(t, in, 1))
			if bytes.Contains(want, []byte(c.lacks)) || !bytes.Contains(want, []byte(c.holds)) || !bytes.Contains(want, []byte("not masked")) {
				t.Errorf("the native code masks too little or too much")
			}
			for name, binary := range masks(t) {
				m := open(t, r, "mask-"+name, binary, nil)
				d, err := m.Describe(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if d.Name != "mask-"+name || d.Kind != "wasm" {
					t.Errorf("manifest of %s: %+v", name, d)
				}
				configure(t, m, c.config, s, o)
				got, err := m.Apply(t.Context(), in, []uint32{1})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%s gives another block than the native code: %s", name, difference(t, got, want))
				}
				if err := m.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// difference names the first event that differs.
func difference(t *testing.T, got, want []byte) string {
	var a, b batch.Block
	if err := a.Decode(got, batch.NewRegistry(), batch.Limits{}); err != nil {
		return err.Error()
	}
	if err := b.Decode(want, batch.NewRegistry(), batch.Limits{}); err != nil {
		return err.Error()
	}
	for i := range min(a.Len(), b.Len()) {
		var e, f batch.Event
		if err := a.Event(i, &e); err != nil {
			return err.Error()
		}
		if err := b.Event(i, &f); err != nil {
			return err.Error()
		}
		if !bytes.Equal(e.Raw(), f.Raw()) {
			return strings.Join([]string{"event", string(rune('0' + i%10)), e.Kind.String(), string(e.Raw()), "want", string(f.Raw())}, " ")
		}
	}
	return "other sections"
}

// Both refuse what they cannot mask, and report faults of the configuration.
func TestMaskRefuses(t *testing.T) {
	r := newRuntime(t)
	for name, binary := range masks(t) {
		for _, c := range []struct{ config, want string }{
			{`{"columns": ["shop.customers.nmae"]}`, "no column"},
			{`{"columns": ["shop.customers.amount"]}`, "expects string"},
			{`{"columns": ["shop.customers.id"]}`, "string"},
		} {
			m := open(t, r, name, binary, nil)
			configure(t, m, c.config)
			if _, err := m.Schema(t.Context(), customers(1)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %s: got %v, want %q", name, c.config, err, c.want)
			}
			if got, err := m.Schema(t.Context(), orders(2)); err != nil || got.ID != 2 {
				t.Errorf("%s: after a refused table: %v", name, err)
			}
			m.Close(t.Context())
		}
		for _, c := range []struct{ config, want string }{
			{`{"columns": ["name"]}`, "columns[0]"},
			{`{"columns": ["a.b.c"], "mode": "hash", "secret": "short"}`, "secret"},
			{`{"columns": ["a.b.c"], "mode": "bars"}`, "mode"},
			{`{"columns": ["a.b.c"], "kepe": 3}`, "kepe"},
			{`{}`, "columns"},
		} {
			m := open(t, r, name, binary, nil)
			reply, err := m.Configure(t.Context(), &wire.ConfigureRequest{Role: "transform", Config: []byte(c.config)})
			if err != nil || len(reply.Problems) != 1 || reply.Problems[0].Path != c.want {
				t.Errorf("%s, %s: problems %v, error %v, want one of %q", name, c.config, reply, err, c.want)
			}
			m.Close(t.Context())
		}
	}
}

// The committed module is the one whose digest is noted beside it.
func TestCommittedDigest(t *testing.T) {
	noted := string(file(t, "../../examples/mask-rust/mask.wasm.sha256"))
	if got := digest(maskRust(t)) + "  mask.wasm\n"; got != noted {
		t.Errorf("mask.wasm has the digest %snoted is %s(build it by examples/mask-rust/build.sh)", got, noted)
	}
	if n := len(maskRust(t)); n > 100<<10 {
		t.Errorf("mask.wasm has %d bytes, expected 100 KiB at most", n)
	}
}

// masks returns the modules; a compiler with the race detector in it takes
// minutes for the one in Go.
func masks(t *testing.T) map[string][]byte {
	m := map[string][]byte{"rust": maskRust(t)}
	if !raceDetector {
		m["go"] = maskGo(t)
	}
	return m
}
