package clustertest

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
)

// progress looks at the bookkeeping of a target all the time: no position and no
// claim may ever go back.
type progress struct {
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu    sync.Mutex
	back  []string
	moves int
}

// point is a row of datalink_progress.
type point struct {
	lane         int
	epoch, claim int64
	position     string
}

// source is the name of the database/sql driver and how it reaches the target.
func (j *route) dsn() (driver, dsn string) {
	switch j.to {
	case "mariadb":
		return "mysql", fmt.Sprintf("root@tcp(%s)/datalink?timeout=2s&readTimeout=5s", j.server.Addr())
	case "postgres":
		return "pgx", fmt.Sprintf("postgres://postgres@%s/postgres?connect_timeout=2", j.server.Addr())
	}
	return "sqlite", "file:" + j.path + "?mode=ro&_pragma=busy_timeout(5000)"
}

func watchProgress(t *testing.T, j *route) *progress {
	t.Helper()
	driver, dsn := j.dsn()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &progress{stop: func() { cancel() }}
	p.wg.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		seen := map[int]point{}
		for {
			select {
			case <-tick.C:
				p.look(ctx, j, db, seen)
			case <-ctx.Done():
				return
			}
		}
	})
	t.Cleanup(func() { cancel(); p.wg.Wait(); db.Close() })
	return p
}

func (p *progress) look(ctx context.Context, j *route, db *sql.DB, seen map[int]point) {
	if j.to == "sqlite" {
		if _, err := os.Stat(j.path); err != nil {
			return
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	rows, err := db.QueryContext(ctx, "SELECT lane, epoch, claim_no, position FROM datalink_progress WHERE task = '"+j.name+"'")
	if err != nil {
		return // the server is away, or nothing was claimed yet
	}
	defer rows.Close()
	for rows.Next() {
		var now point
		if rows.Scan(&now.lane, &now.epoch, &now.claim, &now.position) != nil {
			return
		}
		was, known := seen[now.lane]
		seen[now.lane] = now
		if !known {
			continue
		}
		p.mu.Lock()
		if now.position != was.position {
			p.moves++
		}
		if now.epoch < was.epoch || now.claim < was.claim || before(now.position, was.position) {
			p.back = append(p.back, fmt.Sprintf("progress of %s, lane %d, went from %+v to %+v", j.name, now.lane, was, now))
		}
		p.mu.Unlock()
	}
}

func (p *progress) found() ([]string, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.back...), p.moves
}

var numbers = regexp.MustCompile(`^(?:[0-9a-f-]{36}:1-|[0-9a-f-]{36}:|\d+-\d+-)(\d+)(?:~(\d+))?$`)

// before compares two positions of one server that writes all transactions itself:
// by the number of the last one, and the step of the snapshot there.
func before(a, b string) bool {
	x, y := place(a), place(b)
	return x[0] < y[0] || x[0] == y[0] && x[1] < y[1]
}

func place(text string) (out [2]int64) {
	var p struct {
		Source  string
		Ordinal int64
	}
	if json.Unmarshal([]byte(text), &p) != nil {
		return out
	}
	m := numbers.FindStringSubmatch(p.Source)
	if m == nil {
		return out
	}
	out[0], _ = strconv.ParseInt(m[1], 10, 64)
	out[1], _ = strconv.ParseInt(m[2], 10, 64)
	return out
}
