package daemon

import (
	"time"

	"github.com/datalink-go/datalink/coordination"
)

type mark struct {
	coordination.Mark
	at time.Time
}

// newestMarks returns the newest mark of each writer and lane in a journal.
func newestMarks(journal []coordination.Entry) []mark {
	type key struct {
		writer string
		lane   int32
	}
	seen := map[key]bool{}
	var out []mark
	for i := len(journal) - 1; i >= 0; i-- {
		e := &journal[i]
		if e.Kind != coordination.EntryMark && e.Kind != coordination.EntryEnded {
			continue
		}
		for _, m := range e.Positions {
			if k := (key{m.Writer, m.Lane}); !seen[k] {
				seen[k] = true
				out = append(out, mark{m, e.At})
			}
		}
	}
	return out
}
