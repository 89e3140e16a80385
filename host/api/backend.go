package api

import (
	"context"
	"time"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/registry"
	"github.com/datalink-go/datalink/sdk/manifest"
)

// Backend is what a daemon can be asked. Errors are *Error where they are more
// than an internal one.
type Backend interface {
	Apply(ctx context.Context, files []File) ([]Applied, error)
	Tasks(ctx context.Context) ([]Task, error)
	Task(ctx context.Context, name string) (*Task, error)
	Change(ctx context.Context, name string, to Change) (*Task, error)
	Delete(ctx context.Context, name string, release bool) error
	Position(ctx context.Context, name string) ([]Position, error)
	SetPosition(ctx context.Context, name, position string) ([]Position, error)

	// Snapshot asks the reader of a running task to take tables anew beside the
	// stream, and returns how far its snapshots are.
	Snapshot(ctx context.Context, task string, q SnapshotQuery) (*Snapshot, error)

	DeadLetters(ctx context.Context, task string) ([]DeadLetter, error)
	DeadLetter(ctx context.Context, task, writer string, number uint64) (*DeadLetter, error)
	Retry(ctx context.Context, task, writer string, numbers []uint64) ([]Outcome, error)
	Drop(ctx context.Context, task, writer string, numbers []uint64) ([]Outcome, error)

	Overlaps(ctx context.Context) ([]coordination.Overlap, error)
	Overlap(ctx context.Context, id string) (*coordination.Overlap, error)

	Plugins(ctx context.Context) ([]Plugin, error)
	Plugin(ctx context.Context, name, version string) (*Plugin, error)
	Install(ctx context.Context, registry, name, version string) (*Plugin, error)

	Fleet
	Verifier

	// Doctor looks at everything that would make the tasks of the files fail, or
	// at the installation alone where there is none.
	Doctor(ctx context.Context, files []File) ([]Finding, error)
}

// File is a task file.
type File struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Applied says what Apply did with a task.
type Applied struct {
	Task   string `json:"task"`
	Action string `json:"action"` // created, changed, unchanged
	// Desired is what is wanted of the task: running, or paused by an operator or
	// because it was only run in the foreground.
	Desired string `json:"desired"`
}

// Change is what an operator wants of a task.
type Change string

// The changes.
const (
	Pause   Change = "pause"
	Resume  Change = "resume"
	Restart Change = "restart"
	// TakeOver resumes and claims targets that another store or task has claimed.
	TakeOver Change = "take-over"
)

// Task is a task as commands show it.
type Task struct {
	Name        string    `json:"name"`
	UID         string    `json:"uid"`
	Group       string    `json:"group"`
	Desired     string    `json:"desired"`
	State       string    `json:"state"`
	Reason      string    `json:"reason"`
	ExecutionID string    `json:"executionId,omitempty"`
	Epoch       uint64    `json:"epoch,omitempty"`
	Worker      string    `json:"worker,omitempty"`
	StartedAt   time.Time `json:"startedAt,omitzero"`
	CreatedAt   time.Time `json:"createdAt"`
	UpdatedAt   time.Time `json:"updatedAt"`
	Version     uint64    `json:"version"`

	// Of `task show` only.
	Positions  []Position           `json:"positions,omitempty"`
	Executions []coordination.Entry `json:"journal,omitempty"`
	Spec       string               `json:"spec,omitempty"`
}

// Position is how far a writer's lane came.
type Position struct {
	Writer    string    `json:"writer"`
	Lane      int32     `json:"lane"`
	BatchNo   uint64    `json:"batchNo"`
	Position  string    `json:"position"`
	UpdatedAt time.Time `json:"updatedAt,omitzero"`
}

// SnapshotQuery says which tables to take anew. Without any it asks how far the
// snapshots are.
type SnapshotQuery struct {
	Tables []string `json:"tables,omitempty"` // names or patterns of database.table
	Action string   `json:"action,omitempty"` // pause, resume
}

// Snapshot is how far the snapshots of a task are.
type Snapshot struct {
	Task          string          `json:"task"`
	Accepted      []string        `json:"accepted,omitempty"`
	Paused        bool            `json:"paused"`
	RowsPerSecond uint64          `json:"rowsPerSecond"`
	Tables        []TableSnapshot `json:"tables"`
}

// TableSnapshot is how far the snapshot of one table is.
type TableSnapshot struct {
	Table    string  `json:"table"`
	Phase    string  `json:"phase"` // pending, running, done
	Rows     uint64  `json:"rows"`
	Estimate uint64  `json:"estimate"` // what the source believes the table has
	Percent  float64 `json:"percent"`
}

// DeadLetter is a record that was set aside.
type DeadLetter struct {
	Writer   string    `json:"writer"`
	Number   uint64    `json:"number"`
	Table    string    `json:"table"`
	Key      string    `json:"key"`
	Kind     string    `json:"kind,omitempty"`
	Code     string    `json:"code"`
	Message  string    `json:"message"`
	Advice   string    `json:"advice,omitempty"`
	Position string    `json:"position"`
	At       time.Time `json:"at"`
	// Of `show` only: the row, column by column as text; nil is NULL.
	Before map[string]*string `json:"before,omitempty"`
	After  map[string]*string `json:"after,omitempty"`
}

// Outcome is what became of a dead letter that was to be retried or dropped.
type Outcome struct {
	Writer string `json:"writer"`
	Number uint64 `json:"number"`
	Done   bool   `json:"done"`
	Reason string `json:"reason,omitempty"`
}

// Plugin is an installed or bundled plugin.
type Plugin struct {
	Name     string             `json:"name"`
	Version  string             `json:"version"`
	Kind     string             `json:"kind"`
	SHA256   string             `json:"sha256"`
	From     string             `json:"from"` // bundled, or the registry
	Status   string             `json:"status"`
	Lock     *registry.Locked   `json:"lock,omitempty"`
	Manifest *manifest.Manifest `json:"manifest,omitempty"` // of `plugin show` only
}

// Finding is one line of doctor.
type Finding struct {
	Severity string `json:"severity"` // ok, info, warning, error
	Task     string `json:"task,omitempty"`
	Subject  string `json:"subject"`
	Message  string `json:"message"`
	Advice   string `json:"advice,omitempty"`
	// Config says that the finding is a fault of the task file.
	Config bool `json:"config,omitempty"`
}
