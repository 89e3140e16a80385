package snapshot

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/datalink-go/datalink/plugins/mysql/internal/rows"
	"github.com/datalink-go/datalink/plugins/mysql/internal/schema"
	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// itemPrefix begins the keys of the state items of tables.
const itemPrefix = "snapshot:"

// pauseKey is the state item that says that reading is paused.
const pauseKey = "snapshot-paused"

// Phases of a table's snapshot.
const (
	Pending = "pending" // asked for, nothing of it was handed over
	Running = "running"
	Done    = "done"
)

// record is the value of a table's state item.
type record struct {
	Name     schema.Name
	Phase    string
	Key      string       `json:",omitempty"` // identity of the key that cursors are of
	Spans    []spanRecord `json:",omitempty"`
	Rows     uint64       `json:",omitempty"`
	Estimate uint64       `json:",omitempty"`
	Partial  bool         `json:",omitempty"` // updates were held back: it cannot go on in the middle
}

// spanRecord is a part of the table: what follows After, up to To.
type spanRecord struct {
	After *mark `json:",omitempty"`
	To    *mark `json:",omitempty"`
	Done  bool  `json:",omitempty"`
}

// mark is a place in the order of the table's key: as the server is told, and as
// key bytes.
type mark struct {
	Cursor rows.Cursor
	Key    []byte
}

func (m *mark) key() []byte {
	if m == nil {
		return nil
	}
	return m.Key
}

// itemKey names the item of a table; names that hold a point are quoted.
func itemKey(n schema.Name) string {
	if strings.ContainsAny(n.Database+n.Table, ".`") {
		return itemPrefix + server.Quote(n.Database) + "." + server.Quote(n.Table)
	}
	return itemPrefix + n.String()
}

// nextVersion is the version of the next item: above all that were restored, and
// by the clock above those of items that were dropped, which are not restored.
func (w *Weaver) nextVersion() uint64 {
	w.version = max(w.version+1, uint64(time.Now().UnixMicro()))
	return w.version
}

// item is the state item of the table as it will be once the piece that is being
// handed over is stored.
func (t *table) item(version uint64) (*batch.StateItem, error) {
	r := record{Name: t.name, Phase: t.phase, Key: t.key, Rows: t.rows, Estimate: t.estimate, Partial: len(t.touched) > 0}
	if t.phase == Running {
		for _, sp := range t.spans {
			r.Spans = append(r.Spans, spanRecord{After: sp.after, To: sp.to, Done: sp.done})
		}
	}
	value, err := json.Marshal(&r)
	if err != nil {
		return nil, err
	}
	return &batch.StateItem{Key: itemKey(t.name), Deleted: t.gone, Version: version, Value: value}, nil
}

// Restore takes over the items of an earlier opening. Those of other components
// are not looked at.
func (w *Weaver) Restore(state []batch.StateItem) error {
	for i := range state {
		it := &state[i]
		if it.Key == pauseKey {
			w.version, w.paused = max(w.version, it.Version), !it.Deleted
			continue
		}
		if !strings.HasPrefix(it.Key, itemPrefix) || it.Deleted {
			continue
		}
		w.version = max(w.version, it.Version)
		var r record
		err := json.Unmarshal(it.Value, &r)
		if err == nil && (r.Name.Table == "" || r.Phase != Pending && r.Phase != Running && r.Phase != Done) {
			err = fmt.Errorf("phase %q", r.Phase)
		}
		if err != nil {
			return sdk.Faultf(sdk.CodeInvalidPosition, "reader state %q: %v", it.Key, err).Suggest("drop the task's progress, or restore the state that belongs to it")
		}
		w.restore(r.Name, &r)
	}
	return nil
}

func (w *Weaver) restore(n schema.Name, r *record) {
	t := newTable(n)
	t.phase, t.estimate, t.stated = r.Phase, r.Estimate, true
	if r.Phase == Running && (r.Partial || len(r.Spans) == 0) {
		t.phase = Pending
	}
	t.asked = t.phase == Pending
	if t.phase == Running {
		t.key, t.rows = r.Key, r.Rows
		for _, s := range r.Spans {
			sp := &span{table: t, after: s.After, read: s.After, to: s.To, done: s.Done}
			t.spans = append(t.spans, sp)
		}
		t.begun = t.spans[0].after != nil || t.spans[0].done
	}
	if r.Phase == Done {
		t.rows = r.Rows
	}
	w.put(t)
}
