package wire

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/datalink-go/datalink/sdk"
)

// topLevel returns one value of each message that travels on its own, by name.
func topLevel() map[string]func() Message {
	all := map[string]func() Message{"Fault": func() Message { return new(Fault) }}
	for _, m := range Methods() {
		for _, f := range []func() Message{m.NewRequest, m.NewReply} {
			all[reflect.TypeOf(f()).Elem().Name()] = f
		}
	}
	return all
}

// fill sets every field below v to a random value that is not zero, so that a
// field that either side forgets shows.
func fill(r *rand.Rand, v reflect.Value) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.UnixMicro(1 + r.Int64N(1<<50)).UTC()))
		return
	case sdk.Order:
		v.SetInt(1 + r.Int64N(3))
		return
	case sdk.Severity:
		v.SetUint(1 + r.Uint64N(2))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(r, v.Elem())
	case reflect.Slice:
		n := 1 + r.IntN(3)
		if v.Type().Elem().Kind() == reflect.Uint8 && r.IntN(4) == 0 {
			n = 100 + r.IntN(300)
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(r, v.Index(i))
		}
	case reflect.String:
		v.SetString(strings.Repeat("é", r.IntN(90)) + "x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int8, reflect.Int32, reflect.Int64:
		shift := r.IntN(v.Type().Bits())
		n := int64(r.Uint64()) >> (64 - v.Type().Bits() + shift)
		v.SetInt(n | 1)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(r.Uint64()>>(64-v.Type().Bits()+r.IntN(v.Type().Bits())) | 1)
	default:
		panic("no filler for " + v.Type().String())
	}
}

func diff(a, b any) string {
	return cmp.Diff(a, b, cmpopts.EquateEmpty())
}

func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, fresh := range topLevel() {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				in, out := fresh(), fresh()
				fill(r, reflect.ValueOf(in).Elem())
				data := in.Append([]byte("before"))[len("before"):]
				if err := out.Decode(data); err != nil {
					t.Fatalf("decode of %+v: %v", in, err)
				}
				if d := diff(in, out); d != "" {
					t.Fatalf("round trip (-in +out):\n%s", d)
				}
				// A decoder starts from zero, whatever the value held before.
				if err := out.Decode(nil); err != nil || diff(out, fresh()) != "" {
					t.Fatalf("empty message over an old value: %+v, %v", out, err)
				}
			}
		})
	}
}

