package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/ledger"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
)

func line(t testing.TB, n int) sdk.Change {
	return change(t, sdk.Append, keyless(), nil, vals(n, "x"))
}

// on are the options of tests that write to a table without a key: each row that
// comes twice or not at all shows.
func on(sw ledger.Switches) Config {
	return Config{Options: target.Options{Keyless: target.FullRowMatch, Switches: sw}, LockTimeout: 500 * time.Millisecond, ClaimTimeout: 3 * time.Second}
}

const lines = `SELECT coalesce(string_agg(a::text, ',' ORDER BY a), '') FROM log`

// Each case says what it does with a check and what becomes of it without: a test
// that stays green without its check tests nothing.
func TestFence(t *testing.T) {
	s := start(t)
	ctx := context.Background()
	for _, c := range []struct {
		name     string
		without  ledger.Switches
		run      func(t *testing.T, d *db, sw ledger.Switches) error
		want     error
		rows     string
		unfenced string // rows without the check; "" = an error instead
	}{
		{
			name: "a transaction that is open when its lanes are claimed", without: ledger.Switches{LocksOff: true}, rows: "1,3",
			run: func(t *testing.T, d *db, sw ledger.Switches) error {
				a, b := d.writer(t, on(sw)), d.writer(t, on(sw))
				claim(t, a, execution("x1", 1))
				must(t, write(a, nextOf(0, 1), line(t, 1)))
				tx, err := a.Begin(ctx, []int32{0})
				must(t, err)
				must(t, tx.Fence(ctx, []sdk.Next{nextOf(0, 2)}))
				_, err = tx.Apply(ctx, &sdk.Changes{Segments: [][]sdk.Change{{line(t, 2)}}})
				must(t, err)
				// It stands still here, holding its row.
				_, err = b.Claim(ctx, execution("x2", 2))
				if err != nil {
					return errors.Join(err, tx.Rollback(ctx))
				}
				if err := tx.Commit(ctx); !errors.Is(err, sdk.ErrCommitUnknown) {
					t.Errorf("commit of a session that was ended: %v", err)
				}
				if _, err := a.Settle(ctx, 0); !errors.Is(err, sdk.ErrFenced) {
					t.Errorf("settle after another claim: %v", err)
				}
				return write(b, nextOf(0, 2), line(t, 3))
			},
		},
		{
			name: "a whole transaction after another execution's claim", without: ledger.Switches{EpochOff: true, BatchOff: true, LocksOff: true}, want: sdk.ErrFenced, rows: "1,3", unfenced: "1,2,3",
			run: func(t *testing.T, d *db, sw ledger.Switches) error {
				a, b := d.writer(t, on(sw)), d.writer(t, on(sw))
				claim(t, a, execution("x1", 1))
				must(t, write(a, nextOf(0, 1), line(t, 1)))
				claim(t, b, execution("x2", 2))
				must(t, write(b, nextOf(0, 2), line(t, 3)))
				// Its session was ended: the first try says so, the next is refused.
				err := write(a, nextOf(0, 2), line(t, 2))
				for try := 0; try < 3 && err != nil && sdk.AsFault(err).Retryable; try++ {
					err = write(a, nextOf(0, 2), line(t, 2))
				}
				return err
			},
		},
		{
			name: "a predecessor of the same epoch", without: ledger.Switches{ClaimOff: true}, want: sdk.ErrFenced, rows: "1", unfenced: "1,2",
			run: func(t *testing.T, d *db, sw ledger.Switches) error {
				a, b := d.writer(t, on(sw)), d.writer(t, on(sw))
				claim(t, a, execution("x1", 1))
				must(t, write(a, nextOf(0, 1), line(t, 1)))
				claim(t, b, execution("x1", 1))
				err := write(a, nextOf(0, 2), line(t, 2))
				for try := 0; try < 3 && err != nil && sdk.AsFault(err).Retryable; try++ {
					err = write(a, nextOf(0, 2), line(t, 2))
				}
				return err
			},
		},
		{
			name: "a batch that does not follow the one before", without: ledger.Switches{BatchOff: true}, want: sdk.ErrTargetWentBack, rows: "1", unfenced: "1,3",
			run: func(t *testing.T, d *db, sw ledger.Switches) error {
				a := d.writer(t, on(sw))
				claim(t, a, execution("x1", 1))
				must(t, write(a, nextOf(0, 1), line(t, 1)))
				return write(a, nextOf(0, 3), line(t, 3))
			},
		},
		{
			name: "a fence that matched no row", without: ledger.Switches{CountOff: true}, want: sdk.ErrTargetWentBack, rows: "1", unfenced: "1,2",
			run: func(t *testing.T, d *db, sw ledger.Switches) error {
				a := d.writer(t, on(sw))
				claim(t, a, execution("x1", 1))
				must(t, write(a, nextOf(0, 1), line(t, 1)))
				d.rows(t, "UPDATE datalink_progress SET batch_no = 0")
				return write(a, nextOf(0, 2), line(t, 2))
			},
		},
		{
			name: "a claim of an equal epoch", without: ledger.Switches{EpochOff: true}, want: sdk.ErrFenced, rows: "1", unfenced: "1",
			run: func(t *testing.T, d *db, sw ledger.Switches) error {
				a, b := d.writer(t, on(sw)), d.writer(t, on(sw))
				claim(t, a, execution("x1", 1))
				must(t, write(a, nextOf(0, 1), line(t, 1)))
				_, err := b.Claim(ctx, execution("y1", 1))
				if err == nil {
					return nil
				}
				// Its refusal has not ended the other's session.
				if werr := write(a, nextOf(0, 2)); werr != nil {
					t.Errorf("after a claim that was refused: %v", werr)
				}
				return err
			},
		},
		{
			name: "a claim from another store", without: ledger.Switches{StoreOff: true}, want: sdk.ErrForeignClaim, rows: "1", unfenced: "1",
			run: func(t *testing.T, d *db, sw ledger.Switches) error {
				a, b := d.writer(t, on(sw)), d.writer(t, on(sw))
				claim(t, a, execution("x1", 1))
				must(t, write(a, nextOf(0, 1), line(t, 1)))
				ex := execution("y1", 9)
				ex.StoreUID = "store-2"
				_, err := b.Claim(ctx, ex)
				return err
			},
		},
		{
			name: "a target put back to an older copy", without: ledger.Switches{BatchOff: true}, want: sdk.ErrTargetWentBack, rows: "1", unfenced: "1,3",
			run: func(t *testing.T, d *db, sw ledger.Switches) error {
				a := d.writer(t, on(sw))
				claim(t, a, execution("x1", 1))
				must(t, write(a, nextOf(0, 1), line(t, 1)))
				d.rows(t, "CREATE TABLE kept AS TABLE datalink_progress; CREATE TABLE log1 AS TABLE log")
				must(t, write(a, nextOf(0, 2), line(t, 2)))
				d.rows(t, "BEGIN; DELETE FROM datalink_progress; INSERT INTO datalink_progress TABLE kept; DELETE FROM log; INSERT INTO log TABLE log1; COMMIT")
				return write(a, nextOf(0, 3), line(t, 3))
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := s.db(t)
			if err := c.run(t, d, ledger.Switches{}); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if got := d.list(t, lines); got != c.rows {
				t.Errorf("rows %q, want %q", got, c.rows)
			}
		})
		t.Run(c.name+", unchecked", func(t *testing.T) {
			d := s.db(t)
			err := c.run(t, d, c.without)
			switch {
			case c.unfenced == "" && err == nil:
				t.Error("nothing goes wrong without the check")
			case c.unfenced != "" && err != nil:
				t.Errorf("without the check: %v", err)
			case c.unfenced != "" && d.list(t, lines) != c.unfenced:
				t.Errorf("rows %q without the check, want %q", d.list(t, lines), c.unfenced)
			}
		})
	}
}

