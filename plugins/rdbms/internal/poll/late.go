package poll

import (
	"context"
	"hash/maphash"
	"strconv"
	"strings"
	"time"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/scan"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// overlap is the condition for the rows that are read again: those whose value is
// not far below that of the place.
func (r *Reader) overlap(t *table, at []byte) (where string, ok bool, err error) {
	s := t.by.Schema
	vals, err := s.KeyValues(at)
	if err != nil {
		return "", false, sdk.Faultf(sdk.CodeInvalidPosition, "the place in table %s: %v", t.schema.Name(), err)
	}
	c, v := &s.Columns[s.Key[0]], &vals[0]
	from := ""
	us := r.cfg.Overlap.Microseconds()
	switch c.Type {
	case batch.Int8, batch.Int16, batch.Int32, batch.Int64:
		ok, from = r.cfg.Numbers > 0, strconv.FormatInt(v.Int64()-r.cfg.Numbers, 10)
	case batch.Uint8, batch.Uint16, batch.Uint32, batch.Uint64:
		n := v.Uint64()
		ok, from = r.cfg.Numbers > 0, strconv.FormatUint(n-min(n, uint64(r.cfg.Numbers)), 10)
	case batch.DateTime:
		at := batch.UnpackDateTime(v.Int64())
		if v.Int64() == batch.InfinityDateTime || v.Int64() == batch.NegInfDateTime || at.Month == 0 || at.Day == 0 {
			return "", false, nil
		}
		ok, from = us > 0, "'"+string(batch.AppendDateTime(nil, batch.CivilFromUnixMicro(at.UnixMicro()-us).Pack(), 6))+"'"
	case batch.Timestamp:
		n := v.Int64()
		if n == batch.InfinityTimestamp || n == batch.NegInfTimestamp || n == batch.ZeroTimestamp {
			return "", false, nil
		}
		ok, from = us > 0, "'"+string(batch.AppendTimestamp(nil, n-us, 6))+"'"
	case batch.String:
		// SQLite keeps times as text.
		for _, layout := range []string{"2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999", "2006-01-02T15:04:05.999999999Z07:00"} {
			if at, err := time.Parse(layout, string(v.Bytes())); err == nil && us > 0 {
				return quoted(t.by, c.Name) + " >= '" + at.Add(-r.cfg.Overlap).Format(strings.TrimSuffix(layout, ".999999999")) + "'", true, nil
			}
		}
	}
	return quoted(t.by, c.Name) + " >= " + from, ok, nil
}

// late delivers the rows at or before the place that are not as they were.
func (r *Reader) late(ctx context.Context, s scan.Session, t *table, where string, hi []byte, out *batch.Builder) (int, error) {
	by := *t.by
	by.Where = and(by.Where, where)
	rows, err := r.rows(ctx, s, &by, nil, hi, 0)
	if err != nil {
		return 0, err
	}
	old := t.seen
	t.seen = make(map[uint64]bool, len(rows))
	var fresh []batch.Event
	for i := range rows {
		h := maphash.Bytes(r.seed, rows[i].After.Data())
		if !old[h] {
			fresh = append(fresh, rows[i])
		}
		t.seen[h] = true
	}
	if len(fresh) == 0 {
		return 0, nil
	}
	return len(fresh), r.deliver(out, t, fresh, nil)
}

// quoted names a column in a condition.
func quoted(t *scan.Table, column string) string {
	if t.Backticks {
		return "`" + strings.ReplaceAll(column, "`", "``") + "`"
	}
	return `"` + strings.ReplaceAll(column, `"`, `""`) + `"`
}
