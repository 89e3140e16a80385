package sdk

import (
	"encoding"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Problem is one fault of a configuration: where it is, what was found and what
// was expected. ParseConfig reports all of them at once.
type Problem struct {
	Path     string // e.g. "tls.mode", "tables[2]"; "" = the whole
	Found    string
	Expected string
	Message  string
}

// String returns the problem as one line.
func (p Problem) String() string {
	var b strings.Builder
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	if p.Found != "" {
		b.WriteString(", found " + p.Found)
	}
	if p.Expected != "" {
		b.WriteString(", expected " + p.Expected)
	}
	return b.String()
}

// Validator is implemented by configuration structs with rules that concern
// several options. It is called when each option for itself is right; paths are
// relative to the struct.
type Validator interface {
	Validate() []Problem
}

// ParseConfig reads a configuration in JSON into the struct that into points to,
// and returns everything that is wrong with it. No problem: into is filled,
// defaults included.
//
// The tags of a field are
//
//	config    name of the option; "-" = not an option. Every exported field has
//	          it but embedded structs, whose options are those of the outer one.
//	doc       one sentence for the option table
//	default   value when the option is left out: text, or JSON for lists and objects
//	required  "true": must be there and not be empty
//	enum      a|b|c: one of these, also for each item of a list
//	min, max  bounds: of numbers, durations and sizes, of the length of texts
//	          (characters), lists and maps
//	unit      what a number counts
//
// Types: bool, integers, floats, string, time.Duration ("1m30s"), ByteSize,
// Secret, Strings (one text or a list), types with UnmarshalText, structs,
// pointers (left out = nil), slices, and maps with string keys. Other types and
// tags that contradict are a mistake of the author and panic.
func ParseConfig(raw []byte, into any) []Problem {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		panic("sdk: ParseConfig wants a pointer to a struct, got " + reflect.TypeOf(into).String())
	}
	s := shapeOf(v.Type().Elem())
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	tree, err := parseJSON(raw)
	if err != nil {
		return []Problem{{Message: "the configuration is not JSON: " + err.Error()}}
	}
	var p parser
	p.set("", &option{shape: s}, tree, v.Elem())
	return p.problems
}

type parser struct{ problems []Problem }

func (p *parser) add(path, found, expected, message string) {
	p.problems = append(p.problems, Problem{path, found, expected, message})
}

func (p *parser) wrong(path string, o *option, tree any) {
	found := show(tree)
	if o.shape.kind == secretKind {
		found = kindOf(tree)
	}
	p.add(path, found, o.expected(), "wrong value")
}

// set reads tree into v, which has the type of the option's shape.
func (p *parser) set(path string, o *option, tree any, v reflect.Value) {
	s := o.shape
	if s.pointer {
		v.Set(reflect.New(s.typ))
		v = v.Elem()
	}
	switch s.kind {
	case structKind:
		p.object(path, o, tree, v)
	case mapKind:
		p.table(path, o, tree, v)
	case listKind, stringsKind:
		p.list(path, o, tree, v)
	case textKind:
		text, ok := tree.(string)
		if !ok || len(o.enum) > 0 && !slices.Contains(o.enum, text) {
			p.wrong(path, o, tree)
		} else if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
			p.add(path, show(tree), "", "wrong value: "+err.Error())
		}
	default:
		if !s.scalar(o, tree, v) {
			p.wrong(path, o, tree)
		}
	}
}

func (p *parser) object(path string, o *option, tree any, v reflect.Value) {
	obj, ok := tree.(*object)
	if !ok {
		p.wrong(path, o, tree)
		return
	}
	before := len(p.problems)
	for _, key := range obj.keys {
		if o.shape.option(key) == nil {
			p.unknown(join(path, key), key, o.shape)
		}
	}
	for _, f := range o.shape.options {
		child, at := v.FieldByIndex(f.index), join(path, f.name)
		val, there := obj.vals[f.name]
		switch {
		case there:
			p.set(at, f, val, child)
		case f.hasDefault:
			p.set(at, f, f.def, child)
		case f.required:
			p.add(at, "", f.expected(), "option is missing")
		case f.shape.kind == structKind && !f.shape.pointer:
			p.set(at, f, &object{}, child)
		}
	}
	if len(p.problems) > before || !v.CanAddr() {
		return
	}
	if check, ok := v.Addr().Interface().(Validator); ok {
		for _, pr := range check.Validate() {
			pr.Path = joinPath(path, pr.Path)
			p.problems = append(p.problems, pr)
		}
	}
}

