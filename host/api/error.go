package api

import (
	"errors"
	"fmt"
)

// Kind is what went wrong, from which an exit code follows.
type Kind string

// The kinds.
const (
	Failed      Kind = "failed"      // while running; exit code 1
	Usage       Kind = "usage"       // bad usage or configuration; 2
	CheckFailed Kind = "check"       // source, target or plugin, before anything was written; 3
	Fenced      Kind = "fenced"      // another execution owns the task; 4
	Differences Kind = "differences" // found; 5
	Interrupted Kind = "interrupted" // drained; 130
)

var exitCodes = map[Kind]int{Failed: 1, Usage: 2, CheckFailed: 3, Fenced: 4, Differences: 5, Interrupted: 130}

// Error is an error with its kind.
type Error struct {
	Kind Kind
	Err  error
}

// Error returns the text of the cause.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// As returns err with a kind, nil for nil. An error that has one keeps it.
func As(k Kind, err error) error {
	var e *Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &Error{k, err}
}

// Errorf returns an error of a kind.
func Errorf(k Kind, format string, args ...any) error {
	return &Error{k, fmt.Errorf(format, args...)}
}

// KindOf returns the kind of an error; Failed where it has none.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Failed
}

// ExitCode returns the exit code of a command that ended with err.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	return exitCodes[KindOf(err)]
}
