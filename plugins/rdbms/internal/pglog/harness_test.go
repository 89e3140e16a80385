package pglog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgcat"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgtypes"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

const testUID = "0192f000-0000-7000-8000-000000000001"

func server(t testing.TB, options ...string) *stack.Server {
	t.Helper()
	return stack.Start(t, "postgres", append(serverOptions(), options...)...)
}

func serverOptions() []string {
	return []string{"-c", "wal_level=logical", "-c", "logical_decoding_work_mem=64kB", "-c", "max_wal_senders=20", "-c", "max_replication_slots=20"}
}

func url(s *stack.Server) string {
	return fmt.Sprintf("postgres://postgres@%s/postgres", s.Addr())
}

func sqlText(s *stack.Server, text string) string {
	return strings.TrimSpace(s.SQL("SET client_min_messages=error;\n"+text, "-q", "-At", "-v", "ON_ERROR_STOP=1"))
}

// target is what a writer would make of the stream, with progress and state as a
// writer stores them.
type target struct {
	t      testing.TB
	tables map[string]*copyTable
	point  sdk.Position
	state  map[string]batch.StateItem
	rows   int
	txs    int
	ddl    []string
}

type copyTable struct {
	schema *batch.Schema
	rows   map[string][]string // by key bytes: literals by column; "" = NULL
	seen   map[string]bool
}

func newTarget(t testing.TB) *target {
	return &target{t: t, tables: map[string]*copyTable{}, state: map[string]batch.StateItem{}}
}

// session is a reader that is being read.
type session struct {
	*target
	r   *Reader
	reg *batch.Registry
	out *batch.Builder
	at  int // place among the points of Open
}