func (p *parser) unknown(path, key string, s *shape) {
	names := make([]string, len(s.options))
	for i, f := range s.options {
		names[i] = f.name
	}
	message := "unknown option"
	if near := nearest(key, names); near != "" {
		message += ", did you mean " + near + "?"
	}
	slices.Sort(names)
	p.add(path, strconv.Quote(shorten(key)), orNothing(names), message)
}

func orNothing(names []string) string {
	if len(names) == 0 {
		return "no options"
	}
	return "one of " + strings.Join(names, ", ")
}

func (p *parser) table(path string, o *option, tree any, v reflect.Value) {
	obj, ok := tree.(*object)
	if !ok || !o.length(len(obj.keys)) {
		p.wrong(path, o, tree)
		return
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), len(obj.keys)))
	item := o.item()
	for _, key := range obj.keys {
		e := reflect.New(v.Type().Elem()).Elem()
		p.set(join(path, key), item, obj.vals[key], e)
		v.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), e)
	}
}

func (p *parser) list(path string, o *option, tree any, v reflect.Value) {
	list, ok := tree.([]any)
	if text, one := tree.(string); one && o.shape.kind == stringsKind {
		list, ok = []any{text}, true
	}
	if !ok || !o.length(len(list)) {
		p.wrong(path, o, tree)
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(list), len(list)))
	item := o.item()
	for i, e := range list {
		p.set(path+"["+strconv.Itoa(i)+"]", item, e, v.Index(i))
	}
}

// scalar reads tree into v and reports whether it is a value of the option.
func (s *shape) scalar(o *option, tree any, v reflect.Value) bool {
	text, isText := tree.(string)
	num, isNum := tree.(json.Number)
	if len(o.enum) > 0 && !slices.Contains(o.enum, text) && !slices.Contains(o.enum, string(num)) {
		return false
	}
	switch s.kind {
	case boolKind:
		b, ok := tree.(bool)
		v.SetBool(b)
		return ok
	case intKind:
		n, ok := integer(string(num))
		if !isNum || !ok || v.OverflowInt(n) {
			return false
		}
		v.SetInt(n)
		return o.within(float64(n))
	case uintKind:
		n, err := strconv.ParseUint(string(num), 10, 64)
		if err != nil {
			i, ok := integer(string(num))
			if !ok || i < 0 {
				return false
			}
			n = uint64(i)
		}
		if !isNum || v.OverflowUint(n) {
			return false
		}
		v.SetUint(n)
		return o.within(float64(n))
	case floatKind:
		f, err := strconv.ParseFloat(string(num), 64)
		if err != nil || !isNum || v.OverflowFloat(f) {
			return false
		}
		v.SetFloat(f)
		return o.within(f)
	case sizeKind:
		if n, ok := integer(string(num)); ok {
			v.SetInt(n)
			return n >= 0 && o.within(float64(n))
		}
		n, err := ParseByteSize(text)
		v.SetInt(int64(n))
		return err == nil && o.within(float64(n))
	}
	if !isText {
		return false
	}
	switch s.kind {
	case stringKind:
		v.SetString(text)
		return o.length(utf8.RuneCountInString(text))
	case secretKind:
		v.Set(reflect.ValueOf(NewSecret(text)))
		return o.length(utf8.RuneCountInString(text))
	case durationKind:
		d, err := time.ParseDuration(text)
		v.SetInt(int64(d))
		return err == nil && text[0] != '-' && text[0] != '+' && o.within(float64(d))
	}
	return false
}

// integer reads an integer, also one that is written as 5.0 or 2e3.
func integer(s string) (int64, bool) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

func join(path, key string) string {
	simple := key != ""
	for _, r := range key {
		simple = simple && (r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}
	if !simple {
		return path + "[" + strconv.Quote(shorten(key)) + "]"
	}
	return joinPath(path, key)
}

func joinPath(a, b string) string {
	if a == "" || b == "" || b[0] == '[' {
		return a + b
	}
	return a + "." + b
}

// nearest returns the name that key was probably meant to be, or "".
func nearest(key string, names []string) string {
	best, near := 1+max(1, min(3, len(key)/3)), ""
	for _, name := range names {
		if d := distance(strings.ToLower(key), strings.ToLower(name)); d < best {
			best, near = d, name
		}
	}
	return near
}

// distance counts insertions, deletions, replacements and swaps of neighbours.
func distance(a, b string) int {
	prev2, prev, cur := []int(nil), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, slices.Clone(prev)
	}
	return prev[len(b)]
}
