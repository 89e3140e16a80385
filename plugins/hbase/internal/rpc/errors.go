package rpc

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// ErrClosed is what calls return once the client was closed.
var ErrClosed = errors.New("hbase client is closed")

// Sentinels for what a caller can do something about.
var (
	ErrNoTable  = errors.New("table does not exist")
	ErrNoFamily = errors.New("column family does not exist")
)

// RemoteError is an exception of a server.
type RemoteError struct {
	Class      string // of the exception, in full
	Message    string // first line of the stack trace
	Server     string
	DoNotRetry bool
}

// Error returns the class without its package, and the message.
func (e *RemoteError) Error() string {
	at := ""
	if e.Server != "" {
		at = " at " + e.Server
	}
	return fmt.Sprintf("%s%s: %s", e.simple(), at, e.Message)
}

// Is matches the sentinels.
func (e *RemoteError) Is(target error) bool {
	switch target {
	case ErrNoTable:
		return e.simple() == "TableNotFoundException"
	case ErrNoFamily:
		return e.simple() == "NoSuchColumnFamilyException"
	}
	return false
}

func (e *RemoteError) simple() string {
	return e.Class[strings.LastIndexByte(e.Class, '.')+1:]
}

func newRemoteError(class string, trace []byte) *RemoteError {
	line, _, _ := strings.Cut(string(trace), "\n")
	line = strings.TrimPrefix(line, class+": ")
	return &RemoteError{Class: class, Message: strings.TrimSpace(line)}
}

func parseException(data []byte, server string) (*RemoteError, error) {
	var class, trace []byte
	var final bool
	err := fields(data, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1:
			class = b
		case 2:
			trace = b
		case 5:
			final = v != 0
		}
		return nil
	})
	e := newRemoteError(string(class), trace)
	e.Server, e.DoNotRetry = server, final
	return e, err
}

// connError says that a connection broke or could not be made. Whether the server
// did what it was asked is not known.
type connError struct {
	addr string
	err  error
}

func (e *connError) Error() string { return fmt.Sprintf("connection to %s: %v", e.addr, e.err) }
func (e *connError) Unwrap() error { return e.err }

// remedy is what to do about an error before the call is tried again.
type remedy int

const (
	giveUp   remedy = iota
	wait            // the same place may serve it later
	relocate        // the region, or its server, is elsewhere
)

var remedies = map[string]remedy{
	"NotServingRegionException":           relocate,
	"RegionMovedException":                relocate,
	"RegionOpeningException":              relocate,
	"RegionOfflineException":              relocate,
	"WrongRegionException":                relocate,
	"RegionServerStoppedException":        relocate,
	"RegionServerAbortedException":        relocate,
	"ServerNotRunningYetException":        relocate,
	"UnknownRegionException":              relocate,
	"ConnectionClosingException":          relocate,
	"NotCarryingRegionException":          relocate,
	"MasterNotRunningException":           relocate,
	"MasterStoppedException":              relocate,
	"NotActiveMasterException":            relocate,
	"PleaseHoldException":                 wait,
	"PleaseRestartMasterException":        relocate,
	"RegionTooBusyException":              wait,
	"CallQueueTooBigException":            wait,
	"CallDroppedException":                wait,
	"CallTimeoutException":                wait,
	"MultiActionResultTooLarge":           wait,
	"RpcThrottlingException":              wait,
	"ThrottlingException":                 wait,
	"TimeoutIOException":                  wait,
	"FailedSyncBeforeLogCloseException":   relocate,
	"WALClosedException":                  relocate,
	"DroppedSnapshotException":            relocate,
	"StaleProcedureException":             wait,
	"UnknownScannerException":             wait,
	"ScannerResetException":               wait,
	"OutOfOrderScannerNextException":      wait,
	"LeaseException":                      wait,
	"ClusterIdNotFoundException":          wait,
	"InterruptedIOException":              wait,
	"OperationConflictException":          giveUp,
	"MetaRegionLocationNotFoundException": wait,
}

// remedyOf classifies an error of one try.
func remedyOf(err error) remedy {
	var re *RemoteError
	var ce *connError
	switch {
	case errors.As(err, &re):
		if r, ok := remedies[re.simple()]; ok {
			return r
		}
		if re.DoNotRetry || strings.Contains(re.Class, "DoNotRetry") || strings.HasPrefix(re.Class, "java.lang.") ||
			strings.Contains(re.Class, "security") || errors.Is(err, ErrNoTable) || errors.Is(err, ErrNoFamily) {
			return giveUp
		}
		if strings.HasPrefix(re.Class, "org.apache.hadoop.hbase.") && !strings.HasSuffix(re.Class, "IOException") {
			return giveUp
		}
		return wait // an IOException that says no more
	case errors.As(err, &ce):
		return relocate
	}
	return giveUp
}

// Final reports whether trying again cannot help.
func Final(err error) bool { return remedyOf(err) == giveUp }

// Unauthorized reports whether a server refused the user.
func Unauthorized(err error) bool {
	var re *RemoteError
	return errors.As(err, &re) && re.simple() == "AccessDeniedException"
}

// Unfit reports whether a server refused what a mutation holds.
func Unfit(err error) bool {
	var re *RemoteError
	return errors.As(err, &re) && (re.simple() == "DoNotRetryIOException" || re.simple() == "IllegalArgumentException" || re.simple() == "FailedSanityCheckException")
}
