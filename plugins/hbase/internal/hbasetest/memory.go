package hbasetest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/plugins/hbase/internal/writer"
)

// Memory is a cluster in memory. Each table is one region.
type Memory struct {
	mu     sync.Mutex
	tables map[string]*table
	seq    int
	clock  uint64
	now    func() time.Time
}

type table struct {
	desc  *rpc.Table
	cells []cell
}

type cell struct {
	rpc.Cell
	seq int // order of arrival
}

// New returns an empty cluster.
func New() *Memory { return &Memory{tables: map[string]*table{}, now: time.Now} }

// Client returns a client, which may be closed while others go on.
func (m *Memory) Client() writer.Store { return client{m} }

type client struct{ *Memory }

func (client) Close() {}

// ClusterID returns a made-up id.
func (m *Memory) ClusterID(context.Context) (string, error) {
	return "00000000-0000-0000-0000-000000000001", nil
}

// Describe returns a table's settings.
func (m *Memory) Describe(_ context.Context, name string) (*rpc.Table, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.tables[name]; t != nil {
		return t.desc, nil
	}
	return nil, fmt.Errorf("describe %s: %w", name, rpc.ErrNoTable)
}

// Create makes a table unless it is there.
func (m *Memory) Create(_ context.Context, t *rpc.Table, _ ...[]byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tables[t.Name] == nil {
		m.tables[t.Name] = &table{desc: t}
	}
	return nil
}

// Batch writes mutations.
func (m *Memory) Batch(_ context.Context, name string, muts []rpc.Mutation) ([]error, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.tables[name]
	if t == nil {
		return nil, fmt.Errorf("batch to %s: %w", name, rpc.ErrNoTable)
	}
	errs := make([]error, len(muts))
	for i := range muts {
		errs[i] = m.write(t, &muts[i])
	}
	return errs, nil
}

func (m *Memory) write(t *table, mut *rpc.Mutation) error {
	cells, err := rpc.Cells(bytes.Clone(mut.Block()), false)
	if err != nil {
		return err
	}
	m.clock = max(m.clock+1, uint64(m.now().UnixMilli()))
	for _, c := range cells {
		if t.desc.Family(string(c.Family)) == nil {
			return fmt.Errorf("family %s: %w", c.Family, rpc.ErrNoFamily)
		}
		if c.Timestamp == rpc.LatestTimestamp {
			c.Timestamp = m.clock
		}
		m.seq++
		t.cells = append(t.cells, cell{c, m.seq})
	}
	return nil
}

// CheckAndMutate writes if the condition holds.
func (m *Memory) CheckAndMutate(_ context.Context, name string, cond rpc.Condition, mut *rpc.Mutation) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.tables[name]
	var have []byte
	for _, c := range t.row(mut.Row, 0) {
		if bytes.Equal(c.Family, cond.Family) && bytes.Equal(c.Qualifier, cond.Qualifier) {
			have = c.Value
		}
	}
	if !bytes.Equal(have, cond.Value) {
		return false, nil
	}
	return true, m.write(t, mut)
}

// Get reads a row.
func (m *Memory) Get(_ context.Context, name string, g rpc.Get) ([]rpc.Cell, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.tables[name]
	if t == nil {
		return nil, rpc.ErrNoTable
	}
	return t.row(g.Row, g.Range.To), nil
}

// Scan reads rows in order.
func (m *Memory) Scan(s rpc.Scan) writer.Rows {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.tables[s.Table]
	if t == nil {
		return &rows{err: rpc.ErrNoTable}
	}
	var keys [][]byte
	for i := range t.cells {
		r := t.cells[i].Row
		if c := bytes.Compare(r, s.Start); c < 0 || c == 0 && s.After || len(s.Stop) > 0 && bytes.Compare(r, s.Stop) >= 0 {
			continue
		}
		keys = append(keys, r)
	}
	slices.SortFunc(keys, bytes.Compare)
	keys = slices.CompactFunc(keys, bytes.Equal)
	var out rows
	for _, k := range keys {
		cells := slices.DeleteFunc(t.row(k, 0), func(c rpc.Cell) bool {
			return len(s.Columns) > 0 && !slices.ContainsFunc(s.Columns, func(col rpc.Column) bool {
				return bytes.Equal(col.Family, c.Family) && (len(col.Qualifiers) == 0 || slices.ContainsFunc(col.Qualifiers, func(q []byte) bool { return bytes.Equal(q, c.Qualifier) }))
			})
		})
		if len(cells) > 0 {
			out.rows = append(out.rows, cells)
		}
	}
	return &out
}

