package serve

import (
	"context"
	"log/slog"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/delivery"
	"github.com/datalink-go/datalink/sdk/internal/endpoint"
	"github.com/datalink-go/datalink/sdk/wire"
)

// deliver makes the engine that stands before every writer.
func deliver(target sdk.Target, l wire.Limits, log *slog.Logger) (endpoint.Deliverer, error) {
	var lanes int32
	if l, ok := target.(sdk.Laned); ok {
		lanes = l.Lanes()
	}
	e, err := delivery.New(target, delivery.Config{
		Lanes:        lanes,
		SplitRecords: int(l.TransactionRecords), SplitBytes: int(l.TransactionBytes),
		Limits: batch.Limits{Block: int(l.Block), Record: int(l.Record), Full: int(l.Full), Events: int(l.Events)},
		Log:    log,
	})
	if err != nil {
		return nil, err
	}
	return engine{e}, nil
}

type engine struct{ *delivery.Engine }

func (e engine) Run(ctx context.Context, s endpoint.WriteStream) error { return e.Engine.Run(ctx, s) }
