package sdk

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// shapeKind is how a value is written in a configuration.
type shapeKind uint8

const (
	boolKind shapeKind = iota
	intKind
	uintKind
	floatKind
	stringKind
	durationKind
	sizeKind
	secretKind
	textKind
	listKind
	stringsKind
	mapKind
	structKind
)

// shape is a configuration type, read once from its tags.
type shape struct {
	kind    shapeKind
	typ     reflect.Type // behind the pointer
	pointer bool
	elem    *shape    // listKind, stringsKind, mapKind
	options []*option // structKind, in the order of the fields
}

// option is one field, or one item of a list or map.
type option struct {
	name, doc, unit string
	index           []int
	shape           *shape
	required        bool
	hasDefault      bool
	def             any
	defText         string
	enum            []string
	min, max        *bound
}

type bound struct {
	text string
	v    float64
}

func (s *shape) option(name string) *option {
	i := slices.IndexFunc(s.options, func(o *option) bool { return o.name == name })
	if i < 0 {
		return nil
	}
	return s.options[i]
}

// item is the option that each element of a list or map is: values of the enum
// bind it, bounds are those of the list.
func (o *option) item() *option { return &option{shape: o.shape.elem, enum: o.enum} }

func (o *option) within(v float64) bool {
	return (o.min == nil || v >= o.min.v) && (o.max == nil || v <= o.max.v)
}

func (o *option) length(n int) bool { return o.within(float64(n)) }

// counted reports whether min and max concern a length.
func (s *shape) counted() bool {
	switch s.kind {
	case stringKind, secretKind, listKind, stringsKind, mapKind:
		return true
	}
	return false
}

// shapeOf reads the tags of a configuration struct. It panics where they are
// wrong: that is found when the plugin starts for the first time.
func shapeOf(t reflect.Type) *shape {
	if t.Kind() != reflect.Struct {
		panic("sdk: a configuration is a struct, not " + t.String())
	}
	return makeShape(t, t.String(), nil)
}

func makeShape(t reflect.Type, where string, above []reflect.Type) *shape {
	s := &shape{typ: t}
	if t.Kind() == reflect.Pointer {
		s.pointer, s.typ = true, t.Elem()
	}
	switch s.typ {
	case reflect.TypeFor[time.Duration]():
		s.kind = durationKind
		return s
	case reflect.TypeFor[ByteSize]():
		s.kind = sizeKind
		return s
	case reflect.TypeFor[Secret]():
		s.kind = secretKind
		return s
	case reflect.TypeFor[Strings]():
		s.kind, s.elem = stringsKind, &shape{kind: stringKind, typ: reflect.TypeFor[string]()}
		return s
	}
	if reflect.PointerTo(s.typ).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		s.kind = textKind
		return s
	}
	switch k := s.typ.Kind(); k {
	case reflect.Bool:
		s.kind = boolKind
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		s.kind = intKind
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		s.kind = uintKind
	case reflect.Float32, reflect.Float64:
		s.kind = floatKind
	case reflect.String:
		s.kind = stringKind
	case reflect.Slice:
		s.kind, s.elem = listKind, makeShape(s.typ.Elem(), where+"[]", above)
	case reflect.Map:
		if s.typ.Key().Kind() != reflect.String {
			panic("sdk: " + where + ": the keys of a map are strings, not " + s.typ.Key().String())
		}
		s.kind, s.elem = mapKind, makeShape(s.typ.Elem(), where+"[]", above)
	case reflect.Struct:
		if slices.Contains(above, s.typ) {
			panic("sdk: " + where + ": " + s.typ.String() + " contains itself")
		}
		s.kind = structKind
		s.fields(s.typ, where, nil, append(slices.Clone(above), s.typ))
	default:
		panic("sdk: " + where + ": type " + t.String() + " cannot be configured")
	}
	return s
}

func (s *shape) fields(t reflect.Type, where string, index []int, above []reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, tagged := f.Tag.Lookup("config")
		at := append(slices.Clone(index), i)
		switch {
		case f.Anonymous && !tagged && f.Type.Kind() == reflect.Struct:
			s.fields(f.Type, where+"."+f.Name, at, above)
		case name == "-", !f.IsExported() && !tagged:
		case name == "":
			panic("sdk: " + where + "." + f.Name + " has no config tag")
		case !f.IsExported():
			panic("sdk: " + where + "." + f.Name + " is not exported")
		case s.option(name) != nil:
			panic("sdk: " + where + "." + f.Name + ": option " + name + " is there twice")
		default:
			s.options = append(s.options, makeOption(f, where+"."+f.Name, at, above))
		}
	}
}

