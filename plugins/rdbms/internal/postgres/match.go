package postgres

import (
	"context"
	"slices"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
)

// match changes or deletes one row that equals the before image, in a table
// without a key.
func (t *tx) match(ctx context.Context, p *plan, seg []sdk.Change, k int32) error {
	c, x := &seg[k], t.pipe
	if t.w.cfg.Keyless != target.FullRowMatch {
		return sdk.Faultf(sdk.CodeRefused, "%s of a row of table %s, which has no key: keyless is %s, which only adds rows", c.Kind, p.table, t.w.cfg.Keyless).
			Suggest("set keyless: full-row-match, or leave the table out")
	}
	if !c.Before.Complete() {
		x.refuse(k, sdk.Faultf(sdk.CodeMissingRow, "%s of a row of table %s, which has no key: the image before the change lacks columns, so that the row cannot be found", c.Kind, p.table).
			Suggest("set the source to log full row images"))
		return nil
	}
	if err := x.flush(ctx); err != nil {
		return err
	}
	if t.single {
		if err := t.s.run(ctx, "SAVEPOINT change"); err != nil {
			return err
		}
	}
	n, err := t.matched(ctx, p, c, k)
	switch {
	case err == nil && t.single:
		err = t.s.run(ctx, "RELEASE SAVEPOINT change")
	case ofRow(err) && t.single:
		x.refuse(k, t.w.rowFault(target.Row(c), err))
		return t.s.run(ctx, "ROLLBACK TO SAVEPOINT change; RELEASE SAVEPOINT change")
	}
	if err == nil && n == 0 && c.Op == sdk.MatchPatch {
		x.refuse(k, sdk.Faultf(sdk.CodeMissingRow, "%s of a row of table %s, which has no key: no row equals the one before the change", c.Kind, p.table).
			Suggest("the target lacks a row of the source: take a new snapshot of the table"))
	}
	return err
}

// matched returns the count of rows that were found, one or none.
func (t *tx) matched(ctx context.Context, p *plan, c *sdk.Change, k int32) (int64, error) {
	x := t.pipe
	old, err := c.Before.Values(x.before)
	if err != nil {
		return 0, err
	}
	x.before = old
	var set []int
	if c.Op == sdk.MatchPatch {
		if x.after, err = c.After.Values(x.after); err != nil {
			return 0, err
		}
		if set = places(string(p.mask(nil, x.after))); len(set) == 0 {
			return 1, nil
		}
	}
	find := places(string(p.mask(nil, old)))
	r := &rowset{p: p, set: set, find: find, cols: make([]array, len(set)+len(find))}
	for n := range r.cols {
		r.cols[n] = array{elem: r.wire(n).elem, buf: make([]byte, arrayHeader)}
	}
	for n, i := range slices.Concat(set, find) {
		v := &old[i]
		if n < len(set) {
			v = &x.after[i]
		}
		if !x.put(r, n, i, v, k) {
			return 1, nil
		}
	}
	r.done(k)
	name, err := t.s.prepared(ctx, p.matchText(set, find), r.oids())
	if err != nil {
		return 0, err
	}
	res := t.s.pc.ExecPrepared(ctx, name, r.values(nil), binaryFormat, nil).Read()
	return res.CommandTag.RowsAffected(), res.Err
}
