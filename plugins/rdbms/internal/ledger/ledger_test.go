package ledger

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/sdk"
)

func held(lane int32, change func(*Row)) Row {
	r := Row{Task: "t", TaskUID: "u1", Writer: "w", Lane: lane, StoreUID: "s1", Epoch: 5, Execution: "x5", ClaimNo: 3, Lanes: 2, Mapping: "m"}
	if lane >= 0 {
		r.BatchNo, r.Position = 9, `{"format":"f","version":1,"source":"p"}`
	}
	if change != nil {
		change(&r)
	}
	return r
}

func rows(change func(*Row)) []Row { return []Row{held(-1, change), held(0, change), held(1, change)} }

func TestDecide(t *testing.T) {
	ex := func(change func(*sdk.Execution)) sdk.Execution {
		e := sdk.Execution{Task: "t", TaskUID: "u1", StoreUID: "s1", ID: "x6", Epoch: 6, Writer: "w", Lanes: 2, Mapping: "m"}
		if change != nil {
			change(&e)
		}
		return e
	}
	released := func(r *Row) { r.Released = true; r.Position = "" }
	for _, c := range []struct {
		name    string
		rows    []Row
		ex      sdk.Execution
		sw      Switches
		code    sdk.Code
		fresh   bool
		claimNo uint64
		batch   uint64 // of lane 0 after the claim
		drop    int
		kept    bool // the old layout
	}{
		{name: "empty target", ex: ex(nil), fresh: true, claimNo: 1},
		{name: "later epoch", rows: rows(nil), ex: ex(nil), claimNo: 4, batch: 9},
		{name: "same execution again", rows: rows(nil), ex: ex(func(e *sdk.Execution) { e.ID, e.Epoch = "x5", 5 }), claimNo: 4, batch: 9},
		{name: "lower epoch", rows: rows(nil), ex: ex(func(e *sdk.Execution) { e.Epoch = 4 }), code: sdk.CodeFenced},
		{name: "lower epoch, told to take over", rows: rows(nil), ex: ex(func(e *sdk.Execution) { e.Epoch, e.TakeOver = 4, true }), code: sdk.CodeFenced},
		{name: "lower epoch, switched off", rows: rows(nil), ex: ex(func(e *sdk.Execution) { e.Epoch = 4 }), sw: Switches{EpochOff: true}, claimNo: 4, batch: 9},
		{name: "equal epoch of another", rows: rows(nil), ex: ex(func(e *sdk.Execution) { e.Epoch = 5 }), code: sdk.CodeFenced},
		{name: "other store", rows: rows(nil), ex: ex(func(e *sdk.Execution) { e.StoreUID = "s2" }), code: sdk.CodeForeignClaim},
		{name: "other task uid", rows: rows(nil), ex: ex(func(e *sdk.Execution) { e.TaskUID = "u2" }), code: sdk.CodeForeignClaim},
		{name: "other store, switched off", rows: rows(nil), ex: ex(func(e *sdk.Execution) { e.StoreUID = "s2" }), sw: Switches{StoreOff: true}, claimNo: 4, batch: 9},
		{name: "take-over with a lower epoch", rows: rows(nil), ex: ex(func(e *sdk.Execution) { e.StoreUID, e.Epoch, e.TakeOver = "s2", 1, true }), claimNo: 4, batch: 9},
		{name: "released to another task", rows: rows(released), ex: ex(func(e *sdk.Execution) { e.TaskUID, e.Epoch = "u2", 1 }), fresh: true, claimNo: 4},
		{name: "released, same task, later epoch", rows: rows(released), ex: ex(nil), fresh: true, claimNo: 4},
		{name: "released, same execution", rows: rows(released), ex: ex(func(e *sdk.Execution) { e.ID, e.Epoch = "x5", 5 }), code: sdk.CodeFenced},
		{name: "one lane fewer", rows: rows(nil), ex: ex(func(e *sdk.Execution) { e.Lanes = 1 }), claimNo: 4, batch: 9, drop: 1},
		{name: "more lanes", rows: rows(nil), ex: ex(func(e *sdk.Execution) { e.Lanes = 7 }), claimNo: 4, batch: 9},
		{name: "the writer's default of lanes", rows: rows(nil), ex: ex(func(e *sdk.Execution) { e.Lanes = 0 }), claimNo: 4, batch: 9},
		{name: "another mapping, not drained", rows: []Row{held(-1, nil), held(0, nil), held(1, func(r *Row) { r.Position = "{}" })}, ex: ex(func(e *sdk.Execution) { e.Mapping, e.Lanes = "m2", 5 }), claimNo: 4, batch: 9, kept: true},
		{name: "another mapping, drained", rows: rows(nil), ex: ex(func(e *sdk.Execution) { e.Mapping = "m2" }), claimNo: 4, batch: 9},
		{name: "unequal lanes, same layout", rows: []Row{held(-1, nil), held(0, nil), held(1, func(r *Row) { r.BatchNo = 1 })}, ex: ex(nil), claimNo: 4, batch: 9},
		{name: "a lane is gone", rows: rows(nil)[:2], ex: ex(nil), code: sdk.CodeTargetWentBack},
		{name: "the writer's row is gone", rows: rows(nil)[1:], ex: ex(nil), code: sdk.CodeTargetWentBack},
		{name: "one row of a later epoch", rows: []Row{held(-1, nil), held(0, nil), held(1, func(r *Row) { r.Epoch = 8 })}, ex: ex(nil), code: sdk.CodeFenced},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Decide(c.rows, c.ex, 2, c.sw)
			if c.code != "" {
				f := sdk.AsFault(err)
				if f == nil || f.Code != c.code {
					t.Fatalf("got %v, want %s", err, c.code)
				}
				if (f.Code == sdk.CodeFenced || f.Code == sdk.CodeForeignClaim) && (f.Claimant == nil || f.Claimant.Execution != "x5") {
					t.Errorf("claimant %+v, want x5", f.Claimant)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			lanes := int(c.ex.Lanes)
			mapping := c.ex.Mapping
			if lanes == 0 {
				lanes = 2
			}
			if c.kept {
				lanes, mapping = 2, "m"
			}
			if got.Session.Mapping != mapping || got.Rows[0].Mapping != mapping {
				t.Errorf("mapping %q and %q, want %q", got.Session.Mapping, got.Rows[0].Mapping, mapping)
			}
			if got.Fresh != c.fresh || got.Session.ClaimNo != c.claimNo || len(got.Rows) != lanes+1 || len(got.Drop) != c.drop {
				t.Errorf("got %+v", got)
			}
			for i, r := range got.Rows {
				if int(r.Lane) != i-1 || r.Execution != c.ex.ID || r.Epoch != c.ex.Epoch || r.ClaimNo != c.claimNo || r.StoreUID != c.ex.StoreUID || r.TaskUID != c.ex.TaskUID || r.Released || int(r.Lanes) != lanes {
					t.Errorf("row %d: %+v", i, r)
				}
				if i > 0 && r.BatchNo < c.batch && c.name != "unequal lanes, same layout" || i == 1 && (r.BatchNo != c.batch || (r.Position == "") != c.fresh) {
					t.Errorf("row %d: batch %d, position %q, want batch %d", i, r.BatchNo, r.Position, c.batch)
				}
			}
		})
	}
}

