package bench

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	_ "github.com/go-sql-driver/mysql" // the polls that end a measurement
)

// Side is one way of copying changes, as it was measured.
type Side struct {
	Name   string
	Rows   Spread // a second
	CPU    Spread // seconds a million rows, of the target and what feeds it
	Memory []Memory
}

// ReplicaResult compares the task with MariaDB's own replica.
type ReplicaResult struct {
	Transactions, RowsEach int
	Sides                  []Side
	Single, Parallel       Spread // the task's rows a second to those of one and of four threads
}

// String returns the result as lines.
func (r ReplicaResult) String() string {
	s := fmt.Sprintf("MariaDB → MariaDB, %d transactions of %d rows, innodb_flush_log_at_trx_commit=1: %s × of its replica with 1 thread, %s × with 4",
		r.Transactions, r.RowsEach, r.Single, r.Parallel)
	for _, side := range r.Sides {
		s += fmt.Sprintf("\n  %-18s %s rows/s, %s CPU-s a million rows", side.Name, side.Rows, side.CPU)
		for _, m := range side.Memory {
			s += "\n    " + m.String()
		}
	}
	return s
}

// backlog is a shop's table: of ten rows of a transaction five are new, four
// change and one goes.
func backlog(transactions int) string {
	var b strings.Builder
	b.WriteString("SET GLOBAL innodb_flush_log_at_trx_commit=0; SET GLOBAL sync_binlog=0;\n")
	b.WriteString("CREATE DATABASE b; CREATE TABLE b.t (id BIGINT PRIMARY KEY, k INT NOT NULL, u INT UNSIGNED, name VARCHAR(40), amt DECIMAL(12,2), created DATETIME, note VARCHAR(60), KEY (k));\n")
	b.WriteString("CREATE TABLE b.done (id INT PRIMARY KEY);\n")
	id := 0
	for n := range transactions {
		b.WriteString("BEGIN;\n")
		for range 5 {
			id++
			fmt.Fprintf(&b, "INSERT INTO b.t VALUES (%d,%d,%d,'name of %d',%d.%02d,'2026-05-%02d 10:%02d:00','a note of some length about %d');\n", id, id%1000, id*7, id, id%9999, id%100, 1+id%28, id%60, id)
		}
		for j := range 4 {
			fmt.Fprintf(&b, "UPDATE b.t SET amt=amt+1, k=k+1 WHERE id=%d;\n", 1+(n*7919+j*131)%id)
		}
		// Every fifth row goes, each once.
		fmt.Fprintf(&b, "DELETE FROM b.t WHERE id=%d;\nCOMMIT;\n", id-2)
	}
	b.WriteString("INSERT INTO b.done VALUES (1);\n")
	return b.String()
}

// Replica lets MariaDB's own replica and a task copy the same backlog to targets of
// equal settings, in turns.
func Replica(ctx context.Context, b *Built, root, dir string, rounds, transactions int) (r ReplicaResult, err error) {
	const rowsEach = 10
	r.Transactions, r.RowsEach = transactions, rowsEach
	src, err := start(ctx, root, "mariadb", filepath.Join(dir, "source"), "--innodb-buffer-pool-size=512M", "--max-binlog-size=1G")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, src.stop()) }()
	if _, err := src.sql(ctx, backlog(transactions)); err != nil {
		return r, err
	}
	want, err := src.sql(ctx, content("b"))
	if err != nil {
		return r, err
	}
	sides := []struct {
		name string
		run  func(ctx context.Context, src, dst *server) (*exec.Cmd, error)
	}{
		{"replica, 1 thread", native(0)},
		{"replica, 4 threads", native(4)},
		{"task", func(ctx context.Context, src, dst *server) (*exec.Cmd, error) {
			return b.task(ctx, filepath.Join(dst.dir, "task"), src, dst, "earliest")
		}},
	}
	rate, used := make([][]float64, len(sides)), make([][]float64, len(sides))
	r.Sides = make([]Side, len(sides))
	for range rounds {
		for i, side := range sides {
			secs, cost, mem, err := once(ctx, root, filepath.Join(dir, "target"), src, want, "SELECT COUNT(*) FROM b.done", side.run)
			if err != nil {
				return r, fmt.Errorf("%s: %w", side.name, err)
			}
			rows := float64(transactions * rowsEach)
			rate[i], used[i] = append(rate[i], rows/secs), append(used[i], cost/rows*1e6)
			r.Sides[i].Name, r.Sides[i].Memory = side.name, most(r.Sides[i].Memory, mem)
		}
	}
	for i := range sides {
		r.Sides[i].Rows, r.Sides[i].CPU = spread(rate[i]), spread(used[i])
	}
	r.Single, r.Parallel = ratio(rate[2], rate[0]), ratio(rate[2], rate[1])
	return r, nil
}

