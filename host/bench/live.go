package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// LiveResult compares ways of reading one log from one server.
type LiveResult struct {
	Server, Load string
	Rows         int
	Sides        []LiveSide
}

// LiveSide is one of the ways.
type LiveSide struct {
	Name  string
	Rows  Spread // a second
	CPU   Spread // seconds a million rows, without the server's
	Ratio Spread // rows a second to those of go-mysql in the same round
	RSS   int64  // the most that the process that reads had resident
}

// String returns the result as lines.
func (r LiveResult) String() string {
	s := fmt.Sprintf("%s, %s, %d rows, from the first row on", r.Server, r.Load, r.Rows)
	for _, side := range r.Sides {
		s += fmt.Sprintf("\n  %-34s %8.0f (%.0f–%.0f) rows/s, %s CPU-s a million rows, %d MB", side.Name, side.Rows.Median, side.Rows.Min, side.Rows.Max, side.CPU, side.RSS>>20)
		if side.Ratio.Median > 0 {
			s += fmt.Sprintf(", %s × of go-mysql", side.Ratio)
		}
	}
	return s
}

// load is a log that a server has.
type load struct {
	name, file string
	rows       int
}

const liveTable = "CREATE DATABASE b; CREATE TABLE b.t (id BIGINT PRIMARY KEY, k INT NOT NULL, u INT UNSIGNED, name VARCHAR(40), amt DECIMAL(12,2), created DATETIME, note VARCHAR(60)); FLUSH BINARY LOGS;"

// small is transactions of ten single-row statements.
func small(transactions int) string {
	var q strings.Builder
	for i := range transactions {
		q.WriteString("BEGIN;")
		for k := range 5 {
			id := i*5 + k
			fmt.Fprintf(&q, "INSERT INTO b.t VALUES (%d,%d,%d,'customer number %d',%d.%02d,'2026-01-02 03:04:05','a note of some length %d');", id, id%97, id, id, id%10000, id%100, id)
		}
		for k := range 4 {
			fmt.Fprintf(&q, "UPDATE b.t SET k = k + 1, note = 'changed %d' WHERE id = %d;", i, i*5+k)
		}
		fmt.Fprintf(&q, "DELETE FROM b.t WHERE id = %d;COMMIT;\n", i*5+4)
	}
	return q.String() + "FLUSH BINARY LOGS;"
}

// bulk is transactions of a thousand rows by one statement.
func bulk(transactions int) string {
	var q strings.Builder
	for i := range transactions {
		q.WriteString("INSERT INTO b.t VALUES ")
		for k := range 1000 {
			id := 10_000_000 + i*1000 + k
			if k > 0 {
				q.WriteByte(',')
			}
			fmt.Fprintf(&q, "(%d,%d,%d,'customer number %d',%d.%02d,'2026-01-02 03:04:05','a note of some length %d')", id, id%97, id, id, id%10000, id%100, id)
		}
		q.WriteString(";\n")
	}
	return q.String() + "FLUSH BINARY LOGS;"
}

// Live lets the reader alone, the reader as a plugin process with the host's pipeline
// and null writer, go-mysql with its defaults, and a bare drain of the stream read
// the same log from the same server, in turns.
func Live(ctx context.Context, b *Built, root, dir string, rounds, rows int) (all []LiveResult, err error) {
	for _, kind := range []string{"mariadb", "mysql"} {
		got, err := live(ctx, b, root, filepath.Join(dir, kind), kind, rounds, rows)
		if err != nil {
			return all, fmt.Errorf("%s: %w", kind, err)
		}
		all = append(all, got...)
	}
	return all, nil
}

func live(ctx context.Context, b *Built, root, dir, kind string, rounds, rows int) (all []LiveResult, err error) {
	s, err := start(ctx, root, kind, dir, "--log-bin=binlog", "--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0", "--max-binlog-size=1G")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	for _, text := range []string{liveTable, small(rows / 10), bulk(rows / 1000)} {
		if _, err := s.sql(ctx, text); err != nil {
			return nil, err
		}
	}
	files, err := s.sql(ctx, "SHOW BINARY LOGS")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(files, "\n")
	if len(lines) < 3 {
		return nil, fmt.Errorf("binary logs %q", files)
	}
	lines = lines[len(lines)-3:] // the last is empty
	for i, name := range []string{"transactions of 10 single-row statements", "inserts of 1,000 rows"} {
		file, _, _ := strings.Cut(lines[i], "\t")
		r, err := b.liveLoad(ctx, s, kind, rounds, load{name, file, rows})
		if err != nil {
			return all, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// liveSpec tells a child of this program what to read.
type liveSpec struct {
	Port       int
	Kind, File string
	Rows       int
}

func (b *Built) liveLoad(ctx context.Context, s *server, kind string, rounds int, l load) (LiveResult, error) {
	r := LiveResult{Server: kind, Load: l.name, Rows: l.rows}
	spec, err := json.Marshal(liveSpec{s.port, kind, l.file, l.rows})
	if err != nil {
		return r, err
	}
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	child := func(way string) func() *exec.Cmd {
		return func() *exec.Cmd {
			cmd := exec.CommandContext(ctx, self, b.Plugin("mysql"), string(spec))
			cmd.Env = append(os.Environ(), env+"="+way)
			return cmd
		}
	}
	alone := func(way string) func() *exec.Cmd {
		return func() *exec.Cmd {
			return exec.CommandContext(ctx, b.ReadServer(), "-address", fmt.Sprintf("127.0.0.1:%d", s.port), "-way", way, "-file", l.file, "-rows", fmt.Sprint(l.rows))
		}
	}
	sides := []struct {
		name string
		cmd  func() *exec.Cmd
	}{
		{"go-mysql", child("gomysql-live")},
		{"decode alone", alone("stream")},
		{"through the plugin hop, values read", child("pipeline-live")},
		{"bare drain, heads only", alone("drain")},
	}
	rate, used := make([][]float64, len(sides)), make([][]float64, len(sides))
	r.Sides = make([]LiveSide, len(sides))
	for n := range rounds + 1 {
		for i, side := range sides {
			got, err := reading(ctx, side.cmd())
			if err != nil {
				return r, fmt.Errorf("%s: %w", side.name, err)
			}
			if n == 0 {
				continue // warm-up
			}
			rate[i], used[i] = append(rate[i], float64(got.Rows)/got.Seconds), append(used[i], got.CPU/float64(got.Rows)*1e6)
			r.Sides[i].RSS = max(r.Sides[i].RSS, got.RSS)
		}
	}
	for i, side := range sides {
		r.Sides[i].Name, r.Sides[i].Rows, r.Sides[i].CPU = side.name, spread(rate[i]), spread(used[i])
		if i > 0 {
			r.Sides[i].Ratio = ratio(rate[i], rate[0])
		}
	}
	return r, nil
}

// reading runs a command that prints a Reading. One that hangs is ended.
func reading(ctx context.Context, cmd *exec.Cmd) (r Reading, err error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return r, fmt.Errorf("%w: %s", err, errs.Bytes())
	}
	return r, json.Unmarshal(out.Bytes(), &r)
}