func TestRefusal(t *testing.T) {
	s := Session{Task: "t", TaskUID: "u1", Writer: "w", StoreUID: "s1", Execution: "x5", Epoch: 5, ClaimNo: 3, Lanes: 2}
	for _, c := range []struct {
		name string
		row  func(*Row)
		want error
		text string
	}{
		{"no row", nil, sdk.ErrTargetWentBack, "no progress row"},
		{"batch lower", func(r *Row) { r.BatchNo = 7 }, sdk.ErrTargetWentBack, "batch 7 of claim 3"},
		{"claim lower, same execution", func(r *Row) { r.ClaimNo = 2 }, sdk.ErrTargetWentBack, "claim 2"},
		{"claim lower, earlier execution", func(r *Row) { r.ClaimNo, r.Execution, r.Epoch = 2, "x4", 4 }, sdk.ErrTargetWentBack, "x4"},
		{"claim higher, same execution", func(r *Row) { r.ClaimNo = 4 }, sdk.ErrFenced, "claim 4"},
		{"later epoch", func(r *Row) { r.ClaimNo, r.Execution, r.Epoch = 4, "x6", 6 }, sdk.ErrFenced, "execution x6"},
		{"taken over with a lower epoch", func(r *Row) { r.ClaimNo, r.Execution, r.Epoch, r.StoreUID = 4, "y1", 1, "s2" }, sdk.ErrFenced, "store s2"},
		{"put back, then claimed as often", func(r *Row) { r.Execution, r.Epoch = "x6", 6 }, sdk.ErrFenced, "execution x6"},
		{"released", func(r *Row) { r.Released, r.ClaimNo = true, 4 }, sdk.ErrFenced, "released"},
		{"stored already", func(r *Row) { r.BatchNo = 10 }, sdk.ErrFenced, "stored already"},
	} {
		var row *Row
		if c.row != nil {
			r := held(0, c.row)
			row = &r
		}
		f := s.Refusal(0, 10, row)
		if !errors.Is(f, c.want) || !strings.Contains(f.Message, c.text) {
			t.Errorf("%s: got %v, want %v with %q", c.name, f, c.want, c.text)
		}
		if s.Holds(row) != (c.name == "batch lower" || c.name == "stored already") {
			t.Errorf("%s: holds %t", c.name, s.Holds(row))
		}
	}
}

func TestPositions(t *testing.T) {
	for _, p := range []sdk.Position{
		{},
		{Format: "f"},
		{Format: "mysql-files", Version: 2, Source: []byte("binlog.000001:4"), Ordinal: 1 << 63},
		{Format: "f", Source: []byte{0xff, 0, '"', '<'}},
		{Format: "f", Source: []byte("a\x00\"é<>&")},
	} {
		text := EncodePosition(p)
		got, err := DecodePosition(text)
		if d := cmp.Diff(p, got); d != "" || err != nil {
			t.Errorf("%s: %v %s", text, err, d)
		}
	}
	if _, err := DecodePosition("{"); err == nil {
		t.Error("a cut position was read")
	}
}

func FuzzDecodePosition(f *testing.F) {
	f.Add(`{"format":"f","version":1,"source":"p","ordinal":3}`)
	f.Add(`{"source64":"AP8="}`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := DecodePosition(text)
		if err != nil {
			return
		}
		again, err := DecodePosition(EncodePosition(p))
		if d := cmp.Diff(p, again); d != "" || err != nil {
			t.Errorf("%q: %v %s", text, err, d)
		}
	})
}