// TestHostile cuts and changes each message at each place: no panic, no success
// where a field was cut.
func TestHostile(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for name, fresh := range topLevel() {
		in := fresh()
		fill(r, reflect.ValueOf(in).Elem())
		data := in.Append(nil)
		for i := range data {
			if err := fresh().Decode(data[:i]); err != nil && !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%s cut at %d: error %v does not wrap ErrCorrupt", name, i, err)
			}
			bad := append([]byte(nil), data...)
			bad[i] ^= byte(1 + r.IntN(255))
			if err := fresh().Decode(bad); err != nil && !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%s with byte %d changed: error %v does not wrap ErrCorrupt", name, i, err)
			}
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		msg  Message
		data string
		want string
	}{
		{"length beyond the end", new(ReadReply), "\x0a\x7fabc", "127 bytes announced, 3 left"},
		{"huge length", new(ReadReply), "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01a", "bytes announced, 1 left"},
		{"wrong wire type", new(ReadReply), "\x08\x01", "wire type 0, want 2"},
		{"group", new(ReadReply), "\x0b", "wire type 3 is not of the subset"},
		{"field 0", new(ReadReply), "\x00\x01", "field number 0"},
		{"varint of 11 bytes", new(NextRequest), "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "varint cut off or too long"},
		{"not UTF-8", new(PositionText), "\x0a\x01\xff", "not UTF-8"},
		{"protocol of 33 bits", new(DescribeRequest), "\x08\x80\x80\x80\x80\x10", "does not fit 32 bits"},
		{"unknown order", new(OrderReply), "\x08\x04", "order 4, want 0 to 3"},
		{"unknown severity", new(CheckReply), "\x0a\x02\x08\x03", "severity 3"},
		{"nested", new(PositionPair), "\x12\x02\x1a\x05", "PositionPair, field 2: corrupt message: Position, field 3"},
		{"packed scalars", new(TransformRequest), "\x12\x02\x01\x02", "wire type 2, want 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.msg.Decode([]byte(tt.data))
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestUnknownFieldsArePassedOver(t *testing.T) {
	// Fields 99 of all four wire types around a known one.
	data := "\x98\x06\x05" + "\x99\x0612345678" + "\x0a\x01a" + "\x9a\x06\x02xy" + "\x9d\x061234"
	var m PositionText
	if err := m.Decode([]byte(data)); err != nil || m.Text != "a" {
		t.Errorf("got %q, %v, want a", m.Text, err)
	}
}

// TestItemsAreBounded shows that a small message cannot fill the memory with
// empty items.
func TestItemsAreBounded(t *testing.T) {
	data := []byte(strings.Repeat("\x0a\x00", MaxItems+1))
	if err := new(CheckReply).Decode(data); !errors.Is(err, ErrCorrupt) {
		t.Errorf("%d items: got %v, want ErrCorrupt", MaxItems+1, err)
	}
	if err := new(CheckReply).Decode(data[2:]); err != nil {
		t.Errorf("%d items: %v", MaxItems, err)
	}
}

func TestReply(t *testing.T) {
	var m PositionText
	if err := DecodeReply(AppendReply(nil, &PositionText{Text: "a"}, nil), &m); err != nil || m.Text != "a" {
		t.Errorf("reply: got %q, %v", m.Text, err)
	}
	sent := fmt.Errorf("claim of t: %w", sdk.ErrFenced.Suggest("look at %s", "the audit"))
	err := DecodeReply(AppendReply(nil, nil, sent), &m)
	if !errors.Is(err, sdk.ErrFenced) || !strings.Contains(err.Error(), "claim of t") {
		t.Errorf("fault: got %v", err)
	}
	for _, data := range []string{"", "\x02", "\x01\x0a\x05"} {
		if err := DecodeReply([]byte(data), &m); !errors.Is(err, ErrCorrupt) {
			t.Errorf("reply % x: got %v, want ErrCorrupt", data, err)
		}
	}
}

func TestStringsAreUTF8(t *testing.T) {
	f := &Fault{sdk.Fault{Code: sdk.CodeUnfit, Message: "value \xff"}}
	var got Fault
	if err := got.Decode(f.Append(nil)); err != nil || got.Message != "value \uFFFD" {
		t.Errorf("got %q, %v", got.Message, err)
	}
}

func TestMethods(t *testing.T) {
	names := map[string]bool{}
	for i, m := range Methods() {
		if m.ID != uint32(i+1) || names[m.Name] {
			t.Errorf("method %d: id %d, name %s", i, m.ID, m.Name)
		}
		names[m.Name] = true
	}
}

func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	methods := Methods()
	for i, m := range methods {
		for j, fresh := range []func() Message{m.NewRequest, m.NewReply} {
			in := fresh()
			fill(r, reflect.ValueOf(in).Elem())
			f.Add(uint8(2*i+j), in.Append(nil))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		m := methods[int(which/2)%len(methods)]
		fresh := m.NewRequest
		if which%2 == 1 {
			fresh = m.NewReply
		}
		a, b := fresh(), fresh()
		if err := a.Decode(data); err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("error %v does not wrap ErrCorrupt", err)
			}
			return
		}
		if err := b.Decode(a.Append(nil)); err != nil {
			t.Fatalf("own encoding of %+v: %v", a, err)
		}
	})
}

// TestHostileLengths: an announced length takes no memory, and a message of empty
// items takes no more than MaxItems of the largest item can.
func TestHostileLengths(t *testing.T) {
	allocated := func(f func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	for _, m := range Methods() {
		for _, fresh := range []func() Message{m.NewRequest, m.NewReply} {
			for num := byte(1); num < 16; num++ {
				data := append([]byte{num<<3 | wireBytes}, "\xff\xff\xff\xff\xff\xff\xff\xff\x7f"...)
				msg := fresh()
				if got := allocated(func() { _ = msg.Decode(data) }); got > 64<<10 {
					t.Errorf("%T, field %d: %d bytes allocated for %d", msg, num, got, len(data))
				}
			}
		}
	}
}