func (tg *target) open(cfg Config) (*session, error) {
	tg.t.Helper()
	if testing.Verbose() && cfg.Log == nil {
		cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	r, err := New(cfg)
	if err != nil {
		return nil, err
	}
	var items []batch.StateItem
	for _, it := range tg.state {
		items = append(items, it)
	}
	s := &session{target: tg, r: r, reg: batch.NewRegistry(), out: batch.NewBuilder(batch.Limits{})}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := r.Open(ctx, sdk.Execution{Task: "t", TaskUID: testUID}, []sdk.Point{{Writer: "w", Position: tg.point}}, items); err != nil {
		_ = r.Close(ctx)
		return nil, err
	}
	return s, nil
}

func (tg *target) mustOpen(cfg Config) *session {
	tg.t.Helper()
	s, err := tg.open(cfg)
	if err != nil {
		tg.t.Fatal(err)
	}
	return s
}

// block reads one block and applies it.
func (s *session) block(ctx context.Context) error {
	s.out.Reset()
	err := s.r.Next(ctx, s.out)
	if !s.out.Empty() {
		data, ferr := s.out.Finish()
		if ferr != nil {
			return ferr
		}
		if aerr := s.apply(bytes.Clone(data)); aerr != nil {
			return aerr
		}
	}
	return err
}

// until reads until done says so, failing after a minute.
func (s *session) until(done func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for !done() {
		if err := s.block(ctx); err != nil && !errors.Is(err, io.EOF) {
			s.t.Fatalf("at %s: %v", s.point.Source, err)
		}
	}
}

func (s *session) close() {
	_ = s.r.Close(context.Background())
}

// caughtUp reads until everything that is committed now has arrived.
func (s *session) caughtUp(srv *stack.Server) {
	s.t.Helper()
	began := time.Now()
	defer func() { s.t.Logf("caught up in %s", time.Since(began)) }()
	end := sqlText(srv, "SELECT pg_logical_emit_message(true, 'end', '')")
	want, err := parseLSN(end)
	if err != nil {
		s.t.Fatal(err)
	}
	s.until(func() bool {
		p, _, _ := parsePlace(string(s.point.Source))
		return !s.r.pending() && p.lsn >= want
	})
}

func (s *session) apply(data []byte) error {
	var blk batch.Block
	if err := blk.Decode(data, s.reg, batch.Limits{}); err != nil {
		return err
	}
	for i := range blk.Txs {
		tx := &blk.Txs[i]
		upto := uint64(0)
		held := false
		for _, c := range tx.Covers {
			if c.Point == s.at {
				held, upto = c.Upto == 0, c.Upto
			}
		}
		for k := tx.First; k < tx.First+tx.Count; k++ {
			var e batch.Event
			if err := blk.Event(k, &e); err != nil {
				return err
			}
			if held || e.Ordinal < upto {
				continue
			}
			if err := s.event(&e); err != nil {
				return fmt.Errorf("%s, ordinal %d: %w", tx.ID, e.Ordinal, err)
			}
			// A place inside of the transaction, as a lane may store it.
			s.point = sdk.Position{Format: positionFormat, Version: positionVersion, Source: bytes.Clone(tx.Start), Ordinal: e.Ordinal + 1}
		}
		if held {
			continue
		}
		if tx.Ends && len(tx.End) > 0 {
			s.txs++
			at := sdk.Position{Format: positionFormat, Version: positionVersion, Source: bytes.Clone(tx.End)}
			if !s.point.IsZero() {
				if o, err := s.r.ComparePositions(s.point, at); err != nil || o == sdk.After {
					return fmt.Errorf("position goes from %s+%d to %s: %s %v", s.point.Source, s.point.Ordinal, tx.End, o, err)
				}
			}
			s.point = at
		}
	}
	return nil
}

func (s *session) event(e *batch.Event) error {
	switch e.Kind {
	case batch.State:
		it, err := e.StateItem()
		if err != nil {
			return err
		}
		it.Value = bytes.Clone(it.Value)
		s.state[it.Key] = *it
		return nil
	case batch.DDL:
		ch, err := e.Change()
		if err != nil {
			return err
		}
		s.ddl = append(s.ddl, ch.Statement)
		return s.alter(ch)
	case batch.Heartbeat, batch.Origin:
		return nil
	}
	ct := s.tables[e.Schema.Name()]
	if ct == nil {
		ct = &copyTable{rows: map[string][]string{}, seen: map[string]bool{}}
		s.tables[e.Schema.Name()] = ct
	}
	ct.schema = e.Schema
	if !e.Kind.IsRow() {
		switch e.Kind {
		case batch.Truncate:
			clear(ct.rows)
		case batch.Range:
			return s.reconcile(ct, e)
		default:
			return fmt.Errorf("event %s", e.Kind)
		}
		return nil
	}
	s.rows++
	key := string(e.Key)
	if len(e.Schema.Key) == 0 {
		key = fmt.Sprint("row ", s.rows)
	}
	switch e.Kind {
	case batch.Insert, batch.Read:
		lits, err := literalsOf(e.Schema, e.After, nil)
		if err != nil {
			return err
		}
		ct.rows[key] = lits
		ct.seen[key] = true
	case batch.Update:
		if len(e.Schema.Key) == 0 {
			return s.keyless(ct, e)
		}
		at := key
		if len(e.OldKey) > 0 {
			at = string(e.OldKey)
		}
		old := ct.rows[at]
		if old == nil && !e.After.Complete() {
			return fmt.Errorf("update of a row of %s that is not there, key %q", e.Schema.Name(), e.Key)
		}
		lits, err := literalsOf(e.Schema, e.After, old)
		if err != nil {
			return err
		}
		delete(ct.rows, at)
		ct.rows[key] = lits
	case batch.Delete:
		if len(e.Schema.Key) == 0 {
			return s.keyless(ct, e)
		}
		delete(ct.rows, key)
	}
	return nil
}

func (s *session) keyless(ct *copyTable, e *batch.Event) error {
	old, err := literalsOf(e.Schema, e.Before, nil)
	if err != nil {
		return err
	}
	for k, r := range ct.rows {
		if slices.Equal(r, old) {
			delete(ct.rows, k)
			if e.Kind == batch.Update {
				lits, err := literalsOf(e.Schema, e.After, old)
				ct.rows[k] = lits
				return err
			}
			return nil
		}
	}
	return fmt.Errorf("no row of %s equals %q", e.Schema.Name(), old)
}

func (s *session) reconcile(ct *copyTable, e *batch.Event) error {
	r, err := e.KeyRange()
	if err != nil {
		return err
	}
	for k := range ct.rows {
		if len(r.Lo) == 0 && len(r.Hi) == 0 {
			if !ct.seen[k] {
				delete(ct.rows, k)
			}
			continue
		}
		less := func(a, b []byte) bool {
			c, err := compareInts(e.Schema, a, b)
			if err != nil {
				s.t.Fatal(err)
			}
			return c < 0
		}
		if len(r.Lo) > 0 && !less(r.Lo, []byte(k)) || len(r.Hi) > 0 && less(r.Hi, []byte(k)) {
			continue
		}
		if !ct.seen[k] {
			delete(ct.rows, k)
		}
	}
	clear(ct.seen)
	return nil
}

func compareInts(s *batch.Schema, a, b []byte) (int, error) {
	x, err := s.KeyValues(a)
	if err != nil {
		return 0, err
	}
	y, err := s.KeyValues(b)
	if err != nil {
		return 0, err
	}
	for i := range x {
		if c := int(x[i].Int64() - y[i].Int64()); c != 0 {
			return c, nil
		}
		if c := bytes.Compare(x[i].Bytes(), y[i].Bytes()); c != 0 {
			return c, nil
		}
	}
	return 0, nil
}

func (s *session) alter(ch *batch.Change) error {
	name := ch.Namespace + "." + ch.Table
	if ch.Kind == batch.DDLRenameTable {
		ns, old := ch.OldTable()
		s.tables[name] = s.tables[ns+"."+old]
		delete(s.tables, ns+"."+old)
		return nil
	}
	ct := s.tables[name]
	if ct == nil {
		return fmt.Errorf("change of %s, which is not there", name)
	}
	cols := slices.Clone(ct.schema.Columns)
	at := func(n string) int { return slices.IndexFunc(cols, func(c batch.Column) bool { return c.Name == n }) }
	edit := func(f func([]string) []string) {
		for k, r := range ct.rows {
			ct.rows[k] = f(slices.Clone(r))
		}
	}
	switch ch.Kind {
	case batch.DDLAddColumn:
		cols = append(cols, *ch.Column)
		edit(func(r []string) []string { return append(r, "") })
	case batch.DDLDropColumn:
		i := at(ch.Column.Name)
		cols = slices.Delete(cols, i, i+1)
		edit(func(r []string) []string { return slices.Delete(r, i, i+1) })
	case batch.DDLRenameColumn:
		cols[at(ch.OldName)].Name = ch.Column.Name
	case batch.DDLChangeColumn:
		cols[at(ch.OldName)] = *ch.Column
	default:
		return fmt.Errorf("change of kind %d", ch.Kind)
	}
	c := *ct.schema
	c.Columns = cols
	ct.schema = &c
	return nil
}

func literalsOf(s *batch.Schema, im batch.Image, old []string) ([]string, error) {
	vals, err := im.Values(nil)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(vals))
	for i := range vals {
		switch vals[i].State {
		case batch.Null:
		case batch.Unchanged, batch.Absent:
			if old == nil {
				return nil, fmt.Errorf("column %s of %s is %s", s.Columns[i].Name, s.Name(), vals[i].State)
			}
			out[i] = old[i]
		default:
			if s.Columns[i].Type == batch.Array && vals[i].State == batch.Present {
				t, err := arrayText(&s.Columns[i], vals[i].Bytes())
				if err != nil {
					return nil, err
				}
				out[i] = pgcat.Literal(t)
				continue
			}
			t, ok := pgtypes.AppendText(nil, &s.Columns[i], &vals[i])
			if !ok {
				return nil, fmt.Errorf("column %s of %s of type %s has no text", s.Columns[i].Name, s.Name(), s.Columns[i].Type)
			}
			out[i] = pgcat.Literal(string(t))
		}
	}
	return out, nil
}

