package sqlite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Random transactions with rollbacks, lost commits, restarts and late writers
// leave the rows of a map that follows only what was committed.
func TestModel(t *testing.T) {
	dir := t.TempDir()
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		file := filepath.Join(dir, fmt.Sprintf("%d.db", run))
		defer os.Remove(file)
		m := newModel(t, file)
		defer func() { must(t, m.w.Close(context.Background())) }()
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			m.step(rt)
		}
		if got, want := rows(t, file, "SELECT id, v, n FROM t ORDER BY id"), m.lines(); !slices.Equal(got, want) {
			rt.Fatalf("got %q, want %q", got, want)
		}
		if got := rows(t, file, "SELECT a FROM log ORDER BY a"); len(got) != m.appended {
			rt.Fatalf("%d rows in the keyless table, want %d", len(got), m.appended)
		}
	})
}

type model struct {
	t        *testing.T
	file     string
	w        *Writer
	late     *Writer // claimed before w did
	s, log   *batch.Schema
	rows     map[int][2]string
	appended int
	batch    uint64
	epoch    uint64
}

func newModel(t *testing.T, file string) *model {
	m := &model{t: t, file: file, s: keyed(), log: keyless(), rows: map[int][2]string{}}
	m.restart()
	for _, s := range []*batch.Schema{m.s, m.log} {
		if _, err := m.w.Prepare(context.Background(), s); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func (m *model) restart() {
	if m.late != nil {
		must(m.t, m.late.Close(context.Background()))
	}
	m.late = m.w
	w, err := New(Config{Path: m.file, Keyless: FullRowMatch})
	must(m.t, err)
	m.epoch++
	c := claim(m.t, w, execution(fmt.Sprintf("x%d", m.epoch), m.epoch))
	if c.Points[0].BatchNo != m.batch {
		m.t.Fatalf("claim finds batch %d, want %d", c.Points[0].BatchNo, m.batch)
	}
	m.w = w
}

func (m *model) lines() []string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(m.rows)) {
		out = append(out, fmt.Sprintf("%d %s %s", id, m.rows[id][0], m.rows[id][1]))
	}
	return out
}

// step does one thing and, where it is a commit, follows it.
func (m *model) step(rt *rapid.T) {
	switch rapid.SampledFrom([]string{"commit", "commit", "commit", "rollback", "lost-before", "lost-after", "restart", "late"}).Draw(rt, "step") {
	case "restart":
		m.restart()
		return
	case "late":
		if m.late != nil {
			if err := write(m.late, next(0, m.batch+1), line(m.t, 99)); !errors.Is(err, sdk.ErrFenced) {
				rt.Fatalf("late write: %v", err)
			}
		}
		return
	case "rollback":
		ctx := context.Background()
		tx, err := m.w.Begin(ctx, []int32{0})
		must(m.t, err)
		must(m.t, tx.Fence(ctx, []sdk.Next{next(0, m.batch+1)}))
		after := maps.Clone(m.rows)
		n := 0
		_, err = tx.Apply(ctx, &sdk.Changes{Segments: [][]sdk.Change{m.changes(rt, after, &n)}})
		must(m.t, err)
		must(m.t, tx.Rollback(ctx))
		return
	case "lost-before":
		m.w.atCommit = func(bool) error { return errors.New("cut") }
	case "lost-after":
		m.w.atCommit = func(done bool) error {
			if done {
				return errors.New("cut")
			}
			return nil
		}
	}
	after, appended := maps.Clone(m.rows), m.appended
	err := write(m.w, next(0, m.batch+1), m.changes(rt, after, &appended)...)
	m.w.atCommit = nil
	done := err == nil
	if errors.Is(err, sdk.ErrCommitUnknown) {
		p, err := m.w.Settle(context.Background(), 0)
		must(m.t, err)
		done = p.BatchNo == m.batch+1
	} else if err != nil {
		rt.Fatalf("write: %v", err)
	}
	if done {
		m.rows, m.appended = after, appended
		m.batch++
	}
}

// changes draws changes and applies them to rows.
func (m *model) changes(rt *rapid.T, after map[int][2]string, appended *int) []sdk.Change {
	var out []sdk.Change
	for range rapid.IntRange(0, 6).Draw(rt, "changes") {
		id := rapid.IntRange(1, 5).Draw(rt, "id")
		v := rapid.SampledFrom([]string{"", "a", "\x00", "1e3", "é"}).Draw(rt, "v")
		n := rapid.IntRange(-2, 2).Draw(rt, "n")
		row, have := after[id]
		switch op := rapid.SampledFrom([]sdk.Op{sdk.Upsert, sdk.Patch, sdk.Remove, sdk.Rekey, sdk.Truncate, sdk.Append, sdk.MatchRemove}).Draw(rt, "op"); {
		case op == sdk.Upsert:
			out = append(out, m.change(op, m.s, nil, vals(id, v, n)))
			after[id] = [2]string{fmt.Sprintf("%q", v), fmt.Sprint(n)}
		case op == sdk.Patch && have:
			out = append(out, m.change(op, m.s, vals(id, absent, absent), vals(absent, absent, n)))
			after[id] = [2]string{row[0], fmt.Sprint(n)}
		case op == sdk.Remove:
			out = append(out, m.change(op, m.s, vals(id, absent, absent), nil))
			delete(after, id)
		case op == sdk.Rekey && have:
			to := id + 10
			for _, taken := after[to]; taken; _, taken = after[to] {
				to += 10
			}
			out = append(out, m.change(op, m.s, vals(id, absent, absent), vals(to, unchanged, n)))
			delete(after, id)
			after[to] = [2]string{row[0], fmt.Sprint(n)}
		case op == sdk.Truncate && rapid.IntRange(0, 5).Draw(rt, "all") == 0:
			out = append(out, sdk.Change{Op: op, Schema: m.s})
			clear(after)
		case op == sdk.Append:
			out = append(out, m.change(op, m.log, nil, vals(1, nil)))
			*appended++
		case op == sdk.MatchRemove && *appended > 0:
			out = append(out, m.change(op, m.log, vals(1, nil), nil))
			*appended--
		}
	}
	return out
}

// change keeps one schema for all changes, as one stream does.
func (m *model) change(op sdk.Op, s *batch.Schema, before, after []any) sdk.Change {
	return change(m.t, op, s, before, after)
}
