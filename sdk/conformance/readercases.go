package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// somePositions bounds how many positions of a source are tried.
const somePositions = 25

// some returns positions spread over the stream, the last among them.
func (s *stream) some() []stop {
	n := len(s.stops)
	if n <= somePositions {
		return s.stops
	}
	var out []stop
	for i := 1; i <= somePositions; i++ {
		out = append(out, s.stops[i*n/somePositions-1])
	}
	return out
}

func positionsOrdered(ctx context.Context, sub *ReaderSubject, all *stream) error {
	r, err := sub.New(ctx)
	if err != nil {
		return err
	}
	defer r.Close(ctx)
	stops := all.some()
	for i := range stops {
		for k := range stops {
			a, b := stops[i].at, stops[k].at
			want, low := sdk.Equal, a
			switch {
			case i < k:
				want = sdk.Before
			case i > k:
				want, low = sdk.After, b
			}
			got, err := r.ComparePositions(a, b)
			if err != nil || got != want {
				return fmt.Errorf("compare %s with %s: got %s, %v, expected %s", show(r, a), show(r, b), got, err, want)
			}
			both, err := r.IntersectPositions(a, b)
			if err != nil {
				return fmt.Errorf("intersect %s and %s: %w", show(r, a), show(r, b), err)
			}
			if o, err := r.ComparePositions(both, low); err != nil || o != sdk.Equal {
				return fmt.Errorf("intersect %s and %s: got %s, %v, expected %s", show(r, a), show(r, b), show(r, both), err, show(r, low))
			}
		}
	}
	return nil
}

func show(r sdk.Reader, p sdk.Position) string {
	if text, err := r.FormatPosition(p); err == nil {
		return text
	}
	return fmt.Sprintf("%s:%q+%d", p.Format, p.Source, p.Ordinal)
}

func positionsPrinted(ctx context.Context, sub *ReaderSubject, all *stream) error {
	r, err := sub.New(ctx)
	if err != nil {
		return err
	}
	defer r.Close(ctx)
	for _, s := range all.some() {
		text, err := r.FormatPosition(s.at)
		if err != nil {
			return fmt.Errorf("format %s: %w", show(r, s.at), err)
		}
		back, err := r.ParsePosition(text)
		if err != nil {
			return fmt.Errorf("parse %q, which it has printed: %w", text, err)
		}
		if o, err := r.ComparePositions(back, s.at); err != nil || o != sdk.Equal {
			return fmt.Errorf("parse %q, which it has printed: got %s, %v", text, show(r, back), err)
		}
		up, err := r.UpgradePosition(s.at)
		if err != nil {
			return fmt.Errorf("upgrade %s: %w", text, err)
		}
		if o, err := r.ComparePositions(up, s.at); err != nil || o != sdk.Equal {
			return fmt.Errorf("upgrade %s, a position of today: got %s, %v", text, show(r, up), err)
		}
	}
	if p, err := r.ParsePosition("no position at all"); err == nil {
		return fmt.Errorf("parse %q: got %s, expected an error", "no position at all", show(r, p))
	}
	return nil
}

func positionsForeign(ctx context.Context, sub *ReaderSubject, all *stream) error {
	r, err := sub.New(ctx)
	if err != nil {
		return err
	}
	defer r.Close(ctx)
	other, newer := all.stops[0].at, all.stops[0].at
	other.Format = "another-" + other.Format
	newer.Version++
	for _, p := range []sdk.Position{other, newer} {
		_, err := r.ComparePositions(p, all.stops[0].at)
		if !errors.Is(err, &sdk.Fault{Code: sdk.CodeInvalidPosition}) {
			return fmt.Errorf("compare a position of format %q version %d: got %v, expected an error with code %s", p.Format, p.Version, err, sdk.CodeInvalidPosition)
		}
	}
	return nil
}

// resumed opens the reader at one position after the other.
func resumed(ctx context.Context, sub *ReaderSubject, all *stream) error {
	for _, s := range all.some() {
		if err := sub.compare(ctx, all, batch.Limits{}, s); err != nil {
			return err
		}
	}
	return nil
}

