package batch

import "testing"

func TestAppendText(t *testing.T) {
	cols := []Column{
		{Name: "a", Type: Int16},
		{Name: "b", Type: Uint64},
		{Name: "c", Type: Float32},
		{Name: "d", Type: Decimal},
		{Name: "e", Type: Date},
		{Name: "f", Type: Time, Scale: 2},
		{Name: "g", Type: DateTime},
		{Name: "h", Type: Timestamp, Scale: 6},
		{Name: "i", Type: String},
		{Name: "j", Type: UUID},
		{Name: "k", Type: Bytes},
		{Name: "l", Type: String},
		{Name: "m", Type: Year},
	}
	s := &Schema{ID: 1, Table: "t", Columns: cols}
	b := NewBuilder(Limits{})
	if err := b.BeginTx(Tx{Begins: true}); err != nil {
		t.Fatal(err)
	}
	if err := b.BeginRow(Insert, s); err != nil {
		t.Fatal(err)
	}
	b.BeginImage(AfterImage)
	b.PutInt(-7)
	b.PutUint(1<<64 - 1)
	b.PutFloat(0.1)
	b.PutString("-1.50")
	b.PutInt(int64(PackDate(22, 0, 10)))
	b.PutInt(-1_500_000)
	b.PutInt(Civil{Year: 2026, Month: 11, Day: 30, Hour: 1}.Pack())
	b.PutInt(ZeroTimestamp)
	b.PutString("é")
	b.PutBytes([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
	b.PutBytes([]byte{1})
	b.PutRaw("latin1", []byte{0xff})
	b.PutUint(0)
	b.EndImage()
	if err := b.EndRow(); err != nil {
		t.Fatal(err)
	}
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
	var e Event
	if err := blk.Event(0, &e); err != nil {
		t.Fatal(err)
	}
	vals, err := e.After.Values(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"-7", "18446744073709551615", "0.1", "-1.50", "0022-00-10", "-00:00:01.50", "2026-11-30 01:00:00", "0000-00-00 00:00:00.000000",
		"é", "00010203-0405-0607-0809-0a0b0c0d0e0f", "", "", "0",
	}
	for i := range vals {
		got, ok := AppendText(nil, &cols[i], &vals[i])
		if string(got) != want[i] || ok != (want[i] != "") {
			t.Errorf("column %s (%s): got %q, %t, want %q", cols[i].Name, cols[i].Type, got, ok, want[i])
		}
	}
}
