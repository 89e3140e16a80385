package reader

import (
	"io/fs"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/jsonb"
	"github.com/datalink-go/datalink/plugins/mysql/internal/rows"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

var faults = []struct {
	is     error
	code   sdk.Code
	advice string
}{
	{binlog.ErrEncrypted, sdk.CodeUnsupportedEvent, "read a decrypted copy"},
	{binlog.ErrCut, sdk.CodeCorruptSource, "copy the whole file again and resume"},
	{binlog.ErrTooLarge, sdk.CodeTooLarge, "raise maxEvent"},
	{binlog.ErrCorrupt, sdk.CodeCorruptSource, "copy the file from the server again"},
	{rows.ErrUnknownTable, sdk.CodeUnknownTable, "begin where its CREATE TABLE is, set binlog_row_metadata=FULL at the source, exclude it in tables, or set onUnknownTable: positional"},
	{rows.ErrLabel, sdk.CodeUnknownTable, "begin where its CREATE or ALTER TABLE is"},
	{rows.ErrPartial, sdk.CodeUnsupportedEvent, "set binlog_row_image=FULL, or unset binlog_row_value_options, at the source"},
	{rows.ErrCorrupt, sdk.CodeCorruptSource, "copy the file from the server again"},
	{jsonb.ErrCorrupt, sdk.CodeCorruptSource, "copy the file from the server again"},
	{batch.ErrTooLarge, sdk.CodeTooLarge, "raise the record limit of the host"},
	{fs.ErrNotExist, sdk.CodeUnavailable, "put the file back"},
	{fs.ErrPermission, sdk.CodeUnauthorized, "let the connector read the file"},
}
