package daemon

import (
	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk/wire"
)

// The window holds what was read and is not durable yet. Above half of it a
// source transaction is split at the target, by ordinal: a larger one that had to
// be whole would never be written.
const (
	windowRecords = 64 << 10
	windowBytes   = 16 << 20
	splitRecords  = windowRecords / 2
	splitBytes    = windowBytes / 2
)

func limits() wire.Limits {
	return wire.Limits{
		WindowRecords: windowRecords, WindowBytes: windowBytes,
		TransactionRecords: splitAt(), TransactionBytes: splitBytes, Events: blockEvents(),
	}
}

func window() pipeline.Window { return pipeline.Window{Records: windowRecords, Bytes: windowBytes} }
