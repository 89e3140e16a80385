package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/host/mapping"
)

// What keys hold, for messages.
const (
	wantsName     = "a name of 1 to 128 characters a-z, 0-9 and -"
	wantsPlugin   = "a plugin as name or name@1.2.3"
	wantsPatterns = `table patterns such as "shop.*" or "!shop.tmp_*"`
)

func (d *decoder) task(n *node) *Task {
	t := &Task{Place: n.place, Group: "default"}
	if !d.fields(n, "", "apiVersion", "task", "group", "reader", "transforms", "writers") {
		return t
	}
	if v := d.need(n, "", "apiVersion", APIVersion); v != nil && (v.kind != textKind || v.text != APIVersion) {
		d.wrong(v, "apiVersion", APIVersion)
	}
	if v := d.need(n, "", "task", wantsName); v != nil {
		if t.Name, t.Place = v.text, v.place; v.kind != textKind || !taskName.MatchString(v.text) {
			d.wrong(v, "task", wantsName)
		}
	}
	if g, at := d.text(n, "", "group", wantsName); g != "" {
		if t.Group = g; !taskName.MatchString(g) {
			d.add(at, "group", "wrong value", strconv.Quote(g), wantsName)
		}
	}
	if v := d.need(n, "", "reader", "a reader with plugin and config"); v != nil && d.fields(v, "reader", "plugin", "config") {
		t.Reader = d.connector(v, "reader")
	}
	d.transforms(n, t)
	d.writers(n, t)
	return t
}

func (d *decoder) connector(n *node, path string) Connector {
	c := Connector{Config: Block{root: &node{kind: mapKind, place: n.place}, path: under(path, "config")}}
	if v := d.need(n, path, "plugin", wantsPlugin); v != nil {
		c.Plugin.Place = v.place
		name, ver, versioned := strings.Cut(v.text, "@")
		if v.kind != textKind || !pluginName.MatchString(name) || versioned && !version.MatchString(ver) {
			d.wrong(v, under(path, "plugin"), wantsPlugin)
		}
		c.Plugin.Name, c.Plugin.Version = name, ver
	}
	if k := n.get("config"); k != nil && k.value.kind != nullKind {
		if k.value.kind != mapKind {
			d.wrong(k.value, c.Config.path, "a mapping of the plugin's options")
		} else {
			c.Config.root = k.value
			d.problems = append(d.problems, c.Config.checkReferences()...)
		}
	}
	return c
}

func (d *decoder) transforms(n *node, t *Task) {
	k := n.get("transforms")
	if k == nil || k.value.kind == nullKind {
		return
	}
	if k.value.kind != listKind {
		d.wrong(k.value, "transforms", "a list of transforms")
		return
	}
	renamed := false
	for i, e := range k.value.list {
		path := item("transforms", i)
		if !d.fields(e, path, "plugin", "tables", "config") {
			continue
		}
		tr := Transform{Connector: d.connector(e, path)}
		tr.Name = fmt.Sprintf("%d-%s", i+1, tr.Plugin.Name)
		tr.Tables = d.patterns(e, path, "tables")
		if !renamed {
			d.reach(e.get("tables"), under(path, "tables"), t.Sources())
		}
		if tr.Plugin.Version == "" {
			d.builtin(&tr)
		}
		renamed = renamed || tr.Plugin.Name != Filter && tr.Plugin.Name != Columns
		t.Transforms = append(t.Transforms, tr)
	}
}

func (d *decoder) patterns(n *node, path, name string) Patterns {
	p := Patterns(d.texts(n, path, name, wantsPatterns))
	for _, e := range p {
		if _, err := mapping.New([]mapping.Rule{{From: strings.TrimPrefix(e, "!")}}, mapping.SameNames); err != nil {
			d.wrong(n.get(name).value, under(path, name), wantsPatterns)
		}
	}
	return p
}

