package gtid

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// GTID is a transaction of MariaDB: domain-server-sequence.
type GTID struct {
	Domain, Server uint32
	Seq            uint64
}

// Append appends the transaction as the server prints it.
func (g GTID) Append(dst []byte) []byte {
	dst = append(strconv.AppendUint(dst, uint64(g.Domain), 10), '-')
	dst = append(strconv.AppendUint(dst, uint64(g.Server), 10), '-')
	return strconv.AppendUint(dst, g.Seq, 10)
}

// String returns the transaction as the server prints it.
func (g GTID) String() string { return string(g.Append(nil)) }

// ParseGTID reads a transaction as the server prints it.
func ParseGTID(s string) (GTID, error) {
	w := strings.Split(strings.TrimSpace(s), "-")
	if len(w) == 3 {
		d, err1 := strconv.ParseUint(w[0], 10, 32)
		v, err2 := strconv.ParseUint(w[1], 10, 32)
		n, err3 := strconv.ParseUint(w[2], 10, 64)
		if err1 == nil && err2 == nil && err3 == nil {
			return GTID{uint32(d), uint32(v), n}, nil
		}
	}
	return GTID{}, fmt.Errorf("%q is no GTID of MariaDB; one looks like 0-1-100", shorten(s))
}

// Domains is a position of MariaDB: the last transaction of each domain. The zero
// value is empty. A domain holds all transactions up to its last one, by sequence
// number, whatever servers they came from.
type Domains struct{ last []GTID } // by domain

// ParseDomains reads a position as the server prints it: 0-1-100,1-2-7. Of two
// transactions of one domain the later one counts.
func ParseDomains(text string) (Domains, error) {
	var d Domains
	for _, w := range strings.Split(text, ",") {
		if strings.TrimSpace(w) == "" {
			continue
		}
		g, err := ParseGTID(w)
		if err != nil {
			return Domains{}, err
		}
		d.Add(g)
	}
	return d, nil
}

// Append appends the position as the server prints it, domains in order; nothing
// for the empty one.
func (d *Domains) Append(dst []byte) []byte {
	for i, g := range d.last {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = g.Append(dst)
	}
	return dst
}

// String returns the position as the server prints it.
func (d Domains) String() string { return string(d.Append(nil)) }

// IsEmpty reports whether the position is before everything.
func (d *Domains) IsEmpty() bool { return len(d.last) == 0 }

// Clone returns a copy that shares nothing.
func (d *Domains) Clone() Domains { return Domains{slices.Clone(d.last)} }

// All returns the last transaction of each domain, domains in order.
func (d *Domains) All() []GTID { return d.last }

func (d *Domains) find(domain uint32) (int, bool) {
	if len(d.last) == 1 && d.last[0].Domain == domain {
		return 0, true
	}
	return slices.BinarySearchFunc(d.last, domain, func(g GTID, v uint32) int { return cmp.Compare(g.Domain, v) })
}

// Last returns the last transaction of a domain.
func (d *Domains) Last(domain uint32) (GTID, bool) {
	if i, ok := d.find(domain); ok {
		return d.last[i], true
	}
	return GTID{}, false
}

// Add moves the domain of g on to g. It reports false, and does nothing, where
// the domain is at g or beyond.
func (d *Domains) Add(g GTID) bool {
	i, ok := d.find(g.Domain)
	switch {
	case !ok:
		d.last = slices.Insert(d.last, i, g)
	case d.last[i].Seq >= g.Seq:
		return false
	default:
		d.last[i] = g
	}
	return true
}

// Contains reports whether the position holds a transaction.
func (d *Domains) Contains(g GTID) bool {
	i, ok := d.find(g.Domain)
	return ok && d.last[i].Seq >= g.Seq
}

// Within reports whether all of d is in o.
func (d *Domains) Within(o *Domains) bool {
	for _, g := range d.last {
		if l, ok := o.Last(g.Domain); !ok || l.Seq < g.Seq || l.Seq == g.Seq && l.Server != g.Server {
			return false
		}
	}
	return true
}

// Equal reports whether both hold the same.
func (d *Domains) Equal(o *Domains) bool { return slices.Equal(d.last, o.last) }

// Union returns the later transaction of each domain.
func (d *Domains) Union(o *Domains) Domains {
	u := d.Clone()
	for _, g := range o.last {
		u.Add(g)
	}
	return u
}

// Intersect returns the earlier transaction of each domain that both have.
func (d *Domains) Intersect(o *Domains) Domains {
	var out Domains
	for _, g := range d.last {
		if l, ok := o.Last(g.Domain); ok {
			if l.Seq < g.Seq {
				g = l
			}
			out.Add(g)
		}
	}
	return out
}

// Subtract returns the transactions of d, one a domain, that o does not hold.
func (d *Domains) Subtract(o *Domains) []GTID {
	var out []GTID
	for _, g := range d.last {
		if !o.Contains(g) {
			out = append(out, g)
		}
	}
	return out
}
