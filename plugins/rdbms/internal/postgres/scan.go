package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

const scanRows = 1000

// Scan reads rows of a range in the order of the target's key into one entry of
// out. It reads on a session of its own, which holds no lock of a lane.
func (w *Writer) Scan(ctx context.Context, r sdk.Range, out *batch.Builder) (sdk.Range, error) {
	s, err := w.dial(ctx)
	if err != nil {
		return sdk.Range{}, err
	}
	defer s.close()
	rest, err := w.scan(ctx, s, r, out)
	return rest, w.fault("scan of "+r.Schema.Name(), err)
}

func (w *Writer) scan(ctx context.Context, s *session, r sdk.Range, out *batch.Builder) (rest sdk.Range, err error) {
	sch := r.Schema
	t, err := describe(ctx, s, w.namespace(sch.Namespace), sch.Table)
	if err != nil {
		return rest, err
	}
	if t == nil {
		return rest, sdk.Faultf(sdk.CodeUnknownTable, "table %s is not in the target", sch.Name())
	}
	if len(sch.Key) == 0 {
		return rest, sdk.Faultf(sdk.CodeRefused, "table %s has no key by which to scan it", sch.Name())
	}
	m, err := target.Compare(newDialect(sch, t), &w.cfg.Options, sch, &t.Table)
	if err != nil {
		return rest, err
	}
	p := newPlan(sch, t, m)
	limit := r.Rows
	if limit <= 0 {
		limit = scanRows
	}
	named := bounds(r.Lo, r.Hi)
	single := len(r.Keys) > 0
	if single {
		named, limit = r.Keys, len(r.Keys)
	}
	q, places, formats := p.scanText(len(r.Lo) > 0, len(r.Hi) > 0, single, limit)
	keys := &rowset{}
	keys.reset(p, deleteText, "")
	for n, b := range named {
		vals, err := sch.KeyValues(b)
		if err != nil {
			return rest, err
		}
		for k := range keys.find {
			if bad := keys.value(k, &vals[k]); bad != nil {
				return rest, sdk.Faultf(sdk.CodeUnfit, "bound of the scan: %s", bad.why)
			}
		}
		keys.done(int32(n))
	}
	var params [][]byte
	var oids []uint32
	if len(keys.at) > 0 {
		params, oids = keys.values(nil), keys.oids()
	}
	rows := s.pc.ExecParams(ctx, q, params, oids, binaryFormat, formats)
	defer rows.Close() //nolint:errcheck
	if err := out.BeginTx(batch.Tx{Begins: true}); err != nil {
		return rest, err
	}
	n := 0
	values := make([][]byte, len(p.cols))
	var last [][]byte
	var arena []byte
	for (n == 0 || single || !out.Full()) && rows.NextRow() {
		for k, i := range places {
			values[i] = rows.Values()[k]
		}
		if err := p.putRow(out, values); err != nil {
			return rest, err
		}
		// What a row refers to is gone once the next one is read.
		arena, last = arena[:0], last[:0]
		for _, v := range values {
			if v == nil {
				last = append(last, nil)
				continue
			}
			arena = append(arena, v...)
			last = append(last, arena[len(arena)-len(v):])
		}
		n++
		if out.Full() && n < limit && !single {
			break
		}
	}
	var key []byte
	if n > 0 {
		if key, err = p.lastKey(last); err != nil {
			return rest, err
		}
	}
	full := !single && (n == limit || out.Full())
	if full {
		return sdk.Range{Schema: sch, Lo: key, Hi: r.Hi, Rows: r.Rows}, out.EndTx(true, nil, nil)
	}
	if _, err := rows.Close(); err != nil {
		return rest, err
	}
	return rest, out.EndTx(true, nil, nil)
}