// reach reports patterns that no table of the reader's can match.
func (d *decoder) reach(k *key, path string, sources Patterns) {
	if k == nil || len(sources) == 0 {
		return
	}
	check := func(n *node, path string) {
		if n.kind == textKind && !strings.HasPrefix(n.text, "!") && !sources.reach(n.text) {
			d.add(n.place, path, "refers to nothing that the reader reads", strconv.Quote(n.text), "a table among "+strings.Join(sources, ", "))
		}
	}
	check(k.value, path)
	for i, e := range k.value.list {
		check(e, item(path, i))
	}
}

// builtin reads the options of a built-in transform; that of a plugin is left
// alone.
func (d *decoder) builtin(tr *Transform) {
	n, path := tr.Config.root, tr.Config.path
	var r mapping.Rule
	switch tr.Plugin.Name {
	case Filter:
		if !d.fields(n, path, "filter") {
			return
		}
		d.need(n, path, "filter", "an expression over the columns")
		r.Filter, _ = d.text(n, path, "filter", "an expression over the columns")
	case Rename:
		if !d.fields(n, path, "to", "columns") {
			return
		}
		r.To, _ = d.text(n, path, "to", wantsTarget)
		r.Rename = d.table(n, path, "columns", "a mapping of old to new column names")
		if r.To == "" && len(r.Rename) == 0 {
			d.add(n.place, path, "nothing to rename", "", "to, columns or both")
		}
	case Columns:
		if !d.fields(n, path, "include", "exclude", "set") {
			return
		}
		r.Include = d.texts(n, path, "include", "column names")
		r.Exclude = d.texts(n, path, "exclude", "column names")
		r.Set = d.added(n, path)
	default:
		return
	}
	d.rule(n, path, r)
	tr.Rules = tr.Tables.rules(r)
}

const wantsTarget = "a table name, in which {schema} and {table} stand for the old ones"

// added reads the columns that a mapping adds: a text, or value, expr, type, key.
func (d *decoder) added(n *node, path string) map[string]mapping.Column {
	k := n.get("set")
	if k == nil {
		return nil
	}
	path = under(path, "set")
	if k.value.kind != mapKind {
		d.wrong(k.value, path, "a mapping of new column names to texts, or to value, expr, type and key")
		return nil
	}
	out := map[string]mapping.Column{}
	for _, e := range k.value.keys {
		at := under(path, e.name)
		if v, ok := e.value.scalar(); ok {
			out[e.name] = mapping.Column{Value: v, Type: map[kind]string{boolKind: "bool", intKind: "int64", floatKind: "float64"}[e.value.kind]}
			continue
		}
		if !d.fields(e.value, at, "value", "expr", "type", "key") {
			continue
		}
		var c mapping.Column
		if k := e.value.get("value"); k != nil {
			var ok bool
			if c.Value, ok = k.value.scalar(); !ok {
				d.wrong(k.value, under(at, "value"), "a text or number; {schema}, {table} and {1} stand for parts of the table's name")
			}
		}
		c.Expr, _ = d.text(e.value, at, "expr", "an expression over the columns")
		c.Type, _ = d.text(e.value, at, "type", "a type such as int64, decimal(12,2) or string(40)")
		if k := e.value.get("key"); k != nil {
			if k.value.kind != boolKind {
				d.wrong(k.value, under(at, "key"), "true or false")
			}
			c.Key = k.value.text == "true"
		}
		if c.Value == "" && c.Expr == "" {
			d.add(e.value.place, at, "nothing gives the column a value", "", "value or expr")
			continue
		}
		out[e.name] = c
	}
	return out
}

// rule reports what the mapping package finds wrong with a rule.
func (d *decoder) rule(n *node, path string, r mapping.Rule) {
	_, err := mapping.New([]mapping.Rule{r}, mapping.SameNames)
	if err == nil {
		return
	}
	at := n.place
	if k := n.get("filter"); k != nil {
		at, path = k.value.place, under(path, "filter")
	}
	message, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "rule 1: "), "\n") // expr draws a picture below
	d.add(at, path, message, "", "")
}

