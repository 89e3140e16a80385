package bench

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// LatencyResult is how long changes took.
type LatencyResult struct {
	What   string
	Rate   float64 // transactions a second, as they were written
	Took   []time.Duration
	Memory []Memory
}

// String returns percentiles and a histogram.
func (r LatencyResult) String() string {
	slices.Sort(r.Took)
	at := func(q float64) time.Duration {
		return r.Took[int(q*float64(len(r.Took)-1))].Round(10 * time.Microsecond)
	}
	s := fmt.Sprintf("%s, %d transactions at %.0f a second: p50 %s, p90 %s, p99 %s, p99.9 %s, max %s", r.What, len(r.Took), r.Rate, at(.5), at(.9), at(.99), at(.999), at(1))
	for limit, i := 250*time.Microsecond, 0; i < len(r.Took); limit *= 2 {
		n := i
		for i < len(r.Took) && r.Took[i] <= limit {
			i++
		}
		s += fmt.Sprintf("\n  ≤ %8s %6d %s", limit, i-n, strings.Repeat("#", 60*(i-n)/len(r.Took)))
	}
	for _, m := range r.Memory {
		s += "\n  " + m.String()
	}
	return s
}

// latencySeconds is how long transactions are written.
const latencySeconds = 10

// Latency measures from before an autocommit insert is sent to the source: to its
// row in a block of the reader, at 2,000 transactions a second, and to its row being
// visible at the target, at 1,000, through reader, host and writer.
func Latency(ctx context.Context, b *Built, root, dir string) (all []LatencyResult, err error) {
	for _, kind := range []string{"mariadb", "mysql"} {
		r, err := b.readLatency(ctx, root, filepath.Join(dir, kind), kind, 2000)
		if err != nil {
			return all, fmt.Errorf("%s: %w", kind, err)
		}
		all = append(all, r)
	}
	r, err := b.copyLatency(ctx, root, dir, 1000)
	return append(all, r), err
}

// write inserts rows at a rate, from eight sessions, each with the instant before it
// was sent, and returns the rate that came of it.
func write(ctx context.Context, s *server, rate int) (float64, error) {
	db, err := sql.Open("mysql", fmt.Sprintf("root@tcp(127.0.0.1:%d)/b", s.port))
	if err != nil {
		return 0, err
	}
	defer db.Close()
	const writers = 8
	var g sync.WaitGroup
	errs := make([]error, writers)
	begun := time.Now()
	for i := range writers {
		g.Go(func() {
			c, err := db.Conn(ctx)
			if err != nil {
				errs[i] = err
				return
			}
			defer c.Close()
			tick := time.NewTicker(time.Second * writers / time.Duration(rate))
			defer tick.Stop()
			for range rate * latencySeconds / writers {
				<-tick.C
				if _, err := c.ExecContext(ctx, fmt.Sprintf("INSERT INTO t (sent) VALUES (%d)", time.Now().UnixNano())); err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	g.Wait()
	return float64(rate*latencySeconds) / time.Since(begun).Seconds(), errors.Join(errs...)
}

const latencyTable = "CREATE DATABASE b; CREATE TABLE b.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, sent BIGINT NOT NULL);"

func (b *Built) readLatency(ctx context.Context, root, dir, kind string, rate int) (r LatencyResult, err error) {
	r.What = kind + ", source commit → block of the reader"
	s, err := start(ctx, root, kind, dir, "--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if _, err := s.sql(ctx, latencyTable); err != nil {
		return r, err
	}
	cmd := exec.CommandContext(ctx, b.ReadServer(), "-address", fmt.Sprintf("127.0.0.1:%d", s.port), "-way", "latency", "-table", "b.t", "-rows", fmt.Sprint(rate*latencySeconds))
	var out bytes.Buffer
	cmd.Stdout = &out
	said, err := cmd.StderrPipe()
	if err != nil {
		return r, err
	}
	if err := cmd.Start(); err != nil {
		return r, err
	}
	buf := make([]byte, 256)
	if n, err := said.Read(buf); err != nil || !strings.HasPrefix(string(buf[:n]), "ready") {
		_ = cmd.Process.Kill()
		return r, errors.Join(fmt.Errorf("the reader said %q", buf[:n]), err, cmd.Wait())
	}
	if r.Rate, err = write(ctx, s, rate); err != nil {
		_ = cmd.Process.Kill()
		return r, errors.Join(err, cmd.Wait())
	}
	if err := cmd.Wait(); err != nil {
		return r, err
	}
	var got Reading
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		return r, err
	}
	for _, ns := range got.Took {
		r.Took = append(r.Took, time.Duration(ns))
	}
	r.Memory = []Memory{{Name: "reader", Peak: got.RSS}}
	return r, nil
}

// copyLatency polls the target for rows that have become visible, so that the time
// between two polls, about half a millisecond, is in what is measured.
func (b *Built) copyLatency(ctx context.Context, root, dir string, rate int) (r LatencyResult, err error) {
	r.What = "MariaDB → MariaDB, source commit → visible at the target"
	var servers [2]*server
	for i, name := range []string{"source", "target"} {
		if servers[i], err = start(ctx, root, "mariadb", filepath.Join(dir, name), "--innodb-flush-log-at-trx-commit=1", "--sync-binlog=0"); err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, servers[i].stop()) }()
	}
	src, dst := servers[0], servers[1]
	if _, err := src.sql(ctx, latencyTable+"INSERT INTO b.t (sent) VALUES (0);"); err != nil {
		return r, err
	}
	cmd, err := b.task(ctx, filepath.Join(dst.dir, "task"), src, dst, "earliest")
	if err != nil {
		return r, err
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return r, err
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait() // its exit code says that it was interrupted
	}()
	db, err := sql.Open("mysql", fmt.Sprintf("root@tcp(127.0.0.1:%d)/", dst.port))
	if err != nil {
		return r, err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	wrote := make(chan error, 1)
	begun := false
	seen := map[int64]bool{} // lanes may make a later one visible first
	for last := int64(0); len(r.Took) < rate*latencySeconds; {
		if err := ctx.Err(); err != nil {
			return r, fmt.Errorf("%d rows came: %w: %s", len(r.Took), err, said.Bytes())
		}
		var sent []int64
		rows, err := db.QueryContext(ctx, "SELECT id, sent FROM b.t WHERE id > ? ORDER BY id", last-1000)
		if err != nil {
			if begun {
				return r, err
			}
			time.Sleep(10 * time.Millisecond) // the table is not there yet
			continue
		}
		for rows.Next() {
			var id, at int64
			if err := rows.Scan(&id, &at); err != nil {
				return r, errors.Join(err, rows.Close())
			}
			if !seen[id] {
				seen[id] = true
				last, sent = max(last, id), append(sent, at)
			}
		}
		if err := rows.Err(); err != nil {
			return r, err
		}
		now := time.Now().UnixNano()
		for _, at := range sent {
			if at > 0 {
				r.Took = append(r.Took, time.Duration(now-at))
			}
		}
		if !begun && last > 0 {
			begun = true
			go func() {
				var err error
				r.Rate, err = write(ctx, src, rate)
				wrote <- err
			}()
		}
		time.Sleep(300 * time.Microsecond)
	}
	return r, <-wrote
}
