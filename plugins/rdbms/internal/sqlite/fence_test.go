package sqlite

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/ledger"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// What a guarantee prevents shows in the rows of a keyless table, where nothing
// else hides a double or late write. Each scenario ends with the rows that the
// source has, and with others once its checks are switched off.

func line(t testing.TB, n int) sdk.Change {
	return change(t, sdk.Append, keyless(), nil, vals(n, "x"))
}

func lines(t testing.TB, file string) string {
	return strings.Join(rows(t, file, "SELECT a FROM log ORDER BY a, rowid"), ",")
}

func appender(t testing.TB, file string, sw ledger.Switches) *Writer {
	return writer(t, Config{Path: file, Keyless: Append, Switches: sw})
}

type scenario struct {
	name string
	off  ledger.Switches // what has to be off for the rows to differ
	want error           // what the late write gets
	run  func(t *testing.T, file string, sw ledger.Switches) (late error)
}

var scenarios = []scenario{
	{
		// A stalls with rows read; B, of a later epoch, claims and writes them; A wakes.
		name: "late write of an earlier epoch", off: ledger.Switches{EpochOff: true, BatchOff: true}, want: sdk.ErrFenced,
		run: func(t *testing.T, file string, sw ledger.Switches) error {
			a, b := appender(t, file, sw), appender(t, file, sw)
			claim(t, a, execution("x1", 1))
			must(t, write(a, next(0, 1), line(t, 1)))
			claim(t, b, execution("x2", 2))
			must(t, write(b, next(0, 2), line(t, 2)))
			return write(a, next(0, 2), line(t, 2))
		},
	},
	{
		// As before, of another store after a take-over.
		name: "late write after a take-over", off: ledger.Switches{EpochOff: true, BatchOff: true}, want: sdk.ErrFenced,
		run: func(t *testing.T, file string, sw ledger.Switches) error {
			a, b := appender(t, file, sw), appender(t, file, sw)
			claim(t, a, execution("x1", 7))
			must(t, write(a, next(0, 1), line(t, 1)))
			ex := execution("y1", 1)
			ex.StoreUID, ex.TaskUID, ex.TakeOver = "store-2", "uid-2", true
			if c := claim(t, b, ex); string(c.Points[0].Position.Source) != "1" {
				t.Fatalf("progress taken over: %+v", c.Points)
			}
			must(t, write(b, next(0, 2), line(t, 2)))
			return write(a, next(0, 2), line(t, 2))
		},
	},
	{
		// A plugin stalls, its execution starts another one, which claims again.
		name: "late write of a replaced plugin", off: ledger.Switches{ClaimOff: true, BatchOff: true}, want: sdk.ErrFenced,
		run: func(t *testing.T, file string, sw ledger.Switches) error {
			a, b := appender(t, file, sw), appender(t, file, sw)
			claim(t, a, execution("x1", 1))
			must(t, write(a, next(0, 1), line(t, 1)))
			claim(t, b, execution("x1", 1))
			must(t, write(b, next(0, 2), line(t, 2)))
			return write(a, next(0, 2), line(t, 2))
		},
	},
	{
		// Nothing was written since the claim: the claim number alone tells.
		name: "late write of a replaced plugin before the first of the new", off: ledger.Switches{ClaimOff: true}, want: sdk.ErrFenced,
		run: func(t *testing.T, file string, sw ledger.Switches) error {
			a, b := appender(t, file, sw), appender(t, file, sw)
			claim(t, a, execution("x1", 1))
			must(t, write(a, next(0, 1), line(t, 1)))
			claim(t, b, execution("x1", 1))
			late := write(a, next(0, 2), line(t, 2), line(t, 3)) // cut otherwise than b cuts
			if err := write(b, next(0, 2), line(t, 2)); err != nil {
				t.Logf("the owner is stopped: %v", err)
			}
			return late
		},
	},
	{
		// The file is replaced by an older copy between two batches.
		name: "file put back", off: ledger.Switches{BatchOff: true}, want: sdk.ErrTargetWentBack,
		run: func(t *testing.T, file string, sw ledger.Switches) error {
			return putBack(t, file, sw, func() func() {
				script(t, file, "VACUUM INTO "+literal(file+".old"))
				return func() {
					// A log that stays would be taken for that of the copy.
					for _, f := range []string{file, file + "-wal", file + "-shm"} {
						must(t, os.Remove(f))
					}
					must(t, os.Rename(file+".old", file))
				}
			})
		},
	},
	{
		// The content is put back by a client.
		name: "content put back", off: ledger.Switches{BatchOff: true}, want: sdk.ErrTargetWentBack,
		run: func(t *testing.T, file string, sw ledger.Switches) error {
			return putBack(t, file, sw, func() func() {
				script(t, file, "CREATE TABLE kept AS SELECT * FROM datalink_progress")
				return func() {
					script(t, file, "BEGIN; DELETE FROM log WHERE a > 1; REPLACE INTO datalink_progress SELECT * FROM kept; COMMIT")
				}
			})
		},
	},
	{
		// A task of the same name in another store claims without being told to.
		name: "claim of another store", off: ledger.Switches{StoreOff: true}, want: sdk.ErrForeignClaim,
		run: func(t *testing.T, file string, sw ledger.Switches) error {
			a, b := appender(t, file, sw), appender(t, file, sw)
			claim(t, a, execution("x1", 1))
			must(t, write(a, next(0, 1), line(t, 1)))
			ex := execution("y1", 9)
			ex.StoreUID = "store-2"
			_, err := b.Claim(context.Background(), ex)
			if err == nil {
				must(t, write(b, next(0, 2), line(t, 90)))
				return nil
			}
			must(t, write(a, next(0, 2), line(t, 2)))
			return err
		},
	},
}

