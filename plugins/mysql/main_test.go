package main

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/plugins/mysql/internal/reader"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/manifest"
)

var update = flag.Bool("update", false, "write the option table into README.md")

// TestREADME holds the option table to the configuration.
func TestREADME(t *testing.T) {
	const begin, end = "<!-- options: begin -->\n", "<!-- options: end -->"
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	i, j := strings.Index(text, begin), strings.Index(text, end)
	if i < 0 || j < i {
		t.Fatal("README.md lacks the marks of the option table")
	}
	i += len(begin)
	want := sdk.ConfigTable(reflect.TypeFor[reader.Config]())
	if got := text[i:j]; got != want {
		if !*update {
			t.Fatalf("the option table is not that of the configuration; run go test -update\ngot:\n%s\nwant:\n%s", got, want)
		}
		if err := os.WriteFile("README.md", []byte(text[:i]+want+text[j:]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEveryCase holds the table of cases to the tests: each number is the name of
// one, or begins the name of a subtest.
func TestEveryCase(t *testing.T) {
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(data), "<!-- cases: begin -->")
	if table, _, _ = strings.Cut(table, "<!-- cases: end -->"); !ok {
		t.Fatal("README.md lacks the marks of the table of cases")
	}
	var tests strings.Builder
	for _, pattern := range []string{"internal/*/*_test.go", "../../host/endtoend/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(text)
		}
	}
	numbers := regexp.MustCompile(`\bB\d{3}\b`).FindAllString(table, -1)
	for _, n := range numbers {
		if !regexp.MustCompile(`"` + n + `\b|func Test` + n + `[A-Z]`).MatchString(tests.String()) {
			t.Errorf("no test is named %s", n)
		}
	}
	if len(numbers) < 60 {
		t.Errorf("the table has %d cases", len(numbers))
	}
}

func TestPlugin(t *testing.T) {
	p := plugin()
	m := p.Manifest("process")
	if _, ok := m.Roles[manifest.Reader]; !ok || m.Name != "mysql" {
		t.Errorf("manifest %+v", m)
	}
	for _, c := range []struct{ config, want string }{
		{`{"files": "x.000001"}`, ""},
		{`{}`, "files: nothing to read is named"},
		{`{"address": "127.0.0.1:3306", "user": "u"}`, ""},
		{`{"address": "127.0.0.1:3306"}`, "user: nothing to log in with"},
		{`{"address": "127.0.0.1:3306", "user": "u", "files": "x"}`, "address: a task reads from servers or from files"},
		{`{"address": "h", "user": "u", "start": "snapshot"}`, ""},
		{`{"address": "h", "user": "u", "start": "position:3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:9"}`, ""},
		{`{"address": "h", "user": "u", "start": "position:0-1-5,1-2-7"}`, ""},
		{`{"address": "h", "user": "u", "start": "position:binlog.000003:4"}`, ""},
		{`{"address": "h", "user": "u", "start": "position:what"}`, "start: "},
		{`{"address": "h", "user": "u", "tls": {"mode": "required", "ca": "f"}}`, "tls.ca: mode required does not look"},
		{`{"files": "x", "start": "yesterday"}`, "start: unknown start"},
		{`{"files": "x", "start": "snapshot"}`, "start: a snapshot needs a server"},
		{`{"files": "x", "tables": ["shop"]}`, "tables[0]: not of the form database.table"},
		{`{"files": "x", "ddl": "maybe"}`, "ddl"},
	} {
		var cfg reader.Config
		var all []string
		for _, p := range sdk.ParseConfig([]byte(c.config), &cfg) {
			all = append(all, p.String())
		}
		got := strings.Join(all, "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.config, got, c.want)
		}
	}
}
