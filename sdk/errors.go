package sdk

import (
	"errors"
	"fmt"
)

// Code classifies an error across a process boundary. The table in
// sdk/PROTOCOL.md, section "Errors", says for each what the host does.
type Code string

// The codes.
const (
	CodeInternal         Code = "internal"          // a fault of the connector: restart it, charge the batch
	CodeInvalidConfig    Code = "invalid-config"    // stop
	CodeInvalidPosition  Code = "invalid-position"  // stop: not a position of this reader
	CodePositionPurged   Code = "position-purged"   // stop: the source can no longer serve it
	CodePositionUnknown  Code = "position-unknown"  // stop: the source never had it
	CodeUnavailable      Code = "unavailable"       // retry with back-off
	CodeUnauthorized     Code = "unauthorized"      // stop
	CodeFenced           Code = "fenced"            // stop: another execution owns the target
	CodeTargetWentBack   Code = "target-went-back"  // stop: the target lost progress it had
	CodeForeignClaim     Code = "foreign-claim"     // stop: the target belongs to another store or task
	CodeCommitUnknown    Code = "commit-unknown"    // settle, then go on
	CodeConflict         Code = "conflict"          // record: another unique key is hit, foreign key missing
	CodeMissingRow       Code = "missing-row"       // record: update of a row that is not there
	CodeUnfit            Code = "unfit"             // record: the target cannot hold the value
	CodeTooLarge         Code = "too-large"         // record or block over a limit
	CodeSchemaMismatch   Code = "schema-mismatch"   // stop: target table does not fit
	CodeUnknownTable     Code = "unknown-table"     // stop: layout of the table is not known
	CodeUnsupportedEvent Code = "unsupported-event" // stop: the source sent what the reader does not know
	CodeCorruptSource    Code = "corrupt-source"    // stop: bytes of the source are damaged
	CodeRefused          Code = "refused"           // stop: a policy forbids it
	CodeUnimplemented    Code = "unimplemented"     // the connector lacks the call
	CodeDeadline         Code = "deadline"          // retry with back-off
	CodePoison           Code = "poison"            // record: the connector dies on it
)

// Fault is an error as it crosses a process boundary.
type Fault struct {
	Code       Code
	Message    string // operation and object, what was found, what was expected
	Retryable  bool
	Suggestion string // what to do
	Claimant   *Claimant
}

// Claimant is who owns a target, as its bookkeeping row says. Faults with
// CodeFenced and CodeForeignClaim carry it, so that an execution that was fenced
// can name the other one in its overlap record even where it cannot reach the
// other's store.
type Claimant struct {
	Execution string // executionId
	Epoch     uint64
	TaskUID   string
	StoreUID  string
	Worker    string // where the target stores it
}

// Error returns message and suggestion.
func (f *Fault) Error() string {
	if f.Suggestion == "" {
		return f.Message
	}
	return f.Message + " (" + f.Suggestion + ")"
}

// Is makes two faults of one code match, so that errors.Is(err, ErrFenced) holds
// for any fault with that code.
func (f *Fault) Is(target error) bool {
	t, ok := target.(*Fault)
	return ok && t.Code == f.Code
}

// The faults that code tests for by errors.Is.
var (
	ErrFenced          = &Fault{Code: CodeFenced, Message: "fenced: another execution owns the target"}
	ErrTargetWentBack  = &Fault{Code: CodeTargetWentBack, Message: "the target went back to an older state"}
	ErrForeignClaim    = &Fault{Code: CodeForeignClaim, Message: "the target belongs to another store or task"}
	ErrCommitUnknown   = &Fault{Code: CodeCommitUnknown, Message: "the answer to the commit was lost"}
	ErrPositionPurged  = &Fault{Code: CodePositionPurged, Message: "the source no longer has the position"}
	ErrPositionUnknown = &Fault{Code: CodePositionUnknown, Message: "the source never had the position"}
)

// Faultf returns a fault with a formatted message.
func Faultf(code Code, format string, args ...any) *Fault {
	return &Fault{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Retry returns a copy of f that says it may be tried again.
func (f *Fault) Retry() *Fault {
	c := *f
	c.Retryable = true
	return &c
}

// Suggest returns a copy of f with what to do.
func (f *Fault) Suggest(format string, args ...any) *Fault {
	c := *f
	c.Suggestion = fmt.Sprintf(format, args...)
	return &c
}

// AsFault returns the fault in err's chain, or one with CodeInternal and err's
// text. It returns nil for nil.
func AsFault(err error) *Fault {
	if err == nil {
		return nil
	}
	var f *Fault
	if errors.As(err, &f) {
		if err.Error() == f.Error() {
			return f
		}
		c := *f
		c.Message = err.Error()
		c.Suggestion = ""
		return &c
	}
	return &Fault{Code: CodeInternal, Message: err.Error()}
}
