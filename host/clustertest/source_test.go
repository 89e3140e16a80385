package clustertest

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql" // makes load and reads positions; the judges are the servers' clients

	"github.com/datalink-go/datalink/examples/stack"
)

// origin is a source under load: rows are inserted, changed, given other keys and
// deleted. No key is ever used again, so that a late write of a row that is gone
// stays visible.
type origin struct {
	*stack.Server
	schema string
	db     *sql.DB
	rnd    *rand.Rand
	next   int
	live   []int
	stop   context.CancelFunc
	wg     sync.WaitGroup
	done   int // transactions that were answered
}

// tables are those of a source: name, columns, and an expression that prints a row.
var tables = []struct{ name, columns, text string }{
	{"docs", "id BIGINT PRIMARY KEY, v INT NOT NULL, s VARCHAR(60) NOT NULL", "id, v, s"},
	{"pairs", "a VARCHAR(20) NOT NULL, b BIGINT NOT NULL, v INT NOT NULL, PRIMARY KEY (a, b)", "a, b, v"},
}

func openSource(t *testing.T, s *stack.Server, schema string, rnd *rand.Rand) *origin {
	t.Helper()
	_ = mysql.SetLogger(log.New(io.Discard, "", 0)) // servers are killed all the time
	db, err := sql.Open("mysql", fmt.Sprintf("root@tcp(%s)/?timeout=2s&readTimeout=5s&writeTimeout=5s", s.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	o := &origin{Server: s, schema: schema, db: db, rnd: rnd, next: 1}
	s.SQL("CREATE DATABASE " + schema + " CHARACTER SET utf8mb4")
	for _, table := range tables {
		s.SQL(fmt.Sprintf("CREATE TABLE %s.%s (%s)", schema, table.name, table.columns))
	}
	var first []string
	for range 50 {
		first = append(first, o.insert()...)
	}
	s.SQL(strings.Join(first, ";\n"))
	t.Cleanup(func() { o.rest(); db.Close() })
	return o
}

// load changes rows until rest is called, about a transaction each pause.
func (o *origin) load(pause time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	o.stop = cancel
	o.wg.Go(func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for ctx.Err() == nil {
			o.transaction(ctx)
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
}

func (o *origin) rest() {
	if o.stop != nil {
		o.stop()
		o.wg.Wait()
	}
}

// transaction may be lost or half known where the server is killed: what counts is
// what the source holds in the end.
func (o *origin) transaction(ctx context.Context) {
	tx, err := o.db.BeginTx(ctx, nil)
	if err != nil {
		return
	}
	for range 1 + o.rnd.IntN(4) {
		for _, text := range o.change() {
			if _, err := tx.ExecContext(ctx, text); err != nil {
				_ = tx.Rollback()
				return
			}
		}
	}
	if tx.Commit() == nil {
		o.done++
	}
}

func (o *origin) insert() []string {
	id := o.next
	o.next++
	o.live = append(o.live, id)
	return []string{
		fmt.Sprintf("INSERT INTO %s.docs VALUES (%d, %d, 'new %d')", o.schema, id, o.rnd.IntN(1000), id),
		fmt.Sprintf("INSERT INTO %s.pairs VALUES ('k%d', %d, %d)", o.schema, id%7, id, o.rnd.IntN(1000)),
	}
}

// change returns statements of one change; rows live for a few seconds.
func (o *origin) change() []string {
	at, n := 0, len(o.live)
	if n > 0 {
		at = o.rnd.IntN(n)
	}
	switch p := o.rnd.IntN(100); {
	case n < 20 || n < 150 && p < 35:
		return o.insert()
	case n > 150 || p < 55:
		at /= 2 // older ones sooner
		id := o.live[at]
		o.live = slices.Delete(o.live, at, at+1)
		return []string{
			fmt.Sprintf("DELETE FROM %s.docs WHERE id = %d", o.schema, id),
			fmt.Sprintf("DELETE FROM %s.pairs WHERE b = %d", o.schema, id),
		}
	case p < 75:
		id, to := o.live[at], o.next
		o.next++
		o.live[at] = to
		return []string{
			fmt.Sprintf("UPDATE %s.docs SET id = %d, s = 'was %d' WHERE id = %d", o.schema, to, id, id),
			fmt.Sprintf("UPDATE %s.pairs SET a = 'k%d', b = %d WHERE b = %d", o.schema, to%7, to, id),
		}
	default:
		id := o.live[at]
		return []string{
			fmt.Sprintf("UPDATE %s.docs SET v = v + 1 WHERE id = %d", o.schema, id),
			fmt.Sprintf("UPDATE %s.pairs SET v = %d WHERE b = %d", o.schema, o.rnd.IntN(1000), id),
		}
	}
}

// last is the key of the row that each source gets when all has been done.
const last = 1_000_000_000

// finish ends the load and marks the end.
func (o *origin) finish() {
	o.rest()
	o.SQL(fmt.Sprintf("INSERT INTO %s.docs VALUES (%d, 0, 'the end'); INSERT INTO %s.pairs VALUES ('end', %d, 0)", o.schema, last, o.schema, last))
}
