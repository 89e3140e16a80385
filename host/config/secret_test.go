package config_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/host/config"
	"github.com/datalink-go/datalink/host/mapping"
	"github.com/datalink-go/datalink/sdk"
)

func one(t *testing.T, text string) *config.Task {
	t.Helper()
	tasks, err := config.Parse("task.yaml", []byte(text))
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return tasks[0]
}

const head = "apiVersion: datalink/v1\ntask: t\n"

func TestResolve(t *testing.T) {
	task := one(t, head+`reader:
  plugin: mysql
  config:
    password: ${env:PW}
    url: "mysql://${env:USER}:${file:/pw}@h/$${x}"
    n: 0x10
    list: [1, 2.5, true, null, "x"]
writers: [{plugin: rdbms}]
`)
	from := config.Sources{
		Env: func(n string) (string, bool) {
			v, ok := map[string]string{"PW": `s3"cret`, "USER": "root"}[n]
			return v, ok
		},
		File: func(p string) ([]byte, error) {
			if p != "/pw" {
				return nil, errors.New("no such file")
			}
			return []byte("hidden\n"), nil
		},
	}
	c := task.Reader.Config
	r, err := c.Resolve(from)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"password":"s3\"cret","url":"mysql://root:hidden@h/${x}","n":16,"list":[1,2.5,true,null,"x"]}`
	if d := cmp.Diff(want, string(r.JSON())); d != "" {
		t.Errorf("resolved (-want +got):\n%s", d)
	}
	for _, s := range []string{string(c.JSON()), task.Spec, fmt.Sprintf("%v %+v %#v", r, r, r)} {
		if strings.Contains(s, "s3") || strings.Contains(s, "hidden") {
			t.Errorf("a secret is shown in %s", s)
		}
	}
	said := r.Conceal(`cannot log in as root with s3"cret (url "mysql://root:hidden@h", "s3\"cret")`)
	if want := `cannot log in as *** with *** (url "mysql://***:***@h", "***")`; said != want {
		t.Errorf("Conceal = %s, want %s", said, want)
	}
	from.Env = func(string) (string, bool) { return "", false }
	if _, err = c.Resolve(from); err == nil || strings.Count(err.Error(), "is not set") != 2 || !strings.Contains(err.Error(), "task.yaml:6:15") {
		t.Errorf("Resolve without variables = %v, want two problems with places", err)
	}
}

func TestProblemsOfAConnector(t *testing.T) {
	task := one(t, head+`reader:
  plugin: mysql
  config:
    tls: {mode: sometimes}
    tables:
      - "a.b"
      - 5
    password: ${env:PW}
writers: [{plugin: rdbms}]
`)
	c := task.Reader.Config
	r, err := c.Resolve(config.Sources{Env: func(string) (string, bool) { return "topsecret", true }})
	if err != nil {
		t.Fatal(err)
	}
	got := c.Problems([]sdk.Problem{
		{Path: "password", Found: `"topsecret"`, Expected: "an integer", Message: "wrong value"},
		{Path: "tls.mode", Found: `"sometimes"`, Expected: "one of disabled, required", Message: "wrong value"},
		{Path: "tables[1]", Found: "5", Expected: "text", Message: "wrong value"},
		{Path: "address", Expected: "text", Message: "option is missing"},
		{Path: `["odd key"]`, Message: "unknown option"},
	}, r).Error()
	want := `task.yaml:6:5: reader.config.address: option is missing, expected text
task.yaml:6:5: reader.config["odd key"]: unknown option
task.yaml:6:17: reader.config.tls.mode: wrong value, found "sometimes", expected one of disabled, required
task.yaml:9:9: reader.config.tables[1]: wrong value, found 5, expected text
task.yaml:10:15: reader.config.password: wrong value, found "***", expected an integer`
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("problems (-want +got):\n%s", d)
	}
}

func TestNaming(t *testing.T) {
	for _, tt := range []struct {
		tables string
		want   mapping.Naming
	}{
		{`["shop.*"]`, mapping.FlatOneSchema},
		{`shop.orders`, mapping.FlatOneSchema},
		{`["shop.a", "shop.b?", "!crm.x"]`, mapping.FlatOneSchema},
		{`["shop.*", "crm.*"]`, mapping.FlatManySchemas},
		{`["sh*.orders"]`, mapping.FlatManySchemas},
		{`["*"]`, mapping.FlatManySchemas},
		{`["!shop.x"]`, mapping.FlatManySchemas},
	} {
		task := one(t, head+"reader: {plugin: mysql, config: {tables: "+tt.tables+"}}\nwriters: [{plugin: rdbms}]\n")
		if got := task.Naming(true); got != tt.want {
			t.Errorf("tables %s: naming %d, want %d", tt.tables, got, tt.want)
		}
		if got := task.Naming(false); got != mapping.SameNames {
			t.Errorf("tables %s with schemas at the target: naming %d, want %d", tt.tables, got, mapping.SameNames)
		}
	}
}

func TestPatterns(t *testing.T) {
	for _, tt := range []struct {
		patterns config.Patterns
		name     string
		want     bool
	}{
		{nil, "a.b", true},
		{config.Patterns{"a.*"}, "a.b", true},
		{config.Patterns{"a.*"}, "ab.c", false},
		{config.Patterns{"a.*", "!a.tmp_*"}, "a.tmp_1", false},
		{config.Patterns{"!a.tmp_*", "a.*"}, "a.tmp_1", false},
		{config.Patterns{"!a.tmp_*"}, "b.c", true},
	} {
		if got := tt.patterns.Match(tt.name); got != tt.want {
			t.Errorf("%q match %s: %v, want %v", tt.patterns, tt.name, got, tt.want)
		}
	}
}

// TestFull reads a file with everything in it.
func TestFull(t *testing.T) {
	tasks, err := config.Load("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	task := tasks[0]
	if got := task.Writers[0].Mappings[0]; got.To != "public.orders" || got.Rename["cust"] != "customer_id" || got.Exclude[0] != "note" {
		t.Errorf("mapping = %+v", got)
	}
	if !task.Writers[0].DeadLetter || task.Writers[1].DeadLetter || task.Writers[1].Name != "rdbms" {
		t.Errorf("writers = %+v", task.Writers)
	}
	if got, want := string(task.Writers[2].Config.JSON()), `{"url":"sqlite://out.db"}`; got != want {
		t.Errorf("aliased config = %s, want %s", got, want)
	}
	if tr := task.Transforms[0]; len(tr.Rules) != 1 || tr.Rules[0].From != "shop.orders" {
		t.Errorf("built-in filter = %+v", tr)
	}
	if tr := task.Transforms[1]; tr.Rules != nil || tr.Plugin.String() != "mask@1.0.0" {
		t.Errorf("plugin transform = %+v", tr)
	}
}

// TestSpec: each document keeps its own text.
func TestSpec(t *testing.T) {
	a := head + "reader: {plugin: mysql}\nwriters: [{plugin: rdbms}]\n"
	b := strings.Replace(a, "task: t", "task: u", 1)
	tasks, err := config.Parse("x.yaml", []byte("---\n"+a+"---\n"+b))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{a, b}, []string{tasks[0].Spec, tasks[1].Spec}); d != "" {
		t.Errorf("texts (-want +got):\n%s", d)
	}
	if again, err := config.Parse("store", []byte(tasks[1].Spec)); err != nil || again[0].Name != "u" {
		t.Errorf("the stored text reads as %v, %v", again, err)
	}
}
