package mysql

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/ledger"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/rowtest"
	"github.com/datalink-go/datalink/sdk"
)

func init() {
	suite["a late packet"] = latePacket
	suite["a late schema change"] = lateAlter
	suite["a lower epoch ends nobody"] = lowerEpoch
	suite["an equal epoch of another execution"] = equalEpoch
	suite["a second store"] = secondStore
	suite["a restarted plugin"] = restartedPlugin
	suite["a target that went back"] = wentBack
	suite["another count of lanes"] = otherLanes
	suite["a late writer between transactions"] = lateBetween
}

// expect compares a query's rows.
func expect(t *testing.T, s *testServer, database, query string, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, s.rows(database, query)); d != "" {
		t.Errorf("%s: %s", query, d)
	}
}

// latePacket: a writer stands still with a packet on its way while another one
// claims. Whatever packet it is, it changes nothing when it arrives.
func latePacket(t *testing.T, s *testServer) {
	for _, step := range []string{"fence", "rows", "commit"} {
		for _, sw := range []ledger.Switches{{}, {LocksOff: true}} {
			t.Run(fmt.Sprintf("%s, %+v", step, sw), func(t *testing.T) {
				db, p := s.database(t), newProxy(t, s.Addr())
				schema := rowtest.Keyed()
				a := s.writer(t, db, func(c *Config) { c.Dial, c.Switches = p.dial, sw })
				b := s.writer(t, db, func(c *Config) { c.Switches, c.LockWait = sw, time.Second })
				claim(t, a, execution("a", 1))
				rowtest.Must(t, write(a, next(0, 1), insert(t, schema, 1, "a", 1)))
				tx, err := a.Begin(bg, []int32{0})
				rowtest.Must(t, err)
				ch := &sdk.Changes{Segments: [][]sdk.Change{{insert(t, schema, 2, "late", 2)}}}
				steps := map[string]func() error{
					"fence": func() error { return tx.Fence(bg, []sdk.Next{next(0, 2)}) },
					"rows": func() error {
						_, err := tx.Apply(bg, ch)
						return err
					},
					"commit": func() error { return tx.Commit(bg) },
				}
				for _, name := range []string{"fence", "rows", "commit"} {
					if name == step {
						break
					}
					rowtest.Must(t, steps[name]())
				}
				p.set(&p.hold, true)
				late := make(chan error, 1)
				go func() { late <- steps[step]() }()
				p.awaitHeld()
				got, err := b.Claim(bg, execution("b", 2))
				if sw.LocksOff && step != "fence" {
					// Nobody ends the session that holds the row.
					if err == nil {
						t.Error("the claim did not meet the late writer's row lock")
					}
					p.set(&p.hold, false)
					<-late
					return
				}
				rowtest.Must(t, err)
				if len(got.Points) != 1 || got.Points[0].BatchNo != 1 {
					t.Errorf("the claim got %+v, want batch 1", got.Points)
				}
				p.set(&p.hold, false)
				if err := <-late; err == nil {
					t.Error("a packet that came after the claim was taken")
				}
				_ = tx.Rollback(bg)
				if !sw.LocksOff {
					if _, err := a.Settle(bg, 0); !errors.Is(err, sdk.ErrFenced) {
						t.Errorf("settle: got %v, want %v", err, sdk.ErrFenced)
					}
				}
				expect(t, s, db, "SELECT id, v FROM t", "1 a")
				rowtest.Must(t, write(b, next(0, 2), insert(t, schema, 3, "b", 3)))
				expect(t, s, db, "SELECT id, v FROM t ORDER BY id", "1 a", "3 b")
			})
		}
	}
}

