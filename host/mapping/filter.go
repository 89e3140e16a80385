package mapping

import (
	"fmt"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// filter says as what kind the row passes; KindInvalid = not at all.
func (s *Stage) filter(p *plan, e *batch.Event) (batch.Kind, error) {
	if p.rule == nil || p.rule.program == nil {
		return e.Kind, nil
	}
	switch e.Kind {
	case batch.Delete:
		ok, err := s.passes(p, e.Before, 0)
		return choose(ok, e.Kind), err
	case batch.Update:
		now, err := s.passes(p, e.After, 1)
		if err != nil {
			return batch.KindInvalid, err
		}
		if e.Before.IsZero() {
			return batch.KindInvalid, sdk.Faultf(sdk.CodeRefused,
				"filter %q on %s: the update has no image of the row before it", p.rule.Filter, p.in.Name()).
				Suggest("set the source's row image to full")
		}
		was, err := s.passes(p, e.Before, 0)
		if err != nil {
			return batch.KindInvalid, err
		}
		switch {
		case now && was:
			return batch.Update, nil
		case was:
			return batch.Delete, nil
		case now:
			return batch.Insert, nil
		}
		return batch.KindInvalid, nil
	}
	ok, err := s.passes(p, e.After, 1)
	return choose(ok, e.Kind), err
}

func choose(ok bool, k batch.Kind) batch.Kind {
	if ok {
		return k
	}
	return batch.KindInvalid
}

func (s *Stage) passes(p *plan, im batch.Image, side int) (bool, error) {
	v, err := im.Values(s.vals[side])
	if err != nil {
		return false, err
	}
	s.vals[side] = v
	what := fmt.Sprintf("filter %q", p.rule.Filter)
	out, err := s.eval(what, p.rule.program, p.in, p.filter, v)
	if m, ok := err.(errMissing); ok {
		return false, sdk.Faultf(sdk.CodeRefused, "%s on %s: %v", what, p.in.Name(), m)
	}
	if err != nil {
		return false, err
	}
	return out.(bool), nil
}
