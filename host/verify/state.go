package verify

import "time"

// State is how far a verification is and what it found.
type State struct {
	Task             string    `json:"task"`
	TaskUID          string    `json:"taskUid"`
	ID               string    `json:"id"`
	Phase            Phase     `json:"phase"`
	Reason           string    `json:"reason,omitempty"`
	Tables           []string  `json:"tables,omitempty"` // patterns of the request; none = all
	Repair           bool      `json:"repair"`
	MaxRowsPerSecond int       `json:"maxRowsPerSecond,omitempty"`
	StartedAt        time.Time `json:"startedAt"`
	EndedAt          time.Time `json:"endedAt,omitzero"`
	Percent          float64   `json:"percent"`
	Results          []Table   `json:"results"`
}

// Phase is where a verification stands.
type Phase string

// The phases. A verification that is running and whose process is gone goes on in
// the next one that runs the task.
const (
	Running   Phase = "running"
	Done      Phase = "done"
	Cancelled Phase = "cancelled"
	Failed    Phase = "failed"
)

// Table is one step of a verification: a table of the source against the targets its
// rows go to, or, where the two sides do not share an order, a table of the target
// against the source, which finds extra rows.
type Table struct {
	Writer string `json:"writer"`
	Table  string `json:"table"`
	// Side is source or target: whose rows were walked through.
	Side   string `json:"side"`
	Phase  string `json:"phase"` // pending, running, done, skipped
	Reason string `json:"reason,omitempty"`
	Cursor []byte `json:"cursor,omitempty"` // key after which to go on

	Rows      uint64 `json:"rows"`      // that were walked through
	Compared  uint64 `json:"compared"`  // rows of the other side
	Chunks    uint64 `json:"chunks"`    // in all
	Suspects  uint64 `json:"suspects"`  // keys that were looked at again
	Missing   uint64 `json:"missing"`   // at the target
	Extra     uint64 `json:"extra"`     // at the target
	Different uint64 `json:"different"` // rows of one key
	Repaired  uint64 `json:"repaired"`  // of these three
	Unsettled uint64 `json:"unsettled"` // keys that changed too often to be compared
	Checksum  string `json:"checksum"`  // of the walked rows in normal form, whatever their order
	Estimate  uint64 `json:"estimate,omitempty"`
	Differing []Row  `json:"differences,omitempty"`
}

// maxDiffering bounds the rows that are named for each table.
const maxDiffering = 200

// Row names a row that differs.
type Row struct {
	Table    string   `json:"table"` // of the target
	Key      string   `json:"key"`
	Kind     string   `json:"kind"` // missing, extra, different
	Columns  []Column `json:"columns,omitempty"`
	Repaired bool     `json:"repaired"`
}

// Column is a column that differs, its values cut short.
type Column struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	Target string `json:"target"`
}

// Differences is how many keys differ and were not repaired.
func (s *State) Differences() uint64 {
	n := uint64(0)
	for i := range s.Results {
		t := &s.Results[i]
		n += t.Missing + t.Extra + t.Different - t.Repaired
	}
	return n
}

// Unsettled is how many keys could not be compared.
func (s *State) Unsettled() uint64 {
	n := uint64(0)
	for i := range s.Results {
		n += s.Results[i].Unsettled
	}
	return n
}

// percent is by tables, and within a table by what is believed of its size.
func (s *State) percent() float64 {
	if len(s.Results) == 0 {
		return 100
	}
	sum := 0.0
	for i := range s.Results {
		switch t := &s.Results[i]; {
		case t.Phase == "done" || t.Phase == "skipped":
			sum++
		case t.Phase == "running" && t.Estimate > 0:
			sum += min(0.99, float64(t.Rows)/float64(t.Estimate))
		}
	}
	return 100 * sum / float64(len(s.Results))
}
