package task

import (
	"testing"
	"time"

	"github.com/datalink-go/datalink/coordination"
)

type handClock struct {
	boot time.Duration
	wall time.Time
}

func (c *handClock) Boot() time.Duration { return c.boot }
func (c *handClock) Now() time.Time      { return c.wall }

func TestGuard(t *testing.T) {
	const s = time.Second
	type move struct{ boot, wall, sent time.Duration } // since the move before; sent is absolute, 0 = as before
	for name, tt := range map[string]struct {
		timeout time.Duration
		moves   []move
		want    []bool
	}{
		"no time-out":                  {0, []move{{3600 * s, 3600 * s, 0}}, []bool{false}},
		"renewed in time":              {30 * s, []move{{10 * s, 10 * s, 10 * s}, {15 * s, 15 * s, 24 * s}, {15 * s, 15 * s, 0}}, []bool{false, false, false}},
		"silent":                       {30 * s, []move{{19 * s, 19 * s, 0}, {1 * s, 1 * s, 0}}, []bool{false, true}},
		"suspended":                    {30 * s, []move{{1 * s, 1 * s, 0}, {60 * s, 60 * s, 0}}, []bool{false, true}},
		"wall clock jumps ahead":       {30 * s, []move{{1 * s, 1 * s, 0}, {1 * s, 19 * s, 0}}, []bool{false, true}},
		"wall clock jumps a bit":       {30 * s, []move{{1 * s, 1 * s, 0}, {1 * s, 10 * s, 0}}, []bool{false, false}},
		"wall clock goes back":         {30 * s, []move{{1 * s, 1 * s, 0}, {1 * s, -3600 * s, 0}, {17 * s, 17 * s, 0}, {1 * s, 1 * s, 0}}, []bool{false, false, false, true}},
		"jump is over with the answer": {30 * s, []move{{1 * s, 1 * s, 0}, {1 * s, 19 * s, 2 * s}, {1 * s, 1 * s, 0}}, []bool{false, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &handClock{wall: time.Unix(1700000000, 0)}
			g := Guard{Margin: 10 * s}
			l := coordination.Lease{Timeout: tt.timeout}
			g.Expired(l, c)
			for i, m := range tt.moves {
				c.boot, c.wall = c.boot+m.boot, c.wall.Add(m.wall)
				if m.sent != 0 {
					l.Sent = m.sent
				}
				if got := g.Expired(l, c); got != tt.want[i] {
					t.Errorf("move %d, boot %s: got %v, want %v", i, c.boot, got, tt.want[i])
				}
			}
		})
	}
}

func TestBackoff(t *testing.T) {
	for _, tt := range []struct {
		try  int
		rand float64
		want time.Duration
	}{
		{1, 0, 500 * time.Millisecond},
		{1, 0.5, 750 * time.Millisecond},
		{2, 0, time.Second},
		{4, 0, 4 * time.Second},
		{5, 0, 5 * time.Second},
		{60, 0.999999999, 10 * time.Second},
		{0, 0, 500 * time.Millisecond},
	} {
		b := Backoff{Min: time.Second, Max: 10 * time.Second, Rand: func() float64 { return tt.rand }}
		if got := b.wait(tt.try); (got - tt.want).Abs() > time.Millisecond {
			t.Errorf("wait of try %d with %v: got %s, want %s", tt.try, tt.rand, got, tt.want)
		}
	}
}
