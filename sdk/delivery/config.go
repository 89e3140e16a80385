package delivery

import (
	"log/slog"
	"time"

	"github.com/datalink-go/datalink/sdk/batch"
)

// Config of an Engine. The zero value works.
type Config struct {
	// Records and Bytes bound what one target transaction merges; 0 = 16384 and
	// 16 MiB. A source transaction that is larger is a target transaction of its
	// own.
	Records int
	Bytes   int
	// SplitRecords and SplitBytes are the size above which a source transaction
	// is split by ordinal; 0 = never. They must lie below the host's window.
	SplitRecords int
	SplitBytes   int
	// Pending is how many bytes of blocks are taken before they are durable,
	// while the lanes have work; 0 = 64 MiB.
	Pending int
	// Lanes is used where the execution asks for none; 0 = 1. Writers that are
	// not transactional always have one.
	Lanes int32
	// Advance is how often a lane without work stores its position; 0 = 1 s.
	Advance time.Duration
	// Retries is how often a target transaction is tried again after a retryable
	// fault, waiting Backoff, then twice that and so on up to 2 s; 0 = 8 and 20 ms.
	Retries int
	Backoff time.Duration
	// Limits are those of the blocks.
	Limits batch.Limits
	// Seen bounds the keys remembered for snapshot ranges; 0 = 4 Mi keys.
	Seen int

	Clock    Clock        // nil = the system's
	Log      *slog.Logger // nil = none
	Switches Switches
}

// Switches turn single guarantees off, so that a test can show what each of them
// prevents. The zero value has all of them on.
type Switches struct {
	SkipOff         bool // covered changes are written again
	MergeAcrossWait bool // a lane's batch is not cut before a change that waits for another lane
	LaneWaitOff     bool // changes do not wait for those in other lanes that they are tied to
	TiesOff         bool // changes are merged and put in one segment whatever they are tied to
	SettleOff       bool // a commit whose answer is lost counts as one without effect
	WatchOff        bool // keys that change between ranges which become one are not collected
}

// Clock is the time as the engine sees it.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
	// Boottime returns microseconds of a clock that runs through suspends, the
	// one that deadlines of requests refer to.
	Boottime() int64
}

type systemClock struct{}

func (systemClock) Now() time.Time                         { return time.Now() }
func (systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
func (systemClock) Boottime() int64                        { return boottime() }

func (c Config) withDefaults() Config {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	c.Records = recordsFromEnv(c.Records)
	def(&c.Records, 16384)
	def(&c.Bytes, 16<<20)
	def(&c.Pending, 64<<20)
	def(&c.Retries, 8)
	def(&c.Seen, 4<<20)
	if c.Lanes <= 0 {
		c.Lanes = 1
	}
	if c.Advance <= 0 {
		c.Advance = time.Second
	}
	if c.Backoff <= 0 {
		c.Backoff = 20 * time.Millisecond
	}
	if c.Clock == nil {
		c.Clock = systemClock{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Switches = c.Switches.withEnv()
	return c
}
