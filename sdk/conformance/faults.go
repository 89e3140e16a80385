package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

func lostCommit(ctx context.Context, sub *Subject, store Store) error {
	n := 0
	l := &life{lost: func() (bool, bool) { n++; return n <= 4, n%2 == 0 }}
	w, s, err := begun(ctx, sub, store, execution(1, "one"), l)
	if err != nil {
		return err
	}
	for i := 1; i <= 4; i++ {
		if err := s.write(w, insert(i, "a")); err != nil {
			return err
		}
	}
	if err := w.close(); err != nil {
		return err
	}
	return expect(ctx, store, "1|NULL|a", "2|NULL|a", "3|NULL|a", "4|NULL|a")
}

func deadlock(ctx context.Context, sub *Subject, store Store) error {
	n := 0
	l := &life{fault: func(step string) error {
		if n++; n%5 != 0 || step == "claim" || step == "prepare" || step == "commit" {
			return nil
		}
		return sdk.Faultf(sdk.CodeUnavailable, "a deadlock, as the kit wants it").Retry()
	}}
	w, s, err := begun(ctx, sub, store, execution(1, "one"), l)
	if err != nil {
		return err
	}
	for i := 1; i <= 4; i++ {
		if err := s.write(w, insert(i, "a")); err != nil {
			return err
		}
	}
	if err := w.close(); err != nil {
		return err
	}
	return expect(ctx, store, "1|NULL|a", "2|NULL|a", "3|NULL|a", "4|NULL|a")
}

func refusedRecord(ctx context.Context, sub *Subject, store Store) error {
	w, s, err := begun(ctx, sub, store, execution(1, "one"), nil)
	if err != nil {
		return err
	}
	defer w.kill()
	// A part of a row that is not there: refused, or by policy ignored or written.
	missing := kitEvent{table: tabPlain, kind: batch.Update, partial: true, before: kitRow{7, nil, "x"}, after: kitRow{7, nil, "y"}}
	first, err := s.block(insert(1, "a"), missing)
	if err != nil {
		return err
	}
	if err := w.write(first); err == nil {
		return nil
	}
	w.mu.Lock()
	refused := w.records
	w.mu.Unlock()
	if refused == nil || refused.FailedSeq != 1 || len(refused.Records) != 1 || refused.Records[0].Index != 1 {
		return fmt.Errorf("the refusal of record 1 of block 1: got %+v, and error %w", refused, w.err)
	}
	if err := expect(ctx, store); err != nil {
		return fmt.Errorf("after a refused record: %w", err)
	}
	w.mu.Lock()
	w.records = nil
	w.mu.Unlock()
	again, err := newScript(w.claimed.Points)
	if err != nil {
		return err
	}
	r, err := again.block(insert(1, "a"))
	if err != nil {
		return err
	}
	r.Attempt, r.SetAside = 1, []sdk.DeadLetter{{Number: 1, Table: s.schema.Name(), Key: []byte{7, 0, 0, 0}, Record: first.Block, Fault: refused.Records[0].Fault}}
	if err := w.write(r); err != nil {
		return err
	}
	return expect(ctx, store, "1|NULL|a")
}

func asideAndState(ctx context.Context, sub *Subject, store Store) error {
	w, s, err := begun(ctx, sub, store, execution(1, "one"), nil)
	if err != nil {
		return err
	}
	if err := s.b.BeginTx(batch.Tx{Begins: true, ID: "kit:1"}); err != nil {
		return err
	}
	e := insert(1, "a")
	if err := errors.Join(s.event(&e), s.b.StateItem(&batch.StateItem{Key: "chunk", Version: 3, Value: []byte("half")})); err != nil {
		return err
	}
	s.at.has[1] = true
	if err := s.b.EndTx(true, nil, s.at.encode()); err != nil {
		return err
	}
	r, err := s.request()
	if err != nil {
		return err
	}
	r.SetAside = []sdk.DeadLetter{{Number: 4, Table: "t", Key: []byte("k"), Record: []byte("r"), Fault: sdk.Fault{Code: sdk.CodeConflict, Message: "m"}}}
	if err := w.write(r); err != nil {
		return err
	}
	if err := w.close(); err != nil {
		return err
	}
	for step, dropped := range [][]uint64{{4}, nil} {
		w, s, err := begun(ctx, sub, store, execution(uint64(2+step), fmt.Sprint("x", step)), nil)
		if err != nil {
			return err
		}
		c := w.claimed
		if len(c.State) != 1 || c.State[0].Key != "chunk" || c.State[0].Version != 3 || string(c.State[0].Value) != "half" {
			return fmt.Errorf("the claim returned reader state %+v, want chunk, version 3", c.State)
		}
		if len(c.DeadLetters) != 1-step || step == 0 && (c.DeadLetters[0].Number != 4 || string(c.DeadLetters[0].Key) != "k" || c.DeadLetters[0].Fault.Code != sdk.CodeConflict) {
			return fmt.Errorf("the claim returned dead letters %+v, want %d", c.DeadLetters, 1-step)
		}
		s.id = 1 + step
		r, err := s.block(insert(2+step, "b"))
		if err != nil {
			return err
		}
		r.Dropped = dropped
		if err := w.write(r); err != nil {
			return err
		}
		if err := w.close(); err != nil {
			return err
		}
	}
	return nil
}

