package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/wire"
)

// txSet is a position of the kit: a set of transactions, as with GTIDs, and one
// that is done in part.
type txSet struct {
	has  map[int]bool
	part int
	upto uint64
}

const positionFormat = "kit-set"

func (s txSet) encode() []byte {
	ids := make([]int, 0, len(s.has))
	for id := range s.has {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = strconv.Itoa(id)
	}
	text := "{" + strings.Join(words, ",") + "}"
	if s.part > 0 {
		text += "+" + strconv.Itoa(s.part)
	}
	return []byte(text)
}

func decodeSet(p sdk.Position) (txSet, error) {
	s := txSet{has: map[int]bool{}, upto: p.Ordinal}
	if p.IsZero() {
		return s, nil
	}
	text := string(p.Source)
	body, part, _ := strings.Cut(text, "+")
	if p.Format != positionFormat || !strings.HasPrefix(body, "{") || !strings.HasSuffix(body, "}") {
		return s, fmt.Errorf("position %q of format %q is none of the kit's", text, p.Format)
	}
	for _, w := range strings.Split(strings.Trim(body, "{}"), ",") {
		if w == "" {
			continue
		}
		id, err := strconv.Atoi(w)
		if err != nil {
			return s, err
		}
		s.has[id] = true
	}
	if part != "" && p.Ordinal > 0 {
		id, err := strconv.Atoi(part)
		if err != nil {
			return s, err
		}
		s.part = id
	}
	return s, nil
}

// within reports whether all of s is in o.
func (s txSet) within(o txSet) bool {
	for id := range s.has {
		if !o.has[id] {
			return false
		}
	}
	if s.part > 0 && s.upto > 0 && !o.has[s.part] {
		return o.part == s.part && o.upto >= s.upto
	}
	return true
}

func (s txSet) position() sdk.Position {
	return sdk.Position{Format: positionFormat, Version: 1, Source: s.encode(), Ordinal: s.upto}
}

// session is a reader opened at the points of a writer's lanes.
type session struct {
	draw    Drawer
	schemas []*batch.Schema
	b       *batch.Builder
	lanes   []int64
	points  []txSet
	at      txSet
	first   sdk.Position
	seq     uint64
	version uint64 // of the next event; 0 = none
}

func openSession(d Drawer, schemas []*batch.Schema, points []sdk.Point) (*session, error) {
	s := &session{draw: d, schemas: schemas, b: batch.NewBuilder(batch.Limits{}), at: txSet{has: map[int]bool{}}}
	for i, p := range points {
		set, err := decodeSet(p.Position)
		if err != nil {
			return nil, err
		}
		s.points = append(s.points, set)
		s.lanes = append(s.lanes, int64(p.Lane))
		for id := range set.has {
			if i == 0 {
				s.at.has[id] = true
			}
		}
		for id := range s.at.has {
			if !set.has[id] {
				delete(s.at.has, id)
			}
		}
	}
	s.first = s.at.position()
	return s, nil
}

// requests reads all of order that lies behind the session's start, cut into
// blocks of random size.
func (s *session) requests(order []*kitTx) ([]*wire.WriteRequest, error) {
	var out []*wire.WriteRequest
	left := s.draw.Int(1, 12)
	flush := func() error {
		if s.b.Empty() {
			return nil
		}
		r, err := s.request()
		out = append(out, r)
		left = s.draw.Int(1, 12)
		return err
	}
	for _, tx := range order {
		if s.at.has[tx.id] {
			continue
		}
		if s.draw.Int(0, 9) == 0 {
			if err := s.heartbeat(); err != nil {
				return nil, err
			}
		}
		start := txSet{has: s.at.has, part: tx.id}.encode()
		var covers []batch.Cover
		for i, p := range s.points {
			switch {
			case p.has[tx.id]:
				covers = append(covers, batch.Cover{Point: i})
			case p.part == tx.id:
				covers = append(covers, batch.Cover{Point: i, Upto: p.upto})
			}
		}
		for i := 0; ; {
			n := min(left, len(tx.events)-i)
			if err := s.b.BeginTx(batch.Tx{Begins: i == 0, Ordinal: uint64(i), ID: fmt.Sprint("kit:", tx.id), Covers: covers}); err != nil {
				return nil, err
			}
			for _, e := range tx.events[i : i+n] {
				if err := s.event(&e); err != nil {
					return nil, err
				}
			}
			i, left = i+n, left-n
			if i < len(tx.events) {
				if err := s.b.EndTx(false, start, nil); err != nil {
					return nil, err
				}
				if err := s.cut(&out, txSet{has: s.at.has, part: tx.id, upto: uint64(i)}.position()); err != nil {
					return nil, err
				}
				left = s.draw.Int(1, 12)
				continue
			}
			s.at.has[tx.id] = true
			var end []byte
			if s.comparable() {
				end = s.at.encode()
			}
			if err := s.b.EndTx(true, start, end); err != nil {
				return nil, err
			}
			break
		}
		if left <= 0 {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	return out, flush()
}

// cut ends a block at a position inside a transaction.
func (s *session) cut(out *[]*wire.WriteRequest, at sdk.Position) error {
	r, err := s.request()
	if err != nil {
		return err
	}
	r.Last, s.first = at, at
	*out = append(*out, r)
	return nil
}

// comparable reports whether the place is before or after each of the points.
func (s *session) comparable() bool {
	for _, p := range s.points {
		if !s.at.within(p) && !p.within(s.at) {
			return false
		}
	}
	return true
}

func (s *session) heartbeat() error {
	if err := s.b.BeginTx(batch.Tx{Begins: true}); err != nil {
		return err
	}
	if err := s.b.Heartbeat(1); err != nil {
		return err
	}
	var end []byte
	if s.comparable() {
		end = s.at.encode()
	}
	return s.b.EndTx(true, nil, end)
}

func (s *session) request() (*wire.WriteRequest, error) {
	data, err := s.b.Finish()
	if err != nil {
		return nil, err
	}
	s.seq++
	r := &wire.WriteRequest{Seq: s.seq, Block: slices.Clone(data), First: s.first, Last: s.at.position()}
	if s.seq == 1 {
		r.Lanes = s.lanes
	}
	if s.version > 0 {
		r.VersionBase = s.version
		s.version += uint64(s.b.Len())
	}
	s.first = r.Last
	s.b.Reset()
	return r, nil
}

func (s *session) event(e *kitEvent) error {
	sc := s.schemas[e.table]
	if e.kind == batch.Truncate {
		return s.b.Truncate(sc)
	}
	if err := s.b.BeginRow(e.kind, sc); err != nil {
		return err
	}
	image := func(side batch.Side, r, other kitRow) {
		if r == nil {
			return
		}
		s.b.BeginImage(side)
		for i, v := range r {
			switch {
			case e.partial && i != colID && side == batch.BeforeImage:
				s.b.PutAbsent()
			case e.partial && i != colID && side == batch.AfterImage && other != nil && other[i] == v:
				s.b.PutUnchanged()
			case v == nil:
				s.b.PutNull()
			default:
				switch v := v.(type) {
				case int:
					s.b.PutInt(int64(v))
				case string:
					s.b.PutString(v)
				}
			}
		}
		s.b.EndImage()
	}
	image(batch.BeforeImage, e.before, nil)
	image(batch.AfterImage, e.after, e.before)
	return s.b.EndRow()
}
