package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// The rows of a large transaction and what one takes in the file.
const (
	largePerEvent = 25
	largeRow      = 302
)

// LargeResult is what Large found.
type LargeResult struct {
	Target  string
	Bytes   int64 // of the file
	Rows    int
	Seconds float64
	Memory  []Memory
}

// String returns the result as lines.
func (r LargeResult) String() string {
	s := fmt.Sprintf("one transaction of %d MiB, %d rows, to %s in %.1f s", r.Bytes>>20, r.Rows, r.Target, r.Seconds)
	for _, m := range r.Memory {
		s += "\n  " + m.String()
	}
	return s
}

// Large writes a log of one transaction of at least so many bytes and moves it by
// the daemon, once to its null writer and once to a SQLite file. It uses dir.
func Large(ctx context.Context, b *Built, dir string, size int64) ([]LargeResult, error) {
	file := filepath.Join(dir, "large.000001")
	rows := int(size/largeRow) + 1
	if err := b.WriteLog(ctx, file, 1, rows, largePerEvent); err != nil {
		return nil, err
	}
	st, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	defer os.Remove(file)
	if st.Size() < size {
		return nil, fmt.Errorf("%s has %d bytes, expected %d or more", file, st.Size(), size)
	}
	var all []LargeResult
	for _, t := range []struct{ name, writer string }{
		{"null", "{name: target, plugin: \"null\"}"},
		{"SQLite", fmt.Sprintf("{name: target, plugin: rdbms, config: {url: %q}}", "sqlite://"+filepath.Join(dir, "large.db"))},
	} {
		r := LargeResult{Target: t.name, Bytes: st.Size(), Rows: rows}
		if err := r.move(ctx, b, filepath.Join(dir, t.name), file, t.writer); err != nil {
			return all, fmt.Errorf("large transaction to %s: %w", t.name, err)
		}
		all = append(all, r)
	}
	return all, nil
}

func (r *LargeResult) move(ctx context.Context, b *Built, dir, file, writer string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	task := filepath.Join(dir, "task.yaml")
	text := fmt.Sprintf("apiVersion: datalink/v1\ntask: large\nreader: {plugin: mysql, config: {files: [%q]}}\nwriters: [%s]\n", file, writer)
	if err := os.WriteFile(task, []byte(text), 0o600); err != nil {
		return err
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, b.Daemon(), "run", task, "--until", "end", "--data-dir", filepath.Join(dir, "data"), "--output", "json")
	cmd.Stdout, cmd.Stderr = &out, &errs
	begun := time.Now()
	var err error
	r.Memory, err = watched(cmd)
	r.Seconds = time.Since(begun).Seconds()
	if err != nil {
		return fmt.Errorf("datalink run: %w: %s", err, errs.Bytes())
	}
	var s struct{ Records struct{ Written int } }
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		return err
	}
	if s.Records.Written != r.Rows {
		return fmt.Errorf("%d rows were written, expected %d", s.Records.Written, r.Rows)
	}
	return nil
}
