package reader

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/conformance"
)

// liveConfig reads from servers.
func liveConfig(start string, addrs ...string) Config {
	return Config{Address: addrs, User: "root", Start: start, DDL: "apply", OnUnknownTable: "stop", OnStatement: "stop", Heartbeat: time.Second}
}

// puller reads a stream in a test.
type puller struct {
	tb    *testing.T
	r     *Reader
	out   *batch.Builder
	reg   *batch.Registry
	model *model
	last  sdk.Position
	state map[string]batch.StateItem
	txs   int
	ids   []string
	beats int
	open  bool
	// skip is the set of points whose coverage counts; nil = none.
	covered int // changes that point 0 holds
	changes int
	err     error
	seen    func(*batch.Event) // every event; nil = none
	durable bool               // everything is stored as soon as it is read
}

func pull(tb *testing.T, cfg Config, points []sdk.Point, state map[string]batch.StateItem) *puller {
	tb.Helper()
	p, err := tryPull(tb, cfg, points, state)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// blockLimits makes blocks of tests small, so that they end everywhere.
var blockLimits = batch.Limits{Events: 200}

func tryPull(tb *testing.T, cfg Config, points []sdk.Point, state map[string]batch.StateItem) (*puller, error) {
	tb.Helper()
	if problems := cfg.Validate(); len(problems) > 0 {
		tb.Fatal(problems)
	}
	r, err := New(sdk.Env{}, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = r.Close(context.Background()) })
	p := newPuller(tb, r, state)
	return p, r.Open(context.Background(), sdk.Execution{Task: tb.Name()}, points, itemsOf(state))
}

func newPuller(tb *testing.T, r *Reader, state map[string]batch.StateItem) *puller {
	p := &puller{tb: tb, r: r, out: batch.NewBuilder(blockLimits), reg: batch.NewRegistry(), model: newModel(tb), state: maps.Clone(state)}
	if p.state == nil {
		p.state = map[string]batch.StateItem{}
	}
	return p
}

// itemsOf lists the items that are not dropped, as a store gives them.
func itemsOf(state map[string]batch.StateItem) (items []batch.StateItem) {
	for _, k := range slices.Sorted(maps.Keys(state)) {
		if it := state[k]; !it.Deleted {
			items = append(items, it)
		}
	}
	return items
}

// next takes one block. It reports false when nothing came in time.
func (p *puller) next(d time.Duration) bool {
	p.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	p.out.Reset()
	err := p.r.Next(ctx, p.out)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		p.err = err
		return false
	}
	if p.out.Empty() {
		return false
	}
	data, err := p.out.Finish()
	if err != nil {
		p.tb.Fatal(err)
	}
	var b batch.Block
	if err := b.Decode(data, p.reg, batch.Limits{}); err != nil {
		p.tb.Fatal(err)
	}
	format, version := p.r.PositionFormat()
	for i := range b.Txs {
		tx := &b.Txs[i]
		if tx.Begins == p.open {
			p.tb.Fatalf("transaction %s begins: %v", tx.ID, tx.Begins)
		}
		p.open = !tx.Ends
		if tx.ID != "" && tx.Begins {
			p.ids = append(p.ids, tx.ID)
		}
		next := tx.Ordinal
		for k := tx.First; k < tx.First+tx.Count; k++ {
			var e batch.Event
			if err := b.Event(k, &e); err != nil {
				p.tb.Fatal(err)
			}
			next = e.Ordinal + 1
			if p.seen != nil {
				p.seen(&e)
			}
			switch e.Kind {
			case batch.Heartbeat:
				p.beats++
			case batch.State:
				it, err := e.StateItem()
				if err != nil {
					p.tb.Fatal(err)
				}
				it.Value = slices.Clone(it.Value)
				p.state[it.Key] = *it
			default:
				p.changes++
				hold := false
				for _, c := range tx.Covers {
					hold = hold || c.Point == 0 && (c.Upto == 0 || e.Ordinal < c.Upto)
				}
				if hold {
					p.covered++
				} else {
					p.model.apply(&e)
				}
			}
		}
		switch {
		case tx.Ends:
			p.txs++
			if len(tx.End) > 0 {
				p.last = sdk.Position{Format: format, Version: version, Source: slices.Clone(tx.End)}
			}
		default:
			p.last = sdk.Position{Format: format, Version: version, Source: slices.Clone(tx.Start), Ordinal: next}
		}
	}
	if p.durable {
		_ = p.r.Durable(ctx, p.last)
	}
	return true
}

// until reads until ok is true.
func (p *puller) until(what string, ok func() bool) {
	p.tb.Helper()
	for end := time.Now().Add(60 * time.Second); !ok(); {
		if !p.next(time.Second) && p.err != nil {
			p.tb.Fatalf("waiting for %s: %v", what, p.err)
		}
		if time.Now().After(end) {
			p.tb.Fatalf("%s did not come within 60 s; at %s", what, p.last.Source)
		}
	}
}

