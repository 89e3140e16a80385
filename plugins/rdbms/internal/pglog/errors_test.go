package pglog

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/conformance"
)

// first returns the first error of a reader: of Open, or of Next within a while.
func (tg *target) first(cfg Config) error {
	tg.t.Helper()
	s, err := tg.open(cfg)
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		if err := s.block(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (tg *target) wantFault(what string, err error, code sdk.Code, words ...string) {
	tg.t.Helper()
	var f *sdk.Fault
	if !errors.As(err, &f) || f.Code != code || f.Suggestion == "" {
		tg.t.Errorf("%s: got %v, want code %s and a suggestion", what, err, code)
		return
	}
	for _, w := range words {
		if !strings.Contains(f.Error(), w) {
			tg.t.Errorf("%s: got %q, want %q in it", what, f.Error(), w)
		}
	}
}

// TestRefused goes through what a server may no longer have, or never had.
func TestRefused(t *testing.T) {
	t.Parallel()
	srv := server(t, "-c", "max_slot_wal_keep_size=48MB", "-c", "min_wal_size=32MB", "-c", "max_wal_size=48MB")
	sqlText(srv, `CREATE TABLE a (id int PRIMARY KEY, v text); INSERT INTO a VALUES (1, 'x'); CREATE TABLE bare (v text); CREATE TABLE none (id int PRIMARY KEY); ALTER TABLE none REPLICA IDENTITY NOTHING;
		CREATE ROLE plain LOGIN; GRANT SELECT ON a TO plain;`)
	slot, _ := (&Config{}).names(testUID)
	cfg := Config{URL: url(srv), Tables: []string{"public.a"}, SlotWait: 300 * time.Millisecond}

	tg := newTarget(t)
	tg.wantFault("no identity", tg.first(Config{URL: url(srv)}), sdk.CodeInvalidConfig, "public.bare", "public.none", `ALTER TABLE "public"."bare" REPLICA IDENTITY FULL`)
	if n := sqlText(srv, "SELECT count(*) FROM pg_publication"); n != "0" {
		t.Errorf("%s publications were made for tables that the server would have refused to change", n)
	}
	tg.wantFault("no table", tg.first(Config{URL: url(srv), Tables: []string{"x.*"}}), sdk.CodeInvalidConfig, "no table")
	tg.wantFault("no rights", tg.first(Config{URL: strings.Replace(url(srv), "postgres@", "plain@", 1), Tables: []string{"public.a"}}), sdk.CodeUnauthorized)

	s := tg.mustOpen(cfg)
	s.caughtUp(srv)
	sqlText(srv, "UPDATE a SET v = 'y'")
	s.caughtUp(srv)
	other := &target{t: t, tables: map[string]*copyTable{}, point: tg.point, state: tg.state}
	tg.wantFault("in use", other.first(cfg), sdk.CodeUnavailable, "pid ", slot)
	s.close()

	with := func(edit func(p *place)) *target {
		p, _, _ := parsePlace(string(tg.point.Source))
		edit(&p)
		return &target{t: t, tables: map[string]*copyTable{}, state: tg.state, point: sdk.Position{Format: positionFormat, Version: positionVersion, Source: p.append(nil)}}
	}
	tg.wantFault("another system", with(func(p *place) { p.system++ }).first(cfg), sdk.CodePositionUnknown, "system")
	tg.wantFault("an old primary", with(func(p *place) { p.timeline++ }).first(cfg), sdk.CodePositionUnknown, "timeline 2")
	tg.wantFault("behind the end", with(func(p *place) { p.lsn += 1 << 40 }).first(cfg), sdk.CodePositionUnknown, "behind the end")
	tg.wantFault("read by somebody else", with(func(p *place) { p.lsn -= 1 << 10 }).first(cfg), sdk.CodePositionPurged, "somebody else")
	tg.wantFault("start at a place without a slot", newTarget(t).first(Config{URL: url(srv), Tables: []string{"public.a"}, Slot: "fresh", Start: "position:0/1000000"}), sdk.CodePositionPurged, "no slot fresh")

	// The server removes log that the slot needs.
	for i := 0; i < 40 && sqlText(srv, "SELECT wal_status FROM pg_replication_slots") != "lost"; i++ {
		sqlText(srv, "INSERT INTO a SELECT i, repeat('x', 5000) FROM generate_series(10, 900) i; DELETE FROM a WHERE id >= 10; SELECT pg_switch_wal(); CHECKPOINT;")
	}
	tg.wantFault("lost", tg.first(cfg), sdk.CodePositionPurged, "invalidated", "max_slot_wal_keep_size")
	sqlText(srv, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
	tg.wantFault("gone", tg.first(cfg), sdk.CodePositionPurged, "dropped", "promoted")

	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Release(context.Background(), testUID); err != nil {
			t.Fatal(err)
		}
	}
	if left := sqlText(srv, "SELECT count(*) FROM pg_replication_slots") + sqlText(srv, "SELECT count(*) FROM pg_publication"); left != "00" {
		t.Errorf("after the release %s slots and publications are left", left)
	}
}

// TestFailover reads on over a new timeline of the same system, and refuses a
// position that the new timeline does not have.
func TestFailover(t *testing.T) {
	srv := server(t)
	sqlText(srv, "CREATE TABLE a (id int PRIMARY KEY, v text); INSERT INTO a VALUES (1, 'x')")
	cfg := Config{URL: url(srv), Tables: []string{"public.a"}}
	tg := newTarget(t)
	s := tg.mustOpen(cfg)
	s.caughtUp(srv)
	s.close()
	sqlText(srv, "INSERT INTO a VALUES (2, 'before')")
	srv.Stop()
	if err := os.WriteFile(filepath.Join(srv.Dir, "data", "recovery.signal"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	srv.Restart(append(serverOptions(), "-c", "restore_command=false")...)
	for end := time.Now().Add(20 * time.Second); sqlText(srv, "SELECT pg_is_in_recovery()") == "t" && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
	}
	sqlText(srv, "INSERT INTO a VALUES (3, 'after')")
	far := &target{t: t, tables: map[string]*copyTable{}, state: tg.state}
	p, _, _ := parsePlace(string(tg.point.Source))
	end, _ := parseLSN(sqlText(srv, "SELECT pg_current_wal_flush_lsn()"))
	p.lsn = end
	far.point = sdk.Position{Format: positionFormat, Version: positionVersion, Source: p.append(nil)}
	tg.wantFault("behind the switch", far.first(cfg), sdk.CodePositionUnknown, "timeline 1", "failover")
	s = tg.mustOpen(cfg)
	defer s.close()
	s.caughtUp(srv)
	tg.equal(srv, "public.a")
	if p, _, _ := parsePlace(string(tg.point.Source)); p.timeline != 2 {
		t.Errorf("got position %s, want it on timeline 2", tg.point.Source)
	}
}

// TestKit holds the reader to what a reader promises, from a slot that keeps all
// of the log.
func TestKit(t *testing.T) {
	t.Parallel()
	srv := server(t)
	sqlText(srv, `CREATE TABLE a (id int PRIMARY KEY, v text, big text); ALTER TABLE a ALTER big SET STORAGE EXTERNAL; CREATE TABLE b (id int PRIMARY KEY);
		CREATE PUBLICATION kit FOR ALL TABLES; SELECT pg_create_logical_replication_slot('kit', 'pgoutput');
		INSERT INTO a SELECT i, 'v', repeat('x', 4000) FROM generate_series(1, 5) i;
		UPDATE a SET v = 'w' WHERE id < 4;
		BEGIN; INSERT INTO b VALUES (1), (2); DELETE FROM a WHERE id = 5; COMMIT;
		ALTER TABLE b ADD c int; INSERT INTO b VALUES (3, 3);
		BEGIN; INSERT INTO b SELECT i, i FROM generate_series(1000, 2500) i; SAVEPOINT s; DELETE FROM b WHERE id > 1100; ROLLBACK TO s; UPDATE b SET c = 0 WHERE id = 1000; COMMIT;
		TRUNCATE a; UPDATE b SET id = 4 WHERE id = 3;`)
	end, err := parseLSN(sqlText(srv, "SELECT pg_current_wal_insert_lsn()"))
	if err != nil {
		t.Fatal(err)
	}
	conformance.RunReader(t, &conformance.ReaderSubject{
		Name: "postgres", Idle: 30 * time.Second,
		New: func(context.Context) (sdk.Reader, error) {
			r, err := New(Config{URL: url(srv), Slot: "kit", Publication: "kit", Start: "latest"})
			return &ending{r, end}, err
		},
	})
}

// ending is a reader whose source ends at a place, so that nobody has to guess how
// long to wait for more.
type ending struct {
	*Reader
	end lsn
}

func (r *ending) Next(ctx context.Context, out *batch.Builder) error {
	if !r.over() {
		if err := r.Reader.Next(ctx, out); err != nil {
			return err
		}
	}
	if r.over() {
		return io.EOF
	}
	return nil
}

func (r *ending) over() bool { return !r.tx.active && r.here.lsn >= r.end }

// TestSeveralWriters opens the reader for writers that stand at different places,
// one of them new: each ends with what the source has.
func TestSeveralWriters(t *testing.T) {
	srv := server(t)
	sqlText(srv, loadTables)
	cfg := Config{URL: url(srv), Tables: []string{"public.*"}, ChunkRows: 200}
	a := newTarget(t)
	s := a.mustOpen(cfg)
	for range 4 { // in the middle of the snapshot
		if err := s.block(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	s.close()
	sqlText(srv, "UPDATE a SET id = 8000 - id WHERE id % 3 = 0 AND id > 2000; DELETE FROM a WHERE id BETWEEN 100 AND 120; UPDATE b SET v = 'x' WHERE id % 2 = 1")
	b := newTarget(t)
	both := func() (*session, *session) {
		r, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		least := a
		if o, _ := (Positions{}).ComparePositions(a.point, b.point); b.point.IsZero() || o == sdk.After && !a.point.IsZero() {
			least = b
		}
		var items []batch.StateItem
		for _, it := range least.state {
			items = append(items, it)
		}
		if err := r.Open(context.Background(), sdk.Execution{TaskUID: testUID}, []sdk.Point{{Writer: "a", Position: a.point}, {Writer: "b", Position: b.point}}, items); err != nil {
			t.Fatal(err)
		}
		x := &session{target: a, r: r, reg: batch.NewRegistry(), out: batch.NewBuilder(batch.Limits{})}
		return x, &session{target: b, r: r, reg: batch.NewRegistry()}
	}
	x, y := both()
	pump := func(n int, done func() bool) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for i := 0; i < n && !done(); i++ {
			x.out.Reset()
			if err := x.r.Next(ctx, x.out); err != nil {
				t.Fatal(err)
			}
			data, err := x.out.Finish()
			if err == nil {
				data = append([]byte(nil), data...)
				y.at = 1
				err = errors.Join(x.apply(data), y.apply(append([]byte(nil), data...)))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	pump(3, func() bool { return false })
	x.close()
	// B falls behind, A alone goes on.
	sqlText(srv, "INSERT INTO a SELECT i, 'late', repeat('z', 3000), i FROM generate_series(10000, 10100) i")
	x, y = both()
	end := sqlText(srv, "SELECT pg_logical_emit_message(true, 'end', '')")
	want, _ := parseLSN(end)
	pump(1e6, func() bool {
		p, _, _ := parsePlace(string(a.point.Source))
		q, _, _ := parsePlace(string(b.point.Source))
		return p.lsn >= want && q.lsn >= want
	})
	x.close()
	a.equal(srv, "public.a", "public.b")
	b.equal(srv, "public.a", "public.b")
}

// TestSingle reads ranges and keys beside the stream.
func TestSingle(t *testing.T) {
	srv := server(t)
	sqlText(srv, "CREATE TABLE a (id int, k text, v text, PRIMARY KEY (k, id)); INSERT INTO a SELECT i, 'k' || i % 7, 'v' || i FROM generate_series(1, 100) i")
	tg := newTarget(t)
	s := tg.mustOpen(Config{URL: url(srv), Tables: []string{"public.a"}})
	defer s.close()
	s.caughtUp(srv)
	sqlText(srv, "UPDATE a SET v = 'new' WHERE id = 7")
	s.caughtUp(srv)
	schema := tg.tables["public.a"].schema
	ctx := context.Background()
	collect := func(out *batch.Builder) (keys [][]byte, news int) {
		data, err := out.Finish()
		if err != nil {
			t.Fatal(err)
		}
		var blk batch.Block
		if err := blk.Decode(data, batch.NewRegistry(), batch.Limits{}); err != nil {
			t.Fatal(err)
		}
		for i := range blk.Len() {
			var e batch.Event
			if err := blk.Event(i, &e); err != nil {
				t.Fatal(err)
			}
			keys = append(keys, append([]byte(nil), e.Key...))
			if vals, _ := e.After.Values(nil); string(vals[2].Bytes()) == "new" {
				news++
			}
		}
		return keys, news
	}
	var all [][]byte
	news := 0
	q := sdk.Range{Schema: schema, Rows: 30}
	for q.Schema != nil {
		out := batch.NewBuilder(batch.Limits{})
		placed, err := s.r.ReadRange(ctx, q, out)
		if err != nil {
			t.Fatal(err)
		}
		if o, err := s.r.ComparePositions(placed.Low, placed.High); err != nil || o == sdk.After {
			t.Errorf("placed from %s to %s: %s, %v", placed.Low.Source, placed.High.Source, o, err)
		}
		k, n := collect(out)
		all, news, q = append(all, k...), news+n, placed.Rest
	}
	if len(all) != 100 || news != 1 {
		t.Errorf("got %d rows, %d of them new, want 100 and 1", len(all), news)
	}
	out := batch.NewBuilder(batch.Limits{})
	gone := append([]byte(nil), all[0]...)
	gone[1] = 'z'
	if _, err := s.r.ReadKeys(ctx, schema, [][]byte{all[3], gone, all[90]}, out); err != nil {
		t.Fatal(err)
	}
	if k, _ := collect(out); len(k) != 2 {
		t.Errorf("got %d rows for two keys that are there and one that is not", len(k))
	}
}
