package conformance

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/datalink-go/datalink/sdk/batch"
)

// Drawer chooses numbers: a pseudo-random generator or a property test.
type Drawer interface {
	// Int returns a number from lo to hi, both included.
	Int(lo, hi int) int
}

// The kit's tables. "parent" is referred to by "child"; "plain" changes keys at
// will; "list" has no key.
const (
	tabParent = iota
	tabChild
	tabPlain
	tabList
	tabCount
)

// Columns of all tables: id, u (a number, unique where the table has unique
// keys), v (text), p (refers to parent, in child alone).
const (
	colID = iota
	colU
	colV
	colP
)

// Schemas returns the tables that the kit writes to.
func Schemas() []*batch.Schema {
	column := func(name string, t batch.Type, native string) batch.Column {
		return batch.Column{Name: name, Type: t, Native: native, Flags: batch.Nullable}
	}
	make := func(id uint32, name string) *batch.Schema {
		return &batch.Schema{
			ID: id, Version: 1, Source: "kit", Table: "kit_" + name, Key: []int{colID}, PrimaryKey: true,
			Columns: []batch.Column{
				{Name: "id", Type: batch.Int32, Native: "int"}, column("u", batch.Int32, "int"), column("v", batch.String, "varchar(40)"),
			},
		}
	}
	parent, child, plain, list := make(1, "parent"), make(2, "child"), make(3, "plain"), make(4, "list")
	unique := []batch.Index{{Name: "u", Columns: []int{colU}}}
	parent.Uniques, child.Uniques = unique, unique
	child.Columns = append(child.Columns, column("p", batch.Int32, "int"))
	child.ForeignKeys = []batch.ForeignKey{{Name: "p", Columns: []int{colP}, RefTable: "kit_parent", RefColumns: []string{"id"}}}
	list.Key, list.PrimaryKey = nil, false
	return []*batch.Schema{parent, child, plain, list}
}

// value of a column: int, string, or nil for NULL.
type value any

type kitRow []value

func (r kitRow) text() string {
	words := make([]string, len(r))
	for i, v := range r {
		words[i] = text(v)
	}
	return strings.Join(words, "|")
}

func text(v value) string {
	if v == nil {
		return Null
	}
	return fmt.Sprint(v)
}

// kitEvent is one change.
type kitEvent struct {
	table         int
	kind          batch.Kind
	before, after kitRow // whole rows; images leave columns out where partial
	partial       bool
}

// kitTx is a source transaction. Tokens name what it depends on.
type kitTx struct {
	id     int
	events []kitEvent
	tokens map[string]bool
}

func (t *kitTx) tied(o *kitTx) bool {
	for k := range t.tokens {
		if o.tokens[k] {
			return true
		}
	}
	return false
}

// history makes transactions, and keeps the rows that they lead to.
type history struct {
	draw     Drawer
	opts     HistoryOptions
	rows     [tabCount]map[int]kitRow // by id; tabList by number
	txs      []*kitTx
	counter  int
	tx       *kitTx
	listNext int
}

// HistoryOptions say which changes a history has.
type HistoryOptions struct {
	Partial  bool // images that leave columns out
	Match    bool // updates and deletes of the table without a key
	Rekey    bool // changes of key
	Swap     bool // swaps of keys that a source checks at commit
	Truncate bool
	List     bool // the table without a key at all
	Keys     int  // ids are 1 to Keys
}

func newHistory(d Drawer, o HistoryOptions) *history {
	h := &history{draw: d, opts: o}
	for i := range h.rows {
		h.rows[i] = map[int]kitRow{}
	}
	return h
}

// grow appends n transactions.
func (h *history) grow(n int) {
	for range n {
		h.tx = &kitTx{id: len(h.txs) + 1, tokens: map[string]bool{}}
		for range h.draw.Int(1, 6) {
			h.change()
		}
		if len(h.tx.events) > 0 {
			h.txs = append(h.txs, h.tx)
		}
	}
}

