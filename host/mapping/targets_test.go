package mapping

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/sdk/batch"
)

func TestPattern(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          string // captures after the first, joined; "-" = no match
	}{
		{"shop.orders", "shop.orders", ""},
		{"shop.orders", "shop.orders2", "-"},
		{"shop.t_[00-31]", "shop.t_00", "00"},
		{"shop.t_[00-31]", "shop.t_31", "31"},
		{"shop.t_[00-31]", "shop.t_32", "-"},
		{"shop.t_[00-31]", "shop.t_7", "-"},
		{"shop_[0-3].t_[008-127]", "shop_2.t_127", "2,127"},
		{"shop_[0-3].t_[008-127]", "shop_4.t_127", "-"},
		{"shop.[a-c]?", "shop.bz", "b,z"},
		{"*", "shop.orders", "shop.orders"},
		{`a.b\*`, "a.b*", ""},
		{"a.x+y", "a.xxy", "-"},
		{`/shop\.orders_(\d{4})_?(\d\d)/`, "shop.orders_2026_05", "2026,05"},
		{`/shop\.a|b/`, "shop.ab", "-"},
	} {
		p, err := ParsePattern(tt.pattern)
		if err != nil {
			t.Fatal(err)
		}
		got := "-"
		if m, ok := p.Match(tt.name); ok {
			got = strings.Join(m[1:], ",")
		}
		if got != tt.want {
			t.Errorf("%s on %s: got %q, want %q", tt.pattern, tt.name, got, tt.want)
		}
	}
	for _, s := range []string{"a.[", "a.[]", "a.[31-00]", "a.[0-31]", "/a", "/(/", `a\`} {
		if _, err := ParsePattern(s); err == nil || !strings.Contains(err.Error(), s) {
			t.Errorf("%s: got %v, want an error that names it", s, err)
		}
	}
}

func named(table string) *batch.Schema {
	s := orders()
	s.Table = table
	return s
}

func TestTargets(t *testing.T) {
	ins := ev{batch.Insert, nil, &r{1, "draft", "1.50"}}
	upd := ev{batch.Update, &r{3, "paid", "9.00"}, &r{3, "draft", "9.00"}}
	del := ev{batch.Delete, &r{5, "paid", "1.00"}, nil}
	for _, tt := range []struct {
		name  string
		rules []Rule
		in    *batch.Schema
		evs   []ev
		want  []string
		err   string
	}{
		{
			name: "one to several", in: orders(), evs: []ev{ins, upd, del},
			rules: []Rule{
				{From: "shop.orders"},
				{From: "shop.orders", To: "dwh.paid", Filter: "status == 'paid'"},
				{From: "shop.orders", To: "dwh.slim", Include: []string{"id"}},
				{From: "shop.*", To: "never.{table}"},
			},
			want: []string{
				"0 insert shop.orders | id=1 status=draft total=1.50", "0 insert dwh.slim | id=1",
				"1 update shop.orders | id=3 status=paid total=9.00 | id=3 status=draft total=9.00", "1 delete dwh.paid | id=3 status=paid total=9.00", "1 update dwh.slim | id=3 | id=3",
				"2 delete shop.orders | id=5 status=paid total=1.00", "2 delete dwh.paid | id=5 status=paid total=1.00", "2 delete dwh.slim | id=5",
			},
		},
		{
			name: "shards into one", in: named("orders_07"), evs: []ev{ins, del},
			rules: []Rule{{From: "shop.orders_[00-31]", To: "all.orders", Set: map[string]Column{"shard": {Value: "{1}", Key: true}, "db": {Value: "{schema}"}}}},
			want:  []string{"0 insert all.orders key=shard,id | shard=07 id=1 status=draft total=1.50 db=shop", "1 delete all.orders key=shard,id | shard=07 id=5 status=paid total=1.00 db=shop"},
		},
		{
			name: "captures", in: named("log_202605"), evs: []ev{ins},
			rules: []Rule{{From: `/shop\.log_(\d{4})(\d\d)/`, To: "log.y{1}m{2}"}},
			want:  []string{"0 insert log.y2026m05 | id=1 status=draft total=1.50"},
		},
		{
			name: "table by date", in: orders(), evs: []ev{ins},
			rules: []Rule{{From: "shop.orders", To: "arc.orders_{row.at:%Y%m}", Include: []string{"id", "at"}}},
			want:  []string{"0 insert arc.orders_202605 | id=1"},
		},
		{
			name: "row moves to another table", in: orders(), evs: []ev{ins, upd, del},
			rules: []Rule{{From: "shop.orders", To: "arc.{row.status}", Exclude: []string{"total"}}},
			want:  []string{"0 insert arc.draft | id=1 status=draft", "1 delete arc.paid | id=3 status=paid", "1 insert arc.draft | id=3 status=draft", "2 delete arc.paid | id=5 status=paid"},
		},
		{name: "table by NULL", in: orders(), evs: []ev{{batch.Insert, nil, &r{1, "-", "1"}}}, rules: []Rule{{From: "shop.orders", To: "arc.{row.status}"}}, err: "column status of shop.orders, which is NULL"},
		{
			name: "computed", in: orders(), evs: []ev{ins, {batch.Insert, nil, &r{2, "-", "2.25"}}},
			rules: []Rule{{Include: []string{"id"}, Set: map[string]Column{
				"double": {Expr: "total * 2", Type: "decimal(12,2)"}, "next": {Expr: "id + 1", Type: "int64"}, "upper": {Expr: "status == nil ? nil : upper(status)"},
			}}},
			want: []string{"0 insert shop.orders | id=1 double=3.00 next=2 upper=DRAFT", "1 insert shop.orders | id=2 double=4.50 next=3 upper=null"},
		},
		{
			name: "computed from what is absent", in: orders(), evs: []ev{{batch.Insert, nil, &r{1, "?", "1"}}},
			rules: []Rule{{Include: []string{"id"}, Set: map[string]Column{"upper": {Expr: "upper(status)"}}}},
			want:  []string{"0 insert shop.orders | id=1 upper=absent"},
		},
		{name: "computed from half", in: orders(), evs: []ev{{batch.Insert, nil, &r{1, "?", "1"}}}, rules: []Rule{{Set: map[string]Column{"x": {Expr: "status + string(id)"}}}}, err: "column status: the source's log does not hold its value"},
		{name: "computed, does not fit", in: orders(), evs: []ev{ins}, rules: []Rule{{Set: map[string]Column{"x": {Expr: "total", Type: "int32"}}}}, err: "column x of type int32: its value 1.5 (float64) does not fit"},
		{name: "case", in: orders(), evs: []ev{ins}, rules: []Rule{{From: "*", Case: UpperCase, Include: []string{"id", "status"}, Rename: map[string]string{"status": "state"}}}, want: []string{"0 insert SHOP.ORDERS key=ID | ID=1 state=draft"}},
		{name: "two to one", in: orders(), evs: []ev{ins}, rules: []Rule{{From: "shop.orders", To: "a.b"}, {From: "shop.orders", To: "a.b"}}, err: "two mappings of shop.orders lead to a.b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st, err := New(tt.rules, SameNames)
			if err != nil {
				t.Fatal(err)
			}
			got, err := apply(t, st, tt.in, block(t, tt.in, tt.evs...))
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

func TestBadTargets(t *testing.T) {
	for _, tt := range []struct {
		r    Rule
		want string
	}{
		{Rule{From: "a.*", To: "x{2}"}, "{2}: the table pattern has 1 captures"},
		{Rule{To: "x{tabel}"}, "{tabel}: {schema}, {table}"},
		{Rule{To: "x{table"}, "{ without }"},
		{Rule{To: "x{row.a:%q}"}, "%Y, %m, %d and %H are known"},
		{Rule{Set: map[string]Column{"a": {Value: "1", Expr: "2"}}}, "value and expr are given"},
		{Rule{Set: map[string]Column{"a": {Value: "1", Type: "int"}}}, `type "int": expected bool, int32`},
		{Rule{Set: map[string]Column{"a": {Value: "1", Type: "decimal(2,3)"}}}, "expected decimal(p,s)"},
		{Rule{Set: map[string]Column{"a": {Expr: "1", Key: true}}}, "a column of the key is a value"},
		{Rule{Set: map[string]Column{"a": {Expr: "1 +"}}}, `column "a", expr "1 +"`},
	} {
		if _, err := New([]Rule{tt.r}, SameNames); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %q", tt.r, err, tt.want)
		}
	}
}

// whole sends an event that concerns a whole table through rules.
func whole(t *testing.T, rules []Rule, in *batch.Schema, put func(*batch.Builder) error) ([]string, error) {
	t.Helper()
	st, err := New(rules, SameNames)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Schema(context.Background(), in); err != nil {
		t.Fatal(err)
	}
	b := batch.NewBuilder(batch.Limits{})
	if err := b.BeginTx(batch.Tx{Begins: true}); err != nil {
		t.Fatal(err)
	}
	if err := put(b); err != nil {
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
		return nil, err
	}
	var blk batch.Block
	if err := blk.Decode(data, batch.NewRegistry(), batch.Limits{}); err != nil {
		t.Fatal(err)
	}
	var got []string
	var e batch.Event
	for i := range blk.Len() {
		if err := blk.Event(i, &e); err != nil {
			t.Fatal(err)
		}
		name := ""
		if e.Schema != nil {
			name = e.Schema.Name()
		} else if c, err := e.Change(); err == nil {
			name = fmt.Sprintf("%d %s.%s", c.Kind, c.Namespace, c.Table)
		}
		got = append(got, e.Kind.String()+" "+name)
	}
	return got, nil
}

// What empties or ends one of several tables that were merged must not do so to all.
func TestWholeTables(t *testing.T) {
	several := []Rule{{From: "shop.orders", To: "a.x"}, {From: "shop.orders", To: "a.y"}}
	merged := []Rule{{From: "shop.*", To: "all.orders"}}
	truncate := func(s *batch.Schema) func(*batch.Builder) error {
		return func(b *batch.Builder) error { return b.Truncate(s) }
	}
	ranged := func(s *batch.Schema) func(*batch.Builder) error {
		return func(b *batch.Builder) error { return b.KeyRange(s, &batch.KeyRange{Last: true}) }
	}
	change := func(k batch.DDLKind) func(*batch.Builder) error {
		return func(b *batch.Builder) error {
			return b.Change(&batch.Change{Kind: k, Namespace: "shop", Table: "orders", Statement: "DDL", Column: &batch.Column{Name: "c", Type: batch.Int32}})
		}
	}
	for _, tt := range []struct {
		name  string
		rules []Rule
		put   func(*batch.Builder) error
		want  []string
		err   string
	}{
		{"truncate several", several, truncate(orders()), []string{"truncate a.x", "truncate a.y"}, ""},
		{"range of several", several, ranged(orders()), []string{"range a.x", "range a.y"}, ""},
		{"column of several", several, change(batch.DDLAddColumn), []string{"ddl 4 a.x", "ddl 4 a.y"}, ""},
		{"truncate merged", merged, truncate(orders()), nil, "was emptied, and its rows share target tables"},
		{"range of merged", merged, ranged(orders()), nil, ""},
		{"column of merged", merged, change(batch.DDLAddColumn), []string{"ddl 4 all.orders"}, ""},
		{"drop merged", merged, change(batch.DDLDropTable), nil, "share target tables with others"},
		{"two rules to one", []Rule{{From: "shop.orders", To: "all.o"}, {From: "crm.orders", To: "all.o"}}, truncate(orders()), nil, "share target tables"},
		{"part of a table", []Rule{{From: "shop.orders", Set: map[string]Column{"r": {Value: "eu", Key: true}}}}, truncate(orders()), nil, "share target tables"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := whole(t, tt.rules, orders(), tt.put)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got %v, want %q", err, tt.err)
				}
				return
			}
			if d := cmp.Diff(tt.want, got); err != nil || d != "" {
				t.Fatalf("%v (-want +got):\n%s", err, d)
			}
		})
	}
}
