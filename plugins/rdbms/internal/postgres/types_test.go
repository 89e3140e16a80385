package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// one is a table of one column beside its key.
func one(c batch.Column) *batch.Schema {
	c.Name = "v"
	c.Flags |= batch.Nullable
	return &batch.Schema{ID: 1, Table: "t", Key: []int{0}, PrimaryKey: true, Columns: []batch.Column{{Name: "id", Type: batch.Int32}, c}}
}

func intervalOf(months, days int32, us int64) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(months))
	b = binary.LittleEndian.AppendUint32(b, uint32(days))
	return binary.LittleEndian.AppendUint64(b, uint64(us))
}

func timeTZOf(us int64, zone int32) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, uint64(us)), uint32(zone))
}

func floats(f ...float32) []byte {
	var b []byte
	for _, x := range f {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func array32(dims []batch.Dim, elems ...any) []byte {
	var e [][]byte
	for _, x := range elems {
		if x == nil {
			e = append(e, nil)
			continue
		}
		e = append(e, binary.LittleEndian.AppendUint32(nil, uint32(x.(int))))
	}
	return batch.AppendArray(nil, dims, e)
}

func civil(y, m, d, h, mi, s, us int) int64 {
	return batch.Civil{Year: y, Month: m, Day: d, Hour: h, Minute: mi, Second: s, Mic: us}.Pack()
}

const micro = 838*3600e6 + 59*60e6 + 59*1e6 + 999999

// Each type with its limits: as it is created, as PostgreSQL shows it, as it is
// read back.
func TestTypes(t *testing.T) {
	s := start(t)
	d := s.db(t)
	ctx := context.Background()
	col := func(t batch.Type, change ...func(*batch.Column)) batch.Column {
		c := batch.Column{Type: t}
		for _, f := range change {
			f(&c)
		}
		return c
	}
	length := func(n uint32) func(*batch.Column) { return func(c *batch.Column) { c.Length = n } }
	scale := func(p, s uint32) func(*batch.Column) { return func(c *batch.Column) { c.Precision, c.Scale = p, s } }
	nines, zeros := strings.Repeat("9", 65), strings.Repeat("0", 29)+"1"
	for _, c := range []struct {
		column batch.Column
		typ    string
		values []any
		want   []string
		oneway bool // not read back by Scan
	}{
		{col(batch.Bool), "boolean", vals(0, 1), []string{"f", "t"}, false},
		{col(batch.Int8), "smallint", vals(-128, 127), []string{"-128", "127"}, false},
		{col(batch.Uint8), "smallint", vals(0, 255), []string{"0", "255"}, false},
		{col(batch.Int16), "smallint", vals(-32768, 32767), []string{"-32768", "32767"}, false},
		{col(batch.Uint16), "integer", vals(0, 65535), []string{"0", "65535"}, false},
		{col(batch.Int32), "integer", vals(-1<<31, 1<<31-1), []string{"-2147483648", "2147483647"}, false},
		{col(batch.Uint32), "bigint", vals(0, 1<<32-1), []string{"0", "4294967295"}, false},
		{col(batch.Int64), "bigint", vals(int64(-1<<63), int64(1<<63-1)), []string{"-9223372036854775808", "9223372036854775807"}, false},
		{col(batch.Uint64), "numeric(20,0)", vals(uint64(0), uint64(1<<64-1)), []string{"0", "18446744073709551615"}, false},
		{col(batch.Float32), "real", vals(math.MaxFloat32, 1.5, math.Inf(1), math.Copysign(0, -1)), []string{"3.4028235e+38", "1.5", "Infinity", "-0"}, false},
		{col(batch.Float64), "double precision", vals(math.MaxFloat64, 5e-324, math.NaN(), 0.1), []string{"1.7976931348623157e+308", "5e-324", "NaN", "0.1"}, false},
		{col(batch.Decimal, scale(65, 30)), "numeric(65,30)", vals(nines[:35]+"."+nines[:30], "-0."+zeros, "0."+strings.Repeat("0", 30)), []string{nines[:35] + "." + nines[:30], "-0." + zeros, "0." + strings.Repeat("0", 30)}, false},
		{col(batch.Decimal, scale(65, 0)), "numeric(65,0)", vals(nines, "-"+nines, "10000", "0"), []string{nines, "-" + nines, "10000", "0"}, false},
		{col(batch.Decimal), "numeric", vals("NaN", "Infinity", "-Infinity", "1.200", "0.00001", "123456.00000001"), []string{"NaN", "Infinity", "-Infinity", "1.200", "0.00001", "123456.00000001"}, false},
		{col(batch.String), "text", vals("", "a'\"\\ü😀", "x "), []string{"", "a'\"\\ü😀", "x "}, false},
		{col(batch.Bytes), "bytea", vals([]byte{}, []byte{0, 1, 255}), []string{`\x`, `\x0001ff`}, false},
		{col(batch.Bit, length(64)), "bit(64)", vals(bytes.Repeat([]byte{0xff}, 8), []byte{0x80, 0, 0, 0, 0, 0, 0, 1}), []string{strings.Repeat("1", 64), "1" + strings.Repeat("0", 62) + "1"}, false},
		{col(batch.Bit, length(10)), "bit(10)", vals([]byte{0x02, 0x81}), []string{"1010000001"}, false},
		{col(batch.Bit, length(1)), "bit(1)", vals([]byte{1}), []string{"1"}, false},
		{col(batch.Date), "date", vals(batch.PackDate(1, 1, 1), batch.PackDate(9999, 12, 31), batch.PackDate(-43, 3, 15), batch.InfinityDate, batch.NegInfDate), []string{"0001-01-01", "9999-12-31", "0044-03-15 BC", "infinity", "-infinity"}, false},
		{col(batch.Time), "interval", vals(int64(micro), int64(-micro), 0), []string{"838:59:59.999999", "-838:59:59.999999", "00:00:00"}, false},
		{col(batch.Time, func(c *batch.Column) { c.Native = "time without time zone" }), "time without time zone", vals(int64(86400e6), 1), []string{"24:00:00", "00:00:00.000001"}, false},
		{col(batch.DateTime), "timestamp without time zone", vals(civil(1000, 1, 1, 0, 0, 0, 0), civil(9999, 12, 31, 23, 59, 59, 999999), civil(22, 2, 28, 1, 2, 3, 4), batch.InfinityDateTime), []string{"1000-01-01 00:00:00", "9999-12-31 23:59:59.999999", "0022-02-28 01:02:03.000004", "infinity"}, false},
		{col(batch.Timestamp), "timestamp with time zone", vals(int64(0), int64(2147483647999999), batch.NegInfTimestamp), []string{"1970-01-01 00:00:00+00", "2038-01-19 03:14:07.999999+00", "-infinity"}, false},
		{col(batch.Year), "smallint", vals(0, 2155), []string{"0", "2155"}, false},
		{col(batch.JSON), "json", vals(`{"b":1, "a":123456789012345678901234567890.10,"a":2}`, `"\u0000"`), []string{`{"b":1, "a":123456789012345678901234567890.10,"a":2}`, `"\u0000"`}, false},
		{col(batch.Enum), "text", vals("a", ""), []string{"a", ""}, false},
		{col(batch.Set), "text", vals("a,b", ""), []string{"a,b", ""}, false},
		{col(batch.Geometry), "bytea", vals([]byte{0xe6, 0x10, 0, 0, 1}), []string{`\xe610000001`}, false},
		{col(batch.UUID), "uuid", vals([]byte("0123456789abcdef")), []string{"30313233-3435-3637-3839-616263646566"}, false},
		{col(batch.Interval), "interval", vals(intervalOf(-14, 3, -4*3600e6)), []string{"-1 years -2 mons +3 days -04:00:00"}, false},
		{col(batch.TimeTZ), "time with time zone", vals(timeTZOf(3600e6, 5400), timeTZOf(0, -3600)), []string{"01:00:00+01:30", "00:00:00-01"}, false},
		{col(batch.Inet), "inet", vals("10.1.2.3", "::1", "10.0.0.0/8"), []string{"10.1.2.3", "::1", "10.0.0.0/8"}, false},
		{col(batch.Array, func(c *batch.Column) { c.Elem = batch.Int32 }), "integer[]", vals(array32([]batch.Dim{{Len: 2, Lower: 1}, {Len: 2, Lower: 1}}, 1, nil, -3, 4), array32([]batch.Dim{{Len: 1, Lower: 5}}, 7), array32(nil)), []string{"{{1,NULL},{-3,4}}", "[5:5]={7}", "{}"}, true},
		{col(batch.Vector), "real[]", vals(floats(1.5, -2)), []string{"{1.5,-2}"}, true},
		{col(batch.Map), "json", vals(batch.AppendMap(nil, []batch.Pair{{Key: []byte(`a"`), Value: []byte("1")}, {Key: []byte("b")}})), []string{`{"a\"": "1", "b": null}`}, true},
		{col(batch.Native, func(c *batch.Column) { c.Native, c.Flags = "money", batch.TextValue }), "text", vals("$1.00"), []string{"$1.00"}, false},
		{col(batch.Native), "bytea", vals([]byte{9}), []string{`\x09`}, false},
	} {
		t.Run(c.column.Type.String()+" "+c.typ, func(t *testing.T) {
			d.rows(t, "DROP TABLE IF EXISTS t; DROP TABLE IF EXISTS datalink_progress; SELECT 1")
			w := d.writer(t, Config{})
			claim(t, w, execution("x1", 1))
			sc := one(c.column)
			cs := []sdk.Change{change(t, sdk.Upsert, sc, nil, vals(0, nil))}
			for i, v := range c.values {
				cs = append(cs, change(t, sdk.Upsert, sc, nil, vals(i+1, v)))
			}
			for i := range cs {
				cs[i].Schema = sc
			}
			must(t, write(w, nextOf(0, 1), cs...))
			if got := d.list(t, "SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 't'::regclass AND attname = 'v'"); got != c.typ {
				t.Errorf("created as %s, want %s", got, c.typ)
			}
			got := d.rows(t, "SET timezone = 'UTC'; SELECT v FROM t ORDER BY id")
			if want := append([]string{"NULL"}, c.want...); strings.Join(got, "|") != strings.Join(want, "|") {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			if c.oneway {
				return
			}
			b := batch.NewBuilder(batch.Limits{})
			_, err := w.Scan(ctx, sdk.Range{Schema: sc}, b)
			must(t, err)
			data, err := b.Finish()
			must(t, err)
			reg := batch.NewRegistry()
			var blk batch.Block
			must(t, blk.Decode(data, reg, batch.Limits{}))
			for i := range cs {
				var e batch.Event
				must(t, blk.Event(i, &e))
				if !bytes.Equal(e.After.Data(), cs[i].After.Data()) {
					t.Errorf("row %d read back as % x, was % x", i, e.After.Data(), cs[i].After.Data())
				}
			}
		})
	}
}

// What the target cannot hold follows the policy.
func TestUnfit(t *testing.T) {
	s := start(t)
	d := s.db(t)
	for _, c := range []struct {
		name   string
		column batch.Column
		typ    string // of the target; "" = as created
		value  any
		cut    string // under truncate
	}{
		{"U+0000 (B043)", batch.Column{Type: batch.String}, "", "a\x00b", "ab"},
		{"zero date", batch.Column{Type: batch.Date}, "", batch.PackDate(0, 0, 0), "NULL"},
		{"half a date", batch.Column{Type: batch.DateTime}, "", civil(2026, 0, 10, 0, 0, 0, 0), "NULL"},
		{"31 February", batch.Column{Type: batch.Date}, "", batch.PackDate(2026, 2, 31), "NULL"},
		{"zero timestamp", batch.Column{Type: batch.Timestamp}, "", batch.ZeroTimestamp, "NULL"},
		{"bytes not valid in their charset", batch.Column{Type: batch.String, Charset: "latin1"}, "", rawValue{"latin1", []byte("a\xff")}, "a\uFFFD"},
		{"a long text", batch.Column{Type: batch.String, Length: 9}, "varchar(2)", "aüß", "aü"},
		{"blanks beyond the length", batch.Column{Type: batch.String, Length: 9}, "varchar(2)", "a   ", "a "},
		{"a large number", batch.Column{Type: batch.Uint64}, "bigint", uint64(1 << 63), "9223372036854775807"},
		{"a small number", batch.Column{Type: batch.Int32}, "smallint", -40000, "-32768"},
		{"many digits", batch.Column{Type: batch.Decimal, Precision: 10, Scale: 4}, "numeric(4,2)", "1.2345", "1.23"},
		{"a large decimal", batch.Column{Type: batch.Decimal, Precision: 10, Scale: 4}, "numeric(4,2)", "123.0000", "99.99"},
		{"a double in a real", batch.Column{Type: batch.Float64}, "real", 0.1, "0.1"},
		{"a time beyond the day", batch.Column{Type: batch.Time}, "time", int64(25 * 3600e6), "24:00:00"},
		{"fractional digits", batch.Column{Type: batch.DateTime, Scale: 6}, "timestamp(3)", civil(2026, 1, 2, 3, 4, 5, 678901), "2026-01-02 03:04:05.678"},
		{"a name twice in jsonb", batch.Column{Type: batch.JSON}, "jsonb", `{"a":1,"a":2}`, `{"a": 2}`},
		{"tinyint(1) in a boolean", batch.Column{Type: batch.Int8, Native: "tinyint(1)"}, "boolean", 7, "t"},
		{"no label of the enum", batch.Column{Type: batch.Enum}, "mood", "sad", "refused"},
		{"no document", batch.Column{Type: batch.JSON}, "", "{'a':1}", "refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, policy := range []string{target.DeadLetter, target.Null, target.Truncate} {
				d.rows(t, "DROP TABLE IF EXISTS t; DROP TABLE IF EXISTS datalink_progress; DROP TYPE IF EXISTS mood; CREATE TYPE mood AS ENUM ('glad'); SELECT 1")
				if c.typ != "" {
					d.rows(t, "CREATE TABLE t (id int PRIMARY KEY, v "+c.typ+"); SELECT 1")
				}
				w := d.writer(t, Config{Options: target.Options{OnUnfit: policy}})
				claim(t, w, execution("x1", 1))
				err := write(w, nextOf(0, 1), change(t, sdk.Upsert, one(c.column), nil, vals(1, c.value)))
				if policy == target.DeadLetter || c.cut == "refused" {
					if f := sdk.AsFault(err); f == nil || f.Code != sdk.CodeUnfit {
						t.Errorf("%s: got %v, want unfit", policy, err)
					}
					continue
				}
				must(t, err)
				want := c.cut
				if policy == target.Null {
					want = "NULL"
				}
				if got := d.list(t, "SELECT v FROM t"); got != want {
					t.Errorf("%s: got %q, want %q", policy, got, want)
				}
			}
		})
	}
}

// A numeric goes through its binary form and back.
func FuzzNumeric(f *testing.F) {
	for _, s := range []string{"0", "-1", "1.50", "10000", "0.0001", "99999999.00001000", "123456789012345678901234567890.123456789"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		neg := strings.TrimPrefix(s, "-")
		whole, frac, dot := strings.Cut(neg, ".")
		if whole == "" || dot && frac == "" || strings.Trim(whole+frac, "0123456789") != "" || len(s) > 1000 {
			return
		}
		b, bad := numericText(nil, &info{oid: oidNumeric, mod: -1}, []byte(s))
		if bad != nil {
			t.Fatal(bad.why)
		}
		want := strings.TrimLeft(whole, "0")
		if want == "" {
			want = "0"
		}
		if dot {
			want += "." + frac
		}
		if neg != s && strings.Trim(neg, "0.") != "" {
			want = "-" + want
		}
		if got := string(decodeNumeric(b)); got != want {
			t.Errorf("%s: got %s, want %s", s, got, want)
		}
	})
}
