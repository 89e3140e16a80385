package writer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/hbase/internal/hbasetest"
	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/plugins/hbase/internal/writer"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/conformance"
)

func TestModelPassesTheKit(t *testing.T) {
	conformance.Run(t, &conformance.Subject{Name: "hbase in memory", New: func(context.Context) (conformance.Store, error) {
		return &kitStore{open: hbasetest.New().Client}, nil
	}})
}

func TestServerPassesTheKit(t *testing.T) {
	s := stack.Start(t, "hbase")
	var n atomic.Int64
	conformance.Run(t, &conformance.Subject{Name: "hbase", New: func(context.Context) (conformance.Store, error) {
		return &kitStore{prefix: fmt.Sprintf("s%05d", n.Add(1)), open: func() writer.Store {
			c, err := rpc.Dial(rpc.Config{ZooKeeper: s.Facts["zookeeper"]})
			if err != nil {
				t.Error(err)
			}
			return writer.Cluster{Client: c}
		}}, nil
	}})
}

// kitStore is a part of a cluster: rows that begin with the prefix.
type kitStore struct {
	prefix string
	open   func() writer.Store
}

func (k *kitStore) config() writer.Config {
	rules := map[string]writer.Rule{}
	for _, s := range conformance.Schemas() {
		rules[s.Name()] = writer.Rule{RowKey: k.prefix + "-{id}"}
	}
	return writer.Config{Tables: rules}
}

func (k *kitStore) Open(context.Context) (sdk.Target, error) {
	return writer.New(k.config(), &prefixed{k.open(), k.prefix})
}

func (k *kitStore) Rows(ctx context.Context, s *batch.Schema) ([]string, error) {
	st := k.open()
	defer st.Close()
	x := st.Scan(rpc.Scan{Table: s.Table, Start: []byte(k.prefix + "-"), Stop: []byte(k.prefix + ".")})
	var out []string
	for {
		rows, err := x.Next(ctx)
		if errors.Is(err, io.EOF) || errors.Is(err, rpc.ErrNoTable) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			var words []string
			for _, c := range s.Columns {
				w := conformance.Null
				if i := slices.IndexFunc(r, func(x rpc.Cell) bool { return string(x.Qualifier) == c.Name }); i >= 0 {
					w = string(r[i].Value)
				}
				words = append(words, w)
			}
			out = append(out, strings.Join(words, "|"))
		}
	}
}

func (k *kitStore) Close(context.Context) error { return nil }

// prefixed keeps the bookkeeping rows of many stores in one table.
type prefixed struct {
	writer.Store
	prefix string
}

func (p *prefixed) Get(ctx context.Context, table string, g rpc.Get) ([]rpc.Cell, error) {
	if table == "datalink_progress" {
		g.Row = append([]byte(p.prefix), g.Row...)
	}
	return p.Store.Get(ctx, table, g)
}

func (p *prefixed) CheckAndMutate(ctx context.Context, table string, c rpc.Condition, m *rpc.Mutation) (bool, error) {
	cells, err := rpc.Cells(m.Block(), false)
	if err != nil {
		return false, err
	}
	n := rpc.NewMutation(append([]byte(p.prefix), m.Row...), nil)
	for i := range cells {
		n.AddCell(&cells[i])
	}
	return p.Store.CheckAndMutate(ctx, table, c, &n)
}
