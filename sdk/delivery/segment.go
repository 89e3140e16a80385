package delivery

import (
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// segments makes the changes of one target transaction out of items. It is used
// by one goroutine; its buffers serve one batch after the other, and what it
// returns is valid until the next reset.
type segments struct {
	config *Config

	changes []sdk.Change
	made    []made // beside changes
	starts  []int  // of the segments
	owners  []owner
	out     [][]sdk.Change

	keys   keyTable
	ties   tieTable
	gen    uint64 // of the newest plan in the batch
	touch  toucher
	base   []batch.Encoded
	over   []batch.Encoded
	images []byte
}

// made is what segments remembers of a change.
type made struct {
	table *table
}

// owner says into which change an item went, or one of its parts.
type owner struct{ item, change int32 }

func (s *segments) reset() {
	s.changes, s.made, s.owners, s.starts = s.changes[:0], s.made[:0], s.owners[:0], append(s.starts[:0], 0)
	s.images = nil
	s.gen = 0
	s.fresh()
}

// fresh begins a new segment.
func (s *segments) fresh() {
	s.keys.clear()
	s.ties.clear()
	if n := len(s.changes); s.starts[len(s.starts)-1] != n {
		s.starts = append(s.starts, n)
	}
}

// take returns the segments.
func (s *segments) take() [][]sdk.Change {
	s.out = s.out[:0]
	for i, from := range s.starts {
		to := len(s.changes)
		if i+1 < len(s.starts) {
			to = s.starts[i+1]
		}
		if to > from {
			s.out = append(s.out, s.changes[from:to:to])
		}
	}
	return s.out
}

// step is one part of an event as a change of a single key, or a Rekey.
type step struct {
	op      sdk.Op
	kind    batch.Kind
	key     []byte
	oldKey  []byte
	before  batch.Image
	after   batch.Image
	version uint64
	at      int64 // of the commit at the source
}

// add merges the n-th item of the batch.
func (s *segments) add(it *item, n int) error {
	p, ev := it.plan, &it.ev
	if p != nil && p.gen > s.gen {
		// Ties that earlier changes did not know of.
		if s.gen > 0 {
			s.fresh()
		}
		s.gen = p.gen
	}
	st := step{kind: ev.Kind, key: ev.Key, before: ev.Before, after: ev.After}
	if base := it.req.req.VersionBase; base > 0 {
		st.version = base + uint64(it.at)
	}
	if txs := it.req.block.Txs; it.txAt < len(txs) {
		st.at = txs[it.txAt].Committed
	}
	switch ev.Kind {
	case batch.DDL:
		ch, err := ev.Change()
		if err != nil {
			return err
		}
		s.barrier(sdk.Change{Op: sdk.Alter, Kind: ev.Kind, DDL: ch, Version: st.version, Committed: st.at}, n)
		return nil
	case batch.Truncate:
		s.barrier(sdk.Change{Op: sdk.Truncate, Kind: ev.Kind, Schema: ev.Schema, Version: st.version, Committed: st.at}, n)
		return nil
	case batch.Range:
		r, err := ev.KeyRange()
		if err != nil {
			return err
		}
		c := sdk.Change{Op: sdk.Reconcile, Kind: ev.Kind, Schema: ev.Schema, Range: r, Version: st.version, Committed: st.at}
		if it.group != nil {
			c.Seen = it.group.seen[p.table.name]
			if it.group.whole != nil {
				c.Range = it.group.whole
			}
		}
		s.barrier(c, n)
		return nil
	}
	if p.keyless {
		switch ev.Kind {
		case batch.Insert, batch.Read:
			st.op = sdk.Append
		case batch.Update:
			st.op = sdk.MatchPatch
		case batch.Delete:
			st.op = sdk.MatchRemove
		}
		return s.keylessStep(it, &st, n)
	}
	switch ev.Kind {
	case batch.Insert, batch.Read:
		st.op = sdk.Upsert
		return s.keyed(it, &st, partWhole, n)
	case batch.Delete:
		st.op, st.after = sdk.Remove, batch.Image{}
		return s.keyed(it, &st, partWhole, n)
	}
	full, err := s.whole(&st)
	if err != nil {
		return err
	}
	st.op = sdk.Patch
	if full {
		st.op = sdk.Upsert
	}
	if len(ev.OldKey) == 0 {
		return s.keyed(it, &st, partWhole, n)
	}
	if it.parts == partWhole {
		st.op, st.oldKey = sdk.Rekey, ev.OldKey
		return s.keyed(it, &st, partWhole, n)
	}
	if it.parts == partOld || it.parts == partBoth {
		old := st
		old.op, old.key, old.after = sdk.Remove, ev.OldKey, batch.Image{}
		if err := s.keyed(it, &old, partOld, n); err != nil {
			return err
		}
	}
	if it.parts == partNew || it.parts == partBoth {
		st.before = batch.Image{}
		return s.keyed(it, &st, partNew, n)
	}
	return nil
}

// whole completes the after image with what the before image has, and reports
// whether it holds the whole row.
func (s *segments) whole(st *step) (bool, error) {
	if st.after.Complete() {
		return true, nil
	}
	if !st.before.Complete() {
		return false, nil
	}
	im, err := s.overlay(st.before, st.after)
	if err != nil {
		return false, err
	}
	st.after = im
	return im.Complete(), nil
}

// overlay returns the image of base with the values that over has.
func (s *segments) overlay(base, over batch.Image) (batch.Image, error) {
	var err error
	if s.base, err = base.Columns(s.base); err != nil {
		return batch.Image{}, err
	}
	if s.over, err = over.Columns(s.over); err != nil {
		return batch.Image{}, err
	}
	batch.Overlay(s.base, s.over)
	if cap(s.images)-len(s.images) < len(base.Data())+len(over.Data()) {
		// Images that were made before refer to the old buffer.
		s.images = make([]byte, 0, max(64<<10, len(base.Data())+len(over.Data())))
	}
	from := len(s.images)
	s.images = batch.AppendImage(s.images, s.base)
	return batch.NewImage(base.Schema(), s.images[from:len(s.images):len(s.images)]), nil
}

// barrier appends a change that nothing is merged across.
func (s *segments) barrier(c sdk.Change, n int) {
	s.fresh()
	s.changes = append(s.changes, c)
	s.made = append(s.made, made{})
	s.owners = append(s.owners, owner{int32(n), int32(len(s.changes) - 1)})
	s.fresh()
}

func (s *segments) keylessStep(it *item, st *step, n int) error {
	touches, err := s.touch.of(it.plan, &it.ev, partWhole)
	if err != nil {
		return err
	}
	if s.conflict(touches, -1) {
		s.fresh()
	}
	s.append(it, st, touches, n)
	return nil
}

func (s *segments) conflict(touches []touch, self int32) bool {
	if s.config.Switches.TiesOff {
		return false
	}
	for i := range touches {
		if s.ties.conflict(touches[i], self) {
			return true
		}
	}
	return false
}

// keyed merges a step into the change that its key has in the segment, or
// appends it.
func (s *segments) keyed(it *item, st *step, part uint8, n int) error {
	p := it.plan
	var touches []touch
	if p.tied {
		var err error
		if touches, err = s.touch.of(p, &it.ev, part); err != nil {
			return err
		}
	}
	h := hash(p.table.seed, st.key)
	at := s.keys.find(s, h, p.table, st.key)
	if st.op == sdk.Remove && it.stays {
		// The values of the row that went were given up by what stands there now.
		if at >= 0 {
			for i := range touches {
				s.ties.add(touches[i], at)
			}
		}
		return nil
	}
	if at < 0 && st.op == sdk.Rekey && s.keys.find(s, hash(p.table.seed, st.oldKey), p.table, st.oldKey) >= 0 ||
		s.conflict(touches, at) {
		s.fresh()
		at = -1
	}
	if at >= 0 {
		merged, err := s.merge(&s.changes[at], st)
		if err != nil {
			return err
		}
		if merged {
			s.owners = append(s.owners, owner{int32(n), at})
			for i := range touches {
				s.ties.add(touches[i], at)
			}
			return nil
		}
		s.fresh()
	}
	at = s.append(it, st, touches, n)
	s.keys.add(h, at)
	if st.op == sdk.Rekey {
		s.keys.add(hash(p.table.seed, st.oldKey), at)
	}
	return nil
}

func (s *segments) append(it *item, st *step, touches []touch, n int) int32 {
	at := int32(len(s.changes))
	s.changes = append(s.changes, sdk.Change{
		Op: st.op, Kind: st.kind, Schema: it.plan.schema, Key: st.key, OldKey: st.oldKey,
		Before: st.before, After: st.after, Version: st.version, Committed: st.at,
	})
	s.made = append(s.made, made{it.plan.table})
	s.owners = append(s.owners, owner{int32(n), at})
	for i := range touches {
		s.ties.add(touches[i], at)
	}
	return at
}
