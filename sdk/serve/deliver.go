package serve

import (
	"log/slog"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/internal/endpoint"
	"github.com/datalink-go/datalink/sdk/wire"
)

func deliver(sdk.Target, wire.Limits, *slog.Logger) (endpoint.Deliverer, error) {
	return nil, sdk.Faultf(sdk.CodeUnimplemented, "no delivery engine")
}
