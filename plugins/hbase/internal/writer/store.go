package writer

import (
	"context"

	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
)

// Store is what the writer needs of a client of HBase.
type Store interface {
	ClusterID(ctx context.Context) (string, error)
	Batch(ctx context.Context, table string, muts []rpc.Mutation) ([]error, error)
	Get(ctx context.Context, table string, g rpc.Get) ([]rpc.Cell, error)
	Scan(s rpc.Scan) Rows
	CheckAndMutate(ctx context.Context, table string, c rpc.Condition, m *rpc.Mutation) (bool, error)
	Describe(ctx context.Context, table string) (*rpc.Table, error)
	Create(ctx context.Context, t *rpc.Table, splits ...[]byte) error
	Close()
}

// Rows are the rows of a scan; io.EOF after the last one.
type Rows interface {
	Next(ctx context.Context) ([][]rpc.Cell, error)
	Close(ctx context.Context)
}

// Cluster is the Store that a client reaches.
type Cluster struct{ *rpc.Client }

var _ Store = Cluster{}

// Scan begins a scan.
func (c Cluster) Scan(s rpc.Scan) Rows { return c.Scanner(s) }
