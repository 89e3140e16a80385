package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/datalink-go/datalink"

// listed is a package as go list prints it.
type listed struct {
	ImportPath string
	Standard   bool
	Deps       []string // all that is linked with it
}

// rule says what the packages of a folder may link. The longest folder that fits
// a package is its rule.
type rule struct {
	folder string
	module []string // folders of this module, itself among them; "" = all
	others bool     // modules of others
	never  []string // import paths that begin so, whoever brings them in
}

var rpc = []string{"google.golang.org/grpc", "google.golang.org/protobuf", "github.com/hashicorp/go-plugin"}

// The table of architecture: what an author of a connector imports is the standard
// library and the SDK itself, and only serve and proto link gRPC.
var table = []rule{
	{folder: "sdk", module: []string{"sdk"}},
	{folder: "sdk/conformance", module: []string{"sdk"}, others: true, never: rpc},
	{folder: "sdk/serve", module: []string{"sdk"}, others: true},
	{folder: "sdk/proto", module: []string{"sdk"}, others: true},
	{folder: "plugins", module: []string{"sdk", "plugins"}, others: true},
	{folder: "coordination", module: []string{"coordination"}, others: true, never: rpc},
	{folder: "registry", module: []string{"registry", "sdk/manifest"}, others: true, never: rpc},
	{folder: "examples", module: []string{"sdk", "examples"}, others: true},
	{folder: "host", module: []string{""}, others: true},
}

func under(path, folder string) bool {
	return folder == "" || path == folder || strings.HasPrefix(path, folder+"/")
}

// folderOf returns the package's place in the module.
func folderOf(path string) (string, bool) {
	if path == module {
		return "", true
	}
	return strings.CutPrefix(path, module+"/")
}

// broken lists the imports of p that the table does not allow.
func broken(p *listed, standard map[string]bool) []string {
	place, ours := folderOf(p.ImportPath)
	if !ours {
		return nil
	}
	var r *rule
	for i := range table {
		if under(place, table[i].folder) && (r == nil || len(table[i].folder) > len(r.folder)) {
			r = &table[i]
		}
	}
	if r == nil {
		return []string{"the folder is not in the table"}
	}
	var out []string
	for _, dep := range p.Deps {
		folder, ours := folderOf(dep)
		switch {
		case standard[dep]:
		case slices.ContainsFunc(r.never, func(n string) bool { return under(dep, n) }):
			out = append(out, dep+" is linked")
		case ours && !slices.ContainsFunc(r.module, func(f string) bool { return under(folder, f) }):
			out = append(out, fmt.Sprintf("%s is linked, allowed are %q", dep, r.module))
		case !ours && !r.others:
			out = append(out, dep+" is linked, allowed is the standard library")
		}
	}
	// A connector's own folder is closed to other connectors; what they share is in
	// plugins/internal.
	if connector, ok := strings.CutPrefix(place, "plugins/"); ok {
		own := "plugins/" + strings.Split(connector, "/")[0]
		for _, dep := range p.Deps {
			if folder, ours := folderOf(dep); ours && under(folder, "plugins") && !under(folder, own) && !under(folder, "plugins/internal") {
				out = append(out, dep+" of another connector is linked")
			}
		}
	}
	return out
}

func list(t *testing.T, env []string, patterns ...string) []listed {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-deps", "-json=ImportPath,Standard,Deps"}, patterns...)...)
	cmd.Dir, cmd.Env = "..", append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []listed
	d := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func standardOf(all []listed) map[string]bool {
	out := map[string]bool{"C": true}
	for _, p := range all {
		out[p.ImportPath] = p.Standard
	}
	return out
}

func TestImports(t *testing.T) {
	all := list(t, nil, "./...")
	standard := standardOf(all)
	for i := range all {
		for _, b := range broken(&all[i], standard) {
			t.Errorf("%s: %s", all[i].ImportPath, b)
		}
	}
}

// TestGuestImports looks at what a WASM module links, which is not what the same
// packages link on this machine.
func TestGuestImports(t *testing.T) {
	all := list(t, []string{"GOOS=wasip1", "GOARCH=wasm"}, "./sdk/wasm", "./sdk/batch", "./sdk/wire", "./sdk/manifest", "./sdk")
	standard := standardOf(all)
	for i := range all {
		for _, b := range broken(&all[i], standard) {
			t.Errorf("%s: %s", all[i].ImportPath, b)
		}
	}
}

func TestBrokenImportsAreSeen(t *testing.T) {
	standard := map[string]bool{"fmt": true}
	for _, tt := range []struct {
		path string
		dep  string
		want string
	}{
		{"sdk/batch", "google.golang.org/protobuf/proto", "standard library"},
		{"sdk", module + "/host/pipeline", "allowed are"},
		{"sdk/wasm", "google.golang.org/grpc", "standard library"},
		{"sdk/conformance/reference", "google.golang.org/grpc", "is linked"},
		{"sdk/serve", module + "/host/supervisor", "allowed are"},
		{"plugins/mysql", module + "/host/pipeline", "allowed are"},
		{"plugins/mysql/internal/rows", module + "/plugins/rdbms", "another connector"},
		{"registry", module + "/sdk", "allowed are"},
		{"registry", module + "/sdk/manifest", ""},
		{"coordination/embedded", module + "/host/task", "allowed are"},
		{"examples/mask-go", module + "/host", "allowed are"},
		{"newfolder", "fmt", "not in the table"},
		{"sdk/serve/link", "google.golang.org/grpc", ""},
		{"plugins/mysql/internal/rows", module + "/plugins/internal/charset", ""},
		{"plugins/internal/charset", module + "/plugins/mysql/internal/rows", "another connector"},
		{"plugins/mysql", "github.com/go-mysql-org/go-mysql/replication", ""},
		{"host/pipeline", module + "/sdk/wire", ""},
		{"sdk/batch", "fmt", ""},
	} {
		got := strings.Join(broken(&listed{ImportPath: module + "/" + tt.path, Deps: []string{tt.dep}}, standard), "; ")
		if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s links %s: got %q, want %q", tt.path, tt.dep, got, tt.want)
		}
	}
}
