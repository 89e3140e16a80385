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
	Needs     []string  `json:"needs,omitempty"` // plugins of a worker that may run it: NAME, or NAME@SHA256
	Version   uint64    `json:"version"`         // 1 at creation, one more with each change
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

// Place is a process and the data directory that it holds the lock of. Plugins
// inherit the lock: two processes that hold the same one never live at the same
// time, nor do their plugins.
type Place struct {
	Host    string `json:"host"`
	BootID  string `json:"bootId"`
	DataDir string `json:"dataDir"`            // path, for people
	LockID  string `json:"lockId"`             // device and inode of the lock file
	Held    bool   `json:"lockHeld,omitempty"` // the lock was held when the record was written
	Process string `json:"process"`            // pid and start time: unique since the boot
}

// Succeeds reports that p, which lives and holds the lock now, proves that old is
// gone with all its plugins: another process of the same host since the same boot
// that held the same lock. Unknown parts prove nothing.
func (p Place) Succeeds(old Place) bool {
	return p.Held && old.Held && p.Host != "" && p.BootID != "" && p.LockID != "" && p.Process != "" && old.Process != "" &&
		p.Host == old.Host && p.BootID == old.BootID && p.LockID == old.LockID && p.Process != old.Process
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
	// the session's Place succeeds that of the node. Any other node is a HeldError.
	Replace string
}
