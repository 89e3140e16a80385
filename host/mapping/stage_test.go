package mapping

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/sdk/batch"
)

func orders() *batch.Schema {
	return &batch.Schema{
		ID: 3, Namespace: "shop", Table: "orders", Key: []int{0}, PrimaryKey: true,
		Columns: []batch.Column{
			{Name: "id", Type: batch.Int64},
			{Name: "status", Type: batch.String, Flags: batch.Nullable},
			{Name: "total", Type: batch.Decimal, Scale: 2},
			{Name: "at", Type: batch.DateTime},
			{Name: "big", Type: batch.Uint64},
		},
		Uniques:     []batch.Index{{Name: "u", Columns: []int{1, 2}}},
		ForeignKeys: []batch.ForeignKey{{Name: "f", Columns: []int{1}, RefTable: "s", RefColumns: []string{"x"}}},
	}
}

// r is one image: id, status ("-" = NULL, "?" = absent), total.
type r struct {
	id     int64
	status string
	total  string
}

type ev struct {
	kind          batch.Kind
	before, after *r
}

func block(t *testing.T, s *batch.Schema, evs ...ev) []byte {
	t.Helper()
	b := batch.NewBuilder(batch.Limits{})
	ok := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(b.BeginTx(batch.Tx{Begins: true, ID: "t1", Committed: 9}))
	put := func(side batch.Side, im *r) {
		if im == nil {
			return
		}
		b.BeginImage(side)
		b.PutInt(im.id)
		switch im.status {
		case "-":
			b.PutNull()
		case "?":
			b.PutAbsent()
		default:
			b.PutString(im.status)
		}
		b.PutString(im.total)
		b.PutInt(batch.Civil{Year: 2026, Month: 5, Day: 1}.Pack())
		b.PutUint(1 << 63)
		b.EndImage()
	}
	for _, e := range evs {
		ok(b.BeginRow(e.kind, s))
		put(batch.BeforeImage, e.before)
		put(batch.AfterImage, e.after)
		ok(b.EndRow())
	}
	ok(b.EndTx(true, nil, []byte("p")))
	data, err := b.Finish()
	ok(err)
	return data
}

// apply runs the stage as a chain does and prints what comes out.
func apply(t *testing.T, st *Stage, s *batch.Schema, data []byte) ([]string, error) {
	t.Helper()
	out, err := st.Schema(context.Background(), s)
	if err != nil {
		return nil, err
	}
	if out != s {
		if data, err = st.Apply(context.Background(), data, []uint32{s.ID}); err != nil {
			return nil, err
		}
	}
	var b batch.Block
	if err := b.Decode(data, batch.NewRegistry(), batch.Limits{}); err != nil {
		t.Fatal(err)
	}
	if len(b.Txs) != 1 || string(b.Txs[0].End) != "p" || b.Txs[0].ID != "t1" || b.Txs[0].Committed != 9 {
		t.Fatalf("transaction table changed: %+v", b.Txs)
	}
	var lines []string
	var e batch.Event
	for i := range b.Len() {
		if err := b.Event(i, &e); err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%d %s %s", e.Ordinal, e.Kind, e.Schema.Name())
		if k := columnNames(e.Schema, e.Schema.Key); k != "id" {
			line += " key=" + strings.ReplaceAll(k, ", ", ",")
		}
		for _, im := range []batch.Image{e.Before, e.After} {
			if im.IsZero() {
				continue
			}
			v, err := im.Values(nil)
			if err != nil {
				t.Fatal(err)
			}
			line += " |"
			for k, c := range e.Schema.Columns {
				switch {
				case v[k].State != batch.Present:
					line += fmt.Sprintf(" %s=%s", c.Name, v[k].State)
				case c.Type == batch.Int64:
					line += fmt.Sprintf(" %s=%d", c.Name, v[k].Int64())
				case c.Type == batch.String || c.Type == batch.Decimal:
					line += fmt.Sprintf(" %s=%s", c.Name, v[k].Bytes())
				}
			}
		}
		lines = append(lines, line)
	}
	return lines, nil
}