// lateBetween: the late writer's session is ended, it opens a new one, and finds
// the claim over. With the checks off it would write.
func lateBetween(t *testing.T, s *testServer) {
	for _, c := range []struct {
		sw     ledger.Switches
		writes bool
	}{{ledger.Switches{}, false}, {ledger.Switches{EpochOff: true, LocksOff: true, BatchOff: true}, true}, {ledger.Switches{LocksOff: true, CountOff: true}, true}} {
		db, schema := s.database(t), rowtest.Keyed()
		a := s.writer(t, db, func(cfg *Config) { cfg.Switches = c.sw })
		b := s.writer(t, db, nil)
		claim(t, a, execution("a", 1))
		rowtest.Must(t, write(a, next(0, 1), insert(t, schema, 1, "a", 1)))
		claim(t, b, execution("b", 2))
		rowtest.Must(t, write(b, next(0, 2), insert(t, schema, 1, "b", 1)))
		err := write(a, next(0, 2), insert(t, schema, 1, "late", 1))
		for try := 0; !c.writes && try < 3 && sdk.AsFault(err).Retryable; try++ {
			err = write(a, next(0, 2), insert(t, schema, 1, "late", 1))
		}
		if c.writes != (err == nil) {
			t.Errorf("%+v: got %v, want a write: %t", c.sw, err, c.writes)
		}
		if !c.writes && !errors.Is(err, sdk.ErrFenced) {
			t.Errorf("%+v: got %v, want %v", c.sw, err, sdk.ErrFenced)
		}
	}
}

// lateAlter: a statement that commits by itself is on its way while another
// writer claims.
func lateAlter(t *testing.T, s *testServer) {
	db, p := s.database(t), newProxy(t, s.Addr())
	a := s.writer(t, db, func(c *Config) { c.Dial = p.dial })
	b := s.writer(t, db, nil)
	claim(t, a, execution("a", 1))
	own, err := a.ownSession(bg)
	rowtest.Must(t, err)
	p.set(&p.hold, true)
	late := make(chan error, 1)
	go func() { late <- own.exec(bg, "CREATE TABLE "+tableName(db, "late")+" (id INT)") }()
	p.awaitHeld()
	claim(t, b, execution("b", 2))
	p.set(&p.hold, false)
	if err := <-late; err == nil {
		t.Error("a schema change that came after the claim was taken")
	}
	expect(t, s, db, "SHOW TABLES LIKE 'late'")
	if _, err := a.Prepare(bg, rowtest.Keyed()); !errors.Is(err, sdk.ErrFenced) {
		t.Errorf("prepare after the claim: got %v, want %v", err, sdk.ErrFenced)
	}
	expect(t, s, db, "SHOW TABLES LIKE 't'")
}

func lowerEpoch(t *testing.T, s *testServer) {
	db, schema := s.database(t), rowtest.Keyed()
	a, b := s.writer(t, db, nil), s.writer(t, db, nil)
	claim(t, a, execution("a", 5))
	tx, err := begin(a, next(0, 1), insert(t, schema, 1, "a", 1))
	rowtest.Must(t, err)
	if _, err := b.Claim(bg, execution("b", 4)); !errors.Is(err, sdk.ErrFenced) {
		t.Errorf("claim of a lower epoch: got %v, want %v", err, sdk.ErrFenced)
	}
	rowtest.Must(t, tx.Commit(bg))
	expect(t, s, db, "SELECT id, v FROM t", "1 a")
}

func equalEpoch(t *testing.T, s *testServer) {
	db := s.database(t)
	claim(t, s.writer(t, db, nil), execution("a", 5))
	if _, err := s.writer(t, db, nil).Claim(bg, execution("b", 5)); !errors.Is(err, sdk.ErrFenced) {
		t.Errorf("got %v, want %v", err, sdk.ErrFenced)
	}
	_, err := s.writer(t, db, func(c *Config) { c.Switches.EpochOff = true }).Claim(bg, execution("b", 5))
	rowtest.Must(t, err)
}

func secondStore(t *testing.T, s *testServer) {
	db, schema := s.database(t), rowtest.Keyed()
	a, b := s.writer(t, db, nil), s.writer(t, db, nil)
	claim(t, a, execution("a", 5))
	rowtest.Must(t, write(a, next(0, 1), insert(t, schema, 1, "a", 1)))
	ex := execution("b", 1)
	ex.StoreUID = "store-2"
	if _, err := b.Claim(bg, ex); !errors.Is(err, sdk.ErrForeignClaim) {
		t.Errorf("got %v, want %v", err, sdk.ErrForeignClaim)
	}
	rowtest.Must(t, write(a, next(0, 2), insert(t, schema, 2, "a", 1)))
	ex.TakeOver = true
	if got := claim(t, b, ex); got.Points[0].BatchNo != 2 {
		t.Errorf("took over %+v, want batch 2", got.Points)
	}
	if err := write(a, next(0, 3), insert(t, schema, 3, "late", 1)); err == nil {
		t.Error("the owner wrote after it was taken over")
	}
	if err := write(a, next(0, 3), insert(t, schema, 3, "late", 1)); !errors.Is(err, sdk.ErrFenced) {
		t.Errorf("got %v, want %v", err, sdk.ErrFenced)
	}
	rowtest.Must(t, b.Release(bg, "uid-1"))
	other := execution("c", 1)
	other.TaskUID = "uid-2"
	if got := claim(t, s.writer(t, db, nil), other); got.Points[0].BatchNo != 0 {
		t.Errorf("after the release got %+v, want nothing", got.Points)
	}
}

