package mysql

import (
	"context"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

func (t *tx) alter(ctx context.Context, d *batch.Change) error {
	return sdk.Faultf(sdk.CodeRefused, "schema change")
}
