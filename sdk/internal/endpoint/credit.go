package endpoint

import "sync"

// credit is how much the receiver of a stream will take, and what is on the way
// to it: a receiver that has got everything is idle, whether or not it has
// returned the credit for it.
type credit struct {
	mu             sync.Mutex
	changed        sync.Cond
	records, bytes int64 // may go below zero by one block
	queued         int   // blocks built and not yet spent
	sent, taken    uint64
	window         int64 // the first grant
	stopped        bool
}

func newCredit() *credit {
	c := &credit{}
	c.changed.L = &c.mu
	return c
}

func (c *credit) grant(records, bytes, taken uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.records += int64(records)
	c.bytes += int64(bytes)
	if c.window == 0 {
		c.window = c.records
	}
	c.taken = max(c.taken, taken)
	c.changed.Broadcast()
}

func (c *credit) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	c.changed.Broadcast()
}

// queue says that a block waits for the sender.
func (c *credit) queue() {
	c.mu.Lock()
	c.queued++
	c.mu.Unlock()
}

// spend takes the credit of a queued block.
func (c *credit) spend(records, bytes uint64) {
	c.mu.Lock()
	c.queued--
	c.sent++
	c.records -= int64(records)
	c.bytes -= int64(bytes)
	c.mu.Unlock()
}

// wait returns when there is credit, false when the stream was stopped.
func (c *credit) wait() bool { return c.until(func() bool { return c.records > 0 && c.bytes > 0 }) }

// waitIdle returns when the receiver is idle, false when the stream was stopped.
func (c *credit) waitIdle() bool { return c.until(c.isIdle) }

func (c *credit) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isIdle()
}

func (c *credit) isIdle() bool {
	// A host that does not say what has arrived has got all for which it has
	// returned the credit.
	arrived := c.taken >= c.sent || c.taken == 0 && c.records >= c.window
	return c.queued == 0 && arrived && c.records > 0 && c.bytes > 0
}

func (c *credit) until(cond func() bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !cond() && !c.stopped {
		c.changed.Wait()
	}
	return !c.stopped
}