func putBack(t *testing.T, file string, sw ledger.Switches, save func() (restore func())) error {
	a := appender(t, file, sw)
	claim(t, a, execution("x1", 1))
	must(t, write(a, next(0, 1), line(t, 1)))
	restore := save()
	must(t, write(a, next(0, 2), line(t, 2)))
	restore()
	err := write(a, next(0, 3), line(t, 3))
	if err == nil {
		return nil
	}
	// A restart goes on from what the target holds now.
	n := claim(t, a, execution("x1", 1)).Points[0].BatchNo
	for i := n + 1; i <= 3; i++ {
		must(t, write(a, next(0, i), line(t, int(i))))
	}
	return err
}

func TestFence(t *testing.T) {
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			file := path(t)
			late := sc.run(t, file, ledger.Switches{})
			if !errors.Is(late, sc.want) {
				t.Errorf("late call: got %v, want %v", late, sc.want)
			}
			want := lines(t, file)
			for i, n := range strings.Split(want, ",") {
				if n != itoa(i+1) {
					t.Errorf("rows %s, want 1, 2, 3 and so on, each once", want)
				}
			}
			file = path(t)
			if late := sc.run(t, file, sc.off); late != nil {
				t.Errorf("with %+v: late call: %v, want it to pass", sc.off, late)
			}
			if got := lines(t, file); got == want {
				t.Errorf("with %+v off the rows are still %s: the scenario shows nothing", sc.off, got)
			} else {
				t.Logf("with %+v: rows %s instead of %s", sc.off, got, want)
			}
		})
	}
}

// A copy written over the open file is refused, and nothing of the old content
// gets into it.
func TestOverwrittenInPlace(t *testing.T) {
	file := path(t)
	a := appender(t, file, ledger.Switches{})
	claim(t, a, execution("x1", 1))
	must(t, write(a, next(0, 1), line(t, 1)))
	script(t, file, "VACUUM INTO "+literal(file+".old"))
	must(t, write(a, next(0, 2), line(t, 2)))
	old, err := os.ReadFile(file + ".old")
	must(t, err)
	must(t, os.WriteFile(file, old, 0o600))
	must(t, os.Remove(file+"-wal"))
	must(t, os.Remove(file+"-shm"))
	if err := write(a, next(0, 3), line(t, 3)); !errors.Is(err, sdk.ErrTargetWentBack) {
		t.Errorf("got %v, want %v", err, sdk.ErrTargetWentBack)
	}
	for range 2 {
		if _, err := a.Claim(context.Background(), execution("x1", 1)); !errors.Is(err, sdk.ErrTargetWentBack) {
			t.Errorf("got %v, want %v", err, sdk.ErrTargetWentBack)
		}
	}
	must(t, a.Close(context.Background()))
	now, err := os.ReadFile(file)
	must(t, err)
	if !bytes.Equal(now, old) {
		t.Error("the file was changed")
	}
}