func arrayText(c *batch.Column, data []byte) (string, error) {
	dims, vals, err := batch.DecodeArray(data, c.Elem)
	if err != nil {
		return "", err
	}
	if len(dims) == 0 {
		return "{}", nil
	}
	var b strings.Builder
	for _, d := range dims {
		fmt.Fprintf(&b, "[%d:%d]", d.Lower, d.Lower+d.Len-1)
	}
	b.WriteByte('=')
	elem := *c
	elem.Type = c.Elem
	delim := ","
	if c.Native == "box[]" {
		delim = ";"
	}
	next := 0
	var walk func(d int)
	walk = func(d int) {
		b.WriteByte('{')
		for i := range dims[d].Len {
			if i > 0 {
				b.WriteString(delim)
			}
			if d+1 < len(dims) {
				walk(d + 1)
				continue
			}
			v := &vals[next]
			next++
			if v.State == batch.Null {
				b.WriteString("NULL")
				continue
			}
			t, _ := pgtypes.AppendText(nil, &elem, v)
			b.WriteByte('"')
			b.WriteString(strings.ReplaceAll(strings.ReplaceAll(string(t), `\`, `\\`), `"`, `\"`))
			b.WriteByte('"')
		}
		b.WriteByte('}')
	}
	walk(0)
	return b.String(), nil
}

// equal lets the server compare what it holds with what arrived.
func (tg *target) equal(srv *stack.Server, tables ...string) {
	tg.t.Helper()
	for _, name := range tables {
		ct := tg.tables[name]
		if ct == nil {
			if n := sqlText(srv, "SELECT count(*) FROM "+name); n != "0" {
				tg.t.Errorf("%s: got no row, the server has %s", name, n)
			}
			continue
		}
		var b strings.Builder
		fmt.Fprintf(&b, "SET search_path=pg_catalog; CREATE TEMP TABLE m (LIKE %s);\n", name)
		var cols []string
		for _, c := range ct.schema.Columns {
			cols = append(cols, pgcat.Quote(c.Name))
		}
		for _, r := range ct.rows {
			vals := slices.Clone(r)
			for i := range vals {
				if vals[i] == "" {
					vals[i] = "NULL"
				}
			}
			fmt.Fprintf(&b, "INSERT INTO m (%s) VALUES (%s);\n", strings.Join(cols, ","), strings.Join(vals, ","))
		}
		list := strings.Join(cols, ",")
		fmt.Fprintf(&b, "SELECT 'only at the source: ' || x FROM (SELECT (ROW(%s))::text AS x FROM %s EXCEPT ALL SELECT (ROW(%s))::text FROM m) s ORDER BY 1 LIMIT 5;\n", list, name, list)
		fmt.Fprintf(&b, "SELECT 'only in what arrived: ' || x FROM (SELECT (ROW(%s))::text AS x FROM m EXCEPT ALL SELECT (ROW(%s))::text FROM %s) s ORDER BY 1 LIMIT 5;\n", list, list, name)
		fmt.Fprintf(&b, "SELECT 'checked ' || count(*) FROM %s;\n", name)
		got := sqlText(srv, b.String())
		if want := fmt.Sprintf("checked %d", len(ct.rows)); got != want {
			tg.t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