func TestCommit(t *testing.T) {
	s := start(t)
	ctx := context.Background()
	begin := func(t *testing.T, w *Writer, n uint64) sdk.Tx {
		t.Helper()
		tx, err := w.Begin(ctx, []int32{0})
		must(t, err)
		must(t, tx.Fence(ctx, []sdk.Next{nextOf(0, n)}))
		_, err = tx.Apply(ctx, &sdk.Changes{Segments: [][]sdk.Change{{line(t, int(n))}}})
		must(t, err)
		return tx
	}
	settled := func(t *testing.T, w *Writer, want uint64) {
		t.Helper()
		p, err := w.Settle(ctx, 0)
		must(t, err)
		if p.BatchNo != want {
			t.Errorf("settled at batch %d, want %d", p.BatchNo, want)
		}
		must(t, write(w, nextOf(0, want+1), line(t, int(want+1))))
	}
	for _, c := range []struct {
		name    string
		verdict byte
		batch   uint64
	}{{"lost on the way to the server", 'd', 1}, {"its answer lost", 'a', 2}} {
		t.Run(c.name, func(t *testing.T) {
			d := s.db(t)
			p := newProxy(t, s.Addr())
			cfg := on(ledger.Switches{})
			cfg.URL = fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable", p.l.Addr(), d.name)
			w := d.writer(t, cfg)
			claim(t, w, execution("x1", 1))
			must(t, write(w, nextOf(0, 1), line(t, 1)))
			tx := begin(t, w, 2)
			p.set(atCommit(c.verdict))
			if err := tx.Commit(ctx); !errors.Is(err, sdk.ErrCommitUnknown) {
				t.Fatalf("got %v, want %v", err, sdk.ErrCommitUnknown)
			}
			must(t, tx.Rollback(ctx))
			settled(t, w, c.batch)
			if got, want := d.list(t, lines), strings.TrimSuffix("1,2,3"[:2*c.batch+1], ","); got != want {
				t.Errorf("rows %s, want %s", got, want)
			}
		})
	}
	t.Run("answered ROLLBACK", func(t *testing.T) {
		d := s.db(t)
		w := d.writer(t, on(ledger.Switches{}))
		claim(t, w, execution("x1", 1))
		x := begin(t, w, 1).(*tx)
		if err := x.s.run(ctx, "SELECT 1/0"); err == nil {
			t.Fatal("no error")
		}
		err := x.Commit(ctx)
		if f := sdk.AsFault(err); f == nil || !f.Retryable || !strings.Contains(f.Message, "ROLLBACK") {
			t.Errorf("got %v, want a retryable fault that names ROLLBACK", err)
		}
		must(t, write(w, nextOf(0, 1), line(t, 1)))
	})
	t.Run("its session ended while it waits", func(t *testing.T) {
		d := s.db(t)
		w := d.writer(t, on(ledger.Switches{}))
		claim(t, w, execution("x1", 1))
		must(t, write(w, nextOf(0, 1), line(t, 1)))
		x := begin(t, w, 2).(*tx)
		// The commit is done here and waits for a standby that there is not.
		s.SQL("ALTER SYSTEM SET synchronous_standby_names = 'nobody'; SELECT pg_reload_conf();")
		done := make(chan error, 1)
		go func() { done <- x.Commit(ctx) }()
		eventually(t, "the commit waits", func() bool {
			return d.list(t, "SET synchronous_commit = local; SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") == "1"
		})
		d.rows(t, fmt.Sprintf("SELECT pg_terminate_backend(%d)", x.s.pid))
		if err := <-done; !errors.Is(err, sdk.ErrCommitUnknown) {
			t.Errorf("got %v, want %v", err, sdk.ErrCommitUnknown)
		}
		s.SQL("ALTER SYSTEM RESET synchronous_standby_names; SELECT pg_reload_conf();")
		// A session that still has the setting would wait in its next commit for ever.
		eventually(t, "new sessions know the setting", func() bool {
			return d.list(t, "SHOW synchronous_standby_names") == ""
		})
		settled(t, w, 2)
		if got := d.list(t, lines); got != "1,2,3" {
			t.Errorf("rows %s", got)
		}
	})
	t.Run("a deadlock in the middle of a batch", func(t *testing.T) {
		d := s.db(t)
		cfg := on(ledger.Switches{})
		cfg.LockTimeout = 20 * time.Second
		w := d.writer(t, cfg)
		claim(t, w, execution("x1", 1))
		row := func(id int, v string) sdk.Change { return change(t, sdk.Upsert, keyed(), nil, vals(id, v, nil)) }
		must(t, write(w, nextOf(0, 1), row(1, "a"), row(2, "a")))
		tx, err := w.Begin(ctx, []int32{0})
		must(t, err)
		must(t, tx.Fence(ctx, []sdk.Next{nextOf(0, 2)}))
		_, err = tx.Apply(ctx, &sdk.Changes{Segments: [][]sdk.Change{{row(1, "b")}}})
		must(t, err)
		other := make(chan []string, 1)
		go func() {
			other <- d.rows(t, "SET deadlock_timeout = '30s'; BEGIN; UPDATE t SET v = 'other' WHERE id = 2; UPDATE t SET v = 'other' WHERE id = 1; ROLLBACK")
		}()
		eventually(t, "the other session waits", func() bool {
			return d.list(t, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()") == "1"
		})
		_, err = tx.Apply(ctx, &sdk.Changes{Segments: [][]sdk.Change{{row(2, "b")}}})
		if f := sdk.AsFault(err); f == nil || !f.Retryable || !strings.Contains(f.Message, pgDeadlock) {
			t.Errorf("got %v, want a retryable deadlock", err)
		}
		must(t, tx.Rollback(ctx))
		<-other
		must(t, write(w, nextOf(0, 2), row(1, "b"), row(2, "b")))
		if got := d.list(t, "SELECT v FROM t ORDER BY id"); got != "b,b" {
			t.Errorf("rows %s", got)
		}
	})
}

func TestClaimLanes(t *testing.T) {
	s := start(t)
	d := s.db(t)
	ex := func(id string, epoch uint64, lanes int32) sdk.Execution {
		e := execution(id, epoch)
		e.Lanes = lanes
		return e
	}
	a := d.writer(t, on(ledger.Switches{}))
	claim(t, a, ex("x1", 1, 2))
	must(t, write(a, nextOf(0, 1), line(t, 1)))
	b := d.writer(t, on(ledger.Switches{}))
	if c := claim(t, b, ex("x2", 2, 3)); c.Lanes != 2 || len(c.Points) != 2 {
		t.Fatalf("lanes at two positions: got %d lanes, want 2 kept", c.Lanes)
	}
	n := nextOf(1, 1)
	n.Position = at(1)
	must(t, write(b, n))
	e := d.writer(t, on(ledger.Switches{}))
	if c := claim(t, e, ex("x3", 3, 3)); c.Lanes != 3 || len(c.Points) != 3 || string(c.Points[2].Position.Source) != "1" {
		t.Fatalf("lanes at one position: got %+v, want 3 lanes", c)
	}
	if got := d.list(t, "SELECT lane FROM datalink_progress ORDER BY lane"); got != "-1,0,1,2" {
		t.Errorf("lanes %s", got)
	}
	// A transaction that spans lanes moves both.
	ctx := context.Background()
	tx, err := e.Begin(ctx, []int32{0, 2})
	must(t, err)
	must(t, tx.Fence(ctx, []sdk.Next{nextOf(0, 2), nextOf(2, 2)}))
	must(t, tx.Commit(ctx))
	for _, lane := range []int32{0, 2} {
		if p, err := e.Settle(ctx, lane); err != nil || p.BatchNo != 2 {
			t.Errorf("lane %d: %+v, %v", lane, p, err)
		}
	}
}

func TestServerRestart(t *testing.T) {
	s := start(t)
	d := s.db(t)
	w := d.writer(t, on(ledger.Switches{}))
	claim(t, w, execution("x1", 1))
	must(t, write(w, nextOf(0, 1), line(t, 1)))
	s.Kill()
	err := write(w, nextOf(0, 2), line(t, 2))
	if f := sdk.AsFault(err); f == nil || !f.Retryable {
		t.Errorf("without a server: got %v, want a retryable fault", err)
	}
	s.Restart()
	must(t, write(w, nextOf(0, 2), line(t, 2)))
	if got := d.list(t, lines); got != "1,2" {
		t.Errorf("rows %s", got)
	}
}

// A proxy that shares sessions is refused; one that passes whole sessions on is
// not told from none.
func TestPooler(t *testing.T) {
	s := start(t)
	d := s.db(t)
	p := newPooler(t, d.url)
	cfg := on(ledger.Switches{})
	cfg.URL = fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable", p.l.Addr(), d.name)
	w := d.writer(t, cfg)
	_, err := w.Claim(context.Background(), execution("x1", 1))
	if f := sdk.AsFault(err); f == nil || f.Code != sdk.CodeRefused || !strings.Contains(f.Message, "shares sessions") {
		t.Fatalf("claim through a pool of transactions: got %v, want refused", err)
	}
	found, err := w.Check(context.Background())
	must(t, err)
	if len(found) != 1 || found[0].Severity != sdk.Error {
		t.Errorf("check: %+v", found)
	}
	// The fence itself notices a backend that is not the one with the lock.
	a := d.writer(t, on(ledger.Switches{}))
	claim(t, a, execution("x1", 1))
	must(t, write(a, nextOf(0, 1), line(t, 1)))
	l, err := a.take(context.Background(), 0)
	must(t, err)
	l.s.pid++
	l.give()
	if err := write(a, nextOf(0, 2), line(t, 2)); err == nil || !strings.Contains(err.Error(), "shares sessions") {
		t.Errorf("another backend: got %v", err)
	}
}

func TestRelease(t *testing.T) {
	s := start(t)
	d := s.db(t)
	ctx := context.Background()
	a := d.writer(t, on(ledger.Switches{}))
	must(t, a.Release(ctx, "uid-1"))
	claim(t, a, execution("x1", 1))
	must(t, write(a, nextOf(0, 1), line(t, 1)))
	must(t, a.Release(ctx, "uid-1"))
	must(t, a.Release(ctx, "uid-1"))
	if err := write(a, nextOf(0, 2), line(t, 2)); !errors.Is(err, sdk.ErrFenced) {
		t.Errorf("a write after the release: %v", err)
	}
	ex := execution("y1", 1)
	ex.TaskUID = "uid-2"
	b := d.writer(t, on(ledger.Switches{}))
	if c := claim(t, b, ex); !c.Points[0].Position.IsZero() {
		t.Errorf("a new task of the name begins at %+v", c.Points[0])
	}
}

// A look takes nothing: the session of the execution in force goes on.
func TestLook(t *testing.T) {
	s := start(t)
	d := s.db(t)
	ctx := context.Background()
	a, b := d.writer(t, on(ledger.Switches{})), d.writer(t, on(ledger.Switches{}))
	if c, err := b.Look(ctx, execution("x1", 1)); err != nil || len(c.Points) != 1 || !c.Points[0].Position.IsZero() {
		t.Errorf("an empty target: %+v, %v", c, err)
	}
	if got := d.list(t, "SELECT to_regclass('datalink_progress') IS NULL"); got != "t" {
		t.Error("a look made tables")
	}
	claim(t, a, execution("x1", 1))
	must(t, write(a, nextOf(0, 1), line(t, 1)))
	c, err := b.Look(ctx, execution("x2", 2))
	if err != nil || c.Points[0].BatchNo != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := b.Look(ctx, execution("x0", 0)); !errors.Is(err, sdk.ErrFenced) {
		t.Errorf("a lower epoch: %v", err)
	}
	texts, _, err := b.Rehearse(ctx, keyed())
	if err != nil || len(texts) != 1 || !strings.HasPrefix(texts[0], `CREATE TABLE "public"."t"`) {
		t.Errorf("rehearsal %q, %v", texts, err)
	}
	must(t, write(a, nextOf(0, 2), line(t, 2)))
}

// What the server, database or user sets is overruled where a commit would not be
// one, or a statement would be cut short.
func TestSettings(t *testing.T) {
	s := start(t)
	d := s.db(t)
	d.rows(t, "ALTER DATABASE "+d.name+" SET synchronous_commit = off; ALTER DATABASE "+d.name+" SET default_transaction_isolation = 'serializable'; ALTER DATABASE "+d.name+" SET statement_timeout = 300")
	w := d.writer(t, on(ledger.Switches{}))
	claim(t, w, execution("x1", 1))
	must(t, write(w, nextOf(0, 1), line(t, 1)))
	l, err := w.take(context.Background(), 0)
	must(t, err)
	defer l.give()
	r, err := l.s.query(context.Background(), "SELECT current_setting('synchronous_commit'), current_setting('transaction_isolation'), current_setting('statement_timeout')")
	must(t, err)
	if got := r[0].text(0) + " " + r[0].text(1) + " " + r[0].text(2); got != "on read committed 0" {
		t.Errorf("got %s", got)
	}
}
