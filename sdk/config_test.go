package sdk

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

var update = flag.Bool("update", false, "rewrite the golden files")

type testTLS struct {
	Mode string `config:"mode" doc:"How far the server is checked." default:"verify" enum:"off|verify"`
	CA   string `config:"ca" doc:"File with the certificates."`
}

type testTable struct {
	Name string `config:"name" doc:"Name with schema." required:"true"`
	Rows uint16 `config:"rows" doc:"Rows a chunk." default:"100" min:"1" unit:"rows"`
}

// testCommon is embedded and not exported; its fields are options all the same.
type testCommon struct {
	Label string `config:"label" doc:"Free text." max:"5"`
}

// level reads itself.
type level int

func (l *level) UnmarshalText(b []byte) error {
	switch string(b) {
	case "low":
		*l = 1
	case "high":
		*l = 2
	default:
		return errors.New("level")
	}
	return nil
}

type testConfig struct {
	Host     string            `config:"host" doc:"Name or address." required:"true"`
	Port     int               `config:"port" doc:"TCP port." default:"3306" min:"1" max:"65535"`
	Password Secret            `config:"password" doc:"Password of the user."`
	Tables   Strings           `config:"tables" doc:"Tables | patterns." default:"*"`
	Wait     time.Duration     `config:"wait" doc:"Longest wait." default:"1m30s" min:"1s" max:"1h"`
	Buffer   ByteSize          `config:"buffer" doc:"Read buffer." default:"64KiB" min:"4KiB"`
	Ratio    float32           `config:"ratio" doc:"Share." default:"0.5" min:"0" max:"1"`
	Small    int8              `config:"small" doc:"Small."`
	Ids      []int64           `config:"ids" doc:"Server ids." max:"3"`
	Levels   []string          `config:"levels" doc:"Levels." enum:"a|b" default:"[\"a\"]"`
	Detail   level             `config:"detail" doc:"Detail." default:"low"`
	Depth    uint              `config:"depth" doc:"Depth." enum:"1|2|4" default:"1"`
	On       bool              `config:"on" doc:"Whether." default:"true"`
	TLS      testTLS           `config:"tls" doc:"Encryption."`
	Proxy    *testTLS          `config:"proxy" doc:"Encryption of the proxy."`
	Each     []testTable       `config:"each" doc:"Tables with options of their own."`
	Params   map[string]string `config:"params" doc:"Driver parameters."`
	testCommon
	Ignored chan int `config:"-"`
}

func parsed(t *testing.T, raw string) (testConfig, []Problem) {
	t.Helper()
	var c testConfig
	return c, ParseConfig([]byte(raw), &c)
}

func TestDefaults(t *testing.T) {
	var got testConfig
	if p := ParseConfig([]byte(`{"host":"h"}`), &got); len(p) > 0 {
		t.Fatalf("problems %v", p)
	}
	want := testConfig{
		Host: "h", Port: 3306, Tables: Strings{"*"}, Wait: 90 * time.Second, Buffer: 64 << 10, Ratio: 0.5,
		Levels: []string{"a"}, Detail: 1, Depth: 1, On: true, TLS: testTLS{Mode: "verify"},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(testConfig{})); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestParseConfig(t *testing.T) {
	raw := `{"host":"h","port":1,"password":"p","tables":["a","b"],"wait":"2s","buffer":4096,"ratio":0.25,"small":-128,
		"ids":[1,2.0,3e0],"levels":["b","a"],"detail":"high","depth":4,"on":false,"tls":{"mode":"off"},"proxy":{"ca":"f"},
		"each":[{"name":"x"},{"name":"y","rows":7}],"params":{"a b":"c"},"label":"é1234"}`
	var got testConfig
	if p := ParseConfig([]byte(raw), &got); len(p) > 0 {
		t.Fatalf("problems %v", p)
	}
	want := testConfig{
		Host: "h", Port: 1, Password: NewSecret("p"), Tables: Strings{"a", "b"}, Wait: 2 * time.Second, Buffer: 4096, Ratio: 0.25, Small: -128,
		Ids: []int64{1, 2, 3}, Levels: []string{"b", "a"}, Detail: 2, Depth: 4, TLS: testTLS{Mode: "off"}, Proxy: &testTLS{Mode: "verify", CA: "f"},
		Each: []testTable{{"x", 100}, {"y", 7}}, Params: map[string]string{"a b": "c"}, testCommon: testCommon{"é1234"},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(testConfig{})); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// TestAllProblemsAtOnce pins the texts: they are what an operator reads.
func TestAllProblemsAtOnce(t *testing.T) {
	_, got := parsed(t, `{"prot":1,"port":70000,"password":12,"tables":[1],"wait":"2h","buffer":"64 Mib","ids":[1,2,3,4],
		"levels":["a","c"],"depth":3,"tls":{"mode":"of"},"each":[{"rows":0},7],"params":{"a b":1},"label":"123456","on":null}`)
	var lines []string
	for _, p := range got {
		lines = append(lines, p.String())
	}
	golden(t, "testdata/problems.golden", []byte(strings.Join(lines, "\n")+"\n"))
}

func TestSchemaAndTable(t *testing.T) {
	var b bytes.Buffer
	b.Write(ConfigSchema(reflect.TypeFor[testConfig]()))
	b.WriteString("\n\n" + ConfigTable(reflect.TypeFor[testConfig]()))
	golden(t, "testdata/config.golden", b.Bytes())
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got, rewrite with -update)\n%s", file, d)
	}
}

