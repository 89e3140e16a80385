package endpoint

import (
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/wire"
)

// DefaultLimits are in force where neither side states any.
var DefaultLimits = wire.Limits{
	Message:       batch.DefaultBlock + 1<<20,
	Record:        batch.DefaultRecord,
	Block:         batch.DefaultBlock,
	Full:          batch.DefaultFull,
	Events:        batch.DefaultEvents,
	WindowRecords: 64 << 10,
	WindowBytes:   16 << 20,
}

// orDefaults puts the defaults where both sides state nothing.
func orDefaults(l wire.Limits) wire.Limits {
	for _, f := range []struct{ v, d *uint64 }{
		{&l.Message, &DefaultLimits.Message},
		{&l.Record, &DefaultLimits.Record},
		{&l.Block, &DefaultLimits.Block},
		{&l.Full, &DefaultLimits.Full},
		{&l.Events, &DefaultLimits.Events},
		{&l.WindowRecords, &DefaultLimits.WindowRecords},
		{&l.WindowBytes, &DefaultLimits.WindowBytes},
	} {
		if *f.v == 0 {
			*f.v = *f.d
		}
	}
	return l
}

// Smaller returns for each limit the smaller of both sides; 0 stands for none.
func Smaller(a, b wire.Limits) wire.Limits {
	least := func(x, y uint64) uint64 {
		if x == 0 || y != 0 && y < x {
			return y
		}
		return x
	}
	return wire.Limits{
		Message:            least(a.Message, b.Message),
		Record:             least(a.Record, b.Record),
		Block:              least(a.Block, b.Block),
		Full:               least(a.Full, b.Full),
		Events:             least(a.Events, b.Events),
		WindowRecords:      least(a.WindowRecords, b.WindowRecords),
		WindowBytes:        least(a.WindowBytes, b.WindowBytes),
		TransactionRecords: least(a.TransactionRecords, b.TransactionRecords),
		TransactionBytes:   least(a.TransactionBytes, b.TransactionBytes),
	}
}
