package snapshot

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/datalink-go/datalink/plugins/mysql/internal/gtid"
	"github.com/datalink-go/datalink/sdk/batch"
)

func union(text string) string {
	s, err := gtid.ParseSet(text)
	if err != nil {
		return text
	}
	return s.String()
}

// model is a target: the rows of each table, by key; those of tables without one
// in a list.
type model struct {
	reg    *batch.Registry
	tables map[string]map[string]string
	lists  map[string][]string
	back   []string // rows that went back to an older version
	seen   map[string]bool
	ends   map[string]bool
	reads  int
	ahead  int // changes of rows that were newer at the target already
	states []batch.StateItem
	ranges []batch.KeyRange
	schema map[string]map[uint32]*batch.Schema
}

func newModel() *model {
	return &model{reg: batch.NewRegistry(), tables: map[string]map[string]string{}, lists: map[string][]string{}, seen: map[string]bool{}, ends: map[string]bool{}, schema: map[string]map[uint32]*batch.Schema{}}
}

func (m *model) clear(table string) { m.tables[table], m.lists[table] = nil, nil }

func (m *model) block(data []byte) error {
	data = bytes.Clone(data)
	var b batch.Block
	if err := b.Decode(data, m.reg, batch.Limits{}); err != nil {
		return err
	}
	for _, tx := range b.Txs {
		if tx.Ends {
			if m.ends[string(tx.End)] {
				return fmt.Errorf("two entries end at %s", tx.End)
			}
			m.ends[string(tx.End)] = true
		}
		for i := tx.First; i < tx.First+tx.Count; i++ {
			var e batch.Event
			if err := b.Event(i, &e); err != nil {
				return err
			}
			if err := m.apply(&e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *model) apply(e *batch.Event) error {
	if e.Kind == batch.State {
		it, err := e.StateItem()
		if err != nil {
			return err
		}
		c := *it
		c.Value = bytes.Clone(it.Value)
		m.states = append(m.states, c)
		return nil
	}
	if e.Schema == nil {
		return nil
	}
	name := e.Schema.Name()
	if m.schema[name] == nil {
		m.schema[name] = map[uint32]*batch.Schema{}
	}
	m.schema[name][e.Schema.ID] = e.Schema
	tab := m.tables[name]
	if tab == nil {
		tab = map[string]string{}
		m.tables[name] = tab
	}
	switch e.Kind {
	case batch.Truncate:
		m.clear(name)
		return nil
	case batch.Range:
		r, err := e.KeyRange()
		if err != nil {
			return err
		}
		m.ranges = append(m.ranges, *r)
		return nil
	}
	var before, after string
	var err error
	if !e.Before.IsZero() {
		if before, err = rowText(e.Before); err != nil {
			return err
		}
	}
	if !e.After.IsZero() {
		if after, err = rowText(e.After); err != nil {
			return err
		}
	}
	if len(e.Schema.Key) == 0 {
		l := m.lists[name]
		if e.Kind == batch.Update || e.Kind == batch.Delete {
			i := slices.Index(l, before)
			if i < 0 {
				return fmt.Errorf("%s of %s: no row %s", e.Kind, name, before)
			}
			l = slices.Delete(l, i, i+1)
		}
		if e.Kind != batch.Delete {
			l = append(l, after)
		}
		m.lists[name] = l
		return nil
	}
	key := string(e.Key)
	if e.Kind == batch.Read {
		m.reads++
	}
	if e.Kind == batch.Delete {
		delete(tab, key)
		m.seen[name+key] = true
		return nil
	}
	if e.OldKey != nil {
		delete(tab, string(e.OldKey))
	}
	if e.Kind == batch.Update && !e.After.Complete() {
		old, ok := tab[key]
		if !ok {
			return fmt.Errorf("update of %s: no row %x", name, key)
		}
		a, o := strings.Split(after, "|"), strings.Split(old, "|")
		for i := range a {
			if a[i] == "unchanged" {
				a[i] = o[i]
			}
		}
		after = strings.Join(a, "|")
	}
	if e.Kind == batch.Update && before != "" {
		m.strict(name, key, before)
	}
	// A version that goes back was placed wrongly; a key that was deleted begins anew.
	if old, ok := tab[key]; ok && e.Kind != batch.Insert && version(after) < version(old) {
		m.back = append(m.back, fmt.Sprintf("%s of %s: %s after %s", e.Kind, name, after, old))
	}
	tab[key] = after
	return nil
}

// version is the number in the last column.
func version(row string) int {
	var v int
	_, _ = fmt.Sscanf(row[strings.LastIndexByte(row, '|')+1:], "%d", &v)
	return v
}

func rowText(im batch.Image) (string, error) {
	v, err := im.Values(nil)
	if err != nil {
		return "", err
	}
	var parts []string
	for i := range v {
		parts = append(parts, valueText(&im.Schema().Columns[i], &v[i]))
	}
	return strings.Join(parts, "|"), nil
}

func valueText(c *batch.Column, v *batch.Value) string {
	if v.State == batch.Unchanged || v.State == batch.Absent {
		return "unchanged"
	}
	if !v.Has() {
		return "NULL"
	}
	if name, raw, ok := v.Raw(); ok {
		return fmt.Sprintf("%s:%x", name, raw)
	}
	text, ok := batch.AppendText(nil, c, v)
	if !ok {
		return fmt.Sprintf("%x", v.Bytes())
	}
	return string(text)
}

// content is the rows of a table, in the order of their text.
func (m *model) content(name string) []string {
	out := slices.Clone(m.lists[name])
	for _, r := range m.tables[name] {
		out = append(out, r)
	}
	slices.Sort(out)
	return out
}
