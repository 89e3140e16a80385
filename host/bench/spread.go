package bench

import (
	"fmt"
	"slices"
)

// Spread is a median with the least and the greatest value.
type Spread struct{ Min, Median, Max float64 }

func spread(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	v := slices.Sorted(slices.Values(values))
	return Spread{v[0], v[len(v)/2], v[len(v)-1]}
}

// String returns the median with the others after it.
func (s Spread) String() string { return fmt.Sprintf("%.2f (%.2f–%.2f)", s.Median, s.Min, s.Max) }
