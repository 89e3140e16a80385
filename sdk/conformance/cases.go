package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/manifest"
)

// Case is one thing that a writer is held to.
type Case struct {
	Name string
	// Levels that it is for.
	Levels []manifest.Level
	Run    func(ctx context.Context, sub *Subject, store Store) error
}

var (
	all     = []manifest.Level{manifest.LevelIdempotent, manifest.LevelVersioned, manifest.LevelTransactional}
	fencing = []manifest.Level{manifest.LevelVersioned, manifest.LevelTransactional}
	exact   = []manifest.Level{manifest.LevelTransactional}
)

// Cases returns the cases that are not random.
func Cases() []Case {
	return []Case{
		{"a claim of a lower epoch is refused", fencing, lowerEpoch},
		{"a claim of an equal epoch by another execution is refused", fencing, equalEpoch},
		{"a claim of another store is refused until it takes over", exact, foreignStore},
		{"a late writer of a lower epoch writes nothing", exact, lateWriter},
		{"a late write of a lower version changes nothing", []manifest.Level{manifest.LevelVersioned}, lateVersion},
		{"a plugin that was restarted fences its predecessor", exact, restarted},
		{"batches that come twice change nothing", all, duplicated},
		{"a commit whose answer is lost is settled", exact, lostCommit},
		{"a deadlock is tried again", exact, deadlock},
		{"a refused record leaves nothing of its batch", exact, refusedRecord},
		{"dead letters and reader state are stored with the position", exact, asideAndState},
		{"a target that went back is noticed", exact, wentBack},
		{"a crash between any two calls loses and doubles nothing", all, anyCrash},
	}
}

// lowerEpoch and those below return what is wrong.
func lowerEpoch(ctx context.Context, sub *Subject, store Store) error {
	w, err := start(ctx, sub, store, execution(5, "five"), nil)
	if err != nil {
		return err
	}
	defer w.kill()
	return mustFail(ctx, sub, store, execution(4, "four"), sdk.ErrFenced)
}

func equalEpoch(ctx context.Context, sub *Subject, store Store) error {
	w, err := start(ctx, sub, store, execution(5, "five"), nil)
	if err != nil {
		return err
	}
	defer w.kill()
	return mustFail(ctx, sub, store, execution(5, "another"), sdk.ErrFenced)
}

func mustFail(ctx context.Context, sub *Subject, store Store, ex sdk.Execution, want error) error {
	w, err := start(ctx, sub, store, ex, nil)
	if err == nil {
		w.kill()
	}
	if !errors.Is(err, want) {
		return fmt.Errorf("claim of execution %s, epoch %d, store %s: got %v, want %w", ex.ID, ex.Epoch, ex.StoreUID, err, want)
	}
	return nil
}

func foreignStore(ctx context.Context, sub *Subject, store Store) error {
	w, s, err := begun(ctx, sub, store, execution(5, "five"), nil)
	if err != nil {
		return err
	}
	defer w.kill()
	if err := s.write(w, insert(1, "a")); err != nil {
		return err
	}
	ex := execution(1, "other")
	ex.StoreUID = "another-store"
	if err := mustFail(ctx, sub, store, ex, sdk.ErrForeignClaim); err != nil {
		return err
	}
	ex.TakeOver = true
	o, err := start(ctx, sub, store, ex, nil)
	if err != nil {
		return fmt.Errorf("take-over: %w", err)
	}
	defer o.kill()
	if err := s.write(w, insert(2, "b")); !errors.Is(err, sdk.ErrFenced) && !errors.Is(err, sdk.ErrTargetWentBack) {
		return fmt.Errorf("a write after another store took over: got %v, want %w", err, sdk.ErrFenced)
	}
	return expect(ctx, store, "1|NULL|a")
}

// begun starts a writer and a script at its points.
func begun(ctx context.Context, sub *Subject, store Store, ex sdk.Execution, l *life) (*driven, *script, error) {
	w, err := start(ctx, sub, store, ex, l)
	if err != nil {
		return nil, nil, err
	}
	points := w.claimed.Points
	if len(points) == 0 {
		points = []sdk.Point{{}}
	}
	s, err := newScript(points)
	return w, s, err
}