func makeOption(f reflect.StructField, where string, index []int, above []reflect.Type) *option {
	o := &option{
		name: f.Tag.Get("config"), doc: f.Tag.Get("doc"), unit: f.Tag.Get("unit"),
		index: index, shape: makeShape(f.Type, where, above),
		required: f.Tag.Get("required") == "true",
	}
	if e := f.Tag.Get("enum"); e != "" {
		o.enum = strings.Split(e, "|")
	}
	o.min, o.max = o.shape.bound(f.Tag, "min", where), o.shape.bound(f.Tag, "max", where)
	if o.required && o.min == nil && o.shape.counted() {
		o.min = &bound{"1", 1}
	}
	text, ok := f.Tag.Lookup("default")
	if !ok {
		return o
	}
	if o.required || o.shape.kind == secretKind || o.shape.kind == structKind {
		panic("sdk: " + where + ": a required option, a secret and a struct have no default")
	}
	o.hasDefault, o.defText, o.def = true, text, o.shape.defaultOf(text)
	var p parser
	p.set("default", o, o.def, reflect.New(f.Type).Elem())
	if len(p.problems) > 0 {
		panic(fmt.Sprintf("sdk: %s: %v", where, p.problems))
	}
	return o
}

// defaultOf turns the text of a tag into what a configuration would hold.
func (s *shape) defaultOf(text string) any {
	switch s.kind {
	case stringKind, durationKind, sizeKind, textKind:
		return text
	case stringsKind:
		if !strings.HasPrefix(text, "[") {
			return text
		}
	}
	v, err := parseJSON([]byte(text))
	if err != nil {
		return "not JSON: " + text
	}
	return v
}

func (s *shape) bound(tag reflect.StructTag, name, where string) *bound {
	text, ok := tag.Lookup(name)
	if !ok {
		return nil
	}
	b := &bound{text: text}
	var err error
	switch {
	case s.kind == durationKind:
		var d time.Duration
		d, err = time.ParseDuration(text)
		b.v = float64(d)
	case s.kind == sizeKind:
		var n ByteSize
		n, err = ParseByteSize(text)
		b.v = float64(n)
	case s.counted(), s.kind == intKind, s.kind == uintKind, s.kind == floatKind:
		b.v, err = strconv.ParseFloat(text, 64)
	default:
		err = fmt.Errorf("type %s has no bounds", s.typ)
	}
	if err != nil {
		panic("sdk: " + where + ": " + name + ": " + err.Error())
	}
	return b
}

// expected says what a value of the option looks like.
func (o *option) expected() string {
	if len(o.enum) > 0 {
		e := "one of " + strings.Join(o.enum, ", ")
		switch o.shape.kind {
		case listKind, stringsKind:
			return "a list of values, each " + e
		}
		return e
	}
	switch o.shape.kind {
	case boolKind:
		return "true or false"
	case intKind, uintKind:
		return "an integer" + o.bounds()
	case floatKind:
		return "a number" + o.bounds()
	case durationKind:
		return "a duration such as 500ms, 10s or 1h30m" + o.bounds()
	case sizeKind:
		return "a size such as 4096, 64KiB or 1GiB" + o.bounds()
	case listKind:
		return "a list" + o.count("items")
	case stringsKind:
		return "a text or a list of texts" + o.count("items")
	case mapKind, structKind:
		return "an object" + o.count("entries")
	}
	return "text" + o.count("characters")
}

func (o *option) count(what string) string {
	if o.min == nil && o.max == nil {
		return ""
	}
	if o.min != nil && o.min.text == "1" && o.max == nil {
		return ", not empty"
	}
	return " of" + o.bounds() + " " + what
}

func (o *option) bounds() string {
	unit := ""
	if o.unit != "" {
		unit = " " + o.unit
	}
	switch {
	case o.min != nil && o.max != nil:
		return " from " + o.min.text + " to " + o.max.text + unit
	case o.min != nil:
		return " ≥ " + o.min.text + unit
	case o.max != nil:
		return " ≤ " + o.max.text + unit
	case o.shape.kind == uintKind:
		return " ≥ 0" + unit
	}
	return ""
}
