package verify

import (
	"hash/crc32"

	"github.com/datalink-go/datalink/sdk/batch"
)

// Readers number their layouts from 1 and from 1<<30 on, mappings from 1<<31 on; the
// layouts of rows that are written beside the stream have ids of their own, by what
// they say, so that one layout has one id however often it comes.
const (
	firstLayout = 3 << 29
	layouts     = 1<<29 - 1
)

// Layout returns the layout with its id for rows beside the stream.
func Layout(s *batch.Schema) *batch.Schema {
	c := s.Clone()
	c.ID = 1
	c.ID = firstLayout | crc32.ChecksumIEEE(batch.AppendSchema(nil, c))&layouts
	return c
}
