package target

import (
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Group is the changes of a segment that are alike, by their place in it.
type Group struct {
	Schema *batch.Schema
	Op     sdk.Op
	// Read says that all of them are rows of a snapshot.
	Read bool
	At   []int32
}

// Groups splits segments. Its buffers serve one segment after the other.
type Groups struct {
	out  []Group
	free [][]int32
}

// Of returns the groups of a segment in the order of their first change, good
// until the next call.
func (g *Groups) Of(seg []sdk.Change) []Group {
	for i := range g.out {
		g.free = append(g.free, g.out[i].At[:0])
	}
	g.out = g.out[:0]
	last := -1
	for i := range seg {
		c := &seg[i]
		if last < 0 || g.out[last].Schema != c.Schema || g.out[last].Op != c.Op {
			last = g.find(c)
		}
		gr := &g.out[last]
		gr.Read = gr.Read && c.Kind == batch.Read
		gr.At = append(gr.At, int32(i))
	}
	return g.out
}

func (g *Groups) find(c *sdk.Change) int {
	for i := range g.out {
		if g.out[i].Schema == c.Schema && g.out[i].Op == c.Op {
			return i
		}
	}
	var at []int32
	if n := len(g.free); n > 0 {
		at, g.free = g.free[n-1], g.free[:n-1]
	}
	g.out = append(g.out, Group{Schema: c.Schema, Op: c.Op, Read: true, At: at})
	return len(g.out) - 1
}
