package batch

import (
	"bytes"
	"slices"
	"testing"
)

func testSchema() *Schema {
	return &Schema{ID: 7, Version: 3, Source: "src", Namespace: "shop", Table: "orders", PrimaryKey: true, Key: []int{0}, Columns: []Column{
		{Name: "id", Type: Int64, Native: "bigint"},
		{Name: "name", Type: String, Native: "varchar(40)", Flags: Nullable},
		{Name: "amount", Type: Decimal, Precision: 12, Scale: 2},
		{Name: "at", Type: DateTime, Flags: Nullable},
		{Name: "f", Type: Float32},
	}}
}

func TestRowRoundTrip(t *testing.T) {
	s := testSchema()
	b := NewBuilder(Limits{})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(b.BeginTx(Tx{Begins: true, ID: "a:1", Committed: 5, Covers: []Cover{{Point: 1, Upto: 2}}}))
	must(b.BeginRow(Update, s))
	b.BeginImage(BeforeImage)
	b.PutInt(5)
	b.PutAbsent()
	b.PutString("1.50")
	b.PutNull()
	b.PutFloat(1.5)
	b.EndImage()
	b.BeginImage(AfterImage)
	b.PutInt(6)
	b.PutRaw("latin1", []byte{0xff})
	b.VarEnd(append(b.VarStart(), bytes.Repeat([]byte("9"), 200)...))
	b.PutUnchanged()
	b.PutFloat(2.5)
	b.EndImage()
	must(b.EndRow())
	must(b.Heartbeat(9))
	must(b.EndTx(true, nil, []byte("pos")))
	data, err := b.Finish()
	must(err)
	var blk Block
	must(blk.Decode(data, NewRegistry(), Limits{}))
	if blk.Len() != 2 || len(blk.Txs) != 1 || string(blk.Txs[0].End) != "pos" || blk.Txs[0].Covers[0].Upto != 2 {
		t.Fatalf("got %d events, txs %+v", blk.Len(), blk.Txs)
	}
	var e Event
	must(blk.Event(0, &e))
	if !bytes.Equal(e.Key, []byte{6, 0, 0, 0, 0, 0, 0, 0}) || !bytes.Equal(e.OldKey, []byte{5, 0, 0, 0, 0, 0, 0, 0}) {
		t.Fatalf("key % x, old key % x", e.Key, e.OldKey)
	}
	v, err := e.After.Values(nil)
	must(err)
	name, raw, ok := v[1].Raw()
	if v[0].Int64() != 6 || !ok || name != "latin1" || raw[0] != 0xff || len(v[2].Bytes()) != 200 || v[3].State != Unchanged || v[4].Float64() != 2.5 {
		t.Fatalf("after image: %+v", v)
	}
	if e.After.Complete() {
		t.Error("an image with an unchanged column says it is complete")
	}
	must(blk.Event(1, &e))
	if e.Kind != Heartbeat || e.Ordinal != 1 {
		t.Fatalf("second event: %+v", e)
	}
}

func TestHeldOrdinal(t *testing.T) {
	s := &Schema{ID: 1, Table: "t", Columns: []Column{{Name: "a", Type: Int32}}}
	b := NewBuilder(Limits{})
	row := func(drop bool) {
		t.Helper()
		if err := b.BeginRow(Insert, s); err != nil {
			t.Fatal(err)
		}
		b.BeginImage(AfterImage)
		b.PutInt(1)
		b.EndImage()
		if drop {
			b.DropRow()
		} else if err := b.EndRow(); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.BeginTx(Tx{Begins: true, Ordinal: 3}); err != nil {
		t.Fatal(err)
	}
	row(false)
	b.HoldOrdinal(7)
	row(false)
	row(true)
	row(false)
	b.SetOrdinal(9)
	row(false)
	row(false)
	if err := b.EndTx(true, nil, nil); err != nil {
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
	var got []uint64
	for i := range blk.Len() {
		var e Event
		if err := blk.Event(i, &e); err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Ordinal)
	}
	if want := []uint64{3, 7, 7, 9, 10}; !slices.Equal(got, want) {
		t.Errorf("ordinals %v, want %v", got, want)
	}
}
