package pipeline

import (
	"fmt"
	"strings"

	"github.com/datalink-go/datalink/sdk/batch"
)

// describeKey returns the key of a row for messages: (id=7, region="eu").
func describeKey(ev *batch.Event) string {
	im := ev.After
	if im.IsZero() || ev.Kind == batch.Delete {
		im = ev.Before
	}
	if len(ev.Schema.Key) == 0 || im.IsZero() { // the second: it is no row
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
	if !v.Has() {
		return v.State.String()
	}
	text, ok := batch.AppendText(nil, c, v)
	switch {
	case !ok:
		text = v.Bytes()
	case c.Type != batch.String && c.Type != batch.Enum && c.Type != batch.JSON && c.Type != batch.Set:
		return string(text)
	}
	if len(text) > most {
		return fmt.Sprintf("%q… (%d bytes)", text[:most], len(text))
	}
	return fmt.Sprintf("%q", text)
}