func compile(t *testing.T, typ reflect.Type) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(ConfigSchema(typ)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("config.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("config.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSchemaAgrees runs each value of each option through parser and schema.
func TestSchemaAgrees(t *testing.T) {
	schema := compile(t, reflect.TypeFor[testConfig]())
	for option, values := range map[string]struct{ good, bad string }{
		"host":     {`"h" "é"`, `"" 1 null [] {} true`},
		"port":     {`1 65535 5.0 2e3`, `0 65536 -1 1.5 "1" null 1e30 18446744073709551616`},
		"password": {`"" "x"`, `1 null ["x"]`},
		"tables":   {`"a" "" [] ["a","b"]`, `1 [1] null {} ["a",null]`},
		"wait":     {`"1s" "1h" "1.5s" "1m0.5s" "1000000µs" ".5h"`, `"" "1" "1x" "-1s" "+1s" "1 s" 1 null "s" "1.s.s"`},
		"buffer":   {`4096 "4096" "4KiB" "4 MiB" "5000B" 8e3 4096.0`, `-1 "" "KiB" "1.5MiB" "4  MiB" "4096 " "4Mib" null 4096.5 [1]`},
		"ratio":    {`0 1 0.5 1e-3`, `-0.1 1.1 "0.5" null`},
		"small":    {`-128 127 0`, `-129 128 0.5 "1" 1e30`},
		"ids":      {`[] [1,2,3] [-9223372036854775808,9223372036854775807]`, `1 [1,2,3,4] ["1"] [1.5] null [9223372036854775808]`},
		"levels":   {`[] ["a"] ["a","b","a"]`, `"a" ["c"] [null] [1]`},
		"detail":   {`"low" "high"`, `1 null []`},
		"depth":    {`1 2 4`, `0 3 "1" null -1 1.5`},
		"on":       {`true false`, `"true" 1 0 null`},
		"tls":      {`{} {"mode":"off"} {"ca":""}`, `null [] "x" {"mode":"x"} {"Mode":"off"} {"mode":null} {"x":1}`},
		"proxy":    {`{} {"mode":"off"}`, `null {"mode":1} []`},
		"each":     {`[] [{"name":"x"}] [{"name":"x","rows":65535}]`, `{} [{}] [{"name":""}] [{"name":"x","rows":0}] [{"name":"x","rows":65536}] [null] null`},
		"params":   {`{} {"a":"b","":""}`, `[] {"a":1} {"a":null} null`},
		"label":    {`"" "12345" "ééééé"`, `"123456" 1 null`},
		"unknown":  {``, `1 null "x"`},
	} {
		for _, set := range []struct {
			values string
			good   bool
		}{{values.good, true}, {values.bad, false}} {
			for _, value := range splitJSON(t, set.values) {
				raw := `{"host":"h","` + option + `":` + value + `}`
				if option == "host" {
					raw = `{"host":` + value + `}`
				}
				_, problems := parsed(t, raw)
				if got := len(problems) == 0; got != set.good {
					t.Errorf("%s: parser says %t, want %t: %v", raw, got, set.good, problems)
				}
				if err := validate(t, schema, raw); (err == nil) != set.good {
					t.Errorf("%s: schema says %t, want %t: %v", raw, err == nil, set.good, err)
				}
			}
		}
	}
	for _, raw := range []string{`{}`, `{"port":1}`, `[]`, `null`, `"x"`} {
		_, problems := parsed(t, raw)
		if err := validate(t, schema, raw); err == nil || len(problems) == 0 {
			t.Errorf("%s: schema %v, parser %v, want both to refuse", raw, err, problems)
		}
	}
}

func validate(t *testing.T, s *jsonschema.Schema, raw string) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(raw))
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return s.Validate(v)
}

