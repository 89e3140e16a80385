package gtid

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Source is who numbered a transaction: a server and, from MySQL 8.3 on, a tag.
type Source struct {
	UUID [16]byte
	Tag  string // lower case; "" = none
}

func (s Source) compare(o Source) int {
	return cmp.Or(bytes.Compare(s.UUID[:], o.UUID[:]), strings.Compare(s.Tag, o.Tag))
}

// Interval is the numbers from From to To, both included.
type Interval struct{ From, To int64 }

// Set is a set of MySQL transactions. The zero value is empty.
type Set struct{ parts []part }

type part struct {
	Source
	in []Interval // ascending, neither overlapping nor touching
}

// ParseUUID reads a UUID as the server prints it.
func ParseUUID(s string) (id [16]byte, err error) {
	plain := strings.ReplaceAll(s, "-", "")
	if len(plain) != 32 {
		return id, fmt.Errorf("%q is no UUID", s)
	}
	if _, err := hex.Decode(id[:], []byte(plain)); err != nil {
		return id, fmt.Errorf("%q is no UUID", s)
	}
	return id, nil
}

// AppendUUID appends a UUID as the server prints it.
func AppendUUID(dst []byte, id [16]byte) []byte {
	for i, cut := range [...][2]int{{0, 4}, {4, 6}, {6, 8}, {8, 10}, {10, 16}} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, id[cut[0]:cut[1]])
	}
	return dst
}

// ParseSet reads a set as the server prints it: UUID:1-3:5:tag:1-2,UUID:…; white
// space and empty parts are passed over.
func ParseSet(text string) (Set, error) {
	var s Set
	for _, sid := range strings.Split(text, ",") {
		if sid = strings.TrimSpace(sid); sid == "" {
			continue
		}
		words := strings.Split(sid, ":")
		id, err := ParseUUID(strings.TrimSpace(words[0]))
		if err != nil {
			return Set{}, fmt.Errorf("GTID set %q: %w", shorten(text), err)
		}
		src, numbers := Source{UUID: id}, 0
		for _, w := range words[1:] {
			w = strings.TrimSpace(w)
			if isTag(w) {
				src.Tag = strings.ToLower(w)
				continue
			}
			from, to, ranged := strings.Cut(w, "-")
			a, err1 := strconv.ParseInt(strings.TrimSpace(from), 10, 64)
			b, err2 := a, error(nil)
			if ranged {
				b, err2 = strconv.ParseInt(strings.TrimSpace(to), 10, 64)
			}
			if err1 != nil || err2 != nil || a < 1 || b < a {
				return Set{}, fmt.Errorf("GTID set %q: %q is no interval", shorten(text), w)
			}
			s.add(src, Interval{a, b})
			numbers++
		}
		if numbers == 0 {
			return Set{}, fmt.Errorf("GTID set %q: %s has no numbers", shorten(text), words[0])
		}
	}
	return s, nil
}

