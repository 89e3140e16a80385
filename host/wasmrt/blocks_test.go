package wasmrt

import (
	"fmt"
	"testing"

	"github.com/datalink-go/datalink/sdk/batch"
)

func customers(id uint32) *batch.Schema {
	return &batch.Schema{ID: id, Namespace: "shop", Table: "customers", PrimaryKey: true, Key: []int{0}, Columns: []batch.Column{
		{Name: "id", Type: batch.Int64},
		{Name: "name", Type: batch.String, Flags: batch.Nullable, Length: 40},
		{Name: "amount", Type: batch.Decimal, Precision: 12, Scale: 2},
		{Name: "note", Type: batch.String, Flags: batch.Nullable, Length: 20},
		{Name: "at", Type: batch.DateTime, Flags: batch.Nullable},
		{Name: "f", Type: batch.Float32},
		{Name: "u", Type: batch.UUID},
		{Name: "j", Type: batch.JSON, Flags: batch.Nullable},
		{Name: "b", Type: batch.Bytes},
	}}
}

func orders(id uint32) *batch.Schema {
	return &batch.Schema{ID: id, Namespace: "shop", Table: "orders", Columns: []batch.Column{{Name: "n", Type: batch.Int32}, {Name: "name", Type: batch.String}}}
}

var names = []string{"Ann", "", "Zoë", "客户名称很长", "Grace Hopper", "x", "a somewhat longer name that takes more than one hundred and twenty-eight bytes, so that its length is written in two bytes, not in one"}

// customer writes the columns of one row.
func customer(b *batch.Builder, side batch.Side, id int, special bool) {
	b.BeginImage(side)
	b.PutInt(int64(id))
	switch {
	case id%11 == 5:
		b.PutNull()
	case special && id%3 == 0:
		b.PutUnchanged()
	case special && id%3 == 1:
		b.PutRaw("latin1", []byte{0xe9, 't', 0xe9})
	default:
		b.PutString(names[id%len(names)])
	}
	b.PutString(fmt.Sprintf("%d.50", id))
	if special {
		b.PutAbsent()
	} else {
		b.PutString("note of " + names[(id+3)%len(names)])
	}
	b.PutInt(batch.Civil{Year: 2026, Month: 11, Day: 30, Hour: 9}.Pack())
	b.PutFloat(float64(id) / 4)
	b.PutBytes([]byte(fmt.Sprintf("%016d", id)))
	b.PutString(`{"a":1}`)
	b.PutBytes([]byte{0, byte(id), 255})
	b.EndImage()
}

// sample returns a whole block with every kind of event, in transactions that
// begin before it, lie in it and end after it.
func sample(tb testing.TB, s, other *batch.Schema, rows int) []byte {
	tb.Helper()
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	b := batch.NewBuilder(batch.Limits{Block: 8 << 20})
	must(b.BeginTx(batch.Tx{Ordinal: 17, ID: "a:1", Committed: 5}))
	must(b.BeginRow(batch.Insert, s))
	customer(b, batch.AfterImage, 1, false)
	must(b.EndRow())
	must(b.Truncate(s))
	must(b.Truncate(other))
	must(b.EndTx(true, nil, []byte("pos 1")))
	must(b.BeginTx(batch.Tx{Begins: true, ID: "a:2", Committed: 6, Covers: []batch.Cover{{Point: 1}, {Point: 2, Upto: 3}}}))
	for i := range rows {
		kind := []batch.Kind{batch.Insert, batch.Update, batch.Delete, batch.Read}[i%4]
		must(b.BeginRow(kind, s))
		if kind == batch.Update || kind == batch.Delete {
			customer(b, batch.BeforeImage, i, kind == batch.Update && i%8 == 1)
		}
		if kind != batch.Delete {
			customer(b, batch.AfterImage, i+i%2*100*(i%3), kind == batch.Update)
		}
		must(b.EndRow())
		if i%5 == 0 {
			must(b.BeginRow(batch.Insert, other))
			b.BeginImage(batch.AfterImage)
			b.PutInt(int64(i))
			b.PutString("not masked")
			b.EndImage()
			must(b.EndRow())
		}
	}
	must(b.KeyRange(s, &batch.KeyRange{Lo: []byte{1}, Hi: []byte{2}, Low: []byte("l"), High: []byte("h"), Last: true}))
	must(b.StateItem(&batch.StateItem{Key: "k", Version: 2, Value: []byte("v")}))
	must(b.Heartbeat(99))
	must(b.Origin("o"))
	must(b.Change(&batch.Change{Kind: batch.DDLOther, Statement: "ALTER …", Schema: other}))
	must(b.EndTx(true, nil, []byte("pos 2")))
	must(b.BeginTx(batch.Tx{Begins: true, ID: "a:3"}))
	must(b.BeginRow(batch.Insert, s))
	customer(b, batch.AfterImage, 4, false)
	must(b.EndRow())
	must(b.EndTx(false, []byte("pos 2"), nil))
	data, err := b.Finish()
	must(err)
	return append([]byte(nil), data...)
}
