package protov1_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	protov1 "github.com/datalink-go/datalink/sdk/proto/v1"
)

// released holds what host and plugins of earlier builds speak. It is rewritten,
// with -update, when a version of the protocol is released.
const released = "released.binpb"

var update = flag.Bool("update", false, "rewrite "+released)

func current() protoreflect.FileDescriptor { return protov1.File_datalink_v1_datalink_proto }

// TestNothingBreaks compares the protocol with the released one.
func TestNothingBreaks(t *testing.T) {
	if *update {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(protodesc.ToFileDescriptorProto(current()))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(released, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range breaks(readReleased(t), current()) {
		t.Error(b)
	}
}

func readReleased(t *testing.T) protoreflect.FileDescriptor {
	t.Helper()
	data, err := os.ReadFile(released)
	if err != nil {
		t.Fatal(err)
	}
	var d descriptorpb.FileDescriptorProto
	if err := proto.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	return newFile(t, &d)
}

func newFile(t *testing.T, d *descriptorpb.FileDescriptorProto) protoreflect.FileDescriptor {
	t.Helper()
	f, err := protodesc.NewFile(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// breaks lists what of the old protocol the new one changed or lost. A field may
// go only where its number and name are reserved.
func breaks(old, now protoreflect.FileDescriptor) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if old.Package() != now.Package() {
		add("package was %s, is %s", old.Package(), now.Package())
	}
	for i := range old.Messages().Len() {
		om := old.Messages().Get(i)
		nm := now.Messages().ByName(om.Name())
		if nm == nil {
			add("message %s is gone", om.Name())
			continue
		}
		for j := range om.Fields().Len() {
			of := om.Fields().Get(j)
			nf := nm.Fields().ByNumber(of.Number())
			where := fmt.Sprintf("%s.%s = %d", om.Name(), of.Name(), of.Number())
			switch {
			case nf == nil && nm.ReservedRanges().Has(of.Number()) && nm.ReservedNames().Has(of.Name()):
			case nf == nil:
				add("%s is gone and its number and name are not reserved", where)
			case shape(of) != shape(nf):
				add("%s was %s, is %s", where, shape(of), shape(nf))
			}
		}
	}
	for i := range old.Services().Len() {
		os := old.Services().Get(i)
		ns := now.Services().ByName(os.Name())
		if ns == nil {
			add("service %s is gone", os.Name())
			continue
		}
		for j := range os.Methods().Len() {
			om := os.Methods().Get(j)
			nm := ns.Methods().ByName(om.Name())
			if nm == nil || signature(om) != signature(nm) {
				add("method %s was %s, is %s", om.Name(), signature(om), signature(nm))
			}
		}
	}
	return out
}

func shape(f protoreflect.FieldDescriptor) string {
	s := fmt.Sprintf("%s %s %s, packed %t", f.Cardinality(), f.Kind(), f.Name(), f.IsPacked())
	if f.Message() != nil {
		s += " of " + string(f.Message().Name())
	}
	return s
}

func signature(m protoreflect.MethodDescriptor) string {
	if m == nil {
		return "gone"
	}
	return fmt.Sprintf("(%t %s) (%t %s)", m.IsStreamingClient(), m.Input().Name(), m.IsStreamingServer(), m.Output().Name())
}

// mutate returns the released protocol after a change.
func mutate(t *testing.T, change func(*descriptorpb.FileDescriptorProto)) protoreflect.FileDescriptor {
	t.Helper()
	d := protodesc.ToFileDescriptorProto(readReleased(t))
	change(d)
	return newFile(t, d)
}

func message(d *descriptorpb.FileDescriptorProto, name string) *descriptorpb.DescriptorProto {
	i := slices.IndexFunc(d.MessageType, func(m *descriptorpb.DescriptorProto) bool { return m.GetName() == name })
	return d.MessageType[i]
}

// TestBreaksAreSeen shows that each kind of break is found, and that what may
// change is none.
func TestBreaksAreSeen(t *testing.T) {
	position := func(d *descriptorpb.FileDescriptorProto) *descriptorpb.DescriptorProto { return message(d, "Position") }
	for _, tt := range []struct {
		name   string
		change func(*descriptorpb.FileDescriptorProto)
		want   string
	}{
		{"number", func(d *descriptorpb.FileDescriptorProto) { position(d).Field[3].Number = proto.Int32(9) }, "Position.ordinal = 4 is gone"},
		{"name", func(d *descriptorpb.FileDescriptorProto) { position(d).Field[3].Name = proto.String("count") }, "Position.ordinal = 4 was"},
		{"type", func(d *descriptorpb.FileDescriptorProto) {
			position(d).Field[3].Type = descriptorpb.FieldDescriptorProto_TYPE_SINT64.Enum()
		}, "is optional sint64"},
		{"label", func(d *descriptorpb.FileDescriptorProto) {
			position(d).Field[2].Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
		}, "is repeated bytes"},
		{"message type", func(d *descriptorpb.FileDescriptorProto) {
			message(d, "PositionPair").Field[0].TypeName = proto.String(".datalink.v1.Fault")
		}, "of Fault"},
		{"packing", func(d *descriptorpb.FileDescriptorProto) { message(d, "TransformRequest").Field[1].Options = nil }, "packed true"},
		{"field gone", func(d *descriptorpb.FileDescriptorProto) { position(d).Field = position(d).Field[:3] }, "is gone"},
		{"field gone, reserved", func(d *descriptorpb.FileDescriptorProto) {
			p := position(d)
			p.Field, p.ReservedName = p.Field[:3], []string{"ordinal"}
			p.ReservedRange = []*descriptorpb.DescriptorProto_ReservedRange{{Start: proto.Int32(4), End: proto.Int32(5)}}
		}, ""},
		{"method gone", func(d *descriptorpb.FileDescriptorProto) { d.Service[0].Method = d.Service[0].Method[1:] }, "method Describe"},
		{"method streams", func(d *descriptorpb.FileDescriptorProto) {
			d.Service[0].Method[0].ServerStreaming = proto.Bool(true)
		}, "method Describe"},
		{"field more", func(d *descriptorpb.FileDescriptorProto) {
			f := proto.Clone(position(d).Field[3]).(*descriptorpb.FieldDescriptorProto)
			f.Name, f.JsonName, f.Number = proto.String("more"), nil, proto.Int32(5)
			position(d).Field = append(position(d).Field, f)
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Join(breaks(readReleased(t), mutate(t, tt.change)), "; ")
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

var (
	camel = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	snake = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
)

// lint lists what breaks the rules of names and leaves the subset of the wire
// format that sdk/wire codes.
func lint(f protoreflect.FileDescriptor) []string {
	var out []string
	add := func(d protoreflect.Descriptor, what string) {
		out = append(out, fmt.Sprintf("%s: %s", d.FullName(), what))
	}
	if f.Syntax() != protoreflect.Proto3 || f.Enums().Len() > 0 || f.Extensions().Len() > 0 || f.Imports().Len() > 0 {
		add(f, "proto3 without imports, enums and extensions")
	}
	for i := range f.Messages().Len() {
		m := f.Messages().Get(i)
		if !camel.MatchString(string(m.Name())) {
			add(m, "name is CamelCase")
		}
		if m.Messages().Len()+m.Enums().Len()+m.Oneofs().Len()+m.Extensions().Len() > 0 {
			add(m, "no nested types, oneofs, optional scalars, maps")
		}
		for j := range m.Fields().Len() {
			fd := m.Fields().Get(j)
			if !snake.MatchString(string(fd.Name())) {
				add(fd, "name is snake_case")
			}
			switch fd.Kind() {
			case protoreflect.BoolKind, protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Sint64Kind,
				protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind:
			default:
				add(fd, "type "+fd.Kind().String()+" is not of the subset")
			}
			if fd.IsPacked() {
				add(fd, "repeated scalars have [packed = false]")
			}
		}
	}
	for i := range f.Services().Len() {
		s := f.Services().Get(i)
		for j := range s.Methods().Len() {
			m := s.Methods().Get(j)
			if !camel.MatchString(string(m.Name())) {
				add(m, "name is CamelCase")
			}
			if m.IsStreamingClient() != m.IsStreamingServer() {
				add(m, "streams go both ways")
			}
		}
	}
	return out
}

func TestLint(t *testing.T) {
	for _, l := range lint(current()) {
		t.Error(l)
	}
}

func TestLintSees(t *testing.T) {
	for _, tt := range []struct {
		change func(*descriptorpb.FileDescriptorProto)
		want   string
	}{
		{func(d *descriptorpb.FileDescriptorProto) {
			message(d, "Position").Field[3].Type = descriptorpb.FieldDescriptorProto_TYPE_FIXED32.Enum()
		}, "type fixed32"},
		{func(d *descriptorpb.FileDescriptorProto) { message(d, "TransformRequest").Field[1].Options = nil }, "packed"},
		{func(d *descriptorpb.FileDescriptorProto) {
			message(d, "Position").Field[3].Name = proto.String("Ordinal")
		}, "snake_case"},
		{func(d *descriptorpb.FileDescriptorProto) {
			d.Service[0].Method[0].ServerStreaming = proto.Bool(true)
		}, "both ways"},
	} {
		if got := strings.Join(lint(mutate(t, tt.change)), "; "); !strings.Contains(got, tt.want) {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
