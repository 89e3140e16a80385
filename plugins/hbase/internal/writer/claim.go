package writer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/sdk"
)

// The bookkeeping row of a task's writer has the key task, 0x00, writer and these
// columns of the family p, all as text. Owner is one cell, so that one condition
// holds for all of it: store uid, task uid, epoch, execution, number of the claim
// and worker, a line each; empty = released.
var (
	progressFamily = []byte("p")
	ownerColumn    = []byte("owner")
	ceilingColumn  = []byte("ceiling")
	positionColumn = []byte("position")
	versionColumn  = []byte("version")
)

// checkEvery is how often the row is looked at while versions stay below the
// ceiling: a writer that lost it stops that soon.
const checkEvery = time.Second

// claimRow is the bookkeeping row as this writer last wrote it.
type claimRow struct {
	key     []byte
	owner   []byte
	claimed bool
	ceiling uint64
	stamp   uint64 // of the cells, rising
}

type owner struct {
	store, task string
	epoch       uint64
	execution   string
	claim       uint64
	worker      string
}

func (o *owner) text() []byte {
	return fmt.Appendf(nil, "%s\n%s\n%d\n%s\n%d\n%s", o.store, o.task, o.epoch, o.execution, o.claim, o.worker)
}

func parseOwner(text []byte) (o owner, err error) {
	if len(text) == 0 {
		return o, nil
	}
	l := strings.Split(string(text), "\n")
	if len(l) != 6 {
		return o, fmt.Errorf("owner %q has %d lines, expected 6", text, len(l))
	}
	o.store, o.task, o.execution, o.worker = l[0], l[1], l[3], l[5]
	o.epoch, err = strconv.ParseUint(l[2], 10, 64)
	if err == nil {
		o.claim, err = strconv.ParseUint(l[4], 10, 64)
	}
	return o, err
}

func (o *owner) claimant() *sdk.Claimant {
	return &sdk.Claimant{Execution: o.execution, Epoch: o.epoch, TaskUID: o.task, StoreUID: o.store, Worker: o.worker}
}

func progressTable(name string) *rpc.Table {
	return &rpc.Table{Name: name, Families: []rpc.Family{{Name: string(progressFamily), Values: map[string]string{"VERSIONS": "3"}}}}
}

// held is what the row holds.
type held struct {
	there   bool
	owner   []byte
	ceiling uint64
	version string
	stamp   uint64
}

func (w *Writer) read(ctx context.Context, key []byte) (h held, err error) {
	cells, err := w.store.Get(ctx, w.cfg.Progress, rpc.Get{Row: key, Columns: []rpc.Column{{Family: progressFamily}}})
	if err != nil {
		return h, err
	}
	for i := range cells {
		c := &cells[i]
		h.stamp = max(h.stamp, c.Timestamp)
		switch string(c.Qualifier) {
		case string(ownerColumn):
			h.there, h.owner = true, c.Value
		case string(ceilingColumn):
			if h.ceiling, err = strconv.ParseUint(string(c.Value), 10, 64); err != nil {
				return h, sdk.Faultf(sdk.CodeInternal, "bookkeeping row %q of %s: ceiling %q is no number", key, w.cfg.Progress, c.Value)
			}
		case string(versionColumn):
			h.version = string(c.Value)
		}
	}
	return h, nil
}

// Claim takes the bookkeeping row. It returns the ceiling: an heir starts above
// it.
func (w *Writer) Claim(ctx context.Context, ex sdk.Execution) (sdk.Claimed, error) {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Timeout)
	defer cancel()
	if _, err := w.store.Describe(ctx, w.cfg.Progress); errors.Is(err, rpc.ErrNoTable) {
		if err := w.store.Create(ctx, progressTable(w.cfg.Progress)); err != nil {
			return sdk.Claimed{}, fault(err)
		}
	} else if err != nil {
		return sdk.Claimed{}, fault(err)
	}
	key := []byte(ex.Task + "\x00" + ex.Writer)
	for {
		h, err := w.read(ctx, key)
		if err != nil {
			return sdk.Claimed{}, fault(err)
		}
		was, err := parseOwner(h.owner)
		if err != nil {
			return sdk.Claimed{}, sdk.Faultf(sdk.CodeInternal, "bookkeeping row %q of %s: %v", key, w.cfg.Progress, err)
		}
		if err := w.may(ex, &was, len(h.owner) > 0, &h); err != nil {
			return sdk.Claimed{}, err
		}
		now := owner{ex.StoreUID, ex.TaskUID, ex.Epoch, ex.ID, was.claim + 1, ex.Worker}
		row := claimRow{key: key, owner: now.text(), claimed: true, ceiling: h.ceiling, stamp: max(h.stamp+1, uint64(w.cfg.Now().UnixMilli()))}
		m := rpc.NewMutation(key, nil)
		m.Put(progressFamily, ownerColumn, row.stamp, row.owner)
		m.Put(progressFamily, ceilingColumn, row.stamp, strconv.AppendUint(nil, h.ceiling, 10))
		m.Put(progressFamily, versionColumn, row.stamp, []byte(w.cfg.Version))
		done, err := w.store.CheckAndMutate(ctx, w.cfg.Progress, rpc.Condition{Family: progressFamily, Qualifier: ownerColumn, Value: h.owner}, &m)
		if err != nil {
			return sdk.Claimed{}, fault(err)
		}
		if !done {
			// Somebody was faster; or it was us, and the answer was lost.
			if h, err := w.read(ctx, key); err == nil && string(h.owner) == string(row.owner) {
				done = true
			}
		}
		if done {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.row, w.checked = row, w.cfg.Now()
			return sdk.Claimed{Ceiling: h.ceiling}, nil
		}
	}
}

