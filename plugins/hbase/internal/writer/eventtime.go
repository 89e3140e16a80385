package writer

import "github.com/datalink-go/datalink/sdk"

// eventClock gives timestamps of event-time: milliseconds of the commit at the
// source, and for changes of one row that fall into one millisecond, or behind an
// earlier one, the next that is free. It remembers rows of the last moments.
type eventClock struct {
	rows, older map[string]uint64
}

const eventRows = 1 << 18

func (c *eventClock) stamp(table string, row []byte, ch *sdk.Change) (uint64, error) {
	if ch.Committed <= 0 {
		return 0, sdk.Faultf(sdk.CodeUnsupportedEvent, "change of %s: the source does not say when it was committed, which version: event-time needs", table).
			Suggest("use version: position")
	}
	return c.above(table, row, uint64(ch.Committed/1000)), nil
}

// above returns ts, or what is free above it in the row.
func (c *eventClock) above(table string, row []byte, ts uint64) uint64 {
	key := table + "\x00" + string(row)
	last, ok := c.rows[key]
	if !ok {
		last, ok = c.older[key]
	}
	if ok && ts <= last {
		ts = last + 1
	}
	if c.rows == nil || len(c.rows) >= eventRows {
		c.older, c.rows = c.rows, make(map[string]uint64, 1024)
	}
	c.rows[key] = ts
	return ts
}