func wentBack(ctx context.Context, sub *Subject, store Store) error {
	c, ok := store.(Copier)
	if !ok {
		return nil
	}
	w, s, err := begun(ctx, sub, store, execution(1, "one"), nil)
	if err != nil {
		return err
	}
	defer w.kill()
	if err := s.write(w, insert(1, "a")); err != nil {
		return err
	}
	restore, err := c.Copy(ctx)
	if err != nil {
		return err
	}
	if err := s.write(w, insert(2, "a")); err != nil {
		return err
	}
	if err := restore(ctx); err != nil {
		return err
	}
	if err := s.write(w, insert(3, "a")); !errors.Is(err, sdk.ErrTargetWentBack) && !errors.Is(err, sdk.ErrFenced) {
		return fmt.Errorf("a write after the target went back: got %v, want %w", err, sdk.ErrTargetWentBack)
	}
	if err := expect(ctx, store, "1|NULL|a"); err != nil {
		return err
	}
	o, os, err := begun(ctx, sub, store, execution(2, "two"), nil)
	if err != nil {
		return err
	}
	for i := 1; i <= 3; i++ {
		if err := os.write(o, insert(i, "a")); err != nil {
			return err
		}
	}
	if err := o.close(); err != nil {
		return err
	}
	return expect(ctx, store, "1|NULL|a", "2|NULL|a", "3|NULL|a")
}

// anyCrash kills the writer before and after each of its calls in turn, each time
// on a fresh store.
func anyCrash(ctx context.Context, sub *Subject, _ Store) error {
	for n := 1; ; n++ {
		for _, after := range []bool{false, true} {
			died, err := crashAt(ctx, sub, n, after)
			if err != nil {
				return fmt.Errorf("killed at call %d, after it %t: %w", n, after, err)
			}
			if !died {
				return nil
			}
		}
	}
}

func crashAt(ctx context.Context, sub *Subject, n int, after bool) (died bool, err error) {
	store, err := sub.New(ctx)
	if err != nil {
		return false, err
	}
	defer store.Close(context.WithoutCancel(ctx))
	version := uint64(1)
	for epoch := uint64(1); ; epoch++ {
		l := &life{}
		if epoch == 1 {
			l.dieAt, l.after = n, after
		}
		w, s, err := begun(ctx, sub, store, execution(epoch, fmt.Sprint("x", epoch)), l)
		if err == nil {
			s.version = version
			err = s.play(w)
			version = s.version
			if err == nil {
				if err = w.close(); err == nil {
					break
				}
			} else {
				w.kill()
			}
		}
		if !l.isDead() {
			return died, err
		}
		died = true
	}
	return died, expect(ctx, store, "1|NULL|c", "3|NULL|b")
}

func (l *life) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// play writes a few transactions.
func (s *script) play(w *driven) error {
	for _, events := range [][]kitEvent{
		{insert(1, "a"), insert(2, "b")},
		{update(1, "a", "c")},
		{{table: tabPlain, kind: batch.Update, before: kitRow{2, nil, "b"}, after: kitRow{3, nil, "b"}}},
	} {
		if err := s.write(w, events...); err != nil {
			return err
		}
	}
	return nil
}