func isTag(w string) bool {
	if w == "" || len(w) > 32 || w[0] >= '0' && w[0] <= '9' {
		return false
	}
	for i := range len(w) {
		c := w[i] | 0x20
		if w[i] != '_' && (w[i] < '0' || w[i] > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

func shorten(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}

// Append appends the set in the server's notation, sources in order; nothing for
// the empty set.
func (s *Set) Append(dst []byte) []byte {
	for i := range s.parts {
		p := &s.parts[i]
		switch {
		case i == 0 || p.UUID != s.parts[i-1].UUID:
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendUUID(dst, p.UUID)
		}
		if p.Tag != "" {
			dst = append(append(dst, ':'), p.Tag...)
		}
		for _, in := range p.in {
			dst = strconv.AppendInt(append(dst, ':'), in.From, 10)
			if in.To > in.From {
				dst = strconv.AppendInt(append(dst, '-'), in.To, 10)
			}
		}
	}
	return dst
}

// Last finds the last number of a source in what Append gives: the text before it
// and after it. Where the source has a single number, or none, ok is false.
func (s *Set) Last(src Source) (before, after []byte, number int64, ok bool) {
	at, ok := s.find(src)
	if !ok {
		return nil, nil, 0, false
	}
	p := &s.parts[at]
	last := p.in[len(p.in)-1]
	if last.From == last.To {
		return nil, nil, 0, false
	}
	head := Set{s.parts[:at+1]}
	text, whole := head.Append(nil), s.Append(nil)
	digits := len(strconv.AppendInt(nil, last.To, 10))
	return whole[:len(text)-digits], whole[len(text):], last.To, true
}

// String returns the set in the server's notation.
func (s Set) String() string { return string(s.Append(nil)) }

// IsEmpty reports whether nothing is in the set.
func (s *Set) IsEmpty() bool { return len(s.parts) == 0 }

// Count returns the number of transactions.
func (s *Set) Count() int64 {
	n := int64(0)
	for i := range s.parts {
		for _, in := range s.parts[i].in {
			n += in.To - in.From + 1
		}
	}
	return n
}

// Clone returns a copy that shares nothing.
func (s *Set) Clone() Set {
	c := Set{parts: slices.Clone(s.parts)}
	for i := range c.parts {
		c.parts[i].in = slices.Clone(c.parts[i].in)
	}
	return c
}

func (s *Set) find(src Source) (int, bool) {
	return slices.BinarySearchFunc(s.parts, src, func(p part, o Source) int { return p.compare(o) })
}

// Add puts a transaction into the set.
func (s *Set) Add(src Source, number int64) { s.add(src, Interval{number, number}) }

// AddInterval puts transactions into the set.
func (s *Set) AddInterval(src Source, in Interval) { s.add(src, in) }

func (s *Set) add(src Source, in Interval) {
	at, ok := s.find(src)
	if !ok {
		s.parts = slices.Insert(s.parts, at, part{src, []Interval{in}})
		return
	}
	p := &s.parts[at]
	if last := &p.in[len(p.in)-1]; in.From == last.To+1 { // the next one, as a rule
		last.To = in.To
		return
	}
	i, _ := slices.BinarySearchFunc(p.in, in.From, func(x Interval, from int64) int { return cmp.Compare(x.To+1, from) })
	j := i
	for j < len(p.in) && p.in[j].From <= in.To+1 {
		in.From, in.To = min(in.From, p.in[j].From), max(in.To, p.in[j].To)
		j++
	}
	p.in = slices.Replace(p.in, i, j, in)
}

// Contains reports whether a transaction is in the set.
func (s *Set) Contains(src Source, number int64) bool {
	at, ok := s.find(src)
	if !ok {
		return false
	}
	p := &s.parts[at]
	i, _ := slices.BinarySearchFunc(p.in, number, func(x Interval, n int64) int { return cmp.Compare(x.To, n) })
	return i < len(p.in) && p.in[i].From <= number
}

// Union returns what is in either set.
func (s *Set) Union(o *Set) Set {
	u := s.Clone()
	for i := range o.parts {
		for _, in := range o.parts[i].in {
			u.add(o.parts[i].Source, in)
		}
	}
	return u
}

// Intersect returns what is in both sets.
func (s *Set) Intersect(o *Set) Set {
	var out Set
	for i := range s.parts {
		p := &s.parts[i]
		at, ok := o.find(p.Source)
		if !ok {
			continue
		}
		q := &o.parts[at]
		for a, b := 0, 0; a < len(p.in) && b < len(q.in); {
			from, to := max(p.in[a].From, q.in[b].From), min(p.in[a].To, q.in[b].To)
			if from <= to {
				out.add(p.Source, Interval{from, to})
			}
			if p.in[a].To < q.in[b].To {
				a++
			} else {
				b++
			}
		}
	}
	return out
}

// Subtract returns what is in s and not in o.
func (s *Set) Subtract(o *Set) Set {
	var out Set
	for i := range s.parts {
		p := &s.parts[i]
		var not []Interval
		if at, ok := o.find(p.Source); ok {
			not = o.parts[at].in
		}
		for _, in := range p.in {
			for _, x := range not {
				if x.To < in.From {
					continue
				}
				if x.From > in.To {
					break
				}
				if x.From > in.From {
					out.add(p.Source, Interval{in.From, x.From - 1})
				}
				in.From = x.To + 1
				if in.From > in.To {
					break
				}
			}
			if in.From <= in.To {
				out.add(p.Source, in)
			}
		}
	}
	return out
}

// Within reports whether all of s is in o.
func (s *Set) Within(o *Set) bool {
	for i := range s.parts {
		p := &s.parts[i]
		at, ok := o.find(p.Source)
		if !ok {
			return false
		}
		q := o.parts[at].in
		k := 0
		for _, in := range p.in {
			for k < len(q) && q[k].To < in.From {
				k++
			}
			if k == len(q) || q[k].From > in.From || q[k].To < in.To {
				return false
			}
		}
	}
	return true
}

// Equal reports whether both hold the same.
func (s *Set) Equal(o *Set) bool { return s.Within(o) && o.Within(s) }

// Sources returns who numbered the transactions of the set, in order.
func (s *Set) Sources() []Source {
	out := make([]Source, len(s.parts))
	for i := range s.parts {
		out[i] = s.parts[i].Source
	}
	return out
}
