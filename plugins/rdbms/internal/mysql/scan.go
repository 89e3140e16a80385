package mysql

import (
	"bytes"
	"context"
	"database/sql/driver"
	"fmt"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// rowsPerScan is how many rows a Scan reads where the caller does not say.
const rowsPerScan = 1000

// scanRows reads rows in the order of the key and hands each of them to f, the
// columns of the places. Limit 0 = all.
func scanRows(ctx context.Context, s *session, p *plan, places []int, where string, limit int, f func([]driver.Value) error) error {
	q := "SELECT "
	for i, k := range places {
		if i > 0 {
			q += ", "
		}
		q += selected(&p.columns[k])
	}
	q += " FROM " + p.table
	if where != "" {
		q += " WHERE " + where
	}
	var keys []string
	for _, k := range p.key {
		keys = append(keys, p.columns[k].name)
	}
	q += " ORDER BY " + strings.Join(keys, ", ")
	if limit > 0 {
		q += " LIMIT " + strconv.Itoa(limit)
	}
	return s.each(ctx, q, f)
}

// Scan reads rows of a range in the order of the target's key into one entry of
// out, on a session of its own, which no writer makes wait.
func (w *Writer) Scan(ctx context.Context, r sdk.Range, out *batch.Builder) (sdk.Range, error) {
	s, err := w.connect(ctx, true)
	if err != nil {
		return sdk.Range{}, w.fault("connect", err)
	}
	defer s.close()
	rest, err := w.scan(ctx, s, r, out)
	return rest, w.fault("scan of "+r.Schema.Name(), err)
}

func (w *Writer) scan(ctx context.Context, s *session, r sdk.Range, out *batch.Builder) (rest sdk.Range, err error) {
	if len(r.Schema.Key) == 0 {
		return rest, sdk.Faultf(sdk.CodeRefused, "table %s has no key by which to scan it", r.Schema.Name())
	}
	d, err := w.dialect(ctx, s)
	if err != nil {
		return rest, err
	}
	database, name := w.place(r.Schema.Namespace, r.Schema.Table)
	t, err := w.describe(ctx, s, database, name)
	if err != nil {
		return rest, err
	}
	if t == nil {
		return rest, sdk.Faultf(sdk.CodeUnknownTable, "table %s is not in the target", tableName(database, name))
	}
	o := w.cfg.Options
	o.OnMissingColumn = target.Ignore
	m, err := target.Compare(d, &o, r.Schema, t)
	if err != nil {
		return rest, err
	}
	p := newPlan(r.Schema, t, m, d.maria)
	a := applier{w: w, s: s, ctx: ctx}
	where, err := a.rangeWhere(p, r.Lo, r.Hi, false)
	if err != nil {
		return rest, err
	}
	limit := r.Rows
	if limit <= 0 {
		limit = rowsPerScan
	}
	single := len(r.Keys) > 0
	if single {
		limit = 0
		var b []byte
		for i, k := range r.Keys {
			if i > 0 {
				b = append(b, " OR "...)
			}
			if b, err = a.appendKey(b, p, k, batch.Image{}, true); err != nil {
				return rest, err
			}
		}
		where = string(b)
	}
	var places []int
	for i := range p.columns {
		if p.columns[i].name != "" {
			places = append(places, i)
		}
	}
	if err := out.BeginTx(batch.Tx{Begins: true}); err != nil {
		return rest, err
	}
	n, full := 0, false
	var last []byte
	err = scanRows(ctx, s, p, places, where, limit, func(row []driver.Value) error {
		if full = full || n > 0 && !single && out.Full(); full {
			return nil
		}
		n++
		if err := out.BeginRow(batch.Read, r.Schema); err != nil {
			return err
		}
		out.BeginImage(batch.AfterImage)
		at := 0
		for i := range p.columns {
			if p.columns[i].name == "" {
				out.PutAbsent()
				continue
			}
			if err := load(out, &r.Schema.Columns[i], row[at]); err != nil {
				out.DropRow()
				return fmt.Errorf("column %s: %w", r.Schema.Columns[i].Name, err)
			}
			at++
		}
		out.EndImage()
		if err := out.EndRow(); err != nil {
			return err
		}
		key, _ := out.LastKeys()
		last = bytes.Clone(key)
		return nil
	})
	if err != nil {
		return rest, err
	}
	if err := out.EndTx(true, nil, nil); err != nil {
		return rest, err
	}
	if single || n < limit && !full {
		return sdk.Range{}, nil
	}
	return sdk.Range{Schema: r.Schema, Lo: last, Hi: r.Hi, Rows: r.Rows}, nil
}
