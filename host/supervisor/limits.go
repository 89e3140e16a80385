package supervisor

import (
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/wire"
)

// envelope is what a message needs beside its block.
const envelope = 1 << 20

func withDefaults(l wire.Limits) wire.Limits {
	for _, f := range []struct {
		v *uint64
		d uint64
	}{
		{&l.Block, batch.DefaultBlock},
		{&l.Record, batch.DefaultRecord},
		{&l.Full, batch.DefaultFull},
		{&l.Events, batch.DefaultEvents},
		{&l.WindowRecords, 64 << 10},
		{&l.WindowBytes, 16 << 20},
	} {
		if *f.v == 0 {
			*f.v = f.d
		}
	}
	// A writer that never splits would wait for the end of a transaction, and the
	// reader for room in the window.
	if l.TransactionRecords == 0 {
		l.TransactionRecords = l.WindowRecords / 2
	}
	if l.TransactionBytes == 0 {
		l.TransactionBytes = l.WindowBytes / 2
	}
	if l.Message == 0 {
		l.Message = l.Block + envelope
	}
	return l
}

// checkLimits compares the limits a plugin answered with the host's: it must keep
// to them, and they must fit each other. A plugin of protocol 1 may answer none.
func checkLimits(plugin string, host, got wire.Limits) error {
	for _, f := range []struct {
		name      string
		host, got uint64
	}{
		{"message", host.Message, got.Message},
		{"record", host.Record, got.Record},
		{"block", host.Block, got.Block},
		{"full", host.Full, got.Full},
		{"events", host.Events, got.Events},
	} {
		if f.got > f.host {
			return sdk.Faultf(sdk.CodeRefused, "plugin %s: it answers a limit of %s of %d, expected at most the host's %d", plugin, f.name, f.got, f.host)
		}
	}
	switch {
	case got.Block > 0 && got.Message > 0 && got.Message < got.Block:
		return sdk.Faultf(sdk.CodeRefused, "plugin %s: limit of message %d is below that of block, %d: no full block could pass", plugin, got.Message, got.Block)
	case got.Block > 0 && got.Record > got.Block:
		return sdk.Faultf(sdk.CodeRefused, "plugin %s: limit of record %d is above that of block, %d", plugin, got.Record, got.Block)
	}
	return nil
}