// splitJSON splits a list of values at the spaces outside of texts and brackets.
func splitJSON(t *testing.T, s string) []string {
	t.Helper()
	var out []string
	depth, quoted, from := 0, false, 0
	for i, r := range s + " " {
		switch {
		case r == '"':
			quoted = !quoted
		case quoted:
		case r == '[', r == '{':
			depth++
		case r == ']', r == '}':
			depth--
		case r == ' ' && depth == 0:
			if i > from {
				out = append(out, s[from:i])
			}
			from = i + 1
		}
	}
	return out
}

// TestBoundsThatSchemasCannotSay holds what the parser alone refuses.
func TestBoundsThatSchemasCannotSay(t *testing.T) {
	for _, raw := range []string{
		`{"host":"h","wait":"999ms"}`, `{"host":"h","wait":"1h1s"}`, `{"host":"h","buffer":4095}`, `{"host":"h","buffer":"1KiB"}`,
		`{"host":"h","wait":"99999999999h"}`, `{"host":"h","buffer":"99999999TiB"}`, `{"host":"h","detail":"x"}`,
	} {
		if _, problems := parsed(t, raw); len(problems) != 1 {
			t.Errorf("%s: problems %v, want one", raw, problems)
		}
	}
}

type ruled struct {
	A int       `config:"a" doc:""`
	B int       `config:"b" doc:""`
	C ruledPart `config:"c" doc:""`
}

type ruledPart struct {
	D int `config:"d" doc:""`
}

func (r *ruled) Validate() []Problem {
	if r.A > r.B {
		return []Problem{{Path: "a", Message: "a is greater than b"}}
	}
	return nil
}

func (r *ruledPart) Validate() []Problem {
	if r.D < 0 {
		return []Problem{{Path: "d", Message: "d is negative"}, {Message: "c is odd"}}
	}
	return nil
}

func TestValidator(t *testing.T) {
	for raw, want := range map[string]string{
		`{"a":1,"b":2}`:          "",
		`{"a":3,"b":2}`:          "a: a is greater than b",
		`{"a":3,"c":{"d":-1}}`:   "c.d: d is negative; c: c is odd",
		`{"a":"x","c":{"d":-1}}`: `a: wrong value, found "x", expected an integer; c.d: d is negative; c: c is odd`,
	} {
		var c ruled
		var got []string
		for _, p := range ParseConfig([]byte(raw), &c) {
			got = append(got, p.String())
		}
		if g := strings.Join(got, "; "); g != want {
			t.Errorf("%s: got %q, want %q", raw, g, want)
		}
	}
}

func TestNotJSON(t *testing.T) {
	for raw, want := range map[string]string{
		`{"host":"h","host":"i"}`: `key "host" comes twice`,
		`{"host":`:                "unexpected EOF",
		`{"host":"h"} x`:          "text after the value",
		`{"host":"h"}{}`:          "text after the value",
		strings.Repeat("[", 100):  "nested deeper than 64 levels",
	} {
		_, p := parsed(t, raw)
		if len(p) != 1 || !strings.Contains(p[0].Message, want) {
			t.Errorf("%s: got %v, want one that says %q", raw, p, want)
		}
	}
}

func TestAuthorsMistakesPanic(t *testing.T) {
	type loop struct {
		Next *loop `config:"next"`
	}
	type inner struct {
		X int `config:"x"`
	}
	for name, v := range map[string]any{
		"no tag": struct{ A int }{},
		"twice": struct {
			A, B int `config:"a"`
		}{},
		"bad default": struct {
			A int `config:"a" default:"x"`
		}{},
		"default off bound": struct {
			A int `config:"a" default:"0" min:"1"`
		}{},
		"bad bound": struct {
			A int `config:"a" min:"x"`
		}{},
		"bound of bool": struct {
			A bool `config:"a" min:"1"`
		}{},
		"secret default": struct {
			A Secret `config:"a" default:"x"`
		}{},
		"required default": struct {
			A int `config:"a" default:"1" required:"true"`
		}{},
		"struct default": struct {
			A inner `config:"a" default:"{}"`
		}{},
		"chan": struct {
			A chan int `config:"a"`
		}{},
		"map by int": struct {
			A map[int]string `config:"a"`
		}{},
		"unexported": struct {
			a int `config:"a"`
		}{},
		"loop":         loop{},
		"not a struct": 1,
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			ConfigSchema(reflect.TypeOf(v))
		})
	}
}
