package readme

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/manifest"
)

// Check fails the test where the file's option tables are not those of the
// plugin's roles. With UPDATE_README=1 in the environment it writes them.
func Check(t testing.TB, file string, p *sdk.Plugin) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, role := range []manifest.Role{manifest.Reader, manifest.Writer, manifest.Transform} {
		f := p.Factory(role)
		if f == nil {
			continue
		}
		if text, err = put(text, string(role), f.ConfigTable()); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	switch {
	case text == string(data):
	case os.Getenv("UPDATE_README") != "":
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the option tables of %s are not those of the code; UPDATE_README=1 go test rewrites them", file)
	}
}

// put replaces what stands between the marks of a role.
func put(text, role, table string) (string, error) {
	begin, end := "<!-- options: "+role+" -->\n", "<!-- end -->"
	before, rest, ok := strings.Cut(text, begin)
	if !ok {
		return "", fmt.Errorf("no line %q", strings.TrimSpace(begin))
	}
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		return "", fmt.Errorf("no line %q behind %q", end, strings.TrimSpace(begin))
	}
	return before + begin + "\n" + table + "\n" + end + after, nil
}
