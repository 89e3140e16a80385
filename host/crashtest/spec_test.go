package crashtest

import (
	"fmt"
	"strings"
)

// spec is a task.
type spec struct {
	files   string
	tables  string
	mask    bool // crash.k.v
	writers []writer
}

type writer struct {
	name, path string
	options    string // more of its configuration, in YAML's flow style
	server     *server
}

func (s spec) yaml() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: datalink/v1\ntask: crash\nreader:\n  plugin: mysql\n  config: {files: [%q], tables: [\"%s\"]}\n", s.files, s.tables)
	if s.mask {
		fmt.Fprintf(&b, "transforms:\n  - plugin: mask-go\n    tables: [crash.k]\n    config: {columns: [crash.k.v], keep: %d}\n", kept)
	}
	b.WriteString("writers:\n")
	for _, w := range s.writers {
		options := w.options
		if options == "" {
			options = "keyless: append"
		}
		fmt.Fprintf(&b, "  - name: %s\n    plugin: rdbms\n    config: {url: %q, %s}\n", w.name, urlOf(w.path), options)
		if w.server != nil {
			fmt.Fprintf(&b, "    mappings: [{from: crash.*, to: %q}]\n", w.server.home(w.path)+".{table}")
		}
	}
	return []byte(b.String())
}
