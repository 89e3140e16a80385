package pglog

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgcat"
	"github.com/datalink-go/datalink/sdk"
)

// TestTableAdded starts a task again after a table was made whose first rows are in
// a transaction that is open: the log does not hold what it wrote before the table
// was published, so the snapshot must wait for it.
func TestTableAdded(t *testing.T) {
	srv := server(t)
	sqlText(srv, "CREATE TABLE a (id int PRIMARY KEY, v text); INSERT INTO a VALUES (1, 'x')")
	cfg := Config{URL: url(srv), Tables: []string{"public.*"}, Switches: FromEnv()}
	tg := newTarget(t)
	s := tg.mustOpen(cfg)
	s.caughtUp(srv)
	s.close()
	sqlText(srv, "CREATE TABLE b (id int PRIMARY KEY, v text); INSERT INTO b VALUES (1, 'there'); UPDATE a SET v = 'y'")
	server, err := pgcat.Parse(url(srv))
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	c, err := server.Connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer pgcat.Close(c)
	if err := pgcat.Exec(ctx, c, "BEGIN; INSERT INTO public.b VALUES (2, 'open')"); err != nil {
		t.Fatal(err)
	}
	s = tg.mustOpen(cfg)
	defer s.close()
	done, finished := make(chan error, 1), make(chan struct{})
	go func() {
		// It is committed once the reader has found it open twice, or has not waited.
		for s.r.waited.Load() < 2 {
			select {
			case <-finished:
				done <- errors.New("the snapshot did not wait for the transaction")
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
		done <- pgcat.Exec(ctx, c, "COMMIT")
	}()
	s.until(func() bool { return !s.r.pending() })
	close(finished)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	sqlText(srv, "UPDATE b SET v = v || '!' WHERE id = 1; INSERT INTO b VALUES (3, 'after')")
	s.caughtUp(srv)
	tg.equal(srv, "public.a", "public.b")
}

// TestTakenAnew spoils the copy while the source changes, and asks for the table
// anew: the copy is mended, what the source does meanwhile included.
func TestTakenAnew(t *testing.T) {
	srv := server(t)
	sqlText(srv, loadTables)
	cfg := Config{URL: url(srv), Tables: []string{"public.*"}, ChunkRows: 100, Switches: FromEnv()}
	tg := newTarget(t)
	s := tg.mustOpen(cfg)
	s.caughtUp(srv)
	stop, wg := make(chan struct{}), &sync.WaitGroup{}
	wg.Add(1)
	go load(t, srv, 3, stop, wg)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for round := range 6 {
		s.caughtUp(srv)
		a := tg.tables["public.a"]
		for k := range a.rows {
			if rand.IntN(5) == 0 {
				a.rows[k] = append([]string{a.rows[k][0], "'spoiled'"}, a.rows[k][2:]...)
			}
		}
		done := make(chan error, 1)
		go func(r *Reader) {
			st, err := r.Snapshot(ctx, sdk.SnapshotRequest{Tables: []string{"public.a"}})
			if err == nil && len(st.Accepted) != 1 {
				t.Errorf("accepted %v", st.Accepted)
			}
			done <- err
		}(s.r)
		accepted := false
		s.until(func() bool {
			_ = s.r.Durable(ctx, tg.point)
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
				accepted = true
			default:
			}
			st, _ := s.r.Snapshot(ctx, sdk.SnapshotRequest{})
			if round%3 == 1 && accepted {
				return true // ended before it is done
			}
			for _, x := range st.Tables {
				if x.Table == "public.a" && x.Phase == "done" && accepted && !s.r.pending() {
					return true
				}
			}
			return false
		})
		if round%3 == 1 {
			s.close()
			s = tg.mustOpen(cfg)
		}
	}
	close(stop)
	wg.Wait()
	s.caughtUp(srv)
	s.close()
	tg.equal(srv, "public.a", "public.b")
}
