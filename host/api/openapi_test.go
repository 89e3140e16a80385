package api

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// fill sets every field of a value, so that nothing that can be said stays unsaid.
func fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		if depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), depth-1)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1, 0).UTC()))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), depth-1)
			}
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte("{}"))
		} else if depth > 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), depth-1)
		}
	case reflect.Map:
		if depth > 0 {
			e := reflect.New(v.Type().Elem()).Elem()
			fill(e, depth-1)
			k := reflect.New(v.Type().Key()).Elem()
			fill(k, depth-1)
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(k, e)
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1.5)
	}
}

// document is what the daemon serves, as any client reads it.
func document(t *testing.T) map[string]any {
	t.Helper()
	w := httptest.NewRecorder()
	Handler(nil).ServeHTTP(w, httptest.NewRequest("GET", "/v1/openapi.json", nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	doc, err := jsonschema.UnmarshalJSON(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return doc.(map[string]any)
}

// Whatever a call takes and gives is what the description says, empty or full.
func TestDescription(t *testing.T) {
	doc := document(t)
	c := jsonschema.NewCompiler()
	if err := c.AddResource("http://api/openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	pointer := func(parts ...string) string {
		for i := range parts {
			parts[i] = strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(parts[i])
		}
		return "http://api/openapi.json#/" + strings.Join(parts, "/")
	}
	check := func(rt *route, where string, typ reflect.Type) {
		s, err := c.Compile(where)
		if err != nil {
			t.Errorf("%s %s: %v", rt.method, rt.path, err)
			return
		}
		for _, depth := range []int{0, 12} {
			v := reflect.New(typ).Elem()
			if typ.Kind() == reflect.Pointer {
				v.Set(reflect.New(typ.Elem()))
			}
			if depth > 0 {
				fill(v, depth)
			}
			data, err := json.Marshal(v.Interface())
			if err != nil {
				t.Fatal(err)
			}
			inst, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Validate(inst); err != nil {
				t.Errorf("%s %s: %s is not as described: %v", rt.method, rt.path, data, err)
			}
		}
	}
	for _, rt := range routes(nil) {
		m := strings.ToLower(rt.method)
		check(&rt, pointer("paths", rt.path, m, "responses", "200", "content", "application/json", "schema"), rt.out)
		check(&rt, pointer("paths", rt.path, m, "responses", "default", "content", "application/json", "schema"), reflect.TypeFor[failure]())
		if rt.in != nil {
			check(&rt, pointer("paths", rt.path, m, "requestBody", "content", "application/json", "schema"), rt.in)
		}
	}
}

// A description that lacks a field would not be noticed if it let anything pass.
func TestDescriptionIsClosed(t *testing.T) {
	schemas := document(t)["components"].(map[string]any)["schemas"].(map[string]any)
	if len(schemas) < 15 {
		t.Errorf("%d schemas, want those of all types", len(schemas))
	}
	for name, s := range schemas {
		if s.(map[string]any)["additionalProperties"] != false {
			t.Errorf("%s lets unknown fields pass", name)
		}
	}
}
