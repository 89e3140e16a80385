package coordination

import (
	"errors"
	"fmt"
)

// The errors that code tests for by errors.Is. Anything else a store returns says
// that it did not answer: the outcome of the call is not known.
var (
	ErrNotFound    = errors.New("not found")
	ErrExists      = errors.New("exists")
	ErrVersion     = errors.New("version conflict")
	ErrHeld        = errors.New("task is held")
	ErrFenced      = errors.New("fenced")
	ErrSessionLost = errors.New("session lost")
	ErrInvalid     = errors.New("invalid")
	ErrClosed      = errors.New("store is closed")
)

// HeldError says who holds a task that was asked for.
type HeldError struct{ Status Status }

// Error names the holder.
func (e *HeldError) Error() string {
	s := e.Status
	return fmt.Sprintf("task %q is held by execution %s (epoch %d) of worker %q on %s, pid %d, since %s",
		s.Task, s.ExecutionID, s.Epoch, s.Worker, s.Host, s.PID, s.StartedAt.UTC().Format("2006-01-02T15:04:05Z"))
}

// Is matches ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// FencedError says that a conditional write was refused. Found is the status node
// that was there, nil when there was none.
type FencedError struct {
	Op    string
	Owner Owner
	Found *Status
}

// Error names both executions.
func (e *FencedError) Error() string {
	found := "no status node"
	if e.Found != nil {
		found = fmt.Sprintf("execution %s with epoch %d of worker %q", e.Found.ExecutionID, e.Found.Epoch, e.Found.Worker)
	}
	return fmt.Sprintf("%s refused: execution %s with epoch %d no longer owns task %s, found %s",
		e.Op, e.Owner.ExecutionID, e.Owner.Epoch, e.Owner.TaskUID, found)
}

// Is matches ErrFenced.
func (e *FencedError) Is(target error) bool { return target == ErrFenced }

// VersionError says that a definition was changed by somebody else meanwhile.
type VersionError struct {
	Task        string
	Given, Have uint64
}

// Error names both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("task %q has version %d, the change was made for version %d: read it again and repeat", e.Task, e.Have, e.Given)
}

// Is matches ErrVersion.
func (e *VersionError) Is(target error) bool { return target == ErrVersion }
