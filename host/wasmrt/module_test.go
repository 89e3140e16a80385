package wasmrt

import (
	"bytes"
	"testing"

	"github.com/datalink-go/datalink/sdk/batch"
)

func TestMaskGo(t *testing.T) {
	r := newRuntime(t, t.TempDir()+"/cache")
	m := open(t, r, "mask-go", maskGo(t), nil)
	d, err := m.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d.Name != "mask-go" || d.Kind != "wasm" {
		t.Errorf("manifest %+v", d)
	}
	s, o := customers(1), orders(2)
	configure(t, m, maskConfig, s, o)
	in := sample(t, s, o, 50)
	out, err := m.Apply(t.Context(), in, []uint32{1})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(out, []byte("Hopper")) || !bytes.Contains(out, []byte("**********er")) || !bytes.Contains(out, []byte("not masked")) {
		t.Error("names are not masked")
	}
	var b batch.Block
	if err := b.Decode(out, batch.NewRegistry(), batch.Limits{}); err != nil {
		t.Fatal(err)
	}
}
