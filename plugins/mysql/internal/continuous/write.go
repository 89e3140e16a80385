package continuous

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/datalink-go/datalink/plugins/mysql/alltypes"
)

// Source is a server that is written to.
type Source struct {
	Seed uint64
	// Pause is how long a session rests between transactions; 0 = not at all.
	Pause time.Duration
	// DDL says that schema changes are made too, Retype that they give columns
	// another type, Keyless that there are tables without a key.
	DDL, Retype, Keyless bool

	// Zones are those of the sessions. Where one puts a time out of range MariaDB
	// keeps an instant that no literal can give it.
	Zones []string

	cat  catalog
	gate sync.RWMutex // held while nobody may write

	Committed, RolledBack, Changes, Schema, XA atomic.Int64
}

// New is a source with everything on.
func New(server alltypes.Server, seed uint64) *Source {
	return &Source{Seed: seed, DDL: true, Retype: true, Keyless: true, Zones: []string{"+00:00", "+05:30", "-08:45"}, cat: catalog{cases: usable(server)}}
}

// Begin makes the tables through a connection that allows several statements at once.
func (s *Source) Begin(ctx context.Context, db *sql.DB) error {
	r := rand.New(rand.NewPCG(s.Seed, 0))
	s.cat.keyless, s.cat.retype = s.Keyless, s.Retype
	c, err := s.session(ctx, db, r)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, q := range []string{"DROP DATABASE IF EXISTS " + Database, "CREATE DATABASE " + Database + " CHARACTER SET utf8mb4", "USE " + Database, "CREATE TABLE mark (id INT PRIMARY KEY)"} {
		if _, err := c.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	for len(s.cat.tables) < 6 {
		t := s.cat.table(r)
		if _, err := c.ExecContext(ctx, t.create()); err != nil {
			continue // too large a row
		}
		s.cat.tables = append(s.cat.tables, t)
	}
	return nil
}

// session is a connection as applications set them up: some in other zones.
func (s *Source) session(ctx context.Context, db *sql.DB, r *rand.Rand) (*sql.Conn, error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	zone := s.Zones[r.IntN(len(s.Zones))]
	for _, q := range []string{"SET NAMES utf8mb4, sql_mode = '', time_zone = '" + zone + "', innodb_lock_wait_timeout = 1", "SET lock_wait_timeout = 2"} {
		if _, err := c.ExecContext(ctx, q); err != nil {
			c.Close()
			return nil, err
		}
	}
	_, _ = c.ExecContext(ctx, "USE "+Database)
	return c, nil
}

// Write keeps sessions busy until ctx ends. Connections that are lost, as with a
// server that is killed, are made anew.
func (s *Source) Write(ctx context.Context, db *sql.DB, sessions int) {
	var wg sync.WaitGroup
	for w := range sessions {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := rand.New(rand.NewPCG(s.Seed, uint64(w)+1))
			for n := 0; ctx.Err() == nil; n++ {
				c, err := s.session(ctx, db, r)
				if err != nil {
					pause(ctx, 50*time.Millisecond)
					continue
				}
				for ctx.Err() == nil && c.PingContext(ctx) == nil {
					s.gate.RLock()
					s.transaction(ctx, c, r, fmt.Sprintf("x%d_%d", w, n))
					s.gate.RUnlock()
					n++
					pause(ctx, s.Pause)
				}
				_ = c.Raw(func(any) error { return driver.ErrBadConn }) // or it goes back to the pool, its transaction open
				c.Close()
			}
		}()
	}
	wg.Wait()
}

// Hold waits until no session is within a transaction and lets none begin one until
// the function that it returns is called.
func (s *Source) Hold() (release func()) {
	s.gate.Lock()
	return s.gate.Unlock
}

// Recover ends the XA transactions that a server which was killed has kept.
func (s *Source) Recover(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, "XA RECOVER")
	if err != nil {
		return err
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var format, first, second int
		var id string
		if err := rows.Scan(&format, &first, &second, &id); err != nil {
			return err
		}
		ids = append(ids, id)
	}
	for i, id := range ids {
		verb := "COMMIT"
		if i%2 == 1 {
			verb = "ROLLBACK"
		}
		// A session that is still there may be ending it itself.
		_, _ = db.ExecContext(ctx, "XA "+verb+" '"+id+"'")
	}
	return rows.Err()
}

func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (s *Source) transaction(ctx context.Context, c *sql.Conn, r *rand.Rand, xid string) {
	run := func(q string) bool {
		_, err := c.ExecContext(ctx, q)
		return err == nil
	}
	if s.DDL && r.IntN(60) == 0 {
		if q, done := s.cat.alter(r); run(q) {
			done()
			s.Schema.Add(1)
		}
		return
	}
	xa := r.IntN(12) == 0
	begin, commit, rollback := "BEGIN", []string{"COMMIT"}, []string{"ROLLBACK"}
	if xa {
		begin = "XA START '" + xid + "'"
		commit = []string{"XA END '" + xid + "'", "XA PREPARE '" + xid + "'", "XA COMMIT '" + xid + "'"}
		rollback = []string{"XA END '" + xid + "'", "XA PREPARE '" + xid + "'", "XA ROLLBACK '" + xid + "'"}
	}
	if !run(begin) {
		return
	}
	saved := false
	for range 1 + r.IntN(6) {
		switch n := r.IntN(20); {
		case n == 0:
			saved = run("SAVEPOINT s") || saved
		case n == 1 && saved:
			run("ROLLBACK TO SAVEPOINT s")
		default:
			t := s.cat.pick(r)
			if run(t.change(r)) {
				s.Changes.Add(1)
			}
		}
	}
	end, count := commit, &s.Committed
	if r.IntN(8) == 0 {
		end, count = rollback, &s.RolledBack
	}
	for i, q := range end {
		if run(q) {
			continue
		}
		if xa && i == 0 { // the server gave the transaction up
			run("XA ROLLBACK '" + xid + "'")
		}
		if xa && i > 0 {
			run("XA ROLLBACK '" + xid + "'")
		}
		run("ROLLBACK")
		return
	}
	count.Add(1)
	if xa {
		s.XA.Add(1)
	}
}
