package batch

import (
	"bytes"
	"testing"
)

func TestColumnsRoundTripAndOverlay(t *testing.T) {
	s := testSchema()
	b := NewBuilder(Limits{})
	row := func(put func()) {
		t.Helper()
		if err := b.BeginRow(Insert, s); err != nil {
			t.Fatal(err)
		}
		b.BeginImage(AfterImage)
		put()
		b.EndImage()
		if err := b.EndRow(); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.BeginTx(Tx{Begins: true}); err != nil {
		t.Fatal(err)
	}
	row(func() { b.PutInt(1); b.PutString("a"); b.PutString("1.5"); b.PutNull(); b.PutFloat(2) })
	row(func() { b.PutInt(1); b.PutAbsent(); b.PutUnchanged(); b.PutInt(77); b.PutAbsent() })
	row(func() { b.PutInt(1); b.PutString("a"); b.PutString("1.5"); b.PutInt(77); b.PutFloat(2) })
	row(func() {
		b.PutInt(1)
		b.PutRaw("latin1", []byte{0xff})
		b.PutString("x")
		b.PutAbsent()
		b.PutFloat(1)
	})
	if err := b.EndTx(true, nil, []byte("e")); err != nil {
		t.Fatal(err)
	}
	data, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	var blk Block
	if err := blk.Decode(data, NewRegistry(), Limits{}); err != nil {
		t.Fatal(err)
	}
	cols := make([][]Encoded, blk.Len())
	images := make([]Image, blk.Len())
	for i := range cols {
		var e Event
		if err := blk.Event(i, &e); err != nil {
			t.Fatal(err)
		}
		images[i] = e.After
		if cols[i], err = e.After.Columns(nil); err != nil {
			t.Fatal(err)
		}
		if got := AppendImage(nil, cols[i]); !bytes.Equal(got, e.After.Data()) {
			t.Errorf("image %d: got % x, want % x", i, got, e.After.Data())
		}
	}
	if got := cols[3][1]; got.State != Raw || !bytes.HasSuffix(got.Payload(String), []byte{0xff}) {
		t.Errorf("raw column: %+v", got)
	}
	Overlay(cols[0], cols[1])
	if got := NewImage(s, AppendImage(nil, cols[0])); !bytes.Equal(got.Data(), images[2].Data()) || !got.Complete() {
		t.Errorf("overlay: got % x, want % x", got.Data(), images[2].Data())
	}
}
