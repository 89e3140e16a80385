package daemon

import "github.com/datalink-go/datalink/sdk/wire"

// Above these a source transaction is split at the target, by ordinal. They lie
// below the pipeline's window, which holds what is not durable yet: a larger
// transaction that had to be whole would never be written.
const (
	splitRecords = 50_000
	splitBytes   = 16 << 20
)

func limits() wire.Limits {
	return wire.Limits{TransactionRecords: splitAt(), TransactionBytes: splitBytes, Events: blockEvents()}
}