func restartedPlugin(t *testing.T, s *testServer) {
	for _, off := range []bool{false, true} {
		db, schema := s.database(t), rowtest.Keyed()
		a := s.writer(t, db, func(c *Config) { c.Switches.ClaimOff, c.Switches.LocksOff = off, off })
		b := s.writer(t, db, nil)
		claim(t, a, execution("a", 5))
		rowtest.Must(t, write(a, next(0, 1), insert(t, schema, 1, "a", 1)))
		claim(t, b, execution("a", 5))
		err := write(a, next(0, 2), insert(t, schema, 2, "late", 1))
		if !off && sdk.AsFault(err).Retryable {
			err = write(a, next(0, 2), insert(t, schema, 2, "late", 1))
		}
		if off != (err == nil) || !off && !errors.Is(err, sdk.ErrFenced) {
			t.Errorf("claim number off %t: got %v", off, err)
		}
	}
}

func wentBack(t *testing.T, s *testServer) {
	for _, off := range []bool{false, true} {
		db, schema := s.database(t), rowtest.Keyed()
		a := s.writer(t, db, func(c *Config) { c.Switches.BatchOff = off })
		claim(t, a, execution("a", 5))
		rowtest.Must(t, write(a, next(0, 1), insert(t, schema, 1, "a", 1)))
		s.SQL("CREATE TABLE old AS SELECT * FROM datalink_progress; CREATE TABLE old_t AS SELECT * FROM t", db)
		rowtest.Must(t, write(a, next(0, 2), insert(t, schema, 2, "a", 1)))
		s.SQL("REPLACE INTO datalink_progress SELECT * FROM old; DELETE FROM t; INSERT INTO t SELECT * FROM old_t", db)
		err := write(a, next(0, 3), insert(t, schema, 3, "a", 1))
		if off != (err == nil) || !off && !errors.Is(err, sdk.ErrTargetWentBack) {
			t.Errorf("batch number off %t: got %v", off, err)
		}
		if off {
			continue
		}
		s.SQL("DROP TABLE datalink_progress", db)
		if err := write(a, next(0, 3), insert(t, schema, 3, "a", 1)); err == nil {
			t.Error("wrote without a progress table")
		}
	}
}

// otherLanes: lanes at different positions stay until they have come to one.
func otherLanes(t *testing.T, s *testServer) {
	db, schema := s.database(t), rowtest.Keyed()
	ex := execution("a", 1)
	ex.Lanes = 3
	a := s.writer(t, db, nil)
	claim(t, a, ex)
	rowtest.Must(t, write(a, next(0, 1), insert(t, schema, 1, "a", 1)))
	ex.Lanes, ex.Epoch, ex.ID = 2, 2, "b"
	b := s.writer(t, db, nil)
	if got := claim(t, b, ex); got.Lanes != 3 || len(got.Points) != 3 {
		t.Errorf("got %d lanes, %d points, want the old 3", got.Lanes, len(got.Points))
	}
	for lane := range int32(3) {
		n := next(lane, 1)
		if lane == 0 {
			n.BatchNo = 2
		}
		n.Position = at(7)
		rowtest.Must(t, write(b, n))
	}
	if got := claim(t, b, ex); got.Lanes != 2 || len(got.Points) != 2 || string(got.Points[1].Position.Source) != "7" || got.Points[1].BatchNo != 2 {
		t.Errorf("got %+v, want two lanes at position 7, batch 2", got)
	}
	expect(t, s, db, "SELECT lane, lanes FROM datalink_progress ORDER BY lane", "-1 2", "0 2", "1 2")
}