// resumedTogether opens it for writers that are at different places, one of them
// at the beginning.
func resumedTogether(ctx context.Context, sub *ReaderSubject, all *stream) error {
	stops := all.some()
	begin := stop{}
	for i := range stops {
		other := stops[(i+len(stops)/2)%len(stops)]
		if err := sub.compare(ctx, all, batch.Limits{}, stops[i], other, stops[i]); err != nil {
			return err
		}
	}
	last := stops[len(stops)-1]
	return sub.compare(ctx, all, batch.Limits{}, last, begin, stops[len(stops)/2])
}

// smallBlocks makes each block full after one event. Where a transaction then
// passes in parts, there are positions inside of it.
func smallBlocks(ctx context.Context, sub *ReaderSubject, all *stream) error {
	small := batch.Limits{Full: 1, Events: 1}
	s, err := sub.read(ctx, nil, nil, small)
	if err != nil {
		return err
	}
	if err := same(s.changes, all.changes, -1); err != nil {
		return err
	}
	if s.blocks < 2 {
		return errors.New("all of the source came in one block that is full after one event, expected Next to return when the block is full")
	}
	if err := errors.Join(positionsOrdered(ctx, sub, s), positionsPrinted(ctx, sub, s)); err != nil {
		return err
	}
	for _, at := range s.some() {
		if err := sub.compare(ctx, all, small, at); err != nil {
			return err
		}
	}
	return nil
}

func closed(ctx context.Context, sub *ReaderSubject, _ *stream) error {
	r, err := sub.open(ctx, nil, nil)
	if err != nil {
		return err
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	done := make(chan error, 1)
	go func() { done <- untilEnd(over, r) }()
	select {
	case err := <-done:
		if err != nil {
			return err
		}
	case <-time.After(10 * time.Second):
		return errors.New("the call of Next goes on 10 s after its context has ended")
	}
	for range 2 {
		if err := r.Close(ctx); err != nil {
			return fmt.Errorf("close: %w", err)
		}
	}
	return nil
}

// untilEnd calls Next with a context that has ended until it says so.
func untilEnd(ctx context.Context, r sdk.Reader) error {
	out := batch.NewBuilder(batch.Limits{})
	for {
		err := r.Next(ctx, out)
		if err != nil || out.Empty() {
			if err == nil || errors.Is(err, io.EOF) || ctx.Err() != nil {
				return nil
			}
			return err
		}
		out.Reset()
	}
}

// compare opens the reader at the stops and wants for each of them what lies
// behind it.
func (sub *ReaderSubject) compare(ctx context.Context, all *stream, limits batch.Limits, stops ...stop) error {
	var points []sdk.Point
	least, texts := stops[0], ""
	r, err := sub.New(ctx)
	if err != nil {
		return err
	}
	defer r.Close(ctx)
	for i, s := range stops {
		points = append(points, sdk.Point{Writer: fmt.Sprint("w", i), Position: s.at})
		if s.done < least.done || s.at.IsZero() {
			least = s
		}
		texts += " " + show(r, s.at)
	}
	got, err := sub.read(ctx, points, least.state, limits)
	if err != nil {
		return fmt.Errorf("opened at%s: %w", texts, err)
	}
	for i, s := range stops {
		if err := same(got.changes, all.changes[s.done:], i); err != nil {
			return fmt.Errorf("opened at%s: for the point at %s: %w", texts, show(r, s.at), err)
		}
	}
	return nil
}

// same compares changes, without those that a point holds.
func same(got, want []readChange, point int) error {
	n := 0
	for _, c := range got {
		switch {
		case c.holds[point]:
			continue
		case n == len(want):
			return fmt.Errorf("after all %d changes that are expected it delivers %s", n, c.text)
		case c.text != want[n].text:
			return fmt.Errorf("change %d: got %s, expected %s", n+1, c.text, want[n].text)
		}
		n++
	}
	if n < len(want) {
		return fmt.Errorf("got %d changes, expected %d: the first one missing is %s", n, len(want), want[n].text)
	}
	return nil
}
