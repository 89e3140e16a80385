package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

const scanRows = 1000

func appendIdentity(id *bytes.Buffer, v driver.Value) {
	switch v := v.(type) {
	case []byte:
		fmt.Fprintf(id, "b%d:", len(v))
		id.Write(v)
	case string:
		fmt.Fprintf(id, "s%d:", len(v))
		id.WriteString(v)
	case float64:
		fmt.Fprintf(id, "f%x;", v)
	default:
		fmt.Fprintf(id, "%T%v;", v, v)
	}
}

// Scan reads rows of a range in the order of the target's key into one entry of
// out. It reads on a connection of its own, which no writer makes wait.
func (w *Writer) Scan(ctx context.Context, r sdk.Range, out *batch.Builder) (sdk.Range, error) {
	c, err := open(ctx, &w.cfg, readOnly)
	if err != nil {
		return sdk.Range{}, w.fault("scan", err)
	}
	defer c.close()
	rest, err := w.scan(ctx, c, r, out)
	return rest, w.fault("scan of "+r.Schema.Name(), err)
}

func (w *Writer) scan(ctx context.Context, c *conn, r sdk.Range, out *batch.Builder) (rest sdk.Range, err error) {
	s := r.Schema
	t, err := describe(c, s.Name())
	if err != nil {
		return rest, err
	}
	if t == nil {
		return rest, sdk.Faultf(sdk.CodeUnknownTable, "table %s is not in the target", s.Name())
	}
	if len(s.Key) == 0 {
		return rest, sdk.Faultf(sdk.CodeRefused, "table %s has no key by which to scan it", s.Name())
	}
	if err := w.fit(s, t); err != nil {
		return rest, err
	}
	p := newPlan(s, t)
	single := len(r.Keys) > 0
	limit := r.Rows
	if limit <= 0 {
		limit = scanRows
	}
	where, args, err := rangeWhere(p, r.Lo, r.Hi, false)
	if single {
		limit = len(r.Keys)
		where, args, err = keysWhere(p, r.Keys)
	}
	if err != nil {
		return rest, err
	}
	var names []string
	var places []int
	for i := range p.columns {
		if p.columns[i].name != "" {
			names, places = append(names, "+"+quote(p.columns[i].name)), append(places, i)
		}
	}
	rows, err := c.dc.(driver.QueryerContext).QueryContext(ctx,
		fmt.Sprintf("SELECT %s FROM %s%s ORDER BY %s LIMIT %d", strings.Join(names, ", "), quote(p.table), where, p.keyNames(", "), limit), named(args))
	if err != nil {
		return rest, err
	}
	defer rows.Close()
	if err := out.BeginTx(batch.Tx{Begins: true}); err != nil {
		return rest, err
	}
	n := 0
	vals, row := make([]driver.Value, len(places)), make([]driver.Value, len(p.columns))
	for ; n < limit && (n == 0 || single || !out.Full()); n++ {
		if err := rows.Next(vals); errors.Is(err, io.EOF) {
			return rest, out.EndTx(true, nil, nil)
		} else if err != nil {
			return rest, err
		}
		for i, k := range places {
			row[k] = vals[i]
		}
		if err := putRow(out, s, p, row); err != nil {
			return rest, err
		}
	}
	if single {
		return rest, out.EndTx(true, nil, nil)
	}
	key, err := lastKey(s, row)
	if err != nil {
		return rest, err
	}
	return sdk.Range{Schema: s, Lo: key, Hi: r.Hi, Rows: r.Rows}, out.EndTx(true, nil, nil)
}

// keysWhere is the condition that a row has one of the keys.
func keysWhere(p *plan, keys [][]byte) (string, []any, error) {
	var args []any
	marks := "(" + strings.TrimSuffix(strings.Repeat("?,", len(p.key)), ",") + ")"
	for _, k := range keys {
		vals, err := p.schema.KeyValues(k)
		if err != nil {
			return "", nil, err
		}
		var enc encoder
		for i := range vals {
			v, err := enc.value(&p.schema.Columns[p.key[i]], &vals[i])
			if err != nil {
				return "", nil, err
			}
			args = append(args, v)
		}
	}
	return " WHERE (" + p.keyNames(",") + ") IN (VALUES " + strings.TrimSuffix(strings.Repeat(marks+",", len(keys)), ",") + ")", args, nil
}

func putRow(out *batch.Builder, s *batch.Schema, p *plan, row []driver.Value) error {
	if err := out.BeginRow(batch.Read, s); err != nil {
		return err
	}
	out.BeginImage(batch.AfterImage)
	for i := range s.Columns {
		if p != nil && p.columns[i].name == "" {
			out.PutAbsent()
			continue
		}
		if err := load(out, &s.Columns[i], row[i]); err != nil {
			out.DropRow()
			return fmt.Errorf("table %s, column %s: %w", s.Name(), s.Columns[i].Name, err)
		}
	}
	out.EndImage()
	return out.EndRow()
}

// lastKey gives the key bytes of a row by way of a block, so that they are laid
// out in one place only.
func lastKey(s *batch.Schema, row []driver.Value) ([]byte, error) {
	b := batch.NewBuilder(batch.Limits{})
	if err := b.BeginTx(batch.Tx{Begins: true}); err != nil {
		return nil, err
	}
	if err := putRow(b, s, nil, row); err != nil {
		return nil, err
	}
	if err := b.EndTx(true, nil, nil); err != nil {
		return nil, err
	}
	data, err := b.Finish()
	if err != nil {
		return nil, err
	}
	var blk batch.Block
	if err := blk.Decode(data, batch.NewRegistry(), batch.Limits{}); err != nil {
		return nil, err
	}
	var e batch.Event
	err = blk.Event(0, &e)
	return e.Key, err
}
