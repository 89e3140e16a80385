package wire

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/sdk/batch"
)

// The tables of PROTOCOL.md are compared with the code, so that the page stays
// enough to write a decoder.

func page(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// section returns the text under a heading of the second level.
func section(t *testing.T, name string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page(t), "\n## "+name+"\n")
	if !ok {
		t.Fatalf("PROTOCOL.md has no section %s", name)
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	return text
}

func TestPageMethods(t *testing.T) {
	var want []string
	for _, m := range Methods() {
		name := func(f func() Message) string { return reflect.TypeOf(f()).Elem().Name() }
		stream := ""
		if m.Stream {
			stream = "stream "
		}
		want = append(want, fmt.Sprintf("| %d | %s | %s%s → %s%s |", m.ID, m.Name, stream, name(m.NewRequest), stream, name(m.NewReply)))
	}
	got := regexp.MustCompile(`(?m)^\| \d+ \| \w+ \| [^|]+ \|`).FindAllString(section(t, "Methods"), -1)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("methods (-code +page)\n%s", d)
	}
}

func TestPageErrors(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "../errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if id, ok := v.Type.(*ast.Ident); ok && id.Name == "Code" {
			for _, e := range v.Values {
				code, err := strconv.Unquote(e.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, code)
			}
		}
		return true
	})
	var got []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(section(t, "Errors"), -1) {
		got = append(got, m[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) < 10 {
		t.Fatalf("%d codes found in errors.go", len(want))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("codes (-code +page)\n%s", d)
	}
}

func TestPageTypesAndKinds(t *testing.T) {
	var want []string
	for typ := batch.Bool; typ.Valid(); typ++ {
		want = append(want, typ.String())
	}
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^\| \d+(?:–\d+)? \| ([a-z0-9 ]+) \|`).FindAllStringSubmatch(section(t, "Values"), -1) {
		got = append(got, strings.Fields(m[1])...)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("types (-code +page)\n%s", d)
	}
	want, got = nil, nil
	for k := batch.Insert; k.Valid(); k++ {
		want = append(want, fmt.Sprintf("| %d | %s |", k, k))
	}
	got = regexp.MustCompile(`(?m)^\| \d+ \| [a-z]+ \|`).FindAllString(section(t, "Events"), -1)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("kinds (-code +page)\n%s", d)
	}
}
