package mysql

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/rowtest"
	"github.com/datalink-go/datalink/sdk"
)

func init() {
	suite["a lost answer to COMMIT"] = lostCommit
	suite["a session killed around COMMIT"] = killedCommit
	suite["a deadlock in the middle of a batch"] = deadlock
	suite["a lock that is waited for too long"] = lockWait
	suite["a killed server"] = killedServer
	suite["a lost connection is no silent new one"] = newSession
}

// lostCommit: COMMIT was carried out and its answer lost, or it never arrived.
func lostCommit(t *testing.T, s *testServer) {
	for _, arrives := range []bool{true, false} {
		db, schema, p := s.database(t), rowtest.Keyed(), newProxy(t, s.Addr())
		a := s.writer(t, db, func(c *Config) { c.Dial = p.dial })
		claim(t, a, execution("a", 1))
		rowtest.Must(t, write(a, next(0, 1), insert(t, schema, 1, "a", 1)))
		tx, err := begin(a, next(0, 2), insert(t, schema, 2, "b", 2))
		rowtest.Must(t, err)
		if arrives {
			p.set(&p.deaf, true)
		} else {
			p.set(&p.hold, true)
		}
		answer := make(chan error, 1)
		go func() { answer <- tx.Commit(bg) }()
		p.awaitHeld()
		p.cut()
		if err := <-answer; !errors.Is(err, sdk.ErrCommitUnknown) {
			t.Errorf("got %v, want %v", err, sdk.ErrCommitUnknown)
		}
		got, err := a.Settle(bg, 0)
		rowtest.Must(t, err)
		want, rows := uint64(1), []string{"1 a"}
		if arrives {
			want, rows = 2, []string{"1 a", "2 b"}
		}
		if got.BatchNo != want {
			t.Errorf("COMMIT arrives %t: settled as batch %d, want %d", arrives, got.BatchNo, want)
		}
		expect(t, s, db, "SELECT id, v FROM t ORDER BY id", rows...)
		rowtest.Must(t, write(a, next(0, want+1), insert(t, schema, 3, "c", 3)))
	}
}

// killedCommit: the session is killed before, after and while COMMIT runs. What
// Settle says is what the table holds.
func killedCommit(t *testing.T, s *testServer) {
	db, schema := s.database(t), rowtest.Keyed()
	a, admin := s.writer(t, db, nil), s.admin(t)
	claim(t, a, execution("a", 1))
	batch := uint64(0)
	var want []string
	for id := range 30 {
		tx, err := begin(a, next(0, batch+1), insert(t, schema, id, "x", id))
		if err != nil && sdk.AsFault(err).Retryable { // killed after it had answered
			tx, err = begin(a, next(0, batch+1), insert(t, schema, id, "x", id))
		}
		rowtest.Must(t, err)
		done := make(chan error, 1)
		kill := func() { done <- admin.exec(bg, fmt.Sprintf("KILL %d", a.lanes[0].s.id)) }
		a.atCommit = func() { go kill() }
		if id%3 == 0 {
			a.atCommit = kill
		}
		err = tx.Commit(bg)
		if err := <-done; err != nil && number(err) != erNoSuchThread {
			t.Fatal(err)
		}
		a.atCommit = nil
		if err == nil {
			batch++
			want = append(want, fmt.Sprint(id))
			continue
		}
		if !errors.Is(err, sdk.ErrCommitUnknown) {
			t.Fatalf("got %v, want %v", err, sdk.ErrCommitUnknown)
		}
		got, err := a.Settle(bg, 0)
		rowtest.Must(t, err)
		if got.BatchNo == batch+1 {
			want = append(want, fmt.Sprint(id))
		}
		batch = got.BatchNo
	}
	expect(t, s, db, "SELECT id FROM t ORDER BY id", want...)
}

// deadlock: another session and a batch wait for one another; the server undoes
// the batch, its fence too.
func deadlock(t *testing.T, s *testServer) {
	db, schema, admin := s.database(t), rowtest.Keyed(), s.admin(t)
	a := s.writer(t, db, nil)
	claim(t, a, execution("a", 1))
	first := []sdk.Change{}
	for id := range 200 {
		first = append(first, insert(t, schema, id, "a", 0))
	}
	rowtest.Must(t, write(a, next(0, 1), first...))
	// The session that has changed more is not the one that is undone.
	rowtest.Must(t, admin.exec(bg, "START TRANSACTION"))
	rowtest.Must(t, admin.exec(bg, "UPDATE "+tableName(db, "t")+" SET n = 5 WHERE id BETWEEN 100 AND 199"))
	tx, err := begin(a, next(0, 2), insert(t, schema, 1, "b", 1))
	rowtest.Must(t, err)
	other := make(chan error, 1)
	go func() {
		rows := "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'"
		for s.rows(db, rows)[0] == "0" {
		}
		err := admin.exec(bg, "UPDATE "+tableName(db, "t")+" SET n = 6 WHERE id = 1")
		other <- errors.Join(err, admin.exec(bg, "COMMIT"))
	}()
	_, err = tx.Apply(bg, &sdk.Changes{Segments: [][]sdk.Change{{insert(t, schema, 150, "b", 1)}}})
	if f := sdk.AsFault(err); err == nil || !f.Retryable {
		t.Errorf("got %v, want a fault that is tried again", err)
	}
	rowtest.Must(t, tx.Rollback(bg))
	rowtest.Must(t, <-other)
	expect(t, s, db, "SELECT batch_no FROM datalink_progress WHERE lane = 0", "1")
	expect(t, s, db, "SELECT COUNT(*) FROM t WHERE v = 'b'", "0")
	rowtest.Must(t, write(a, next(0, 2), insert(t, schema, 1, "b", 1), insert(t, schema, 150, "b", 1)))
	if n := a.cfg.Stats.Deadlocks.Load(); n != 1 {
		t.Errorf("counted %d deadlocks, want 1", n)
	}
}

