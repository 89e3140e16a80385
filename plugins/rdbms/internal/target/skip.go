package target

import (
	"strings"

	"github.com/datalink-go/datalink/sdk"
)

// skip is the keys that are left out, by table.
type skip map[string]map[string]bool

// parseSkip reads "table:key" texts: the table as the target names it, the key as
// KeyText writes it.
func parseSkip(keys []string) (skip, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	out := skip{}
	for _, k := range keys {
		table, key, ok := strings.Cut(k, ":")
		if !ok || table == "" || key == "" {
			return nil, sdk.Faultf(sdk.CodeInvalidConfig, "skipKeys: found %q, expected TABLE:KEY", k).
				Suggest("shop.orders:17, or shop.lines:17,3 for a key of two columns")
		}
		if out[table] == nil {
			out[table] = map[string]bool{}
		}
		out[table][key] = true
	}
	return out, nil
}

func (s skip) has(c *sdk.Change) bool {
	if c.Schema == nil || len(c.Key) == 0 {
		return false
	}
	keys := s[c.Schema.Name()]
	if keys == nil {
		return false
	}
	return keys[KeyText(c.Schema, c.Key)] || len(c.OldKey) > 0 && keys[KeyText(c.Schema, c.OldKey)]
}

// without returns the changes that are not skipped, and the index that each of
// them had among all. A nil index says that all are left.
func (s skip) without(ch *sdk.Changes) (*sdk.Changes, []int) {
	if len(s) == 0 {
		return ch, nil
	}
	any := false
	for _, seg := range ch.Segments {
		for i := range seg {
			any = any || s.has(&seg[i])
		}
	}
	if !any {
		return ch, nil
	}
	out := *ch
	out.Segments = nil
	index := make([]int, 0, ch.Len())
	n := 0
	for _, seg := range ch.Segments {
		var left []sdk.Change
		for i := range seg {
			if !s.has(&seg[i]) {
				left = append(left, seg[i])
				index = append(index, n)
			}
			n++
		}
		if len(left) > 0 {
			out.Segments = append(out.Segments, left)
		}
	}
	return &out, index
}
