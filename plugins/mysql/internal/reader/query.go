package reader

import (
	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// query works off a statement.
func (r *Reader) query(out *batch.Builder, ev *binlog.Event) error {
	var st binlog.Statement
	if err := binlog.DecodeQuery(ev.Type, ev.Body, &st); err != nil {
		return err
	}
	return nil
}

// statement is a change that the log holds as a statement.
func (r *Reader) statement(ev *binlog.Event, what string) error {
	if r.cfg.OnStatement == "ignore" {
		return nil
	}
	return sdk.Faultf(sdk.CodeUnsupportedEvent, "%s at offset %d: the log holds a change as a statement, not as rows: %s", r.scan.Name(), ev.At, what).
		Suggest("set binlog_format=ROW at the source, or onStatement: ignore")
}
