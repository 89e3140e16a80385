package daemon

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/datalink-go/datalink/host/config"
	"github.com/datalink-go/datalink/registry"
	"github.com/datalink-go/datalink/sdk/manifest"
)

// Bundled are the connectors that lie beside the host's program. They are part of
// the installation: their digests were fixed when it was built.
type Bundled struct {
	Dir     string
	Digests map[string]string // SHA-256 by name
}

// ParseBundled reads the list that the build leaves in the program:
// NAME=SHA256,NAME=SHA256. Dir is where the files are.
func ParseBundled(dir, list string) (Bundled, error) {
	b := Bundled{Dir: dir, Digests: map[string]string{}}
	for _, e := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		name, sum, ok := strings.Cut(e, "=")
		if !ok || len(sum) != 64 {
			return b, fmt.Errorf("list of bundled connectors: found %q, expected NAME=SHA256", e)
		}
		b.Digests[name] = sum
	}
	return b, nil
}

// Names returns the bundled connectors, sorted.
func (b Bundled) Names() []string { return slices.Sorted(maps.Keys(b.Digests)) }

// Plugin is a plugin that can be run.
type Plugin struct {
	Name    string
	Version string // "" = the program's own, for bundled ones
	Kind    string // process or wasm
	Path    string
	SHA256  string
	Bundled bool
	// Claim is the manifest of the package, nil for bundled ones.
	Claim *manifest.Manifest
}

// Plugins finds plugins: those of plugins.lock, and the bundled ones.
type Plugins struct {
	Store   *registry.Store
	Bundled Bundled
}

// Find returns the plugin that a task names. What plugins.lock has comes before
// what is bundled. A bundled one has one version only, which is checked when it
// runs.
func (p Plugins) Find(ref config.Ref) (*Plugin, error) {
	in, err := p.Store.Resolve(ref.Name, ref.Version)
	switch {
	case err == nil:
		return &Plugin{
			Name: in.Name, Version: in.Version, Kind: in.Kind, Path: in.Path, SHA256: in.SHA256, Claim: in.Description,
		}, nil
	case !errors.Is(err, registry.ErrNotFound):
		return nil, err
	}
	if sum, ok := p.Bundled.Digests[ref.Name]; ok {
		path := filepath.Join(p.Bundled.Dir, ref.Name)
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("bundled connector %s: %w: unpack the installation again", ref.Name, err)
		}
		return &Plugin{Name: ref.Name, Version: ref.Version, Kind: "process", Path: path, SHA256: sum, Bundled: true}, nil
	}
	have := p.Bundled.Names()
	if len(have) == 0 {
		return nil, fmt.Errorf("%w; this build has no bundled connectors", err)
	}
	return nil, fmt.Errorf("%w; bundled are %s", err, strings.Join(have, ", "))
}

// isNull reports whether a writer is the built-in one that keeps nothing.
func isNull(ref config.Ref) bool { return ref.Name == "null" && ref.Version == "" }

// Missing reports the plugins of tasks that are not installed.
func (p Plugins) Missing(tasks []*config.Task) config.Problems {
	var out config.Problems
	look := func(path string, ref config.Ref) {
		if isNull(ref) && strings.HasPrefix(path, "writers") {
			return
		}
		if _, err := p.Find(ref); err != nil {
			out = append(out, ref.Problem(path+".plugin", err.Error(), "an installed plugin: datalink plugin install "+ref.String()+" --registry DIR"))
		}
	}
	for _, t := range tasks {
		look("reader", t.Reader.Plugin)
		for i, tr := range t.Transforms {
			if tr.Rules == nil {
				look(fmt.Sprintf("transforms[%d]", i), tr.Plugin)
			}
		}
		for i, w := range t.Writers {
			look(fmt.Sprintf("writers[%d]", i), w.Plugin)
		}
	}
	return out
}

// needs are what a worker must have to run a task, in the form of has. Bundled
// connectors belong to the installation and count by name: a newer installation
// may take the task over.
func (p Plugins) needs(t *config.Task) []string {
	var out []string
	add := func(ref config.Ref) {
		if isNull(ref) {
			return
		}
		found, err := p.Find(ref)
		if err != nil {
			return // refused elsewhere
		}
		need := found.Name
		if !found.Bundled {
			need += "@" + found.SHA256
		}
		if !slices.Contains(out, need) {
			out = append(out, need)
		}
	}
	add(t.Reader.Plugin)
	for _, tr := range t.Transforms {
		if tr.Rules == nil {
			add(tr.Plugin)
		}
	}
	for _, w := range t.Writers {
		add(w.Plugin)
	}
	slices.Sort(out)
	return out
}

// has are the plugins of this worker: by name, installed ones also by digest.
func (p Plugins) has() []string {
	out := p.Bundled.Names()
	if all, err := p.Store.List(); err == nil {
		for _, in := range all {
			out = append(out, in.Name, in.Name+"@"+in.SHA256)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
