package coordination

import "time"

// EntryKind is what an entry of the journal says.
type EntryKind string

// The kinds of entries. Started and Raised are written by the store, Mark by its
// owner, the others by anybody.
const (
	EntryStarted EntryKind = "started" // an execution took the task
	EntryRaised  EntryKind = "raised"  // it raised its epoch above what a target held
	EntryMark    EntryKind = "mark"    // how far it came; one an execution, moved along
	EntryEnded   EntryKind = "ended"   // it says that it stopped
	EntryLost    EntryKind = "lost"    // a successor closed it for want of an end
	EntryDead    EntryKind = "dead"    // proof that nothing of it lives any more
)

// Entry is one line of a task's journal.
type Entry struct {
	Seq         uint64    `json:"seq"` // rising in the order of appending; gaps are possible
	Kind        EntryKind `json:"kind"`
	Task        string    `json:"task"`
	TaskUID     string    `json:"taskUid"`
	ExecutionID string    `json:"executionId"`
	Epoch       uint64    `json:"epoch"`
	At          time.Time `json:"at"`

	// Started.
	Worker string `json:"worker,omitempty"`
	PID    int    `json:"pid,omitempty"`
	Place

	Reason string `json:"reason,omitempty"` // Ended, Lost; Dead: which proof
	By     string `json:"by,omitempty"`     // Lost, Dead: executionId that says so
	// Ended: a write to a target that only knows idempotence was given up before it
	// was answered; it may still arrive for as long as connections try.
	Unanswered bool   `json:"unanswered,omitempty"`
	Positions  []Mark `json:"positions,omitempty"` // Started, Mark, Ended
}

// Mark is how far a lane of a writer came.
type Mark struct {
	Writer   string   `json:"writer"`
	Lane     int32    `json:"lane"`
	Position Position `json:"position"`
}

// Worker is a member: a process that may run tasks.
type Worker struct {
	ID    string `json:"id"` // unique among the live ones
	Group string `json:"group,omitempty"`
	PID   int    `json:"pid"`
	Place
	JoinedAt time.Time `json:"joinedAt"`
	Session  string    `json:"session"`
}

// Forgotten is an operator's word that a worker is dead: its executions up to
// that time count as proven dead.
type Forgotten struct {
	Worker string    `json:"worker"`
	At     time.Time `json:"at"`
	By     string    `json:"by,omitempty"`
}
