package protov1_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	protov1 "github.com/datalink-go/datalink/sdk/proto/v1"
	"github.com/datalink-go/datalink/sdk/wire"
)

// pair is one message in both codings.
type pair struct {
	generated protoreflect.MessageType
	byHand    func() wire.Message
}

// pairs goes through the methods of both sides, which have to be the same.
func pairs(t *testing.T) map[protoreflect.FullName]pair {
	t.Helper()
	out := map[protoreflect.FullName]pair{}
	typeOf := func(d protoreflect.MessageDescriptor) protoreflect.MessageType {
		m, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	add := func(d protoreflect.MessageDescriptor, byHand func() wire.Message) {
		out[d.FullName()] = pair{typeOf(d), byHand}
	}
	service := current().Services().ByName("Connector")
	if string(service.FullName()) != wire.Service {
		t.Errorf("service %s, wire says %s", service.FullName(), wire.Service)
	}
	methods := wire.Methods()
	if service.Methods().Len() != len(methods) {
		t.Errorf("%d methods, wire has %d", service.Methods().Len(), len(methods))
	}
	for _, m := range methods {
		d := service.Methods().ByName(protoreflect.Name(m.Name))
		if d == nil || d.IsStreamingClient() != m.Stream {
			t.Errorf("method %s: %v, wire says stream %t", m.Name, d, m.Stream)
			continue
		}
		add(d.Input(), m.NewRequest)
		add(d.Output(), m.NewReply)
	}
	add((*protov1.Fault)(nil).ProtoReflect().Descriptor(), func() wire.Message { return new(wire.Fault) })
	return out
}

// fill gives each field a random value that is not zero; some are left out when
// sparse is set.
func fill(r *rand.Rand, m protoreflect.Message, sparse bool) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case sparse && r.IntN(2) == 0:
		case f.IsList():
			list := m.Mutable(f).List()
			for range 1 + r.IntN(3) {
				if f.Message() != nil {
					fill(r, list.AppendMutable().Message(), sparse)
				} else {
					list.Append(value(r, m.Descriptor(), f))
				}
			}
		case f.Message() != nil:
			fill(r, m.Mutable(f).Message(), sparse)
		default:
			m.Set(f, value(r, m.Descriptor(), f))
		}
	}
}

func value(r *rand.Rand, in protoreflect.MessageDescriptor, f protoreflect.FieldDescriptor) protoreflect.Value {
	switch in.Name() + "." + f.Name() {
	case "Finding.severity":
		return protoreflect.ValueOfUint32(1 + r.Uint32N(2))
	case "OrderReply.order":
		return protoreflect.ValueOfUint32(1 + r.Uint32N(3))
	case "Execution.lanes", "Point.lane", "ClaimReply.lanes":
		return protoreflect.ValueOfInt64(-1 - r.Int64N(1<<31))
	case "DeadLetter.at_us":
		return protoreflect.ValueOfInt64(1 + r.Int64N(1<<50))
	}
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(r.Uint32()>>r.UintN(32) | 1)
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(r.Uint64()>>r.UintN(64) | 1)
	case protoreflect.Sint64Kind:
		return protoreflect.ValueOfInt64(int64(r.Uint64())>>r.UintN(64) | 1)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(strings.Repeat("ü", r.IntN(80)) + "x")
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(bytes.Repeat([]byte{0xff, 1}, 1+r.IntN(200)))
	}
	panic("no value for " + f.FullName())
}

// TestBothCodingsAgree sends random messages through both: every field set, then
// some left out.
func TestBothCodingsAgree(t *testing.T) {
	for name, p := range pairs(t) {
		t.Run(string(name.Name()), func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 1))
			for range 30 {
				in := p.generated.New()
				fill(r, in, false)
				want := marshal(t, in.Interface())
				byHand := p.byHand()
				if err := byHand.Decode(want); err != nil {
					t.Fatalf("%v: %v", in, err)
				}
				if got := byHand.Append(nil); !bytes.Equal(got, want) {
					t.Fatalf("%v:\n got % x\nwant % x", in, got, want)
				}

				sparse := p.generated.New()
				fill(r, sparse, true)
				first, second := p.byHand(), p.byHand()
				if err := first.Decode(marshal(t, sparse.Interface())); err != nil {
					t.Fatalf("%v: %v", sparse, err)
				}
				back := p.generated.New().Interface()
				if err := proto.Unmarshal(first.Append(nil), back); err != nil {
					t.Fatalf("%v: %v", first, err)
				}
				if n := len(back.ProtoReflect().GetUnknown()); n > 0 {
					t.Fatalf("%d bytes of unknown fields from %v", n, first)
				}
				if err := second.Decode(marshal(t, back)); err != nil {
					t.Fatalf("%v: %v", back, err)
				}
				if d := cmp.Diff(first, second, cmpopts.EquateEmpty()); d != "" {
					t.Fatalf("(-first +second)\n%s", d)
				}
			}
		})
	}
}

func marshal(t *testing.T, m proto.Message) []byte {
	t.Helper()
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
