package conformance

import "math/rand/v2"

// random is a Drawer with a seed.
type random struct{ r *rand.Rand }

func newRandom(seed uint64) random { return random{rand.New(rand.NewPCG(seed, 1))} }

func (r random) Int(lo, hi int) int { return lo + r.r.IntN(hi-lo+1) }
