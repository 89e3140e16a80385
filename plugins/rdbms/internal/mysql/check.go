package mysql

import (
	"context"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Check looks at the server. It writes nothing.
func (w *Writer) Check(ctx context.Context) ([]sdk.Finding, error) { return nil, nil }

// Discover lists the tables of the target.
func (w *Writer) Discover(ctx context.Context, out func(*batch.Schema) error) error { return nil }