func lockWait(t *testing.T, s *testServer) {
	db, schema, admin := s.database(t), rowtest.Keyed(), s.admin(t)
	a := s.writer(t, db, func(c *Config) { c.LockWait = 1 })
	claim(t, a, execution("a", 1))
	rowtest.Must(t, write(a, next(0, 1), insert(t, schema, 1, "a", 0)))
	rowtest.Must(t, admin.exec(bg, "START TRANSACTION"))
	rowtest.Must(t, admin.exec(bg, "UPDATE "+tableName(db, "t")+" SET n = 5 WHERE id = 1"))
	err := write(a, next(0, 2), insert(t, schema, 2, "b", 0), insert(t, schema, 1, "b", 0))
	if f := sdk.AsFault(err); err == nil || !f.Retryable {
		t.Errorf("got %v, want a fault that is tried again", err)
	}
	expect(t, s, db, "SELECT batch_no FROM datalink_progress WHERE lane = 0", "1")
	rowtest.Must(t, admin.exec(bg, "COMMIT"))
	rowtest.Must(t, write(a, next(0, 2), insert(t, schema, 1, "b", 0)))
	expect(t, s, db, "SELECT id, v FROM t", "1 b")
}

func killedServer(t *testing.T, s *testServer) {
	db, schema := s.database(t), rowtest.Keyed()
	a := s.writer(t, db, nil)
	claim(t, a, execution("a", 1))
	rowtest.Must(t, write(a, next(0, 1), insert(t, schema, 1, "a", 0)))
	tx, err := begin(a, next(0, 2), insert(t, schema, 2, "b", 0))
	rowtest.Must(t, err)
	s.Kill()
	if err := tx.Commit(bg); !errors.Is(err, sdk.ErrCommitUnknown) {
		t.Errorf("got %v, want %v", err, sdk.ErrCommitUnknown)
	}
	if _, err := a.Settle(bg, 0); err == nil || sdk.AsFault(err).Code != sdk.CodeUnavailable {
		t.Errorf("settle without a server: got %v, want %s", err, sdk.CodeUnavailable)
	}
	s.Restart()
	got, err := a.Settle(bg, 0)
	rowtest.Must(t, err)
	if got.BatchNo != 1 {
		t.Errorf("settled as batch %d, want 1", got.BatchNo)
	}
	rowtest.Must(t, write(a, next(0, 2), insert(t, schema, 2, "b", 0)))
	expect(t, s, db, "SELECT id, v FROM t ORDER BY id", "1 a", "2 b")
}

// newSession: a connection cut in the middle of a transaction ends it; the next
// one is on a session with the lock of the lane.
func newSession(t *testing.T, s *testServer) {
	db, schema, p := s.database(t), rowtest.Keyed(), newProxy(t, s.Addr())
	a := s.writer(t, db, func(c *Config) { c.Dial = p.dial })
	claim(t, a, execution("a", 1))
	rowtest.Must(t, write(a, next(0, 1), insert(t, schema, 1, "a", 0)))
	tx, err := begin(a, next(0, 2), insert(t, schema, 2, "b", 0))
	rowtest.Must(t, err)
	old := a.lanes[0].s.id
	p.cut()
	if _, err = tx.Apply(bg, &sdk.Changes{Segments: [][]sdk.Change{{insert(t, schema, 3, "c", 0)}}}); err == nil {
		t.Error("the transaction went on after its connection was cut")
	}
	rowtest.Must(t, tx.Rollback(bg))
	rowtest.Must(t, write(a, next(0, 2), insert(t, schema, 4, "d", 0)))
	expect(t, s, db, "SELECT id, v FROM t ORDER BY id", "1 a", "4 d")
	now := a.lanes[0].s
	if now.id == old || len(now.held) != 1 || !strings.HasPrefix(now.held[0], "dl") {
		t.Errorf("session %d holds %v, want a new one with the lock of the lane", now.id, now.held)
	}
}
