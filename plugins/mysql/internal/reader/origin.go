package reader

import (
	"slices"
	"strings"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/rows"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// A transaction of DataLink's own writer begins with its progress: a row of
// datalink_progress, whose first columns are the task's name and uid. A schema
// change of it begins with a comment that names the uid. By these marks two tasks
// in opposite directions do not send each other's changes back for ever.
const (
	progressTable = "datalink_progress"
	originComment = "/* datalink task="
)

// origins says which tasks' writes are left out.
type origins struct {
	all   bool
	names []string          // names and uids
	uids  map[string]string // names by uid, as seen in the log
}

// newOrigins takes names, uids, and both as name=uid.
func newOrigins(list []string) origins {
	o := origins{all: slices.Contains(list, "*"), uids: map[string]string{}}
	for _, e := range list {
		name, uid, both := strings.Cut(e, "=")
		o.names = append(o.names, name)
		if both {
			o.names = append(o.names, uid)
			o.uids[uid] = name
		}
	}
	return o
}

// complete reports whether the uid of every task that is left out is known, so
// that an unknown one is of another.
func (o *origins) complete() bool {
	known := map[string]bool{}
	for uid, name := range o.uids {
		known[uid], known[name] = true, true
	}
	return !slices.ContainsFunc(o.names, func(n string) bool { return !known[n] })
}

func (o *origins) any() bool { return len(o.names) > 0 }

// ignores reports whether writes of a task are left out; either part may be
// unknown.
func (o *origins) ignores(name, uid string) bool {
	return o.all || name != "" && slices.Contains(o.names, name) || uid != "" && slices.Contains(o.names, uid)
}

// markLayout is how rows of a progress table are read. Its columns are known by
// their places, so that no name in the log is needed.
func (r *Reader) markLayout(tm *rows.TableMap) *rows.Layout {
	opt := r.options(progressTable)
	opt.Positional = true
	l, err := rows.NewLayout(tm, nil, opt)
	if err != nil || len(l.Schema.Columns) < 2 {
		return nil // of another kind, and so no mark
	}
	return l
}

// originOf reads whose transaction it is from a row of a progress table, and leaves
// the transaction out where that is configured. A mark behind other changes says
// nothing: a writer's own comes first.
func (r *Reader) originOf(ev *binlog.Event, l *rows.Layout) error {
	if r.tx.begun || r.tx.ignored {
		return nil
	}
	name, uid, err := r.readMark(ev, l)
	if err != nil || name == "" {
		return err
	}
	if uid != "" {
		r.origins.uids[uid] = name
	}
	r.tx.ignored = r.origins.ignores(name, uid)
	return nil
}

// readMark returns the first two columns of the event's first row: of the image
// after, and where that lacks them of the one before.
func (r *Reader) readMark(ev *binlog.Event, l *rows.Layout) (name, uid string, err error) {
	var it rows.Iter
	if err := it.Open(ev.Type, &r.scan.Format, l, ev.Body); err != nil || !it.More() {
		return "", "", err
	}
	out := batch.NewBuilder(batch.Limits{})
	if err := out.BeginTx(batch.Tx{Begins: true}); err != nil {
		return "", "", err
	}
	if err := it.Next(out); err != nil {
		return "", "", err
	}
	if err := out.EndTx(true, nil, []byte{0}); err != nil {
		return "", "", err
	}
	data, err := out.Finish()
	if err != nil {
		return "", "", err
	}
	var blk batch.Block
	var e batch.Event
	if err := blk.Decode(data, batch.NewRegistry(), batch.Limits{}); err != nil {
		return "", "", err
	}
	if err := blk.Event(0, &e); err != nil {
		return "", "", err
	}
	var found [2]string
	for _, im := range []batch.Image{e.Before, e.After} {
		if im.IsZero() {
			continue
		}
		vals, err := im.Values(nil)
		if err != nil {
			return "", "", err
		}
		for i := range found {
			if vals[i].State == batch.Present && vals[i].Bytes() != nil {
				found[i] = string(vals[i].Bytes())
			}
		}
	}
	return found[0], found[1], nil
}

// foreignDDL reports whether a schema change is one of a writer whose changes are
// left out.
func (r *Reader) foreignDDL(text string, ev *binlog.Event) (bool, error) {
	if !r.origins.any() {
		return false, nil
	}
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), originComment)
	if !ok {
		return false, nil
	}
	uid, _, ok := strings.Cut(rest, " ")
	if !ok {
		return false, nil
	}
	name, known := r.origins.uids[uid]
	switch {
	case r.origins.ignores(name, uid):
		return true, nil
	case known || r.origins.complete():
		return false, nil
	}
	return false, sdk.Faultf(sdk.CodeUnsupportedEvent, "%s at offset %d: a schema change by the DataLink task with uid %s, whose name is not known here: whether ignoreOrigins means it cannot be told", r.scan.Name(), ev.At, uid).
		Suggest("write name=uid in ignoreOrigins, for each task that is meant, or \"*\"")
}
