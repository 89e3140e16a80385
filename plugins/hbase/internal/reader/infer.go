package reader

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/plugins/hbase/internal/value"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

var _ sdk.Discoverer = (*Reader)(nil)

// sampleRows is how many rows of a table a proposal is made from.
const sampleRows = 200

// Discover proposes a schema for each table, from a sample of its rows: the row key
// as the column row, a column for each family:qualifier, and the narrowest type that
// fits all values of the sample as text. Tables of the configuration are given as it
// has them.
func (r *Reader) Discover(ctx context.Context, out func(*batch.Schema) error) error {
	names, err := r.client.Tables(ctx)
	if err != nil {
		return unavailable(err)
	}
	slices.Sort(names)
	for i, name := range names {
		s := (*batch.Schema)(nil)
		if src := r.byName[name]; src != nil {
			s = src.schema
		} else {
			rows, err := r.sample(ctx, name)
			if errors.Is(err, rpc.ErrNoTable) {
				continue // disabled, or gone meanwhile
			}
			if err != nil {
				return err
			}
			s = infer(name, uint32(len(r.sources)+i+1), rows)
		}
		if err := out(s); err != nil {
			return err
		}
	}
	return nil
}

// sample reads some rows of a table.
func (r *Reader) sample(ctx context.Context, name string) (rows [][]rpc.Cell, err error) {
	x := r.client.Scanner(rpc.Scan{Table: name, Rows: sampleRows, Bytes: 1 << 20, NoCache: true})
	defer x.Close(context.WithoutCancel(ctx))
	for len(rows) < sampleRows {
		more, err := x.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if errors.Is(err, rpc.ErrNoTable) {
				return nil, err
			}
			return nil, unavailable(err)
		}
		rows = append(rows, more...)
	}
	return rows[:min(len(rows), sampleRows)], nil
}

// infer proposes the schema of a table with these rows.
func infer(name string, id uint32, rows [][]rpc.Cell) *batch.Schema {
	s := &batch.Schema{ID: id, Version: 1, Table: name, PrimaryKey: true, Key: []int{0}}
	if ns, table, ok := strings.Cut(name, ":"); ok {
		s.Namespace, s.Table = ns, table
	}
	key := guess{}
	columns := map[string]*guess{}
	for _, cells := range rows {
		key.see(cells[0].Row)
		for i := range cells {
			at := string(cells[i].Family) + ":" + string(cells[i].Qualifier)
			if columns[at] == nil {
				columns[at] = &guess{}
			}
			columns[at].see(cells[i].Value)
		}
	}
	s.Columns = append(s.Columns, key.column("row"))
	for _, at := range slices.Sorted(maps.Keys(columns)) {
		c := columns[at].column(at)
		c.Flags |= batch.Nullable
		s.Columns = append(s.Columns, c)
	}
	return s
}

// guess is what the values of a column have in common.
type guess struct {
	n                           int
	notInt, notDecimal, notText bool
	notDate, notTime, notBool   int
	scale                       int
	width                       int // of all values; -1 = several
}

func (g *guess) see(v []byte) {
	if g.n++; g.n == 1 {
		g.width = len(v)
	} else if g.width != len(v) {
		g.width = -1
	}
	text := string(v)
	if _, err := strconv.ParseInt(text, 10, 64); err != nil {
		g.notInt = true
		whole, frac, _ := strings.Cut(strings.TrimPrefix(text, "-"), ".")
		if whole == "" || frac == "" || strings.Trim(whole+frac, "0123456789") != "" {
			g.notDecimal = true
		}
		g.scale = max(g.scale, len(frac))
	}
	if !utf8.Valid(v) || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\n' && c != '\t' && c != '\r' }) {
		g.notText = true
	}
	if text != "true" && text != "false" {
		g.notBool++
	}
	if !value.IsDate(text) {
		g.notDate++
	}
	if !value.IsDateTime(text) {
		g.notTime++
	}
}

// column proposes a type: native names the encoding where it is not text.
func (g *guess) column(name string) batch.Column {
	c := batch.Column{Name: name, Type: batch.Bytes}
	switch {
	case g.n == 0:
		c.Type = batch.String
	case !g.notInt:
		c.Type = batch.Int64
	case !g.notDecimal:
		c.Type, c.Scale, c.Precision = batch.Decimal, uint32(min(g.scale, 30)), 38
	case g.notBool == 0:
		c.Type = batch.Bool
	case g.notDate == 0:
		c.Type = batch.Date
	case g.notTime == 0:
		c.Type = batch.DateTime
	case !g.notText:
		c.Type = batch.String
	case g.width == binary.Size(uint64(0)):
		c.Type, c.Native = batch.Int64, "binary"
	case g.width == binary.Size(uint32(0)):
		c.Type, c.Native = batch.Int32, "binary"
	}
	return c
}
