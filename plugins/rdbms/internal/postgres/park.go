package postgres

import (
	"context"

	"github.com/datalink-go/datalink/sdk"
)

// exchanges reports whether rows of the changes meet in unique keys beside the one
// they are found by: two of them may exchange a value, which the source checks
// once both are changed and the target row by row.
func (t *tx) exchanges(ch *sdk.Changes) bool {
	for _, seg := range ch.Segments {
		for i := range seg {
			if seg[i].Op == sdk.Alter {
				return false
			}
			if p := t.w.plans.get(seg[i].Schema); p != nil && len(p.others) > 0 {
				return true
			}
		}
	}
	return false
}

// park gives up the unique values of the rows that get others in the segments that
// follow, as far as they may be NULL.
func (t *tx) park(ctx context.Context, segments [][]sdk.Change) error {
	x := t.pipe
	if err := x.flush(ctx); err != nil {
		return err
	}
	for _, seg := range segments {
		x.sets = x.sets[:0]
		for k := range seg {
			c := &seg[k]
			switch c.Op {
			case sdk.Upsert, sdk.Patch, sdk.Rekey:
			default:
				continue
			}
			p, err := t.planOf(ctx, c.Schema)
			if err != nil {
				return err
			}
			if len(p.others) == 0 {
				continue
			}
			if x.after, err = c.After.Values(x.after); err != nil {
				return err
			}
			mask := p.mask(nil, x.after)
			for i := range mask {
				mask[i] = '-'
			}
			some := false
			for _, i := range p.others {
				if x.after[i].Has() && p.cols[i].nullable {
					mask[i], some = '+', true
				}
			}
			if !some {
				continue
			}
			r := x.set(p, releaseTxt, mask)
			keys, err := x.key(p, c)
			if err != nil {
				return err
			}
			fits := true
			for n := range r.find {
				if r.value(n, &keys[n]) != nil {
					r.undo(n)
					fits = false
					break
				}
			}
			if fits {
				r.done(int32(k))
			}
		}
		for _, r := range x.sets {
			if len(r.at) > 0 {
				if err := x.queue(ctx, r); err != nil {
					return err
				}
			}
			x.spare = append(x.spare, r)
		}
	}
	return x.flush(ctx)
}