func (s *script) write(w *driven, events ...kitEvent) error {
	r, err := s.block(events...)
	if err != nil {
		return err
	}
	return w.write(r)
}

func lateWriter(ctx context.Context, sub *Subject, store Store) error {
	a, as, err := begun(ctx, sub, store, execution(1, "one"), nil)
	if err != nil {
		return err
	}
	defer a.kill()
	if err := as.write(a, insert(1, "a")); err != nil {
		return err
	}
	b, bs, err := begun(ctx, sub, store, execution(2, "two"), nil)
	if err != nil {
		return err
	}
	defer b.kill()
	// What the late one had read before it stood still.
	if err := as.write(a, update(1, "a", "late")); !errors.Is(err, sdk.ErrFenced) {
		return fmt.Errorf("a write after the claim of a higher epoch: got %v, want %w", err, sdk.ErrFenced)
	}
	bs.id = 1
	if err := bs.write(b, update(1, "a", "b")); err != nil {
		return err
	}
	return expect(ctx, store, "1|NULL|b")
}

func lateVersion(ctx context.Context, sub *Subject, store Store) error {
	a, as, err := begun(ctx, sub, store, execution(1, "one"), nil)
	if err != nil {
		return err
	}
	defer a.kill()
	if err := as.write(a, insert(1, "a"), insert(2, "a"), insert(3, "a")); err != nil {
		return err
	}
	b, bs, err := begun(ctx, sub, store, execution(2, "two"), nil)
	if err != nil {
		return err
	}
	defer b.kill()
	bs.id, bs.version = 1, 1000
	gone := kitEvent{table: tabPlain, kind: batch.Delete, before: kitRow{2, nil, "a"}}
	if err := bs.write(b, update(1, "a", "b"), gone); err != nil {
		return err
	}
	// The late one may be refused; what it writes must be outranked.
	if err := as.write(a, update(1, "a", "late"), update(2, "a", "late")); err != nil && !errors.Is(err, sdk.ErrFenced) {
		return err
	}
	return expect(ctx, store, "1|NULL|b", "3|NULL|a")
}

func restarted(ctx context.Context, sub *Subject, store Store) error {
	a, as, err := begun(ctx, sub, store, execution(1, "one"), nil)
	if err != nil {
		return err
	}
	defer a.kill()
	if err := as.write(a, insert(1, "a")); err != nil {
		return err
	}
	b, bs, err := begun(ctx, sub, store, execution(1, "one"), nil)
	if err != nil {
		return err
	}
	defer b.kill()
	if err := as.write(a, insert(2, "late")); !errors.Is(err, sdk.ErrFenced) {
		return fmt.Errorf("a write of the predecessor of the same epoch: got %v, want %w", err, sdk.ErrFenced)
	}
	bs.id = 1
	if err := bs.write(b, insert(2, "b")); err != nil {
		return err
	}
	return expect(ctx, store, "1|NULL|a", "2|NULL|b")
}

func duplicated(ctx context.Context, sub *Subject, store Store) error {
	for try := range 3 {
		w, s, err := begun(ctx, sub, store, execution(uint64(try+1), fmt.Sprint("x", try)), nil)
		if err != nil {
			return err
		}
		s.version = uint64(1000 * (try + 1))
		for _, events := range [][]kitEvent{
			{insert(1, "a"), insert(2, "b")},
			{update(1, "a", "c"), {table: tabPlain, kind: batch.Delete, before: kitRow{2, nil, "b"}}},
			{insert(2, "d"), {table: tabPlain, kind: batch.Update, before: kitRow{2, nil, "d"}, after: kitRow{3, nil, "d"}}},
		} {
			if err := s.write(w, events...); err != nil {
				return err
			}
		}
		if err := w.close(); err != nil {
			return err
		}
		if err := expect(ctx, store, "1|NULL|c", "3|NULL|d"); err != nil {
			return fmt.Errorf("time %d: %w", try+1, err)
		}
	}
	return nil
}