func (h *history) fresh() string {
	h.counter++
	return fmt.Sprint("v", h.counter)
}

func (h *history) change() {
	t := h.draw.Int(0, tabCount-1)
	if t == tabList {
		h.list()
		return
	}
	ids := make([]int, 0, len(h.rows[t]))
	for id := range h.rows[t] {
		ids = append(ids, id)
	}
	sort.Ints(ids)
	free := h.draw.Int(1, h.opts.Keys)
	_, taken := h.rows[t][free]
	if len(ids) == 0 {
		h.insert(t, free)
		return
	}
	id := ids[h.draw.Int(0, len(ids)-1)]
	switch op := h.draw.Int(0, 9); {
	case op <= 2 && !taken:
		h.insert(t, free)
	case op <= 4:
		r := slices.Clone(h.rows[t][id])
		r[colV] = h.fresh()
		if h.draw.Int(0, 2) == 0 {
			r[colV] = nil
		}
		if t == tabChild && h.draw.Int(0, 2) == 0 {
			r[colP] = h.parent()
		}
		h.update(t, id, r)
	case op == 5:
		r := slices.Clone(h.rows[t][id])
		r[colU] = h.unique(t)
		h.update(t, id, r)
	case op == 6 && h.removable(t, id):
		h.remove(t, id)
	case op == 7 && t != tabPlain:
		h.rotate(t, ids, id)
	case op == 7 && h.opts.Swap:
		h.swap(ids, id)
	case op == 8 && h.opts.Rekey && !taken && h.removable(t, id):
		r := slices.Clone(h.rows[t][id])
		r[colID] = free
		h.update(t, id, r)
	case op == 9 && h.opts.Truncate && t == tabPlain && h.draw.Int(0, 5) == 0:
		h.emit(kitEvent{table: t, kind: batch.Truncate})
		h.tx.tokens["*"] = true
		h.rows[t] = map[int]kitRow{}
	}
}

// unique returns a value that no row of the table has, or nil.
func (h *history) unique(t int) value {
	v := h.draw.Int(0, h.opts.Keys*2)
	if v == 0 {
		return nil
	}
	if t != tabPlain {
		for _, r := range h.rows[t] {
			if r[colU] == v {
				return nil
			}
		}
	}
	return v
}

func (h *history) parent() value {
	id := h.draw.Int(0, h.opts.Keys)
	if _, ok := h.rows[tabParent][id]; !ok {
		return nil
	}
	return id
}

func (h *history) removable(t, id int) bool {
	if t != tabParent {
		return true
	}
	for _, c := range h.rows[tabChild] {
		if c[colP] == id {
			return false
		}
	}
	return true
}

func (h *history) insert(t, id int) {
	if _, taken := h.rows[t][id]; taken {
		return
	}
	r := kitRow{id, h.unique(t), h.fresh()}
	if t == tabChild {
		r = append(r, h.parent())
	}
	h.emit(kitEvent{table: t, kind: batch.Insert, after: r})
	h.rows[t][id] = r
}

func (h *history) update(t, id int, r kitRow) {
	e := kitEvent{table: t, kind: batch.Update, before: h.rows[t][id], after: r, partial: h.opts.Partial && h.draw.Int(0, 1) == 0}
	h.emit(e)
	delete(h.rows[t], id)
	h.rows[t][r[colID].(int)] = r
}

func (h *history) remove(t, id int) {
	h.emit(kitEvent{table: t, kind: batch.Delete, before: h.rows[t][id], partial: h.opts.Partial && h.draw.Int(0, 1) == 0})
	delete(h.rows[t], id)
}

// rotate swaps the unique values of two rows through NULL.
func (h *history) rotate(t int, ids []int, a int) {
	b := ids[h.draw.Int(0, len(ids)-1)]
	ua, ub := h.rows[t][a][colU], h.rows[t][b][colU]
	if a == b || ua == nil || ub == nil {
		return
	}
	with := func(id int, u value) {
		r := slices.Clone(h.rows[t][id])
		r[colU] = u
		h.update(t, id, r)
	}
	with(a, nil)
	with(b, ua)
	with(a, ub)
}

