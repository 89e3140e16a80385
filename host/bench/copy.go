package bench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
)

// CopyResult compares a task's snapshot with a dump that is piped into a client.
type CopyResult struct {
	Rows  int
	Sides []Side
	Ratio Spread
}

// String returns the result as lines.
func (r CopyResult) String() string {
	s := fmt.Sprintf("snapshot MariaDB → MariaDB, %d rows: %s × of mariadb-dump | mariadb", r.Rows, r.Ratio)
	for _, side := range r.Sides {
		s += fmt.Sprintf("\n  %-18s %s rows/s, %s CPU-s a million rows", side.Name, side.Rows, side.CPU)
		for _, m := range side.Memory {
			s += "\n    " + m.String()
		}
	}
	return s
}

// Copy lets a dump and a task copy the same table to targets of equal settings, in
// turns. The task's clock runs until the target has all rows, that of the dump
// until its client has ended; the CPU time of dump and client is not counted.
func Copy(ctx context.Context, b *Built, root, dir string, rounds, rows int) (r CopyResult, err error) {
	r.Rows = rows
	src, err := start(ctx, root, "mariadb", filepath.Join(dir, "source"), "--innodb-buffer-pool-size=512M")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, src.stop()) }()
	fill := fmt.Sprintf(`CREATE DATABASE b; USE b;
CREATE TABLE t (id BIGINT PRIMARY KEY, k INT NOT NULL, u INT UNSIGNED, name VARCHAR(40), amt DECIMAL(12,2), created DATETIME, note VARCHAR(60), KEY (k));
INSERT INTO t SELECT seq, seq %% 1000, seq * 7, CONCAT('name of ', seq), seq / 100, '2026-05-01' + INTERVAL seq SECOND, CONCAT('a note of some length about ', seq) FROM seq_1_to_%d;
`, rows)
	if _, err := src.sql(ctx, fill); err != nil {
		return r, err
	}
	want, err := src.sql(ctx, content("b"))
	if err != nil {
		return r, err
	}
	whole := fmt.Sprintf("SELECT COUNT(*) = %d FROM b.t", rows)
	sides := []struct {
		name string
		run  func(ctx context.Context, src, dst *server) (*exec.Cmd, error)
	}{
		{"dump | client", func(ctx context.Context, src, dst *server) (*exec.Cmd, error) {
			out, err := exec.CommandContext(ctx, "sh", "-c", fmt.Sprintf("mariadb-dump --no-defaults -uroot -S %s --single-transaction --databases b | mariadb --no-defaults -uroot -S %s", src.socket, dst.socket)).CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			return nil, err
		}},
		{"task", func(ctx context.Context, src, dst *server) (*exec.Cmd, error) {
			return b.task(ctx, filepath.Join(dst.dir, "task"), src, dst, "snapshot")
		}},
	}
	rate, used := make([][]float64, len(sides)), make([][]float64, len(sides))
	r.Sides = make([]Side, len(sides))
	for range rounds {
		for i, side := range sides {
			secs, cost, mem, err := once(ctx, root, filepath.Join(dir, "target"), src, want, whole, side.run)
			if err != nil {
				return r, fmt.Errorf("%s: %w", side.name, err)
			}
			rate[i], used[i] = append(rate[i], float64(rows)/secs), append(used[i], cost/float64(rows)*1e6)
			r.Sides[i].Name, r.Sides[i].Memory = side.name, most(r.Sides[i].Memory, mem)
		}
	}
	for i := range sides {
		r.Sides[i].Rows, r.Sides[i].CPU = spread(rate[i]), spread(used[i])
	}
	r.Ratio = ratio(rate[1], rate[0])
	return r, nil
}
