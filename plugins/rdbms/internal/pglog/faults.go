package pglog

import (
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/datalink-go/datalink/sdk"
)

var errActive = &sdk.Fault{Code: sdk.CodeUnavailable, Message: "the slot is in use", Retryable: true}

func isActive(err error) bool {
	var f *sdk.Fault
	return errors.As(err, &f) && f == errActive
}

// fault gives an error of the stream its code.
func (r *Reader) fault(err error) error {
	var f *sdk.Fault
	var pg *pgconn.PgError
	var netErr net.Error
	switch {
	case errors.As(err, &f):
		return err
	case errors.As(err, &pg):
		return r.streamFault(pg)
	case errors.Is(err, errServerEnded) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &netErr) || errors.Is(err, net.ErrClosed):
		return sdk.Faultf(sdk.CodeUnavailable, "the stream of slot %s from %s ended after %s: %v", r.slot, r.srv.Name(), r.here.lsn, err).Retry().
			Suggest("the server was stopped or the connection was cut; its log says why")
	}
	return err
}

func (r *Reader) streamFault(pg *pgconn.PgError) error {
	at := r.here.lsn
	switch {
	case pg.Code == "58P01" || pg.Code == "55000":
		return sdk.Faultf(sdk.CodePositionPurged, "slot %s cannot go on at %s: %s", r.slot, at, pg.Message).
			Suggest("the server has removed log that the slot needed: delete the task with --release, which drops the slot, and start it over with a snapshot; raise max_slot_wal_keep_size")
	case pg.Code == "42704":
		return sdk.Faultf(sdk.CodePositionPurged, "after %s: %s", at, pg.Message).Suggest("slot or publication were dropped: delete the task with --release and start it over with a snapshot")
	}
	return r.srv.Fault("read the log of slot "+r.slot+" after "+at.String(), pg)
}