func TestFenceNamesTheOther(t *testing.T) {
	file := path(t)
	a, b := appender(t, file, ledger.Switches{}), appender(t, file, ledger.Switches{})
	claim(t, a, execution("x1", 4))
	claim(t, b, execution("x2", 5))
	for _, c := range []struct {
		name string
		call func() error
	}{
		{"fence", func() error { return write(a, next(0, 1), line(t, 1)) }},
		{"prepare", func() error { _, err := a.Prepare(context.Background(), keyless()); return err }},
		{"settle", func() error { _, err := a.Settle(context.Background(), 0); return err }},
		{"claim with a lower epoch", func() error { _, err := a.Claim(context.Background(), execution("x1", 4)); return err }},
		{"claim with an equal epoch", func() error { _, err := a.Claim(context.Background(), execution("x3", 5)); return err }},
	} {
		var f *sdk.Fault
		err := c.call()
		if !errors.Is(err, sdk.ErrFenced) || !errors.As(err, &f) || f.Claimant == nil || f.Claimant.Execution != "x2" || f.Claimant.Epoch != 5 || !strings.Contains(err.Error(), "x2") {
			t.Errorf("%s: got %v (%+v), want fenced by x2 of epoch 5", c.name, err, f)
		}
	}
	if got := rows(t, file, "SELECT name FROM sqlite_schema WHERE name = 'log'"); len(got) != 0 {
		t.Error("a fenced execution made a table")
	}
}

func TestLostCommit(t *testing.T) {
	for _, committed := range []bool{false, true} {
		file := path(t)
		w := appender(t, file, ledger.Switches{})
		claim(t, w, execution("x1", 1))
		must(t, write(w, next(0, 1), line(t, 1)))
		w.atCommit = func(c bool) error {
			if c == committed {
				return errors.New("connection cut")
			}
			return nil
		}
		err := write(w, next(0, 2), line(t, 2))
		if !errors.Is(err, sdk.ErrCommitUnknown) || sdk.AsFault(err).Code != sdk.CodeCommitUnknown {
			t.Fatalf("got %v, want %v", err, sdk.ErrCommitUnknown)
		}
		w.atCommit = nil
		p, err := w.Settle(context.Background(), 0)
		must(t, err)
		if got := p.BatchNo == 2; got != committed {
			t.Errorf("committed: %t, settled at batch %d", committed, p.BatchNo)
		}
		if !committed {
			must(t, write(w, next(0, 2), line(t, 2)))
		}
		must(t, write(w, next(0, 3), line(t, 3)))
		if got := lines(t, file); got != "1,2,3" {
			t.Errorf("committed: %t: rows %s, want 1,2,3", committed, got)
		}
	}
}

func TestBusy(t *testing.T) {
	file := path(t)
	a, b := appender(t, file, ledger.Switches{}), appender(t, file, ledger.Switches{})
	claim(t, a, execution("x1", 1))
	tx, err := a.Begin(context.Background(), []int32{0})
	must(t, err)
	_, err = b.Claim(context.Background(), execution("x2", 2))
	f := sdk.AsFault(err)
	if f == nil || f.Code != sdk.CodeUnavailable || !f.Retryable || !strings.Contains(f.Message, "x1") || !strings.Contains(f.Message, "busyTimeout") {
		t.Errorf("claim beside an open transaction: got %v, want unavailable, retryable, naming x1", err)
	}
	must(t, tx.Rollback(context.Background()))
	claim(t, b, execution("x2", 2))
}

// Everything of one transaction shows at once or not at all.
func TestRollback(t *testing.T) {
	file := path(t)
	w := writer(t, Config{Path: file})
	claim(t, w, execution("x1", 1))
	must(t, write(w, next(0, 1), change(t, sdk.Upsert, keyed(), nil, vals(1, "a", 1))))
	ctx := context.Background()
	tx, err := w.Begin(ctx, []int32{0})
	must(t, err)
	n := next(0, 2)
	n.State = []batch.StateItem{{Key: "s", Version: 1, Value: []byte("v")}}
	n.SetAside = []sdk.DeadLetter{{Number: 1, Table: "t"}}
	must(t, tx.Fence(ctx, []sdk.Next{n}))
	other := keyed()
	other.ID, other.Table = 9, "made_inside"
	if bad, err := tx.Apply(ctx, &sdk.Changes{Segments: [][]sdk.Change{{change(t, sdk.Upsert, keyed(), nil, vals(1, "b", 2)), change(t, sdk.Upsert, other, nil, vals(1, "b", 2))}}}); err != nil || len(bad) > 0 {
		t.Fatal(bad, err)
	}
	must(t, tx.Rollback(ctx))
	must(t, tx.Rollback(ctx))
	got := slices.Concat(rows(t, file, "SELECT * FROM t"), rows(t, file, "SELECT batch_no FROM datalink_progress WHERE lane = 0"),
		rows(t, file, "SELECT key FROM datalink_state"), rows(t, file, "SELECT number FROM datalink_dead_letters"), rows(t, file, "SELECT name FROM sqlite_schema WHERE name = 'made_inside'"))
	if want := []string{`1 "a" 1`, "1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := claim(t, w, execution("x1", 1)); len(got.State) != 0 || len(got.DeadLetters) != 0 {
		t.Errorf("got %+v", got)
	}
}
