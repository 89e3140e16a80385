package pipeline

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/datalink-go/datalink/sdk/batch"
)

// A target that stands where rows were added beside the stream may have them or not:
// they are sent again. One that stands behind has them.
func TestPlaceOfRowsBesideTheStream(t *testing.T) {
	win := newWindow(Window{Records: 100, Bytes: 100}, 1, func(int, int) {})
	reg := batch.NewRegistry()
	add := func(end int, beside bool) {
		b := batch.NewBuilder(batch.Limits{})
		if err := b.Heartbeat(0); err != nil {
			t.Fatal(err)
		}
		at := []byte(strconv.Itoa(end))
		b.AppendTx(batch.Tx{Begins: true, Ends: true, End: at})
		data, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		e := &entry{data: bytes.Clone(data), first: pos(end - 1), last: pos(end)}
		if beside {
			e.first, e.done = e.last, make(chan error, 1)
		}
		if err := e.block.Decode(e.data, reg, batch.Limits{}); err != nil {
			t.Fatal(err)
		}
		if beside {
			if !win.addBeside(e) {
				t.Fatal("nothing may be added")
			}
			return
		}
		win.add(e)
	}
	add(4, false) // 0
	add(5, false) // 1
	add(5, true)  // 2
	add(5, false) // 3: moves nothing
	add(6, false) // 4
	for _, c := range []struct {
		at   int
		want place
	}{{4, place{entry: 0, tx: 1}}, {5, place{entry: 2}}, {6, place{entry: 4, tx: 1}}} {
		if got, ok := win.locate(pos(c.at)); !ok || got != c.want {
			t.Errorf("position %d: got %+v, %v, want %+v", c.at, got, ok, c.want)
		}
	}
	win.detach(0)
	win.mu.Lock()
	done := make([]*entry, 0)
	for _, e := range win.entries {
		if e.done != nil {
			done = append(done, e)
		}
	}
	win.mu.Unlock()
	for _, e := range done {
		if err := <-e.done; err == nil {
			t.Error("rows count as written although their writer was detached before")
		}
	}
	win.end()
	e := &entry{}
	if win.addBeside(e) {
		t.Error("rows are added after the end")
	}
}

// Watches see what the stream changes, by table and key, and nothing that was there
// before them.
func TestWatch(t *testing.T) {
	b := NewBeside()
	reg := batch.NewRegistry()
	send := func(id, old int64) {
		t.Helper()
		out := batch.NewBuilder(batch.Limits{})
		if err := out.BeginTx(batch.Tx{Begins: true}); err != nil {
			t.Fatal(err)
		}
		kind := batch.Insert
		if old != 0 {
			kind = batch.Update
		}
		if err := out.BeginRow(kind, items); err != nil {
			t.Fatal(err)
		}
		if old != 0 {
			out.BeginImage(batch.BeforeImage)
			out.PutInt(old)
			out.PutInt(0)
			out.EndImage()
		}
		out.BeginImage(batch.AfterImage)
		out.PutInt(id)
		out.PutInt(1)
		out.EndImage()
		if err := out.EndRow(); err != nil {
			t.Fatal(err)
		}
		if err := out.EndTx(true, nil, []byte("1")); err != nil {
			t.Fatal(err)
		}
		data, err := out.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if err := b.saw(data, reg); err != nil {
			t.Fatal(err)
		}
	}
	key := func(id byte) []byte { return []byte{id, 0, 0, 0, 0, 0, 0, 0} }
	all := b.Collect(2)
	defer all.Close()
	send(1, 0)
	w := b.Watch(map[string][][]byte{"db.items": {key(1), key(2), key(3)}})
	send(2, 3)
	for id, want := range map[byte]bool{1: false, 2: true, 3: true} {
		if got := w.Changed("db.items", key(id)); got != want {
			t.Errorf("key %d: changed %v, want %v", id, got, want)
		}
	}
	w.Close()
	if _, whole := all.Keys(); whole {
		t.Error("three keys count as all where two may be kept")
	}
	b.Stale = true
	if w.Changed("db.items", key(2)) {
		t.Error("the switch does nothing")
	}
}

// A sign of life without a place leaves the stream where it stands: rows may follow.
func TestStandsAfterASignOfLife(t *testing.T) {
	f := &feed{}
	reg := batch.NewRegistry()
	send := func(tx batch.Tx, last int) {
		t.Helper()
		b := batch.NewBuilder(batch.Limits{})
		if err := b.Heartbeat(0); err != nil {
			t.Fatal(err)
		}
		b.AppendTx(tx)
		data, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		e := &entry{last: pos(last)}
		if err := e.block.Decode(bytes.Clone(data), reg, batch.Limits{}); err != nil {
			t.Fatal(err)
		}
		f.stand(e)
	}
	idle := batch.Tx{Begins: true, Ends: true}
	send(idle, 0)
	if f.known {
		t.Error("a place is known although none was told")
	}
	send(batch.Tx{Begins: true, Ends: true, End: []byte("4")}, 4)
	send(idle, 4)
	if !f.known || string(f.at.Source) != "4" {
		t.Errorf("after a sign of life at 4 it stands at %q, known %v", f.at.Source, f.known)
	}
	send(batch.Tx{Begins: true, Start: []byte("4")}, 4)
	if f.known {
		t.Error("a place is known inside of a transaction")
	}
}