// swap exchanges the keys of two rows without a third one.
func (h *history) swap(ids []int, a int) {
	b := ids[h.draw.Int(0, len(ids)-1)]
	if a == b {
		return
	}
	ra, rb := slices.Clone(h.rows[tabPlain][a]), slices.Clone(h.rows[tabPlain][b])
	// The rows must differ, or one could not tell a swap from a way and back.
	for _, x := range []struct {
		id int
		r  kitRow
	}{{a, ra}, {b, rb}} {
		x.r[colV] = h.fresh()
		h.emit(kitEvent{table: tabPlain, kind: batch.Update, before: h.rows[tabPlain][x.id], after: slices.Clone(x.r)})
	}
	oa, ob := slices.Clone(ra), slices.Clone(rb)
	ra[colID], rb[colID] = b, a
	h.emit(kitEvent{table: tabPlain, kind: batch.Update, before: oa, after: ra})
	h.emit(kitEvent{table: tabPlain, kind: batch.Update, before: ob, after: rb})
	h.rows[tabPlain][b], h.rows[tabPlain][a] = ra, rb
}

func (h *history) list() {
	if !h.opts.List {
		return
	}
	n := len(h.rows[tabList])
	op := 0
	if h.opts.Match && n > 0 {
		op = h.draw.Int(0, 3)
	}
	if op <= 1 {
		r := kitRow{h.draw.Int(1, 3), nil, fmt.Sprint("x", h.draw.Int(1, 2))}
		h.emit(kitEvent{table: tabList, kind: batch.Insert, after: r})
		h.listNext++
		h.rows[tabList][h.listNext] = r
		return
	}
	nos := make([]int, 0, n)
	for no := range h.rows[tabList] {
		nos = append(nos, no)
	}
	sort.Ints(nos)
	no := nos[h.draw.Int(0, n-1)]
	old := h.rows[tabList][no]
	if op == 2 {
		h.emit(kitEvent{table: tabList, kind: batch.Delete, before: old})
		delete(h.rows[tabList], no)
		return
	}
	r := slices.Clone(old)
	r[colV] = h.fresh()
	h.emit(kitEvent{table: tabList, kind: batch.Update, before: old, after: r})
	h.rows[tabList][no] = r
}

// emit appends the event and notes what its transaction depends on.
func (h *history) emit(e kitEvent) {
	h.tx.events = append(h.tx.events, e)
	tokens := h.tx.tokens
	if e.table == tabList {
		if h.opts.Match {
			tokens["list"] = true
		}
		return
	}
	for _, r := range []kitRow{e.before, e.after} {
		if r == nil {
			continue
		}
		tokens[fmt.Sprint("key ", e.table, " ", r[colID])] = true
		if e.table != tabPlain && r[colU] != nil {
			tokens[fmt.Sprint("u ", e.table, " ", r[colU])] = true
		}
		if e.table == tabChild && r[colP] != nil {
			tokens[fmt.Sprint("key ", tabParent, " ", r[colP])] = true
		}
	}
}

// want returns the rows of a table as the target must hold them.
func (h *history) want(t int) []string {
	var out []string
	for _, r := range h.rows[t] {
		out = append(out, r.text())
	}
	slices.Sort(out)
	return out
}

// reorder returns the transactions in an order that another server might have
// committed them in.
func reorder(d Drawer, txs []*kitTx) []*kitTx {
	out := slices.Clone(txs)
	for range 2 * len(out) {
		if len(out) < 2 {
			break
		}
		i := d.Int(0, len(out)-2)
		a, b := out[i], out[i+1]
		if !a.tied(b) && !a.tokens["*"] && !b.tokens["*"] {
			out[i], out[i+1] = b, a
		}
	}
	return out
}