func TestStage(t *testing.T) {
	ins := ev{batch.Insert, nil, &r{1, "draft", "1.50"}}
	null := ev{batch.Insert, nil, &r{2, "-", "2.50"}}
	leave := ev{batch.Update, &r{3, "paid", "9.00"}, &r{3, "draft", "9.00"}}
	enter := ev{batch.Update, &r{4, "draft", "9.00"}, &r{4, "paid", "9.00"}}
	del := ev{batch.Delete, &r{5, "paid", "1.00"}, nil}
	tests := []struct {
		name   string
		rules  []Rule
		naming Naming
		evs    []ev
		want   []string
		err    string
	}{
		{name: "nothing", evs: []ev{ins}, want: []string{"0 insert shop.orders | id=1 status=draft total=1.50"}},
		{
			name: "rename table", rules: []Rule{{From: "shop.orders", To: "public.o2"}}, evs: []ev{ins, del},
			want: []string{"0 insert public.o2 | id=1 status=draft total=1.50", "1 delete public.o2 | id=5 status=paid total=1.00"},
		},
		{
			name: "pattern with places", rules: []Rule{{From: "shop.*", To: "dst.{schema}_{table}"}}, evs: []ev{ins},
			want: []string{"0 insert dst.shop_orders | id=1 status=draft total=1.50"},
		},
		{name: "flat, one schema", naming: FlatOneSchema, evs: []ev{ins}, want: []string{"0 insert orders | id=1 status=draft total=1.50"}},
		{name: "flat, many", naming: FlatManySchemas, evs: []ev{ins}, want: []string{"0 insert shop.orders | id=1 status=draft total=1.50"}},
		{
			name: "columns", rules: []Rule{{Exclude: []string{"status"}, Rename: map[string]string{"total": "sum"}}}, evs: []ev{leave},
			want: []string{"0 update shop.orders | id=3 sum=9.00 | id=3 sum=9.00"},
		},
		{
			name: "include and set", rules: []Rule{{Include: []string{"id"}, Set: map[string]Column{"origin": {Value: "eu"}}}}, evs: []ev{ins},
			want: []string{"0 insert shop.orders | id=1 origin=eu"},
		},
		{
			name: "filter", rules: []Rule{{Filter: "status != 'draft'"}}, evs: []ev{ins, null, leave, enter, del},
			want: []string{
				"1 insert shop.orders | id=2 status=null total=2.50", "2 delete shop.orders | id=3 status=paid total=9.00",
				"3 insert shop.orders | id=4 status=paid total=9.00", "4 delete shop.orders | id=5 status=paid total=1.00",
			},
		},
		{
			name: "filter by numbers and times", rules: []Rule{{Filter: "total >= 2 && at < '2026-06-01' && big > 5"}}, evs: []ev{ins, null},
			want: []string{"1 insert shop.orders | id=2 status=null total=2.50"},
		},
		{name: "filter on a missing value", rules: []Rule{{Filter: "status == 'x'"}}, evs: []ev{{batch.Insert, nil, &r{1, "?", "1"}}}, err: "row image to full"},
		{name: "filter on a missing column", rules: []Rule{{Filter: "state == 'x'"}}, evs: []ev{ins}, err: `names the column "state", table shop.orders has: id, status`},
		{name: "key left out", rules: []Rule{{Exclude: []string{"id"}}}, evs: []ev{ins}, err: "leaves out the key column id"},
		{name: "two of a name", rules: []Rule{{Rename: map[string]string{"status": "total"}}}, evs: []ev{ins}, err: `two columns called "total"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			st, err := New(tt.rules, tt.naming)
			if err != nil {
				t.Fatal(err)
			}
			got, err := apply(t, st, orders(), block(t, orders(), tt.evs...))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Fatalf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestBadRules(t *testing.T) {
	for _, r := range []Rule{{Filter: "status =="}, {Filter: "1 + 1"}, {From: "[", To: "x"}, {Include: []string{"a"}, Exclude: []string{"b"}}} {
		if _, err := New([]Rule{r}, SameNames); err == nil || !strings.HasPrefix(err.Error(), "rule 1: ") {
			t.Errorf("%+v: got %v", r, err)
		}
	}
}

// A reader that was opened again may give an id to another table.
func TestAnotherStream(t *testing.T) {
	st, err := New([]Rule{{From: "shop.*", To: "x.{table}"}}, SameNames)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"orders", "other"} {
		s := orders()
		s.Table = table
		got, err := apply(t, st, s, block(t, s, ev{batch.Insert, nil, &r{1, "a", "1"}}))
		if err != nil || len(got) != 1 || !strings.Contains(got[0], "x."+table) {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}

func TestDroppedColumnsTakeTheirIndexesAlong(t *testing.T) {
	st, err := New([]Rule{{Exclude: []string{"status"}}}, SameNames)
	if err != nil {
		t.Fatal(err)
	}
	s, err := st.Schema(context.Background(), orders())
	if err != nil || len(s.Uniques) != 0 || len(s.ForeignKeys) != 0 || len(s.Key) != 1 {
		t.Fatalf("got %+v, %v", s, err)
	}
}

// A table that comes from another schema is found under the name that it has in
// the target.
func TestRenamedAcrossSchemas(t *testing.T) {
	for _, tt := range []struct {
		rules  []Rule
		naming Naming
		want   [2]string
	}{
		{nil, SameNames, [2]string{"a.x", "b.y"}},
		{nil, FlatManySchemas, [2]string{".a.x", ".b.y"}},
		{[]Rule{{From: "a.*", To: "app_mirror.{table}"}}, SameNames, [2]string{"app_mirror.x", "b.y"}},
	} {
		st, err := New(tt.rules, tt.naming)
		if err != nil {
			t.Fatal(err)
		}
		b := batch.NewBuilder(batch.Limits{})
		if err := b.BeginTx(batch.Tx{Begins: true}); err != nil {
			t.Fatal(err)
		}
		in := batch.Change{Kind: batch.DDLRenameTable, Namespace: "b", Table: "y", Statement: "RENAME TABLE a.x TO b.y"}
		in.SetOldTable("a", "x")
		if err := b.Change(&in); err != nil {
			t.Fatal(err)
		}
		if err := b.EndTx(true, nil, []byte("p")); err != nil {
			t.Fatal(err)
		}
		data, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if data, err = st.Apply(context.Background(), data, nil); err != nil {
			t.Fatal(err)
		}
		var blk batch.Block
		if err := blk.Decode(data, batch.NewRegistry(), batch.Limits{}); err != nil {
			t.Fatal(err)
		}
		var e batch.Event
		if err := blk.Event(0, &e); err != nil {
			t.Fatal(err)
		}
		c, err := e.Change()
		if err != nil {
			t.Fatal(err)
		}
		ns, old := c.OldTable()
		if got := [2]string{ns + "." + old, c.Namespace + "." + c.Table}; got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.rules, got, tt.want)
		}
	}
}
