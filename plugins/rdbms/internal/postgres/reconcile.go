package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// reconcile deletes the rows of a snapshot range whose keys were not among its
// rows. Bounds are compared by PostgreSQL, so a bounded range needs key columns
// whose order here is that of the source.
func (t *tx) reconcile(ctx context.Context, p *plan, c *sdk.Change) error {
	x := t.pipe
	if len(p.key) == 0 || c.Range == nil {
		return sdk.Faultf(sdk.CodeInternal, "range of table %s without a key or without bounds", p.table)
	}
	if err := x.flush(ctx); err != nil {
		return err
	}
	// The keys that the range had, and its bounds behind them, as one set of keys.
	r := &rowset{}
	r.reset(p, deleteText, "")
	for n, key := range slices.Concat(c.Seen, bounds(c.Range.Lo, c.Range.Hi)) {
		if n >= len(c.Seen) {
			if i, ok := unordered(p); !ok {
				return sdk.Faultf(sdk.CodeRefused, "range of table %s: key column %s is not ordered alike in PostgreSQL and the source", p.table, p.schema.Columns[i].Name).
					Suggest("take the snapshot of this table in one piece")
			}
		}
		vals, err := p.schema.KeyValues(key)
		if err != nil {
			return err
		}
		for k := range r.find {
			if bad := r.value(k, &vals[k]); bad != nil {
				// A key that the target cannot hold is not in it.
				if n >= len(c.Seen) {
					return sdk.Faultf(sdk.CodeRefused, "range of table %s: its bound does not fit the key: %s", p.table, bad.why)
				}
				r.undo(k)
				goto skip
			}
		}
		r.done(int32(n))
	skip:
	}
	q := reconcileText(p, r, len(c.Range.Lo) > 0, len(c.Range.Hi) > 0)
	if err := t.s.run(ctx, "SET LOCAL enable_hashjoin = on; SET LOCAL enable_mergejoin = on; SET LOCAL enable_seqscan = on; SET LOCAL plan_cache_mode = force_custom_plan"); err != nil {
		return err
	}
	params := r.values(nil)
	res := t.s.pc.ExecParams(ctx, q, params, r.oids(), binaryFormat, nil).Read()
	if res.Err != nil {
		return res.Err
	}
	return t.s.run(ctx, "SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL enable_seqscan = off; SET LOCAL plan_cache_mode = force_generic_plan")
}

func bounds(keys ...[]byte) [][]byte {
	return slices.DeleteFunc(keys, func(k []byte) bool { return len(k) == 0 })
}

// reconcileText deletes by an anti-join with the keys seen. The bounds are the last
// elements of the arrays; a bound that is a key seen harms nothing, so they are left
// in where the upper one belongs to the range.
func reconcileText(p *plan, r *rowset, lo, hi bool) string {
	seen := len(r.at)
	if lo {
		seen--
	}
	if hi {
		seen--
	}
	var cols, names, on []string
	for k, i := range p.key {
		array := fmt.Sprintf("$%d::%s", k+1, p.cols[i].wire.array())
		cols = append(cols, fmt.Sprintf("(%s)[:%d]", array, seen))
		names = append(names, "a"+strconv.Itoa(k))
		on = append(on, "t."+p.cols[i].name+" = "+p.param(i, k))
	}
	where := []string{"NOT EXISTS (SELECT 1 FROM unnest(" + strings.Join(cols, ", ") + ") AS u(" + strings.Join(names, ", ") + ") WHERE " + strings.Join(on, " AND ") + ")"}
	bound := func(op string, at int) {
		var have, want []string
		for k, i := range p.key {
			name, value := "t."+p.cols[i].name, fmt.Sprintf("($%d::%s)[%d]", k+1, p.cols[i].wire.array(), at)
			if c := p.cols[i].wire.cast; c != "" {
				value = "(" + value + ")::" + c
			}
			if p.cols[i].info.holdsText() {
				name += ` COLLATE "C"`
			}
			have, want = append(have, name), append(want, value)
		}
		where = append(where, "("+strings.Join(have, ", ")+") "+op+" ("+strings.Join(want, ", ")+")")
	}
	at := seen
	if lo {
		at++
		bound(">", at)
	}
	if hi {
		at++
		bound("<=", at)
	}
	return "DELETE FROM " + p.table + " AS t WHERE " + strings.Join(where, " AND ")
}

// unordered returns a key column that PostgreSQL may order otherwise than the
// source; ok says that there is none.
func unordered(p *plan) (int, bool) {
	for _, i := range p.key {
		if !ordered(&p.schema.Columns[i], p.cols[i].info) {
			return i, false
		}
	}
	return 0, true
}

// ordered reports whether the column sorts as the source sorts it. Text is
// compared byte by byte, which is the order of code points.
func ordered(c *batch.Column, i *info) bool {
	switch c.Type {
	case batch.Bool, batch.Int8, batch.Int16, batch.Int32, batch.Int64, batch.Uint8, batch.Uint16, batch.Uint32, batch.Uint64, batch.Year,
		batch.Decimal, batch.Date, batch.DateTime, batch.Timestamp:
		return !i.holdsText()
	case batch.Bytes:
		return i.oid == oidBytea
	case batch.UUID:
		return i.oid == oidUUID && c.Native == "uuid" && c.Charset == ""
	case batch.String:
		switch strings.ToLower(c.Collation) {
		case "", "binary", "c", "posix", "ucs_basic", "c.utf-8", "c.utf8", "utf8mb4_0900_bin":
			return i.oid == oidText || i.oid == oidVarchar
		}
	}
	return false
}