func (p *plan) scanText(lo, hi, single bool, limit int) (q string, places []int, formats []int16) {
	var cols, order []string
	for i := range p.cols {
		if p.cols[i].name == "" {
			continue
		}
		e, binary := p.cols[i].selected()
		f := int16(0)
		if binary {
			f = 1
		}
		cols, places, formats = append(cols, e), append(places, i), append(formats, f)
	}
	name := func(i int) string {
		if p.cols[i].info.holdsText() {
			return p.cols[i].name + ` COLLATE "C"`
		}
		return p.cols[i].name
	}
	var where []string
	bound := func(op string, at int) {
		var have, want []string
		for k, i := range p.key {
			v := fmt.Sprintf("($%d::%s)[%d]", k+1, p.cols[i].wire.array(), at)
			if c := p.cols[i].wire.cast; c != "" {
				v = "(" + v + ")::" + c
			}
			have, want = append(have, name(i)), append(want, v)
		}
		where = append(where, "("+strings.Join(have, ", ")+") "+op+" ("+strings.Join(want, ", ")+")")
	}
	at := 0
	if lo && !single {
		at++
		bound(">", at)
	}
	if hi && !single {
		at++
		bound("<=", at)
	}
	if single {
		var have, want []string
		for k, i := range p.key {
			have, want = append(have, p.cols[i].name), append(want, p.param(i, k))
		}
		where = append(where, "("+strings.Join(have, ", ")+") IN (SELECT "+strings.Join(want, ", ")+" FROM "+p.unnest(nil, p.key)+")")
	}
	for _, i := range p.key {
		order = append(order, name(i))
	}
	q = "SELECT " + strings.Join(cols, ", ") + " FROM " + p.table
	if len(where) > 0 {
		q += " WHERE " + strings.Join(where, " AND ")
	}
	return fmt.Sprintf("%s ORDER BY %s LIMIT %d", q, strings.Join(order, ", "), limit), places, formats
}

func (p *plan) putRow(out *batch.Builder, values [][]byte) error {
	if err := out.BeginRow(batch.Read, p.schema); err != nil {
		return err
	}
	out.BeginImage(batch.AfterImage)
	for i := range p.cols {
		if p.cols[i].name == "" {
			out.PutAbsent()
			continue
		}
		if err := load(out, &p.schema.Columns[i], p.cols[i].info, &p.cols[i].wire, values[i]); err != nil {
			out.DropRow()
			return fmt.Errorf("table %s, column %s: %w", p.schema.Name(), p.schema.Columns[i].Name, err)
		}
	}
	out.EndImage()
	return out.EndRow()
}

// lastKey gives the key bytes of a row by way of a block, so that they are laid
// out in one place only.
func (p *plan) lastKey(values [][]byte) ([]byte, error) {
	b := batch.NewBuilder(batch.Limits{})
	if err := b.BeginTx(batch.Tx{Begins: true}); err != nil {
		return nil, err
	}
	if err := p.putRow(b, values); err != nil {
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

// schema describes the table as a source would.
func (t *table) schema(id uint32) *batch.Schema {
	s := &batch.Schema{ID: id, Namespace: t.Namespace, Table: t.Name}
	types := map[uint32]batch.Type{
		oidBool: batch.Bool, oidInt2: batch.Int16, oidInt4: batch.Int32, oidInt8: batch.Int64, oidFloat4: batch.Float32, oidFloat8: batch.Float64,
		oidNumeric: batch.Decimal, oidBytea: batch.Bytes, oidDate: batch.Date, oidTime: batch.Time, oidTimestamp: batch.DateTime, oidTimestampTZ: batch.Timestamp,
		oidInterval: batch.Interval, oidTimeTZ: batch.TimeTZ, oidJSON: batch.JSON, oidJSONB: batch.JSON, oidUUID: batch.UUID, oidInet: batch.Inet, oidCidr: batch.Inet,
		oidBit: batch.Bit, oidVarbit: batch.Bit, oidText: batch.String, oidVarchar: batch.String, oidBpchar: batch.String,
	}
	for i := range t.Columns {
		c := batch.Column{Name: t.Columns[i].Name, Native: t.Columns[i].Type, Type: types[t.cols[i].oid]}
		if c.Type == batch.TypeInvalid {
			c.Type, c.Flags = batch.Native, batch.TextValue
		}
		if n := t.cols[i].limit(); n > 0 && (c.Type == batch.String || c.Type == batch.Bit) {
			c.Length = uint32(n)
		}
		if p, sc, ok := t.cols[i].digits(); ok && sc >= 0 {
			c.Precision, c.Scale = uint32(p), uint32(sc)
		}
		if t.Columns[i].Nullable {
			c.Flags |= batch.Nullable
		}
		s.Columns = append(s.Columns, c)
	}
	if len(t.Uniques) > 0 && t.Uniques[0].Primary {
		s.Key, s.PrimaryKey = t.Uniques[0].Columns, true
	}
	return s
}