// may decides whether an execution may take what another holds.
func (w *Writer) may(ex sdk.Execution, was *owner, owned bool, h *held) error {
	where := fmt.Sprintf("bookkeeping row of task %s, writer %s in %s", ex.Task, ex.Writer, w.cfg.Progress)
	if owned && !ex.TakeOver && (was.store != ex.StoreUID || was.task != ex.TaskUID) {
		f := sdk.Faultf(sdk.CodeForeignClaim, "%s belongs to store %s, task uid %s; this is store %s, task uid %s", where, was.store, was.task, ex.StoreUID, ex.TaskUID).
			Suggest("release the other task, or start this one with --take-over")
		f.Claimant = was.claimant()
		return f
	}
	foreign := was.store != ex.StoreUID || was.task != ex.TaskUID
	if owned && !foreign && (ex.Epoch < was.epoch || ex.Epoch == was.epoch && ex.ID != was.execution) {
		return fenced(where, was, ex.Epoch)
	}
	if h.version == ByPosition && w.cfg.Version == ByEventTime {
		return sdk.Faultf(sdk.CodeRefused, "%s was used with version: position; what is written by event-time would be below it and never be seen", where).
			Suggest("keep version: position, or write into new tables under another writer name")
	}
	return nil
}

func fenced(where string, by *owner, epoch uint64) error {
	f := sdk.Faultf(sdk.CodeFenced, "%s is held by execution %s of epoch %d, this one has epoch %d", where, by.execution, by.epoch, epoch)
	f.Claimant = by.claimant()
	return f
}

// hold makes sure that versions below top may be written: the row is ours, and its
// ceiling at or above top. To is where the stream is; it is noted for people.
func (w *Writer) hold(ctx context.Context, top uint64, to sdk.Position) error {
	if !w.row.claimed {
		return sdk.Faultf(sdk.CodeInternal, "write without a claim before it")
	}
	if top <= w.row.ceiling && (w.cfg.Now().Sub(w.checked) < checkEvery || w.cfg.Switches.NoRowCheck) {
		return nil
	}
	next := max(top, w.row.ceiling)
	stamp := max(w.row.stamp+1, uint64(w.cfg.Now().UnixMilli()))
	m := rpc.NewMutation(w.row.key, nil)
	m.Put(progressFamily, ceilingColumn, stamp, strconv.AppendUint(nil, next, 10))
	if !to.IsZero() {
		m.Put(progressFamily, positionColumn, stamp, fmt.Appendf(nil, "%s:%q+%d", to.Format, to.Source, to.Ordinal))
	}
	done, err := w.store.CheckAndMutate(ctx, w.cfg.Progress, rpc.Condition{Family: progressFamily, Qualifier: ownerColumn, Value: w.row.owner}, &m)
	if err != nil {
		return fault(err)
	}
	if !done {
		h, err := w.read(ctx, w.row.key)
		if err != nil {
			return fault(err)
		}
		by, err := parseOwner(h.owner)
		if err != nil {
			return sdk.Faultf(sdk.CodeInternal, "bookkeeping row %q: %v", w.row.key, err)
		}
		mine, _ := parseOwner(w.row.owner)
		return fenced(fmt.Sprintf("bookkeeping row %q of %s", w.row.key, w.cfg.Progress), &by, mine.epoch)
	}
	w.row.ceiling, w.row.stamp, w.checked = next, stamp, w.cfg.Now()
	return nil
}
