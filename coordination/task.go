package coordination

import (
	"fmt"
	"regexp"
	"time"
	"unicode/utf8"
)

// Desired is what the operator wants of a task.
type Desired string

// The desired states.
const (
	Running Desired = "running"
	Paused  Desired = "paused"
)

// Definition is a task as the operator wrote it. UID, Version and the times are
// the store's.
type Definition struct {
	Name      string    `json:"name"`
	UID       string    `json:"uid"`  // UUID, new at each creation
	Spec      string    `json:"spec"` // the task file, secrets not resolved
	Group     string    `json:"group,omitempty"`
	Desired   Desired   `json:"desired"`
	Version   uint64    `json:"version"` // 1 at creation, one more with each change
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

var taskName = regexp.MustCompile(`^[a-z0-9-]{1,128}$`)

// Validate reports what no store accepts. Errors wrap ErrInvalid.
func (d *Definition) Validate() error {
	switch {
	case !taskName.MatchString(d.Name):
		return fmt.Errorf("task name %q: %w, expected 1 to 128 of a-z, 0-9 and -", d.Name, ErrInvalid)
	case d.Desired != Running && d.Desired != Paused:
		return fmt.Errorf("task %q: desired state %q: %w, expected %q or %q", d.Name, d.Desired, ErrInvalid, Running, Paused)
	case !utf8.ValidString(d.Spec):
		return fmt.Errorf("task %q: specification: %w UTF-8", d.Name, ErrInvalid)
	}
	return nil
}

// Place is where a process runs and the data directory that it holds the lock of.
// Two processes of one Place never live at the same time, plugins included, since
// they inherit the lock.
type Place struct {
	Host    string `json:"host"`
	BootID  string `json:"bootId"`
	DataDir string `json:"dataDir"`            // path, for people
	LockID  string `json:"lockId"`             // device and inode of the lock file
	Held    bool   `json:"lockHeld,omitempty"` // the lock was held when the record was written
}

// Same reports whether both name one host since one boot and one lock file, and
// both say that they held it. Unknown parts are never the same.
func (p Place) Same(q Place) bool {
	return p.Held && q.Held && p.Host != "" && p.BootID != "" && p.LockID != "" &&
		p.Host == q.Host && p.BootID == q.BootID && p.LockID == q.LockID
}

// Status is a task's status node: who runs it now.
type Status struct {
	Task        string    `json:"task"`
	TaskUID     string    `json:"taskUid"`
	ExecutionID string    `json:"executionId"`
	Epoch       uint64    `json:"epoch"`
	Worker      string    `json:"worker"`
	PID         int       `json:"pid"`
	Place                 // host, bootId, dataDir
	StartedAt   time.Time `json:"startedAt"`
	State       string    `json:"state"`            // of host/task, for show
	Reason      string    `json:"reason,omitempty"` // of the state
	Session     string    `json:"session"`          // the store's id of the session it belongs to
}

// Owner is the condition of a conditional write.
func (s *Status) Owner() Owner {
	return Owner{TaskUID: s.TaskUID, ExecutionID: s.ExecutionID, Epoch: s.Epoch}
}

// Owner names the execution that a write is made for.
type Owner struct {
	TaskUID     string
	ExecutionID string
	Epoch       uint64
}

// Take is a request to run a task.
type Take struct {
	Task        string // name
	Version     uint64 // of the definition that will run; 0 = whichever is there
	ExecutionID string // a UUIDv7, never used before
	State       string // first state shown
	Above       uint64 // the epoch becomes greater than this too
	// Replace is the executionId of a status node that may be deleted on the way:
	// its Place is the same as that of the session, which holds the lock now, so
	// that nothing of it lives. Any other node is a HeldError.
	Replace string
}
