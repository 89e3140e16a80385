package bench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
)

// SnapshotResult compares a snapshot with a bare SELECT * of the same rows.
type SnapshotResult struct {
	Server         string
	Rows, Parallel int
	Ours, Bare     Spread // rows a second
	Ratio          Spread // of the same bytes a second
	CPU            Spread // of the snapshot, seconds a million rows
	RSS            int64
}

// String returns the result as lines.
func (r SnapshotResult) String() string {
	return fmt.Sprintf("%s, %d rows over %d connections: snapshot, from Open to the last block, %s × of the bytes a second of bare SELECT *\n  snapshot %.0f (%.0f–%.0f) rows/s, %s CPU-s a million rows, %d MB; SELECT * %.0f (%.0f–%.0f) rows/s",
		r.Server, r.Rows, r.Parallel, r.Ratio, r.Ours.Median, r.Ours.Min, r.Ours.Max, r.CPU, r.RSS>>20, r.Bare.Median, r.Bare.Min, r.Bare.Max)
}

// Snapshot reads a table of about 300 bytes a row by the reader's snapshot and by a
// bare SELECT * over as many connections, whose rows are dropped, in turns.
func Snapshot(ctx context.Context, b *Built, root, dir string, rounds, rows int) (all []SnapshotResult, err error) {
	for _, kind := range []string{"mariadb", "mysql"} {
		r, err := b.snapshot(ctx, root, filepath.Join(dir, kind), kind, rounds, rows)
		if err != nil {
			return all, fmt.Errorf("%s: %w", kind, err)
		}
		all = append(all, r)
	}
	return all, nil
}

func (b *Built) snapshot(ctx context.Context, root, dir, kind string, rounds, rows int) (r SnapshotResult, err error) {
	r = SnapshotResult{Server: kind, Rows: rows, Parallel: 4}
	s, err := start(ctx, root, kind, dir, "--innodb-buffer-pool-size=256M", "--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	set := "SET SESSION cte_max_recursion_depth = 100000000;"
	if kind == "mariadb" {
		set = "SET SESSION max_recursive_iterations = 100000000;"
	}
	if _, err := s.sql(ctx, set+fmt.Sprintf(`CREATE DATABASE s; CREATE TABLE s.wide (id BIGINT PRIMARY KEY, a INT, b BIGINT UNSIGNED, c DECIMAL(12,2), d DATETIME(3), e VARCHAR(120), f VARCHAR(60), g DOUBLE, h TIMESTAMP, i VARBINARY(80));
INSERT INTO s.wide WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
SELECT i, i, i * 1000003, i / 7, '2026-01-02 03:04:05.678', REPEAT(CHAR(97 + i %% 26), 100), CONCAT('name of row ', i), i / 3, '2026-01-02 03:04:05', REPEAT('x', 60) FROM n; ANALYZE TABLE s.wide;`, rows)); err != nil {
		return r, err
	}
	var ours, bare, used []float64
	for n := range rounds + 1 {
		var got [2]Reading
		for i, way := range []string{"select", "snapshot"} {
			cmd := exec.CommandContext(ctx, b.ReadServer(), "-address", fmt.Sprintf("127.0.0.1:%d", s.port), "-way", way, "-table", "s.wide", "-rows", fmt.Sprint(rows), "-parallel", fmt.Sprint(r.Parallel))
			if got[i], err = reading(ctx, cmd); err != nil {
				return r, fmt.Errorf("%s: %w", way, err)
			}
		}
		if n == 0 {
			continue // warm-up
		}
		bare, ours = append(bare, float64(rows)/got[0].Seconds), append(ours, float64(rows)/got[1].Seconds)
		used, r.RSS = append(used, got[1].CPU/float64(rows)*1e6), max(r.RSS, got[1].RSS)
	}
	r.Ours, r.Bare, r.CPU, r.Ratio = spread(ours), spread(bare), spread(used), ratio(ours, bare)
	return r, nil
}
