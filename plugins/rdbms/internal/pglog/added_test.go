package pglog

import (
	"context"
	"testing"
	"time"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgcat"
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
	done := make(chan error, 1)
	go func() {
		time.Sleep(700 * time.Millisecond) // long enough for a snapshot that does not wait
		done <- pgcat.Exec(ctx, c, "COMMIT")
	}()
	s.until(func() bool { return !s.r.pending() })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	sqlText(srv, "UPDATE b SET v = v || '!' WHERE id = 1; INSERT INTO b VALUES (3, 'after')")
	s.caughtUp(srv)
	tg.equal(srv, "public.a", "public.b")
}
