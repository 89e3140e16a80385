package coordination

import "time"

// Position is a place in a source, as its reader wrote it.
type Position struct {
	Format  string `json:"format,omitempty"`
	Version uint32 `json:"version,omitempty"`
	Source  []byte `json:"source,omitempty"`
	Ordinal uint64 `json:"ordinal,omitempty"`
	Text    string `json:"text,omitempty"` // printable form where it is known, for people
}

// Point is the progress of one lane.
type Point struct {
	Lane     int32    `json:"lane"`
	BatchNo  uint64   `json:"batchNo"`
	Position Position `json:"position"`
}

// Item is one item of reader state.
type Item struct {
	Key     string `json:"key"`
	Version uint64 `json:"version"`
	Value   []byte `json:"value,omitempty"`
	Deleted bool   `json:"deleted,omitempty"` // in a Step only
}

// Fault is the error that a dead letter carries.
type Fault struct {
	Code       string `json:"code"`
	Message    string `json:"message"`
	Retryable  bool   `json:"retryable,omitempty"`
	Suggestion string `json:"suggestion,omitempty"`
}

// DeadLetter is a record set aside; it guards its key.
type DeadLetter struct {
	Number   uint64    `json:"number"` // within the writer
	Table    string    `json:"table"`
	Key      []byte    `json:"key,omitempty"`
	Record   []byte    `json:"record,omitempty"`
	Position Position  `json:"position"`
	Fault    Fault     `json:"fault"`
	At       time.Time `json:"at"`
}

// Progress is what the store holds for a writer of a task: the whole progress of
// one without storage of its own, what is to be shown of the others.
type Progress struct {
	Writer      string       `json:"writer"`
	Points      []Point      `json:"points,omitempty"` // by lane
	Items       []Item       `json:"items,omitempty"`  // by key
	DeadLetters []DeadLetter `json:"deadLetters,omitempty"`
	Ceiling     uint64       `json:"ceiling,omitempty"` // versioned writers: copy of the target's
	Execution   string       `json:"executionId,omitempty"`
	Epoch       uint64       `json:"epoch,omitempty"`
	UpdatedAt   time.Time    `json:"updatedAt,omitzero"`
}

// Step is one move of a writer's progress, stored as a whole. Points replace those
// of the same lane, items those of the same key. A dead letter is created once: one
// whose number is there already stays as it is. Dropping one that is not there is
// no error. A ceiling never falls.
type Step struct {
	Writer   string
	Points   []Point
	Lanes    int32 // > 0: points of lanes at or above are removed; the lane count changed
	Items    []Item
	SetAside []DeadLetter
	Dropped  []uint64
	Ceiling  uint64
}
