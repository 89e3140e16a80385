package sqlite

import (
	"context"
	"errors"

	"modernc.org/sqlite"

	"github.com/datalink-go/datalink/sdk"
)

// Result codes of SQLite (https://www.sqlite.org/rescode.html).
const (
	rcError      = 1
	rcBusy       = 5
	rcLocked     = 6
	rcReadOnly   = 8
	rcIOErr      = 10
	rcCorrupt    = 11
	rcFull       = 13
	rcCantOpen   = 14
	rcTooBig     = 18
	rcConstraint = 19
	rcMismatch   = 20
	rcNotADB     = 26

	rcNotNull    = rcConstraint | 5<<8
	rcPrimaryKey = rcConstraint | 6<<8
	rcUnique     = rcConstraint | 8<<8
	rcRowID      = rcConstraint | 10<<8
	rcDataType   = rcConstraint | 12<<8

	rcReadOnlyRecovery = 8 | 1<<8
	rcReadOnlyCantLock = 8 | 2<<8
	rcReadOnlyRollback = 8 | 3<<8
)

// code returns the extended result code in err's chain, 0 where there is none.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// leftOver reports whether a file cannot be read without writing, since a process
// that had it open was killed and left a journal or a log to be recovered.
func leftOver(err error) bool {
	switch code(err) {
	case rcReadOnlyRecovery, rcReadOnlyCantLock, rcReadOnlyRollback:
		return true
	}
	return false
}

func busy(err error) bool {
	c := code(err) & 0xff
	return c == rcBusy || c == rcLocked
}

// fault classifies an error of the store during an operation.
func (w *Writer) fault(doing string, err error) error {
	var f *sdk.Fault
	if err == nil || errors.As(err, &f) {
		return err
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return sdk.Faultf(sdk.CodeDeadline, "%s in %s: %v", doing, w.cfg.Path, err).Retry()
	case errors.Is(err, context.Canceled):
		return err
	}
	switch code(err) & 0xff {
	case rcBusy, rcLocked:
		return sdk.Faultf(sdk.CodeUnavailable, "%s in %s: %v", doing, w.cfg.Path, err).Retry()
	case rcFull, rcIOErr:
		return sdk.Faultf(sdk.CodeUnavailable, "%s in %s: %v", doing, w.cfg.Path, err).Retry().Suggest("look at the disk and its free space")
	case rcNotADB, rcCorrupt:
		return sdk.Faultf(sdk.CodeSchemaMismatch, "%s in %s: %v", doing, w.cfg.Path, err).Suggest("name a SQLite database, or a file that does not exist")
	case rcReadOnly, rcCantOpen:
		return sdk.Faultf(sdk.CodeUnauthorized, "%s in %s: %v", doing, w.cfg.Path, err).Suggest("the plugin must be able to write the file and its directory")
	case rcError:
		return sdk.Faultf(sdk.CodeSchemaMismatch, "%s in %s: %v", doing, w.cfg.Path, err)
	}
	return sdk.Faultf(sdk.CodeInternal, "%s in %s: %v", doing, w.cfg.Path, err)
}

// recordFault says what is wrong with one change, nil where err is not about
// the change.
func recordFault(what string, err error) *sdk.Fault {
	var f *sdk.Fault
	if errors.As(err, &f) {
		return f
	}
	switch c := code(err); {
	case c == rcPrimaryKey, c == rcUnique, c == rcRowID:
		return sdk.Faultf(sdk.CodeConflict, "%s: another row has the value already: %v", what, err).
			Suggest("the target has a unique key that the source lacks, or holds rows that did not come from it")
	case c == rcDataType, c&0xff == rcMismatch, c&0xff == rcTooBig:
		return sdk.Faultf(sdk.CodeUnfit, "%s: the target cannot hold a value: %v", what, err)
	case c&0xff == rcConstraint:
		return sdk.Faultf(sdk.CodeConflict, "%s: %v", what, err)
	}
	return nil
}
