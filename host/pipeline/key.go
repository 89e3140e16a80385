package pipeline

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/sdk/batch"
)

// describeKey returns the key of a row for messages: (id=7, region="eu").
func describeKey(ev *batch.Event) string {
	im := ev.After
	if im.IsZero() || ev.Kind == batch.Delete {
		im = ev.Before
	}
	if len(ev.Schema.Key) == 0 {
		return "(none)"
	}
	vals, err := im.Values(nil)
	if err != nil {
		return fmt.Sprintf("(% x)", ev.Key)
	}
	var parts []string
	for _, k := range ev.Schema.Key {
		parts = append(parts, ev.Schema.Columns[k].Name+"="+describeValue(&ev.Schema.Columns[k], &vals[k]))
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

func describeValue(c *batch.Column, v *batch.Value) string {
	const most = 64
	switch {
	case v.State != batch.Present:
		return v.State.String()
	case c.Type == batch.Date:
		return string(batch.AppendDate(nil, int32(v.Int64())))
	case c.Type == batch.DateTime:
		return string(batch.AppendDateTime(nil, v.Int64(), int(c.Scale)))
	case c.Type == batch.Timestamp:
		return string(batch.AppendTimestamp(nil, v.Int64(), int(c.Scale)))
	case c.Type == batch.Time:
		return string(batch.AppendTime(nil, v.Int64(), int(c.Scale)))
	case c.Type >= batch.Uint8 && c.Type <= batch.Uint64, c.Type == batch.Year, c.Type == batch.Bool:
		return strconv.FormatUint(v.Uint64(), 10)
	case c.Type == batch.Float32 || c.Type == batch.Float64:
		return strconv.FormatFloat(v.Float64(), 'g', -1, 64)
	case c.Type.Width() > 0 && len(v.Bytes()) == 0:
		return strconv.FormatInt(v.Int64(), 10)
	}
	b := v.Bytes()
	if len(b) > most {
		return fmt.Sprintf("%q… (%d bytes)", b[:most], len(b))
	}
	return fmt.Sprintf("%q", b)
}