func (d *decoder) writers(n *node, t *Task) {
	v := d.need(n, "", "writers", "a list of one or more writers")
	if v == nil {
		return
	}
	if v.kind != listKind || len(v.list) == 0 {
		d.wrong(v, "writers", "a list of one or more writers")
		return
	}
	names := map[string]Place{}
	for i, e := range v.list {
		path := item("writers", i)
		if !d.fields(e, path, "name", "plugin", "config", "mappings", "onError") {
			continue
		}
		w := Writer{Connector: d.connector(e, path)}
		var at Place
		w.Name, at = d.text(e, path, "name", "a name of 1 to 64 letters, digits, _ and -")
		if w.Name == "" {
			w.Name = w.Plugin.Name
		}
		if !writerName.MatchString(w.Name) && e.get("name") != nil {
			d.add(at, under(path, "name"), "wrong value", strconv.Quote(w.Name), "a name of 1 to 64 letters, digits, _ and -")
		}
		if was, twice := names[w.Name]; twice {
			d.add(at, under(path, "name"), "writer is there twice", strconv.Quote(w.Name), fmt.Sprintf("another name than the writer of line %d", was.Line))
		}
		names[w.Name] = at
		w.DeadLetter = d.oneOf(e, path, "onError", "stop", "dead-letter") == "dead-letter"
		d.mappings(e, path, t, &w)
		t.Writers = append(t.Writers, w)
	}
}

func (d *decoder) mappings(n *node, path string, t *Task, w *Writer) {
	k := n.get("mappings")
	if k == nil || k.value.kind == nullKind {
		return
	}
	path = under(path, "mappings")
	if k.value.kind != listKind {
		d.wrong(k.value, path, "a list of mappings")
		return
	}
	names := true // tables still have the names that the reader gave them
	for _, tr := range t.Transforms {
		names = names && tr.Rules != nil && tr.Plugin.Name != Rename
	}
	seen := map[string]Place{}
	for i, e := range k.value.list {
		at := item(path, i)
		if !d.fields(e, at, "from", "to", "columns", "filter", "set", "case", "writePriority") {
			continue
		}
		r := mapping.Rule{Set: d.added(e, at)}
		d.need(e, at, "from", `a table such as "shop.orders", or a pattern`)
		var place Place
		r.From, place = d.text(e, at, "from", `a table such as "shop.orders", or a pattern`)
		if names {
			d.reach(e.get("from"), under(at, "from"), t.Sources())
		}
		r.To, _ = d.text(e, at, "to", wantsTarget)
		if was, twice := seen[r.From+"\x00"+r.To]; twice && r.From != "" {
			d.add(place, under(at, "from"), "mapping is there twice", strconv.Quote(r.From), fmt.Sprintf("another target than the mapping of line %d has", was.Line))
		}
		seen[r.From+"\x00"+r.To] = place
		if c := d.oneOf(e, at, "case", "keep", string(mapping.LowerCase), string(mapping.UpperCase)); c != "keep" {
			r.Case = mapping.Case(c)
		}
		r.Filter, _ = d.text(e, at, "filter", "an expression over the columns")
		if c := e.get("columns"); c != nil && d.fields(c.value, under(at, "columns"), "include", "exclude", "rename") {
			in := under(at, "columns")
			r.Include = d.texts(c.value, in, "include", "column names")
			r.Exclude = d.texts(c.value, in, "exclude", "column names")
			r.Rename = d.table(c.value, in, "rename", "a mapping of old to new column names")
		}
		if p := e.get("writePriority"); p != nil {
			d.add(p.place, under(at, "writePriority"), "not in this version", p.value.describe(), "no such key")
		}
		d.rule(e, at, r)
		w.Mappings = append(w.Mappings, r)
	}
}