// rows returns the rows of a table as text, sorted.
func (p *puller) rows(table string) []string {
	var out []string
	t := p.model.tables[table]
	if t == nil {
		return nil
	}
	for _, r := range t.rows {
		out = append(out, strings.Join(r.values, "|"))
	}
	slices.Sort(out)
	return out
}

func (p *puller) has(table string, n int) func() bool {
	return func() bool { return len(p.rows(table)) == n }
}

var flavours = []struct {
	name, kind string
	options    []string
}{
	{"mysql", "mysql", nil},
	{"mysql-files", "mysql", []string{"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}},
	{"mariadb", "mariadb", nil},
}

// full runs every test at every kind of server, as make soak does.
var full = os.Getenv("DATALINK_FULL") != ""

// TestStream reads what servers write while they write it, of every size.
func TestStream(t *testing.T) {
	for _, f := range flavours {
		t.Run(f.name, func(t *testing.T) {
			if f.name == "mysql-files" && !full {
				t.Skip("optional: DATALINK_FULL=1 runs it")
			}
			s := stack.Start(t, f.kind, append(f.options, "--max-allowed-packet=64M")...)
			p := pull(t, liveConfig("latest", s.Addr()), nil, nil)
			s.SQL("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v LONGTEXT); INSERT INTO a.t VALUES (1, 'x'), (2, NULL); UPDATE a.t SET v = 'y' WHERE id = 2; DELETE FROM a.t WHERE id = 1;")
			p.until("a row", p.has("a.t", 1))
			if got := p.rows("a.t"); !slices.Equal(got, []string{"2|y"}) {
				t.Fatalf("rows %q", got)
			}
			// A transaction above the memory for one, in events of many sizes.
			s.SQL("BEGIN; INSERT INTO a.t VALUES (10, REPEAT('a', 40000000)); INSERT INTO a.t VALUES (11, REPEAT('b', 16777215)), (12, REPEAT('c', 3)); INSERT INTO a.t VALUES (13, REPEAT('d', 20000000)); COMMIT; INSERT INTO a.t VALUES (14, 'after');")
			p.until("large rows", p.has("a.t", 6))
			sizes := map[string]int{}
			for _, r := range p.rows("a.t") {
				id, v, _ := strings.Cut(r, "|")
				sizes[id] = len(v)
			}
			if want := map[string]int{"2": 1, "10": 40000000, "11": 16777215, "12": 3, "13": 20000000, "14": 5}; !maps.Equal(sizes, want) {
				t.Errorf("sizes %v, want %v", sizes, want)
			}
			p.until("a sign of life", func() bool { return p.beats > 0 })
			before := p.beats
			p.until("more signs of life", func() bool { return p.beats > before+1 })
		})
	}
}

// ending ends a stream where the log ended when the test began.
type ending struct {
	*Reader
	final string
}

func (e ending) Next(ctx context.Context, out *batch.Builder) error {
	if e.live.conn != nil && !e.tx.active && string(e.mark(nil)) == e.final {
		return io.EOF
	}
	return e.Reader.Next(ctx, out)
}

// TestLiveConformance holds reading from servers to the kit.
func TestLiveConformance(t *testing.T) {
	for _, f := range flavours {
		t.Run(f.name, func(t *testing.T) {
			if f.name == "mysql-files" && !full {
				t.Skip("optional: DATALINK_FULL=1 runs it")
			}
			s := stack.Start(t, f.kind, f.options...)
			s.SQL(liveSQL(f.kind == "mariadb"))
			s.SQL("CREATE TABLE live.w (id INT PRIMARY KEY, v INT); INSERT INTO live.w VALUES (1,1),(2,2),(3,3),(4,4),(5,5); UPDATE live.w SET v = v + 1; FLUSH BINARY LOGS; DELETE FROM live.w WHERE id < 3; TRUNCATE live.w; INSERT INTO live.w VALUES (9,9);")
			for _, session := range xaSQL {
				s.SQL(session)
			}
			p := pull(t, liveConfig("latest", s.Addr()), nil, nil)
			final := string(p.r.mark(nil))
			conformance.RunReader(t, &conformance.ReaderSubject{Name: f.name, Idle: 10 * time.Second, New: func(context.Context) (sdk.Reader, error) {
				r, err := New(sdk.Env{}, liveConfig("earliest", s.Addr()))
				return ending{r, final}, err
			}})
		})
	}
}

// xaSQL commits and rolls back transactions that other sessions have prepared.
var xaSQL = []string{
	"XA START 'x1'; INSERT INTO live.w VALUES (20, 20), (21, 21); XA END 'x1'; XA PREPARE 'x1';",
	"INSERT INTO live.w VALUES (30, 30); XA COMMIT 'x1';",
	"XA START 'x2'; INSERT INTO live.w VALUES (40, 40); XA END 'x2'; XA PREPARE 'x2';",
	"XA ROLLBACK 'x2'; INSERT INTO live.w VALUES (50, 50);",
}
