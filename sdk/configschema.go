package sdk

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// Patterns of what time.ParseDuration and ParseByteSize take. They cannot say
// what is too large for 64 bits.
const (
	durationPattern = `^(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
	sizePattern     = `^[0-9]+( ?(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB))?$`
)

// ConfigSchema returns the JSON Schema (draft 2020-12) of a configuration struct.
// It accepts what ParseConfig accepts, but for bounds of durations and sizes
// (keywords x-minimum and x-maximum, which only show them), texts that a type
// reads itself, and rules of a Validator. Keyword x-unit is the unit, x-type the
// type where it is a duration, a size or a secret.
func ConfigSchema(t reflect.Type) []byte {
	top := append(ordered{{"$schema", "https://json-schema.org/draft/2020-12/schema"}}, shapeOf(t).schema()...)
	data, err := json.Marshal(top)
	if err != nil {
		panic("sdk: schema of " + t.String() + ": " + err.Error())
	}
	return data
}

// ordered is a JSON object with the order of its members kept.
type ordered []member

type member struct {
	key string
	val any
}

func (o ordered) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(m.key)
		if err != nil {
			return nil, err
		}
		val, err := json.Marshal(m.val)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(val)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func (o *ordered) put(key string, val any) { *o = append(*o, member{key, val}) }

// schema returns the schema of a struct.
func (s *shape) schema() ordered {
	props, required := ordered{}, []string{}
	for _, o := range s.options {
		props.put(o.name, o.schema())
		if o.needed() {
			required = append(required, o.name)
		}
	}
	out := ordered{{"type", "object"}, {"properties", props}, {"additionalProperties", false}}
	if len(required) > 0 {
		out.put("required", required)
	}
	return out
}

// needed reports whether the option cannot be left out: it is required, or a
// struct with such an option in it.
func (o *option) needed() bool {
	if o.required {
		return true
	}
	if o.shape.kind == structKind && !o.shape.pointer {
		for _, c := range o.shape.options {
			if c.needed() {
				return true
			}
		}
	}
	return false
}

func (o *option) schema() ordered {
	var out ordered
	if o.doc != "" {
		out.put("description", o.doc)
	}
	if o.unit != "" {
		out.put("x-unit", o.unit)
	}
	if o.hasDefault {
		out.put("default", plain(o.def))
	}
	s := o.shape
	switch s.kind {
	case boolKind:
		out.put("type", "boolean")
	case intKind, uintKind:
		out.put("type", "integer")
		o.numbers(&out)
	case floatKind:
		out.put("type", "number")
		o.numbers(&out)
	case durationKind:
		out = append(out, member{"x-type", "duration"}, member{"type", "string"}, member{"pattern", durationPattern})
		o.shown(&out)
	case sizeKind:
		out.put("x-type", "size")
		out.put("anyOf", []ordered{{{"type", "integer"}, {"minimum", 0}}, {{"type", "string"}, {"pattern", sizePattern}}})
		o.shown(&out)
	case secretKind:
		out = append(out, member{"x-type", "secret"}, member{"type", "string"}, member{"writeOnly", true})
		o.lengths(&out, "Length")
	case stringKind:
		out.put("type", "string")
		o.lengths(&out, "Length")
	case textKind:
		out.put("type", "string")
	case listKind:
		out = append(out, member{"type", "array"}, member{"items", o.item().schema()})
		o.lengths(&out, "Items")
	case stringsKind:
		list := ordered{{"type", "array"}, {"items", o.item().schema()}}
		o.lengths(&list, "Items")
		choices := []ordered{list}
		// One text alone is a list of one.
		if o.length(1) {
			choices = append([]ordered{o.item().schema()}, choices...)
		}
		out.put("anyOf", choices)
	case mapKind:
		out = append(out, member{"type", "object"}, member{"additionalProperties", o.item().schema()})
		o.lengths(&out, "Properties")
	case structKind:
		out = append(out, s.schema()...)
	}
	if len(o.enum) > 0 && s.kind != listKind && s.kind != stringsKind && s.kind != mapKind {
		out.put("enum", o.values())
	}
	return out
}

// values returns the enum as JSON values of the option's type.
func (o *option) values() []any {
	var out []any
	for _, e := range o.enum {
		switch o.shape.kind {
		case intKind, uintKind, floatKind:
			out = append(out, json.Number(e))
		default:
			out = append(out, e)
		}
	}
	return out
}

func (o *option) numbers(out *ordered) {
	lo, hi := o.shape.limits()
	if o.min != nil {
		lo = o.min.text
	}
	if o.max != nil {
		hi = o.max.text
	}
	if lo != "" {
		out.put("minimum", json.Number(lo))
	}
	if hi != "" {
		out.put("maximum", json.Number(hi))
	}
}

// limits returns the bounds of an integer type.
func (s *shape) limits() (lo, hi string) {
	bits := s.typ.Bits()
	switch s.kind {
	case intKind:
		return strconv.FormatInt(-1<<(bits-1), 10), strconv.FormatInt(1<<(bits-1)-1, 10)
	case uintKind:
		return "0", strconv.FormatUint(1<<bits-1, 10)
	}
	return "", ""
}

func (o *option) shown(out *ordered) {
	if o.min != nil {
		out.put("x-minimum", o.min.text)
	}
	if o.max != nil {
		out.put("x-maximum", o.max.text)
	}
}

func (o *option) lengths(out *ordered, what string) {
	if o.min != nil {
		out.put("min"+what, json.Number(o.min.text))
	}
	if o.max != nil {
		out.put("max"+what, json.Number(o.max.text))
	}
}

// plain turns a parsed JSON value back into what json.Marshal takes.
func plain(v any) any {
	switch v := v.(type) {
	case *object:
		out := ordered{}
		for _, k := range v.keys {
			out.put(k, plain(v.vals[k]))
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plain(v[i])
		}
		return out
	}
	return v
}

// ConfigTable returns the options of a configuration struct as a Markdown table,
// for the README of the connector.
func ConfigTable(t reflect.Type) string {
	var b strings.Builder
	b.WriteString("| option | type | default | meaning |\n|---|---|---|---|\n")
	shapeOf(t).rows(&b, "")
	return b.String()
}

func (s *shape) rows(b *strings.Builder, prefix string) {
	for _, o := range s.options {
		name := prefix + o.name
		def := "–"
		switch {
		case o.required:
			def = "required"
		case o.hasDefault:
			def = "`" + cell(o.defText) + "`"
		}
		b.WriteString("| `" + name + "` | " + cell(o.typeName()) + " | " + def + " | " + cell(o.doc) + " |\n")
		inner, under := o.shape, name
		for inner.elem != nil {
			if inner.kind == mapKind {
				under += ".<name>"
			} else {
				under += "[]"
			}
			inner = inner.elem
		}
		inner.rows(b, under+".")
	}
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func (o *option) typeName() string {
	if len(o.enum) > 0 {
		names := "`" + strings.Join(o.enum, "`, `") + "`"
		switch o.shape.kind {
		case listKind, stringsKind:
			return "list of " + names
		}
		return names
	}
	name := o.shape.name()
	switch o.shape.kind {
	case intKind, uintKind, floatKind, durationKind, sizeKind:
		if o.unit != "" && o.min == nil && o.max == nil {
			return name + ", " + o.unit
		}
		return name + o.bounds()
	}
	if o.required && o.min != nil && o.min.text == "1" && o.max == nil {
		return name
	}
	switch o.shape.kind {
	case stringKind, secretKind:
		return name + o.count("characters")
	case listKind, stringsKind:
		return name + o.count("items")
	}
	return name
}

func (s *shape) name() string {
	switch s.kind {
	case boolKind:
		return "boolean"
	case intKind, uintKind:
		return "integer"
	case floatKind:
		return "number"
	case durationKind:
		return "duration"
	case sizeKind:
		return "size"
	case secretKind:
		return "secret"
	case listKind:
		return "list of " + s.elem.name()
	case stringsKind:
		return "text or list of text"
	case mapKind:
		return "map to " + s.elem.name()
	case structKind:
		return "object"
	}
	return "text"
}
