package reader

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/failpoint"
)

// aheadRows is how many rows are read again at a time.
const aheadRows = 256

// shipped is a shipment; all of it is handed over at position last.
type shipped struct {
	ship  *rpc.Shipment
	list  []change
	at    int // in list: what is given next
	ready int // in list: up to where rows were read again
	last  uint64
}

// change is a row that changed.
type change struct {
	src     *source
	row     []byte
	cells   []rpc.Cell
	again   bool  // cells are to be read
	written int64 // to the log, in milliseconds
}

// changes gives one change, or fetches the next shipment.
func (r *Reader) changes(ctx context.Context, out *batch.Builder) (more bool, err error) {
	g := r.giving
	if g == nil {
		ship, ok := take(ctx, r.sink.Shipments(), out.Empty())
		if !ok {
			return false, nil
		}
		failpoint.Hit("hbase.received")
		list, err := r.rows(ship.Entries)
		if err != nil {
			ship.Done(err)
			return false, err
		}
		r.accept(&shipped{ship: ship, list: list, last: r.next.Load() + uint64(len(list))})
		return true, nil
	}
	if g.at == g.ready {
		if err := r.readAgain(ctx, g); err != nil {
			return false, err
		}
	}
	c := &g.list[g.at]
	err = r.tx(out, c.written*1000, func() error {
		return c.src.put(out, batch.Insert, c.row, c.cells, r.cfg.Row == Change && !c.again)
	})
	if err != nil {
		return false, err
	}
	*c = change{}
	if g.at++; g.at == len(g.list) {
		r.giving = nil
		failpoint.Hit("hbase.handed-over")
	}
	return true, nil
}

// accept takes a shipment in order.
func (r *Reader) accept(s *shipped) {
	r.mu.Lock()
	r.open = append(r.open, s)
	r.mu.Unlock()
	if r.cfg.Switches.AnswerEarly {
		s.ship.Done(nil)
	}
	if len(s.list) > 0 {
		r.giving = s
	}
	r.settle(0)
}

// rows lists the rows that entries change, in the order of the log. Where rows are
// given as they are now, each comes once.
func (r *Reader) rows(entries []rpc.Entry) (list []change, err error) {
	seen := map[string]bool{}
	for i := range entries {
		e := &entries[i]
		src := r.byName[e.Table]
		if src == nil || r.passed(e) {
			continue // a table of an older configuration; what came from there
		}
		for from := 0; from < len(e.Cells); {
			to := from + 1
			for to < len(e.Cells) && bytes.Equal(e.Cells[to].Row, e.Cells[from].Row) {
				to++
			}
			cells := e.Cells[from:to:to]
			from = to
			if string(cells[0].Family) == "METAFAMILY" {
				if err := marker(e, &cells[0]); err != nil {
					return nil, err
				}
				continue
			}
			c := change{src: src, row: cells[0].Row, again: true, written: e.WriteTime}
			if !slices.ContainsFunc(cells, func(x rpc.Cell) bool { return src.wants(&x) }) {
				continue
			}
			if r.cfg.Row == Change && r.tells(cells) || r.cfg.Switches.FirstCells {
				// Of a column that comes twice the newest counts, of equal ones the last.
				c.cells, c.again = slices.Clone(cells), false
				slices.Reverse(c.cells)
				slices.SortStableFunc(c.cells, func(a, b rpc.Cell) int { return cmp.Compare(b.Timestamp, a.Timestamp) })
			} else if id := e.Table + "\x00" + string(c.row); r.cfg.Row == Current {
				if seen[id] {
					continue
				}
				seen[id] = true
			}
			list = append(list, c)
		}
	}
	return list, nil
}

// passed reports whether an entry comes from a cluster whose changes are left out.
func (r *Reader) passed(e *rpc.Entry) bool {
	return slices.Contains(e.Clusters, r.self) || slices.ContainsFunc(r.cfg.NotFrom, func(id string) bool { return slices.Contains(e.Clusters, id) })
}

// marker judges an entry that no client wrote. Files that were loaded hold rows
// that the log does not show.
func marker(e *rpc.Entry, c *rpc.Cell) error {
	if string(c.Qualifier) != "HBASE::BULK_LOAD" {
		return nil
	}
	return sdk.Faultf(sdk.CodeUnsupportedEvent, "files were loaded into table %s, region %s: their rows are not in its log", e.Table, e.Region).
		Suggest("start the task over with a new snapshot, and write the rows through the log from then on")
}

// tells reports whether the cells alone say what changed: values, each newer than
// what was there. What a tombstone leaves behind has to be looked up.
func (r *Reader) tells(cells []rpc.Cell) bool {
	return !slices.ContainsFunc(cells, func(c rpc.Cell) bool { return c.Type != rpc.TypePut })
}

// readAgain reads the next rows of a shipment as they are now. All of it is done
// before a later change of these rows is looked at.
func (r *Reader) readAgain(ctx context.Context, g *shipped) error {
	calm, cancel := unhurried(ctx)
	defer cancel()
	next := g.list[g.ready:min(len(g.list), g.ready+aheadRows)]
	rows := map[*source][][]byte{}
	at := map[*source][]int{}
	for i := range next {
		if c := &next[i]; c.again {
			rows[c.src], at[c.src] = append(rows[c.src], c.row), append(at[c.src], i)
		}
	}
	for src, keys := range rows {
		got, err := r.client.Gets(calm, src.name, keys, src.wanted)
		if err != nil {
			return unavailable(err)
		}
		for k, cells := range got {
			next[at[src][k]].cells = cells
		}
	}
	g.ready += len(next)
	failpoint.Hit("hbase.read-again")
	return nil
}

// Durable answers the sources whose changes are stored.
func (r *Reader) Durable(_ context.Context, upTo sdk.Position) error {
	n, _, err := r.Number(upTo)
	if err != nil {
		return err
	}
	r.settle(n)
	return nil
}

func (r *Reader) settle(upTo uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.durable = max(r.durable, upTo)
	for len(r.open) > 0 && r.open[0].last <= r.durable {
		failpoint.Hit("hbase.answering")
		r.open[0].ship.Done(nil)
		r.open = r.open[1:]
		failpoint.Hit("hbase.answered")
	}
}
