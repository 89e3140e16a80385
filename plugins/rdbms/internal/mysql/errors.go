package mysql

import (
	"context"
	"errors"

	"github.com/go-sql-driver/mysql"

	"github.com/datalink-go/datalink/sdk"
)

// Error numbers of the servers (errmsg-utf8.txt, share/errmsg.txt).
const (
	erDupKey              = 1022
	erAccessDenied        = 1045
	erDBAccessDenied      = 1044
	erBadDB               = 1049
	erBadNull             = 1048
	erServerShutdown      = 1053
	erDupEntry            = 1062
	erTooManyConnections  = 1040
	erTableAccessDenied   = 1142
	erColumnAccessDenied  = 1143
	erNoSuchTable         = 1146
	erPacketTooLarge      = 1153
	erLockWait            = 1205
	erDeadlock            = 1213
	erNoReferencedRow     = 1216
	erRowIsReferenced     = 1217
	erSpecificAccess      = 1227
	erSubqueryRows        = 1242
	erOutOfRange          = 1264
	erTruncated           = 1265
	erOptionPrevents      = 1290
	erTruncatedWrongValue = 1292
	erQueryInterrupted    = 1317
	erIncorrectForField   = 1366
	erDataTooLong         = 1406
	erCannotGetGeometry   = 1416
	erRowIsReferenced2    = 1451
	erNoReferencedRow2    = 1452
	erIllegalCollations   = 1270
	erIllegalCollation2   = 1267
	erBadValue            = 1525
	erDataOutOfRange      = 1690
	erReadOnly            = 1792
	erReadOnlyMode        = 1836
	erKilled              = 1927
	erBadNullNotIgnored   = 3819
	erCheckFailed         = 4025
	erInvalidJSON         = 3140
	erInvalidJSONBytes    = 3141
	erCannotConvert       = 3854
	erWrongSRID           = 3643
	erNoSuchThread        = 1094
	erKillDenied          = 1095
	erGroupRollback       = 3101
	erClientInteraction   = 4031
)

// number returns the server's error number in err's chain, 0 where err is not an
// answer of the server.
func number(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

// lost reports whether the server's answer says that the session is over.
func lost(err error) bool {
	switch number(err) {
	case erServerShutdown, erKilled, erClientInteraction:
		return true
	}
	return false
}

// again reports whether the whole transaction is to be tried again on the same
// session.
func again(err error) bool {
	switch number(err) {
	case erDeadlock, erLockWait, erGroupRollback, erQueryInterrupted:
		return true
	}
	return false
}

// fault classifies an error of the server during an operation.
func (w *Writer) fault(doing string, err error) error {
	var f *sdk.Fault
	if err == nil || errors.As(err, &f) {
		return err
	}
	where := w.addr.where()
	make := func(c sdk.Code) *sdk.Fault { return sdk.Faultf(c, "%s at %s: %v", doing, where, err) }
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return make(sdk.CodeDeadline).Retry()
	case errors.Is(err, context.Canceled):
		return err
	}
	switch n := number(err); {
	case again(err):
		w.cfg.Stats.Deadlocks.Add(1)
		return make(sdk.CodeUnavailable).Retry()
	case n == 0, lost(err), n == erTooManyConnections:
		return make(sdk.CodeUnavailable).Retry().Suggest("is the server up, and does the url name it?")
	case n == erReadOnly, n == erReadOnlyMode, n == erOptionPrevents:
		return make(sdk.CodeUnavailable).Retry().Suggest("the server takes no writes: has it become a replica?")
	case n == erAccessDenied, n == erDBAccessDenied, n == erTableAccessDenied, n == erColumnAccessDenied, n == erSpecificAccess, n == erKillDenied:
		return make(sdk.CodeUnauthorized).Suggest("grant the account what `datalink check` lists")
	case n == erBadDB, n == erNoSuchTable:
		return make(sdk.CodeSchemaMismatch)
	}
	return make(sdk.CodeInternal)
}

// recordFault says what is wrong with one change, nil where err is not about the
// change.
func recordFault(what string, err error) *sdk.Fault {
	var f *sdk.Fault
	if errors.As(err, &f) {
		return f
	}
	switch number(err) {
	case erDupEntry, erDupKey, erSubqueryRows:
		msg := err.Error()
		if number(err) == erSubqueryRows {
			msg = "another row has a value of another unique key"
		}
		return sdk.Faultf(sdk.CodeConflict, "%s: another row has the value already: %s", what, msg).
			Suggest("the target has a unique key that the source lacks, or holds rows that did not come from it")
	case erNoReferencedRow, erRowIsReferenced, erRowIsReferenced2, erNoReferencedRow2, erCheckFailed, erBadNullNotIgnored:
		return sdk.Faultf(sdk.CodeConflict, "%s: %v", what, err).Suggest("the target has a constraint that the source lacks, or holds rows that did not come from it")
	case erOutOfRange, erTruncated, erTruncatedWrongValue, erIncorrectForField, erDataTooLong, erCannotGetGeometry, erBadNull, erIllegalCollations, erIllegalCollation2,
		erBadValue, erDataOutOfRange, erInvalidJSON, erInvalidJSONBytes, erCannotConvert, erWrongSRID:
		return sdk.Faultf(sdk.CodeUnfit, "%s: the target cannot hold a value: %v", what, err)
	case erPacketTooLarge:
		return sdk.Faultf(sdk.CodeTooLarge, "%s: %v", what, err).Suggest("raise max_allowed_packet at the target")
	}
	if errors.Is(err, mysql.ErrPktTooLarge) {
		return sdk.Faultf(sdk.CodeTooLarge, "%s: the row is larger than max_allowed_packet of the target", what).Suggest("raise max_allowed_packet at the target")
	}
	return nil
}
