package delivery

import (
	"bytes"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// merge makes c the net effect of c and then st, which have one key. It reports
// false where there is no single change that says both.
func (s *segments) merge(c *sdk.Change, st *step) (bool, error) {
	if c.Op == sdk.Rekey || st.op == sdk.Rekey {
		return false, nil
	}
	switch st.op {
	case sdk.Remove:
		if c.Schema != st.before.Schema() && !st.before.IsZero() {
			return false, nil
		}
		c.Op, c.After = sdk.Remove, batch.Image{}
		if c.Before.IsZero() {
			c.Before = st.before
		}
	case sdk.Upsert:
		if c.Schema != st.after.Schema() || !st.after.Complete() {
			// Columns that an insert leaves out take their default, not what was there.
			return false, nil
		}
		c.Op, c.After = sdk.Upsert, st.after
	case sdk.Patch:
		if c.Op == sdk.Remove || c.Schema != st.after.Schema() {
			return false, nil
		}
		im, err := s.overlay(c.After, st.after)
		if err != nil {
			return false, err
		}
		c.After = im
	default:
		return false, nil
	}
	c.Kind, c.Version, c.Committed, c.Key = st.kind, st.version, st.at, st.key
	return true, nil
}

// keyTable finds changes of the current segment by key: open addressing, cleared
// by raising gen.
type keyTable struct {
	slots []keySlot
	n     int
	gen   uint32
}

type keySlot struct {
	hash uint64
	at   int32
	gen  uint32
}

func (k *keyTable) clear() {
	k.n = 0
	k.gen++
	if k.gen == 0 {
		clear(k.slots)
		k.gen = 1
	}
}

func (k *keyTable) find(s *segments, h uint64, t *table, key []byte) int32 {
	if k.n == 0 {
		return -1
	}
	mask := uint64(len(k.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		slot := &k.slots[i]
		if slot.gen != k.gen {
			return -1
		}
		if slot.hash == h {
			c := &s.changes[slot.at]
			if s.made[slot.at].table == t && (bytes.Equal(c.Key, key) || len(c.OldKey) > 0 && bytes.Equal(c.OldKey, key)) {
				return slot.at
			}
		}
	}
}

func (k *keyTable) add(h uint64, at int32) {
	if 4*(k.n+1) > 3*len(k.slots) {
		old := k.slots
		k.slots = make([]keySlot, max(64, 2*len(old)))
		for _, s := range old {
			if s.gen == k.gen {
				k.put(s)
			}
		}
	}
	k.put(keySlot{h, at, k.gen})
	k.n++
}

func (k *keyTable) put(s keySlot) {
	mask := uint64(len(k.slots) - 1)
	i := s.hash & mask
	for k.slots[i].gen == k.gen {
		i = (i + 1) & mask
	}
	k.slots[i] = s
}

// tieTable knows which values the changes of the current segment touch.
type tieTable struct {
	slots []tieSlot
	n     int
	gen   uint32
}

// several stands for more than one change.
const several int32 = -2

type tieSlot struct {
	hash uint64
	at   int32 // the change, or several
	gen  uint32
	mode mode
}

func (k *tieTable) clear() {
	k.n = 0
	k.gen++
	if k.gen == 0 {
		clear(k.slots)
		k.gen = 1
	}
}

func (k *tieTable) slot(h uint64) *tieSlot {
	mask := uint64(len(k.slots) - 1)
	i := h & mask
	for k.slots[i].gen == k.gen && k.slots[i].hash != h {
		i = (i + 1) & mask
	}
	return &k.slots[i]
}

// conflict reports whether t may not stand in the segment beside the changes
// other than self.
func (k *tieTable) conflict(t touch, self int32) bool {
	if k.n == 0 {
		return false
	}
	s := k.slot(t.hash)
	return s.gen == k.gen && s.at != self && t.mode.conflicts(s.mode)
}

// add notes that change at touches t. Where one change touches a value in two
// modes, the exclusive one counts.
func (k *tieTable) add(t touch, at int32) {
	if 4*(k.n+1) > 3*len(k.slots) {
		old := k.slots
		k.slots = make([]tieSlot, max(64, 2*len(old)))
		for _, s := range old {
			if s.gen == k.gen {
				*k.slot(s.hash) = s
			}
		}
	}
	s := k.slot(t.hash)
	if s.gen != k.gen {
		*s = tieSlot{t.hash, at, k.gen, t.mode}
		k.n++
		return
	}
	if s.at != at {
		s.at = several
	}
	if s.mode != t.mode {
		s.mode = exclusive
	}
}
