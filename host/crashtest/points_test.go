package crashtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// failPoints returns the names of all fail points in the source.
func failPoints(t *testing.T) []string {
	t.Helper()
	var out []string
	fset := token.NewFileSet()
	for _, folder := range []string{"sdk", "host", "plugins"} {
		err := filepath.WalkDir(filepath.Join(built.root, folder), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "testdata":
				return fs.SkipDir
			case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			f, err := parser.ParseFile(fset, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				sel, ok := call.Fun.(*ast.SelectorExpr)
				if !ok || sel.Sel.Name != "Hit" {
					return true
				}
				if pkg, ok := sel.X.(*ast.Ident); !ok || pkg.Name != "failpoint" {
					return true
				}
				lit, ok := call.Args[0].(*ast.BasicLit)
				if !ok {
					t.Errorf("%s: the name of a fail point is not a literal, so that it cannot be listed", fset.Position(call.Pos()))
					return true
				}
				name, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Error(err)
				}
				if !strings.HasPrefix(name, "hbase.") { // those need a server: plugins/hbase kills at them
					out = append(out, name)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ofHost reports whether a fail point kills the daemon; others kill one of its
// children.
func ofHost(name string) bool {
	return strings.HasPrefix(name, "task.") || strings.HasPrefix(name, "pipeline.")
}

// TestFailPoints kills the process that comes by each fail point, the first time
// and a later one. A daemon that was killed is started again; what it started has
// to recover by itself. In the end the target is equal to the source.
func TestFailPoints(t *testing.T) {
	src := newModel(2)
	src.transactions(120)
	src.large(500)
	src.transactions(120)
	log := filepath.Join(t.TempDir(), "crash.000001")
	if err := src.write(log); err != nil {
		t.Fatal(err)
	}
	want := src.rows(true)
	s := spec{files: log, tables: "crash.*", mask: true, writers: []writer{{name: "target"}}}
	names := failPoints(t)
	if len(names) < 40 {
		t.Fatalf("found %d fail points, expected those of all folders: %q", len(names), names)
	}
	for name := range elsewhere {
		if !slices.Contains(names, name) {
			t.Errorf("fail point %s is listed and does not exist", name)
		}
	}
	for _, name := range names {
		counts := []string{"1", "4"}
		if strings.HasPrefix(name, "task.") {
			counts = counts[:1] // an execution comes by once
		}
		for _, count := range counts {
			t.Run(name+":"+count, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, s)
				c, special := elsewhere[name]
				if !special {
					c.run = func(r *rig, point string) *process { return r.run("DATALINK_FAILPOINT=" + point) }
				}
				p := c.run(r, name+":"+count)
				code := p.wait()
				r.after(p)
				died := code == killed || strings.Contains(p.err.String(), "signal: killed") || strings.Contains(p.err.String(), "plugin did not close as it should")
				switch {
				case !died && count == "1":
					t.Errorf("nothing was killed: no process came by\n%s", p.tail())
				case code == killed && !ofHost(name):
					t.Errorf("the daemon was killed, expected one of its children")
				case code != killed && died && ofHost(name):
					t.Errorf("a child was killed, expected the daemon")
				case code != killed && code != c.code:
					t.Errorf("run ended with %d, want %d\n%s", code, c.code, p.tail())
				}
				r.finish(want)
			})
		}
	}
}

// elsewhere are the fail points that a run to the end of a source does not pass.
var elsewhere = map[string]detour{
	"task.stopping": {interrupted, func(r *rig, point string) *process {
		p := r.run("DATALINK_FAILPOINT=" + point + ",target@delivery.begin:3:stop")
		w := p.stopped("rdbms")
		_ = p.cmd.Process.Signal(os.Interrupt)
		resume(w)
		return p
	}},
	"task.raised": {0, func(r *rig, point string) *process { // the store goes back, the target does not
		old := filepath.Join(r.t.TempDir(), "old")
		r.ends(r.run(), 0)
		copyDir(r.t, r.data, old)
		r.ends(r.run(), 0)
		replaceDir(r.t, old, r.data)
		return r.run("DATALINK_FAILPOINT=" + point)
	}},
}

// detour is a way to a fail point, and the exit code where it is not reached.
type detour struct {
	code int
	run  func(r *rig, point string) *process
}
