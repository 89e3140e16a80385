package share

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
)

// TestRing appends more than the ring holds and reads it back from each boundary
// that is left.
func TestRing(t *testing.T) {
	r := newRing(1000, place{"log.000001", 4})
	type put struct {
		at  place
		raw []byte
	}
	var all []put
	at := int64(4)
	for i := range 300 {
		raw := bytes.Repeat([]byte{byte(i)}, 19+i%37)
		ev := binlog.Event{Header: binlog.Header{Type: binlog.GTID, Size: uint32(len(raw))}, At: at, End: at + int64(len(raw))}
		r.drop(r.room(packetHead + len(raw)))
		r.event(&ev, raw)
		all = append(all, put{place{"log.000001", at}, raw})
		at = ev.End
		r.at = place{"log.000001", at}
		if r.end-r.base > 1000 {
			t.Fatalf("%d bytes are held", r.end-r.base)
		}
	}
	found := 0
	for i, p := range all {
		pos, seq, ok := r.find(p.at)
		if !ok {
			if found > 0 {
				t.Fatalf("boundary %d is gone, an older one is not", i)
			}
			continue
		}
		found++
		if seq != byte(i+1) {
			t.Errorf("event %d: sequence number %d", i, seq)
		}
		got := make([]byte, packetHead+len(p.raw))
		if n := r.read(got, pos); n != len(got) || !bytes.Equal(got[packetHead:], p.raw) || got[3] != seq || int(got[0]) != len(p.raw)+1 {
			t.Errorf("event %d: %d bytes %x", i, n, got)
		}
	}
	if found < 1000/(56+packetHead) {
		t.Errorf("%d boundaries are left", found)
	}
	if pos, _, ok := r.find(r.at); !ok || pos != r.end {
		t.Error("the end is no place to begin at")
	}
	for _, p := range []place{{"log.000001", at - 1}, {"log.000002", at}, {"log.000001", 4}} {
		if _, _, ok := r.find(p); ok {
			t.Errorf("%v was found", p)
		}
	}
	r.gap()
	if _, _, ok := r.find(all[len(all)-1].at); ok || r.end != r.base {
		t.Error("something is left before a gap")
	}
}

// TestName: one process a name, and it comes free with its listener.
func TestName(t *testing.T) {
	name := Name(fmt.Sprintf("%s %p", t.Name(), t), "u")
	ask := Ask{Server: "s", File: "f", Offset: 4}
	if _, _, err := Join(context.Background(), name, ask); !errors.Is(err, ErrNone) {
		t.Errorf("%v, want %v", err, ErrNone)
	}
	l, err := Listen(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(name); !errors.Is(err, ErrTaken) {
		t.Errorf("%v, want %v", err, ErrTaken)
	}
	// A relay that is stopped does not answer; that takes no longer than it may.
	if _, _, err := Join(context.Background(), name, ask); err == nil || errors.Is(err, ErrNone) {
		t.Errorf("%v from a relay that does not answer", err)
	}
	_ = l.Close()
	if l, err = Listen(name); err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}