type rows struct {
	rows [][]rpc.Cell
	err  error
}

func (r *rows) Next(context.Context) ([][]rpc.Cell, error) {
	if r.err != nil {
		return nil, r.err
	}
	r.err = io.EOF
	if len(r.rows) == 0 {
		return nil, io.EOF
	}
	return r.rows, nil
}

func (r *rows) Close(context.Context) {}

func (t *table) setting(family, key string) string {
	v, _ := t.desc.Setting(family, key)
	return strings.ToUpper(v)
}

// row returns the newest visible value of each column; to 0 = of all times.
func (t *table) row(row []byte, to uint64) []rpc.Cell {
	newest := map[string]cell{}
	for _, c := range t.cells {
		if !bytes.Equal(c.Row, row) || c.Type != rpc.TypePut || to > 0 && c.Timestamp >= to || t.hidden(&c, to) {
			continue
		}
		k := string(c.Family) + ":" + string(c.Qualifier)
		if old, ok := newest[k]; !ok || c.Timestamp > old.Timestamp || c.Timestamp == old.Timestamp && c.seq > old.seq {
			newest[k] = c
		}
	}
	var out []rpc.Cell
	for _, c := range newest {
		out = append(out, c.Cell)
	}
	slices.SortFunc(out, func(a, b rpc.Cell) int {
		return cmp.Or(bytes.Compare(a.Family, b.Family), bytes.Compare(a.Qualifier, b.Qualifier))
	})
	return out
}

// hidden reports whether a tombstone hides a value. With KEEP_DELETED_CELLS a read
// below the tombstone still sees it.
func (t *table) hidden(c *cell, to uint64) bool {
	byArrival := t.setting(string(c.Family), "NEW_VERSION_BEHAVIOR") == "TRUE"
	keep := t.setting(string(c.Family), "KEEP_DELETED_CELLS") == "TRUE"
	for i := range t.cells {
		d := &t.cells[i]
		if !bytes.Equal(d.Row, c.Row) || !bytes.Equal(d.Family, c.Family) || byArrival && d.seq < c.seq || keep && to > 0 && d.Timestamp >= to {
			continue
		}
		switch {
		case d.Type == rpc.TypeDeleteFamily && c.Timestamp <= d.Timestamp,
			d.Type == rpc.TypeDeleteColumn && bytes.Equal(d.Qualifier, c.Qualifier) && c.Timestamp <= d.Timestamp,
			d.Type == rpc.TypeDelete && bytes.Equal(d.Qualifier, c.Qualifier) && c.Timestamp == d.Timestamp,
			d.Type == rpc.TypeDeleteFamilyVersion && c.Timestamp == d.Timestamp:
			return true
		}
	}
	return false
}

// MajorCompact flushes a table and leaves what a major compaction leaves.
func (m *Memory) MajorCompact(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.tables[name]
	oldest := map[string]uint64{}
	for i := range t.cells {
		c := &t.cells[i]
		f := string(c.Family)
		if _, ok := oldest[f]; !ok {
			oldest[f] = math.MaxUint64
		}
		if c.Type == rpc.TypePut {
			oldest[f] = min(oldest[f], c.Timestamp)
		}
	}
	now := uint64(m.now().UnixMilli())
	var left []cell
	for i := range t.cells {
		c := t.cells[i]
		f := string(c.Family)
		keep := t.setting(f, "KEEP_DELETED_CELLS") == "TRUE"
		if c.Type != rpc.TypePut {
			purge, _ := strconv.ParseUint(t.setting(f, "hbase.hstore.time.to.purge.deletes"), 10, 64)
			young := purge > 0 && (c.Timestamp > now || now-c.Timestamp <= purge)
			if young || keep && c.Timestamp >= oldest[f] {
				left = append(left, c)
			}
			continue
		}
		if !keep && t.hidden(&c, 0) {
			continue
		}
		newer := slices.ContainsFunc(t.cells, func(o cell) bool {
			return o.Type == rpc.TypePut && bytes.Equal(o.Row, c.Row) && bytes.Equal(o.Family, c.Family) && bytes.Equal(o.Qualifier, c.Qualifier) &&
				(o.Timestamp > c.Timestamp || o.Timestamp == c.Timestamp && o.seq > c.seq) && (keep || !t.hidden(&o, 0))
		})
		if !newer {
			left = append(left, c)
		}
	}
	t.cells = left
}
