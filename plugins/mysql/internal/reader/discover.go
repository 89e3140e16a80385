package reader

import (
	"context"

	"github.com/datalink-go/datalink/plugins/mysql/internal/snapshot"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

var _ sdk.Discoverer = (*Reader)(nil)

// Discover implements sdk.Discoverer: the tables that the task reads, as the server
// has them now. Files name no tables before they are read.
func (r *Reader) Discover(ctx context.Context, out func(*batch.Schema) error) error {
	if r.live == nil {
		return sdk.Faultf(sdk.CodeUnimplemented, "files hold changes only: tables are listed by a server")
	}
	if r.live.address.Load() == nil {
		return sdk.Faultf(sdk.CodeUnavailable, "the reader is not open").Retry()
	}
	return snapshot.NewSingle(snapshot.Config{Options: r.cfg.Snapshot}, beside{r}).Schemas(ctx, r.source(), out)
}
