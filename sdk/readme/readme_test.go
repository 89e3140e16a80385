package readme

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

type transform struct{}

func (transform) Check(context.Context) ([]sdk.Finding, error) { return nil, nil }
func (transform) Close(context.Context) error                  { return nil }
func (transform) Schema(context.Context, *batch.Schema) (*batch.Schema, error) {
	return nil, nil
}

func (transform) Apply(context.Context, *batch.Event, *batch.Schema, *batch.Builder) error {
	return nil
}

// failures is a testing.TB that notes failures.
type failures struct {
	testing.TB
	said []string
}

func (f *failures) Helper() {}
func (f *failures) Errorf(format string, a ...any) {
	f.said = append(f.said, fmt.Sprintf(format, a...))
}
func (f *failures) Fatalf(format string, a ...any) { f.Errorf(format, a...); panic(f) }
func (f *failures) Fatal(a ...any)                 { f.Fatalf("%s", fmt.Sprint(a...)) }
func check(file string, p *sdk.Plugin) (got string) {
	f := &failures{}
	defer func() {
		if r := recover(); r != nil && r != any(f) {
			panic(r)
		}
		got = strings.Join(f.said, "; ")
	}()
	Check(f, file, p)
	return ""
}

func TestCheck(t *testing.T) {
	type config struct {
		Columns sdk.Strings `config:"columns" doc:"Columns to mask." required:"true"`
	}
	p := &sdk.Plugin{Name: "x", Transform: sdk.TransformOf(func(sdk.Env, config) (transform, error) { return transform{}, nil })}
	file := filepath.Join(t.TempDir(), "README.md")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("# x\n")
	if got := check(file, p); !strings.Contains(got, "no line") {
		t.Errorf("README without marks: %q", got)
	}
	write("# x\n<!-- options: transform -->\nold\n<!-- end -->\ntail\n")
	if got := check(file, p); !strings.Contains(got, "UPDATE_README=1") {
		t.Errorf("old table: %q", got)
	}
	t.Setenv("UPDATE_README", "1")
	if got := check(file, p); got != "" {
		t.Errorf("update: %q", got)
	}
	t.Setenv("UPDATE_README", "")
	if got := check(file, p); got != "" {
		t.Errorf("after the update: %q", got)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(data); !strings.Contains(s, "| `columns` | text or list of text | required | Columns to mask. |") || !strings.HasSuffix(s, "tail\n") || strings.Contains(s, "old") {
		t.Errorf("README is now\n%s", s)
	}
}
