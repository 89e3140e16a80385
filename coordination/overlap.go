package coordination

import "time"

// Cause is how an overlap came to light.
type Cause string

// The causes. All but Unproven are certain.
const (
	CauseStatus   Cause = "status"   // the status node carries another executionId at the stop
	CauseFence    Cause = "fence"    // a target refused a write
	CauseStore    Cause = "store"    // the store refused a conditional write
	CauseUnproven Cause = "unproven" // a predecessor was not proven dead when its successor began
)

// Certain reports whether two executions ran at the same time for sure.
func (c Cause) Certain() bool { return c != CauseUnproven }

// Verdict is what an overlap may have done to a target.
type Verdict string

// The verdicts.
const (
	Harmless      Verdict = "harmless"       // every target fenced or outranked the late writes
	PossiblyDirty Verdict = "possibly dirty" // an idempotent target may hold late writes
)

// Party is one of the two executions of an overlap. What is not known is empty.
type Party struct {
	ExecutionID string `json:"executionId"`
	Epoch       uint64 `json:"epoch"`
	Worker      string `json:"worker,omitempty"`
	Host        string `json:"host,omitempty"`
	StoreUID    string `json:"storeUid,omitempty"`
	TaskUID     string `json:"taskUid,omitempty"`
}

// OverlapWriter is what the overlap means at one target.
type OverlapWriter struct {
	Name    string   `json:"name"`
	Level   string   `json:"level"`
	Written uint64   `json:"batchesWritten"`
	Refused uint64   `json:"batchesRefused"`
	From    Position `json:"from"` // window in the source
	To      Position `json:"to"`
}

// Overlap is the record of two executions of a task that ran, or may have run, at
// the same time. It is created once and never changed; what happens to it later is
// a Resolution.
type Overlap struct {
	ID      string          `json:"id"` // a UUID
	Task    string          `json:"task"`
	TaskUID string          `json:"taskUid"`
	Cause   Cause           `json:"cause"`
	Certain bool            `json:"certain"`
	Late    Party           `json:"late"`  // the older execution, which should have ended
	Owner   Party           `json:"owner"` // the newer one
	By      string          `json:"recordedBy"`
	At      time.Time       `json:"at"`
	From    time.Time       `json:"from"` // window in time
	To      time.Time       `json:"to"`
	Tables  []string        `json:"tables,omitempty"`
	Writers []OverlapWriter `json:"writers,omitempty"`
	Verdict Verdict         `json:"verdict"`
	Done    string          `json:"done"`           // what was done at once
	Open    bool            `json:"open,omitempty"` // a resolution with Closes is still to come
	Detail  string          `json:"detail,omitempty"`

	Resolutions []Resolution `json:"resolutions,omitempty"` // filled by reads
}

// IsOpen reports whether the record waits for a closing resolution.
func (o *Overlap) IsOpen() bool {
	for _, r := range o.Resolutions {
		if r.Closes {
			return false
		}
	}
	return o.Open
}

// Resolution is what was done about an overlap after it was recorded.
type Resolution struct {
	ID     string    `json:"id"` // a UUIDv7
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	What   string    `json:"what"`
	Closes bool      `json:"closes,omitempty"`
}
