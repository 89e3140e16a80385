package api

import (
	"encoding"
	"encoding/json"
	"path"
	"reflect"
	"strings"
	"time"
)

// Description is the OpenAPI 3.1 document of the API, made of the very table that
// is served.
func Description() map[string]any {
	d := &describer{schemas: map[string]any{}}
	paths := map[string]map[string]any{}
	for _, rt := range routes(nil) {
		op := map[string]any{
			"summary":     rt.summary,
			"operationId": strings.ToLower(rt.method) + strings.NewReplacer("/v1", "", "/", "-", "{", "", "}", "").Replace(rt.path),
			"responses": map[string]any{
				"200":     content("the result", d.of(rt.out)),
				"default": content("an error; the exit code of a command follows from its kind", d.of(reflect.TypeFor[failure]())),
			},
		}
		if p := parameters(&rt); len(p) > 0 {
			op["parameters"] = p
		}
		if rt.in != nil {
			body := content("", d.of(rt.in))
			delete(body, "description")
			body["required"] = true
			op["requestBody"] = body
		}
		if paths[rt.path] == nil {
			paths[rt.path] = map[string]any{}
		}
		paths[rt.path][strings.ToLower(rt.method)] = op
	}
	for at, what := range map[string]string{
		"/healthz": "says that the process lives", "/readyz": "says that it runs tasks; 503 otherwise", "/metrics": "metrics for Prometheus",
	} {
		paths[at] = map[string]any{"get": map[string]any{"summary": what, "responses": map[string]any{
			"200": map[string]any{"description": what, "content": map[string]any{"text/plain": map[string]any{}}},
		}}}
	}
	return map[string]any{
		"openapi":  "3.1.0",
		"info":     map[string]any{"title": "DataLink", "version": "1", "description": "Tasks, connectors and audit of a daemon. Over TCP each request carries a token; health and readiness need none."},
		"paths":    paths,
		"security": []any{map[string]any{"token": []string{}}},
		"components": map[string]any{
			"schemas":         d.schemas,
			"securitySchemes": map[string]any{"token": map[string]any{"type": "http", "scheme": "bearer"}},
		},
	}
}

func content(what string, schema any) map[string]any {
	return map[string]any{"description": what, "content": map[string]any{"application/json": map[string]any{"schema": schema}}}
}

func parameters(rt *route) (out []any) {
	for rest := rt.path; ; {
		_, after, ok := strings.Cut(rest, "{")
		if !ok {
			break
		}
		name, tail, _ := strings.Cut(after, "}")
		out = append(out, map[string]any{"name": name, "in": "path", "required": true, "schema": map[string]any{"type": "string"}})
		rest = tail
	}
	for _, name := range rt.query {
		out = append(out, map[string]any{"name": name, "in": "query", "schema": map[string]any{"type": "string"}})
	}
	return out
}

// describer writes types as JSON Schema, structs once by name.
type describer struct{ schemas map[string]any }

func (d *describer) of(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t.Kind() == reflect.Pointer:
		return map[string]any{"anyOf": []any{d.of(t.Elem()), map[string]any{"type": "null"}}}
	case t.Implements(reflect.TypeFor[json.Marshaler]()) || t == reflect.TypeFor[json.RawMessage]():
		return map[string]any{}
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": []string{"string", "null"}, "contentEncoding": "base64"}
		}
		return map[string]any{"type": []string{"array", "null"}, "items": d.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": []string{"object", "null"}, "additionalProperties": d.of(t.Elem())}
	case reflect.Struct:
		return d.object(t)
	}
	return map[string]any{}
}

func (d *describer) object(t reflect.Type) map[string]any {
	name := t.Name()
	if name == "" {
		return d.fields(t)
	}
	title := func(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
	switch own := reflect.TypeFor[Task]().PkgPath(); {
	case t.PkgPath() != own: // packages may have types of one name
		name = title(path.Base(t.PkgPath())) + name
	case name != title(name):
		name = title(name) + "Body"
	}
	if _, ok := d.schemas[name]; !ok {
		d.schemas[name] = nil // for types that hold themselves
		d.schemas[name] = d.fields(t)
	}
	return map[string]any{"$ref": "#/components/schemas/" + name}
}

func (d *describer) fields(t reflect.Type) map[string]any {
	props := map[string]any{}
	required := []string{}
	for _, f := range reflect.VisibleFields(t) {
		tag, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || tag == "-" || f.Anonymous && tag == "" || !reached(t, f) {
			continue
		}
		if tag == "" {
			tag = f.Name
		}
		props[tag] = d.of(f.Type)
		if !strings.Contains(opts, "omitempty") && !strings.Contains(opts, "omitzero") {
			required = append(required, tag)
		}
	}
	out := map[string]any{"type": "object", "properties": props, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// reached reports whether a promoted field is one of the outer object's: all
// structs on the way are embedded without a name.
func reached(t reflect.Type, f reflect.StructField) bool {
	for i := 1; i < len(f.Index); i++ {
		if outer := t.FieldByIndex(f.Index[:i]); outer.Tag.Get("json") != "" {
			return false
		}
	}
	return true
}