// content is a query that sums up the rows of the table, whatever it is declared as.
func content(db string) string {
	return "SELECT COUNT(*), BIT_XOR(CAST(CONV(LEFT(MD5(CONCAT_WS('#', id, k, u, name, amt, created, note)), 15), 16, 10) AS UNSIGNED)) FROM " + db + ".t"
}

func ratio(a, b []float64) Spread {
	var all []float64
	for i := range a {
		all = append(all, a[i]/b[i])
	}
	return spread(all)
}

// most merges memories by name, the larger ones.
func most(a, b []Memory) []Memory {
	all := map[int]*Memory{}
	for i, m := range append(a[:len(a):len(a)], b...) {
		all[i] = &m
	}
	return byName(all)
}

// once copies the source to a new target and returns the seconds from the start to
// the moment at which the query all gives 1, and the CPU time of the target and of the processes in between.
func once(ctx context.Context, root, dir string, src *server, want, all string,
	run func(ctx context.Context, src, dst *server) (*exec.Cmd, error),
) (secs, used float64, mem []Memory, err error) {
	dst, err := start(ctx, root, "mariadb", dir, "--innodb-buffer-pool-size=512M", "--innodb-flush-log-at-trx-commit=1", "--skip-log-bin", "--innodb-log-file-size=512M")
	if err != nil {
		return 0, 0, nil, err
	}
	defer func() { err = errors.Join(err, dst.stop()) }()
	poll, err := sql.Open("mysql", fmt.Sprintf("root@tcp(127.0.0.1:%d)/", dst.port))
	if err != nil {
		return 0, 0, nil, err
	}
	defer poll.Close()
	idle := cpu(dst.pid)
	begun := time.Now()
	cmd, err := run(ctx, src, dst)
	if err != nil {
		return 0, 0, nil, err
	}
	ended := make(chan error, 1)
	peak := map[int]*Memory{}
	var out bytes.Buffer
	if cmd != nil {
		cmd.Stderr = &out
		if err := cmd.Start(); err != nil {
			return 0, 0, nil, err
		}
		go func() { ended <- cmd.Wait() }()
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var n int
		if poll.QueryRowContext(ctx, all).Scan(&n) == nil && n == 1 {
			break
		}
		if cmd != nil {
			sample(cmd.Process.Pid, peak)
		}
		select {
		case err := <-ended:
			return 0, 0, nil, fmt.Errorf("it ended before all was copied: %w: %s", err, out.Bytes())
		case <-ctx.Done():
			return 0, 0, nil, ctx.Err()
		case <-tick.C:
		}
	}
	secs = time.Since(begun).Seconds()
	cost := cpu(dst.pid) - idle
	if cmd != nil {
		for _, pid := range family(cmd.Process.Pid) {
			cost += cpu(pid)
		}
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			return 0, 0, nil, err
		}
		<-ended // its exit code says that it was interrupted
	}
	got, err := dst.sql(ctx, content("b"))
	if err == nil && got != want {
		err = fmt.Errorf("the target's rows sum up to %q, the source's to %q", got, want)
	}
	return secs, cost.Seconds(), byName(peak), err
}

// sample keeps the most that the processes below root were seen with.
func sample(root int, peak map[int]*Memory) {
	for _, pid := range family(root) {
		m, err := memoryOf(pid)
		if err != nil {
			continue
		}
		if p := peak[pid]; p != nil {
			m.Anonymous = max(p.Anonymous, m.Anonymous)
		}
		peak[pid] = &m
	}
}

// native starts the target's own replication.
func native(threads int) func(context.Context, *server, *server) (*exec.Cmd, error) {
	return func(ctx context.Context, src, dst *server) (*exec.Cmd, error) {
		_, err := dst.sql(ctx, fmt.Sprintf("SET GLOBAL slave_parallel_threads=%d; CHANGE MASTER TO master_host='127.0.0.1', master_port=%d, master_user='root', master_use_gtid=slave_pos; START SLAVE;", threads, src.port))
		return nil, err
	}
}

// task writes a task file and returns the command that runs it.
func (b *Built) task(ctx context.Context, dir string, src, dst *server, from string) (*exec.Cmd, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	text := fmt.Sprintf(`apiVersion: datalink/v1
task: bench
reader: {plugin: mysql, config: {address: "127.0.0.1:%d", user: root, password: "", tables: ["b.*"], start: %s}}
writers: [{name: target, plugin: rdbms, config: {url: "mariadb://root@127.0.0.1:%d/datalink", lanes: 2}}]
`, src.port, from, dst.port)
	file := filepath.Join(dir, "task.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	if _, err := dst.sql(ctx, "CREATE DATABASE IF NOT EXISTS datalink"); err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, b.Daemon(), "run", file, "--data-dir", filepath.Join(dir, "data")), nil
}
