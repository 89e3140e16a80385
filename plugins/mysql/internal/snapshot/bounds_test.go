package snapshot

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
)

// TestLimiter: all connections together read no more rows a second than they may.
func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter{perSecond: 500}
		begun := time.Now()
		var g sync.WaitGroup
		for range 4 {
			g.Go(func() {
				for range 10 {
					if err := l.wait(t.Context(), l.most(50)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		g.Wait()
		if d := time.Since(begun); d != 4*time.Second {
			t.Errorf("2,000 rows at 500 a second took %s", d)
		}
	})
	if n := (&limiter{perSecond: 500}).most(20000); n != 125 {
		t.Errorf("one statement reads %d rows at 500 a second", n)
	}
}

// TestBoundedLoad holds the load on a server to what the options say: rows a second,
// and the time of a statement.
func TestBoundedLoad(t *testing.T) {
	for _, kind := range []string{"mysql", "mariadb"} {
		t.Run(kind, func(t *testing.T) {
			srv := stack.Start(t, kind)
			srv.SQL("CREATE DATABASE s; CREATE TABLE s.c (id INT PRIMARY KEY, ver INT NOT NULL);")
			fill(srv, "INSERT INTO s.c %s SELECT i, 0 FROM n;", 3000)
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
			defer cancel()
			s := newStream(t, srv)
			s.wants = func(db, _ string) bool { return db == "s" }
			begun := time.Now()
			s.w = New(Config{All: true, Options: Options{ChunkRows: 1000, Parallel: 2, MaxRowsPerSecond: 1000, StatementTimeout: time.Minute}}, s, nil)
			s.w.Start(ctx)
			defer s.w.Close()
			var err error
			if s.defs, err = dial(ctx, s, &s.w.cfg); err != nil {
				t.Fatal(err)
			}
			defer s.defs.Close()
			if err := s.run(ctx, func() bool { return !s.w.Active() }); err != nil {
				t.Fatalf("%v\n%s", err, s.w.dump())
			}
			if d := time.Since(begun); d < 2*time.Second {
				t.Errorf("3,000 rows at 1,000 a second took %s", d)
			}

			sess, err := dial(ctx, s, &Config{Options: Options{StatementTimeout: 500 * time.Millisecond}})
			if err != nil {
				t.Fatal(err)
			}
			defer sess.Close()
			_, err = sess.Query(ctx, "SELECT COUNT(*) FROM s.c WHERE SLEEP(0.01) = 0")
			if code := server.Code(err); code != 3024 && code != 1969 {
				t.Errorf("a statement above statementTimeout ended with %v", err)
			}
		})
	}
}
