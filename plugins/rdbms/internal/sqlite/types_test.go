package sqlite

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

func le(parts ...any) []byte {
	var b bytes.Buffer
	for _, p := range parts {
		if err := binary.Write(&b, binary.LittleEndian, p); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

// Each value is written, read by another client and scanned back; the image must
// be the same byte for byte.
func TestTypes(t *testing.T) {
	d65 := strings.Repeat("9", 35) + "." + strings.Repeat("8", 30)
	file := path(t)
	w := writer(t, Config{Path: file})
	claim(t, w, execution("x1", 1))
	n := uint64(0)
	us := func(h, m, s, f int64) int64 { return ((h*60+m)*60+s)*1e6 + f }
	for _, c := range []struct {
		col  batch.Column
		in   any
		want string // as another client reads it
	}{
		{batch.Column{Type: batch.Bool}, 1, "1"},
		{batch.Column{Type: batch.Int8}, -128, "-128"},
		{batch.Column{Type: batch.Int16}, -32768, "-32768"},
		{batch.Column{Type: batch.Int32}, -2147483648, "-2147483648"},
		{batch.Column{Type: batch.Int64}, int64(math.MinInt64), "-9223372036854775808"},
		{batch.Column{Type: batch.Int64}, int64(math.MaxInt64), "9223372036854775807"},
		{batch.Column{Type: batch.Uint8}, 255, "255"},
		{batch.Column{Type: batch.Uint16}, 65535, "65535"},
		{batch.Column{Type: batch.Uint32}, uint64(math.MaxUint32), "4294967295"},
		{batch.Column{Type: batch.Uint64}, uint64(3355), "3355"},
		{batch.Column{Type: batch.Uint64}, uint64(math.MaxInt64), "9223372036854775807"},
		{batch.Column{Type: batch.Uint64}, uint64(math.MaxInt64) + 1, `"9223372036854775808"`},
		{batch.Column{Type: batch.Uint64}, uint64(math.MaxUint64), `"18446744073709551615"`},
		{batch.Column{Type: batch.Float32}, float64(float32(0.1)), "real 0.10000000149011612"},
		{batch.Column{Type: batch.Float32}, float64(math.MaxFloat32), "real 3.4028234663852886e+38"},
		{batch.Column{Type: batch.Float64}, 1.0, "real 1"},
		{batch.Column{Type: batch.Float64}, math.Copysign(0, -1), "real -0"},
		{batch.Column{Type: batch.Float64}, math.SmallestNonzeroFloat64, "real 5e-324"},
		{batch.Column{Type: batch.Float64}, math.MaxFloat64, "real 1.7976931348623157e+308"},
		{batch.Column{Type: batch.Float64}, math.Inf(-1), "real -Inf"},
		{batch.Column{Type: batch.Float64}, math.NaN(), `"NaN"`},
		{batch.Column{Type: batch.Decimal, Precision: 65, Scale: 30}, d65, `"` + d65 + `"`},
		{batch.Column{Type: batch.Decimal, Precision: 13, Scale: 4}, "-1.2300", `"-1.2300"`},
		{batch.Column{Type: batch.Decimal, Precision: 5}, "007", `"007"`},
		{batch.Column{Type: batch.Decimal}, "NaN", `"NaN"`},
		{batch.Column{Type: batch.Decimal}, "-Infinity", `"-Infinity"`},
		{batch.Column{Type: batch.String}, "", `""`},
		{batch.Column{Type: batch.String}, "12345678901234567890", `"12345678901234567890"`},
		{batch.Column{Type: batch.String}, "1e5", `"1e5"`},
		{batch.Column{Type: batch.String}, "a\x00b", `"a\x00b"`},
		{batch.Column{Type: batch.String}, "\x00", `"\x00"`},
		{batch.Column{Type: batch.String}, "𝄞 客户 ", `"𝄞 客户 "`},
		{batch.Column{Type: batch.String, Charset: "latin1"}, raw{"latin1", []byte{0xff, 0}}, "xff00"},
		{batch.Column{Type: batch.Bytes}, []byte{}, "x"},
		{batch.Column{Type: batch.Bytes}, []byte{1, 2, 0, 0}, "x01020000"},
		{batch.Column{Type: batch.Bytes}, []byte("123"), "x313233"},
		{batch.Column{Type: batch.Bit, Length: 1}, []byte{1}, "1"},
		{batch.Column{Type: batch.Bit, Length: 17}, []byte{1, 0, 1}, "65537"},
		{batch.Column{Type: batch.Bit, Length: 64}, bytes.Repeat([]byte{0xff}, 8), `"18446744073709551615"`},
		{batch.Column{Type: batch.Bit, Length: 64}, []byte{0, 0, 0, 0, 0, 0, 0, 5}, "5"},
		{batch.Column{Type: batch.Bit, Length: 80}, bytes.Repeat([]byte{7}, 10), "x07070707070707070707"},
		{batch.Column{Type: batch.Date}, int64(0), `"0000-00-00"`},
		{batch.Column{Type: batch.Date}, int64(batch.PackDate(2020, 0, 10)), `"2020-00-10"`},
		{batch.Column{Type: batch.Date}, int64(batch.PackDate(22, 11, 30)), `"0022-11-30"`},
		{batch.Column{Type: batch.Date}, int64(batch.PackDate(9999, 12, 31)), `"9999-12-31"`},
		{batch.Column{Type: batch.Date}, int64(batch.PackDate(-43, 3, 15)), `"-0043-03-15"`},
		{batch.Column{Type: batch.Date}, int64(batch.InfinityDate), `"infinity"`},
		{batch.Column{Type: batch.Date}, int64(batch.NegInfDate), `"-infinity"`},
		{batch.Column{Type: batch.Time}, us(0, 0, -1, 0), `"-00:00:01"`},
		{batch.Column{Type: batch.Time}, -us(507, 48, 27, 0), `"-507:48:27"`},
		{batch.Column{Type: batch.Time, Scale: 6}, -us(838, 59, 59, 0), `"-838:59:59.000000"`},
		{batch.Column{Type: batch.Time, Scale: 6}, us(838, 59, 58, 999999), `"838:59:58.999999"`},
		{batch.Column{Type: batch.Time}, us(1, 2, 3, 4), `"01:02:03.000004"`},
		{batch.Column{Type: batch.DateTime}, int64(0), `"0000-00-00 00:00:00"`},
		{batch.Column{Type: batch.DateTime, Scale: 3}, batch.Civil{Year: 2, Month: 11, Day: 30, Hour: 8, Minute: 5, Second: 43, Mic: 120000}.Pack(), `"0002-11-30 08:05:43.120"`},
		{batch.Column{Type: batch.DateTime}, batch.InfinityDateTime, `"infinity"`},
		{batch.Column{Type: batch.DateTime}, batch.NegInfDateTime, `"-infinity"`},
		{batch.Column{Type: batch.Timestamp}, batch.ZeroTimestamp, `"0000-00-00 00:00:00"`},
		{batch.Column{Type: batch.Timestamp, Scale: 6}, int64(-1), `"1969-12-31 23:59:59.999999"`},
		{batch.Column{Type: batch.Timestamp}, int64(1739812705e6), `"2025-02-17 17:18:25"`},
		{batch.Column{Type: batch.Timestamp}, batch.InfinityTimestamp, `"infinity"`},
		{batch.Column{Type: batch.Timestamp}, batch.NegInfTimestamp, `"-infinity"`},
		{batch.Column{Type: batch.Year}, 0, `"0000"`},
		{batch.Column{Type: batch.Year}, 2155, `"2155"`},
		{batch.Column{Type: batch.JSON}, `{"a": 2147483648, "b": ""}`, `"{\"a\": 2147483648, \"b\": \"\"}"`},
		{batch.Column{Type: batch.JSON}, `1`, `"1"`},
		{batch.Column{Type: batch.Enum, Values: []string{"1", "b"}}, "1", `"1"`},
		{batch.Column{Type: batch.Enum}, "", `""`},
		{batch.Column{Type: batch.Set}, "a,b", `"a,b"`},
		{batch.Column{Type: batch.Geometry}, le(uint32(4326), byte(1), uint32(1), float64(0), float64(0)), "xe6100000010100000000000000000000000000000000000000"},
		{batch.Column{Type: batch.UUID}, le(uint64(0xf0debc9a78563412), uint64(0x0efcdab8967452f0)), `"12345678-9abc-def0-f052-7496b8dafc0e"`},
		{batch.Column{Type: batch.Array, Elem: batch.Int32}, []byte{1, 2}, "x0102"},
		{batch.Column{Type: batch.Vector}, le(float32(1), float32(-0.5)), "x0000803f000000bf"},
		{batch.Column{Type: batch.Interval}, le(int32(14), int32(-3), us(4, 5, 6, 7)), `"14 mons -3 days 04:05:06.000007"`},
		{batch.Column{Type: batch.Interval}, le(int32(math.MinInt32), int32(math.MaxInt32), int64(-1)), `"-2147483648 mons 2147483647 days -00:00:00.000001"`},
		{batch.Column{Type: batch.TimeTZ}, le(us(4, 5, 6, 0), int32(5400)), `"04:05:06+01:30"`},
		{batch.Column{Type: batch.TimeTZ, Scale: 6}, le(us(24, 0, 0, 0), int32(-57599)), `"24:00:00.000000-15:59:59"`},
		{batch.Column{Type: batch.Inet}, "::1/128", `"::1/128"`},
		{batch.Column{Type: batch.Map}, []byte{1}, "x01"},
		{batch.Column{Type: batch.Map, Flags: batch.TextValue}, "a=>1", `"a=>1"`},
		{batch.Column{Type: batch.Native, Native: "tsvector", Flags: batch.TextValue}, "'a':1", `"'a':1"`},
		{batch.Column{Type: batch.Native, Native: "box"}, []byte{0}, "x00"},
	} {
		c.col.Name, c.col.Flags = "v", c.col.Flags|batch.Nullable
		n++
		s := &batch.Schema{ID: uint32(n), Table: fmt.Sprint("t", n), Key: []int{0}, PrimaryKey: true, Columns: []batch.Column{{Name: "id", Type: batch.Int64}, c.col}}
		ch := []sdk.Change{change(t, sdk.Upsert, s, nil, vals(1, c.in)), change(t, sdk.Upsert, s, nil, vals(2, nil))}
		must(t, write(w, next(0, n), ch...))
		if got, want := rows(t, file, "SELECT +v FROM "+s.Table+" ORDER BY id"), []string{c.want, "NULL"}; !slices.Equal(got, want) {
			t.Errorf("%s %v: got %q, want %q", c.col.Type, c.in, got, want)
		}
		for i, e := range scanAll(t, w, s) {
			if !bytes.Equal(e.After.Data(), ch[i].After.Data()) {
				t.Errorf("%s %v, row %d: scanned % x, want % x", c.col.Type, c.in, i, e.After.Data(), ch[i].After.Data())
			}
		}
	}
}

func scanAll(t testing.TB, w *Writer, s *batch.Schema) []batch.Event {
	t.Helper()
	var out []batch.Event
	for r := (sdk.Range{Schema: s, Rows: 1}); r.Schema != nil; {
		b := batch.NewBuilder(batch.Limits{})
		rest, err := w.Scan(context.Background(), r, b)
		must(t, err)
		data, err := b.Finish()
		must(t, err)
		var blk batch.Block
		must(t, blk.Decode(data, batch.NewRegistry(), batch.Limits{}))
		for i := range blk.Len() {
			var e batch.Event
			must(t, blk.Event(i, &e))
			out = append(out, e)
		}
		r = rest
	}
	return out
}

// All classes as keys: found again by patch and remove, also beside each other.
func TestKeyTypes(t *testing.T) {
	for _, c := range []struct {
		col  batch.Column
		keys []any
	}{
		{batch.Column{Type: batch.Uint64}, []any{uint64(5), uint64(math.MaxUint64), uint64(math.MaxInt64) + 1}},
		{batch.Column{Type: batch.Decimal}, []any{"1.0", "1.00", "-0.5"}},
		{batch.Column{Type: batch.String}, []any{"a", "A", "a ", "a\x00", ""}},
		{batch.Column{Type: batch.String, Charset: "latin1"}, []any{raw{"latin1", []byte("a")}, "a", raw{"latin1", []byte{0xff}}}},
		{batch.Column{Type: batch.Bytes}, []any{[]byte{}, []byte{0}, []byte("a")}},
		{batch.Column{Type: batch.DateTime}, []any{int64(0), batch.Civil{Year: 2020, Month: 1, Day: 1}.Pack()}},
		{batch.Column{Type: batch.UUID}, []any{make([]byte, 16), bytes.Repeat([]byte{1}, 16)}},
		{batch.Column{Type: batch.Float64}, []any{0.5, math.NaN()}},
		{batch.Column{Type: batch.Bit, Length: 64}, []any{[]byte{0, 0, 0, 0, 0, 0, 0, 1}, bytes.Repeat([]byte{255}, 8)}},
	} {
		c.col.Name = "k"
		s := &batch.Schema{ID: 1, Table: "t", Key: []int{0}, PrimaryKey: true, Columns: []batch.Column{c.col, {Name: "v", Type: batch.Int32}}}
		file := path(t)
		w := writer(t, Config{Path: file})
		claim(t, w, execution("x1", 1))
		n := uint64(0)
		for round := range 2 {
			for i, k := range c.keys {
				n++
				must(t, write(w, next(0, n), change(t, sdk.Upsert, s, nil, vals(k, 10*round+i))))
			}
		}
		if got := rows(t, file, "SELECT count(*) FROM t"); got[0] != rows(t, file, "SELECT "+itoa(len(c.keys)))[0] {
			t.Errorf("%s: %s rows, want %d", c.col.Type, got[0], len(c.keys))
		}
		for i, k := range c.keys {
			n++
			must(t, write(w, next(0, n), change(t, sdk.Patch, s, vals(k, absent), vals(absent, 100+i))))
			rm := change(t, sdk.Remove, s, vals(k, absent), nil)
			if i%2 == 1 {
				rm.Before = batch.Image{} // the key bytes alone
			}
			n++
			must(t, write(w, next(0, n), rm))
			if got := rows(t, file, "SELECT count(*) FROM t"); got[0] != itoa(len(c.keys)-i-1) {
				t.Errorf("%s: %s rows after removing %d of %d", c.col.Type, got[0], i+1, len(c.keys))
			}
		}
	}
}

func itoa(n int) string { return string([]byte{byte('0' + n)}) }
