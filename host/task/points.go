package task

import (
	"context"
	"errors"
	"fmt"

	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
)

// ErrNoCommonPoint is wrapped when two progress points of a task have no position
// below both: they come from different sources.
var ErrNoCommonPoint = errors.New("progress points have no common position")

// unreadable says that a position is not one of this reader. A reader that died
// or could not answer has said nothing of it.
func unreadable(writer string, lane int32, err error) error {
	f := sdk.AsFault(err)
	if unanswered(err) {
		return fmt.Errorf("the progress of writer %s, lane %d: %w", writer, lane, err)
	}
	out := sdk.Faultf(f.Code, "the progress of writer %s, lane %d is no position of this reader: %s", writer, lane, f.Message)
	if out.Code == sdk.CodeInternal {
		out.Code = sdk.CodeInvalidPosition
	}
	return out.Suggest("the target was filled by another reader or version: use that one, or release the target and start over")
}

// commonPoint checks that the reader understands all points and that they have a
// position below all of them. Zero positions stand for the configured start, which
// is below all. Positions of older versions are rewritten in place.
func commonPoint(src sdk.Positions, points []*sdk.Point) error {
	var low *sdk.Point
	var at sdk.Position
	for _, p := range points {
		if p.Position.IsZero() {
			continue
		}
		up, err := src.UpgradePosition(p.Position)
		if err != nil {
			return unreadable(p.Writer, p.Lane, err)
		}
		p.Position = up
		if low == nil {
			low, at = p, up
			continue
		}
		next, err := src.IntersectPositions(at, up)
		if err != nil && unanswered(err) {
			return fmt.Errorf("the progress of writer %s, lane %d: %w", p.Writer, p.Lane, err)
		}
		if err != nil {
			return &incomparable{a: *low, b: *p, fault: sdk.AsFault(err), show: func(x sdk.Position) string {
				if text, err := src.FormatPosition(x); err == nil {
					return text
				}
				return fmt.Sprintf("%s %q", x.Format, x.Source)
			}}
		}
		at = next
	}
	return nil
}

// unanswered reports whether a call failed before the reader could judge.
func unanswered(err error) bool {
	f := sdk.AsFault(err)
	return errors.Is(err, pipeline.ErrDied) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		f.Retryable || f.Code == sdk.CodeUnavailable || f.Code == sdk.CodeDeadline
}

type incomparable struct {
	a, b  sdk.Point
	fault *sdk.Fault
	show  func(sdk.Position) string
}

// Error names both points.
func (e *incomparable) Error() string { return e.asFault().Error() }

func (e *incomparable) asFault() *sdk.Fault {
	return sdk.Faultf(sdk.CodeInvalidPosition, "writer %s, lane %d is at %s, writer %s, lane %d at %s: these have no common position: %s",
		e.a.Writer, e.a.Lane, e.show(e.a.Position), e.b.Writer, e.b.Lane, e.show(e.b.Position), e.fault.Message).
		Suggest("one of the targets was filled from another source: release it, so that it starts over, or give it a task of its own")
}

// Is matches ErrNoCommonPoint.
func (e *incomparable) Is(target error) bool { return target == ErrNoCommonPoint }

// Unwrap gives the fault.
func (e *incomparable) Unwrap() error { return e.asFault() }
