package mysql

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/rowtest"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

func init() {
	suite["every type"] = everyType
	suite["values that do not fit"] = unfitValues
	suite["collations are kept"] = collations
	suite["a key that does not fit"] = unfitKey
}

// typed is a column and values that come back as they went.
type typed struct {
	batch.Column
	values []any
}

func civil(y, m, d, h, mi, s, us int) int64 {
	return batch.Civil{Year: y, Month: m, Day: d, Hour: h, Minute: mi, Second: s, Mic: us}.Pack()
}

func date(y, m, d int) int32 { return batch.PackDate(y, m, d) }

func typedColumns(maria bool) []typed {
	interval := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 14), math.MaxUint32-2), uint64(14706000007))
	timetz := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, 14706000000), uint32(5400))
	point := append(make([]byte, 4), 1, 1, 0, 0, 0)
	point = append(point, make([]byte, 16)...)
	maxTime := int64(838*3600+59*60+59) * 1e6
	times := []any{maxTime, -maxTime, int64(0), int64(1), int64(-1)}
	if maria {
		times = append(times, maxTime+999999)
	}
	text := "é 😀 \x00 ' \\ \n\r\x1a\t\"`"
	out := []typed{
		{batch.Column{Type: batch.Bool}, []any{0, 1}},
		{batch.Column{Type: batch.Int8}, []any{math.MinInt8, math.MaxInt8}},
		{batch.Column{Type: batch.Int16}, []any{math.MinInt16, math.MaxInt16}},
		{batch.Column{Type: batch.Int32}, []any{math.MinInt32, math.MaxInt32}},
		{batch.Column{Type: batch.Int32, Native: "mediumint(9)"}, []any{-1 << 23, 1<<23 - 1}},
		{batch.Column{Type: batch.Int64}, []any{int64(math.MinInt64), int64(math.MaxInt64)}},
		{batch.Column{Type: batch.Uint8}, []any{uint64(0), uint64(math.MaxUint8)}},
		{batch.Column{Type: batch.Uint16}, []any{uint64(math.MaxUint16)}},
		{batch.Column{Type: batch.Uint32}, []any{uint64(math.MaxUint32)}},
		{batch.Column{Type: batch.Uint32, Native: "mediumint unsigned"}, []any{uint64(1<<24 - 1)}},
		{batch.Column{Type: batch.Uint64}, []any{uint64(0), uint64(math.MaxUint64)}},
		{batch.Column{Type: batch.Float32}, []any{float64(float32(0.1)), math.MaxFloat32, -math.MaxFloat32, float64(math.SmallestNonzeroFloat32), 0.0}},
		{batch.Column{Type: batch.Float64}, []any{0.1, math.MaxFloat64, -math.MaxFloat64, 2.2250738585072014e-308, 1e22, 0.0}},
		{batch.Column{Type: batch.Decimal, Precision: 65, Scale: 30}, []any{strings.Repeat("9", 35) + "." + strings.Repeat("9", 30), "-0.000000000000000000000000000001"}},
		{batch.Column{Type: batch.Decimal, Precision: 65}, []any{strings.Repeat("9", 65), "-" + strings.Repeat("9", 65)}},
		{batch.Column{Type: batch.String, Length: 100}, []any{"", text, "trailing  ", strings.Repeat("😀", 100)}},
		{batch.Column{Type: batch.String}, []any{strings.Repeat("x", 1<<20), text}},
		{batch.Column{Type: batch.String, Native: "mediumtext", Length: 1<<24 - 1}, []any{text}},
		{batch.Column{Type: batch.Bytes, Length: 20}, []any{[]byte{}, []byte{0, 255, '\'', '\\', 26, '\n', 0}}},
		{batch.Column{Type: batch.Bytes, Native: "binary(4)", Length: 4}, []any{[]byte{1, 0, 0, 0}}},
		{batch.Column{Type: batch.Bytes}, []any{bytes.Repeat([]byte{0, 1, 254, 255}, 1<<18)}},
		{batch.Column{Type: batch.Bit, Length: 1}, []any{[]byte{0}, []byte{1}}},
		{batch.Column{Type: batch.Bit, Length: 64}, []any{bytes.Repeat([]byte{255}, 8), []byte{128, 0, 0, 0, 0, 0, 0, 1}}},
		{batch.Column{Type: batch.Bit, Length: 17}, []any{[]byte{1, 255, 255}}},
		{batch.Column{Type: batch.Date}, []any{date(0, 0, 0), date(9999, 12, 31), date(22, 1, 1), date(2026, 0, 10), date(2026, 2, 31)}},
		{batch.Column{Type: batch.Time, Scale: 6}, times},
		{batch.Column{Type: batch.Time}, []any{maxTime, -maxTime}},
		{batch.Column{Type: batch.DateTime, Scale: 6}, []any{civil(0, 0, 0, 0, 0, 0, 0), civil(9999, 12, 31, 23, 59, 59, 999999), civil(99, 1, 1, 0, 0, 0, 1)}},
		{batch.Column{Type: batch.DateTime, Scale: 3}, []any{civil(2026, 3, 29, 2, 30, 0, 120000)}},
		{batch.Column{Type: batch.Timestamp, Scale: 6, Native: "timestamp(6)"}, []any{int64(batch.ZeroTimestamp), int64(1000000), int64(math.MaxInt32*1000000 + 999999)}},
		{batch.Column{Type: batch.Timestamp, Scale: 6, Native: "timestamp with time zone"}, []any{civilMicro(1900), civilMicro(2999)}},
		{batch.Column{Type: batch.Year}, []any{uint64(0), uint64(1901), uint64(2155)}},
		{batch.Column{Type: batch.Enum, Values: []string{"a", "b'c", "d,e"}}, []any{"a", "b'c", "d,e"}},
		{batch.Column{Type: batch.Set, Values: []string{"a", "b", "c"}}, []any{"", "a,c", "a,b,c"}},
		{batch.Column{Type: batch.Geometry, Native: "geometry"}, []any{point}},
		{batch.Column{Type: batch.UUID}, []any{bytes.Repeat([]byte{0xab}, 16)}},
		{batch.Column{Type: batch.Interval}, []any{interval}},
		{batch.Column{Type: batch.TimeTZ}, []any{timetz}},
		{batch.Column{Type: batch.Inet}, []any{"2001:db8::/32", "10.0.0.1"}},
		{batch.Column{Type: batch.Native, Native: "xml", Flags: batch.TextValue}, []any{"<a/>"}},
		{batch.Column{Type: batch.Native, Native: "raw"}, []any{[]byte{0, 1}}},
		{batch.Column{Type: batch.Vector, Length: 2}, []any{[]byte{0, 0, 128, 63, 0, 0, 0, 64}}},
	}
	docs := []any{`{"a": 1, "b": [1, 2.5, "x", null]}`, `18446744073709551615`, `"é 😀"`}
	if maria {
		docs = append(docs, `{"a":1,"a":2,"n":123456789012345678901234567890}`)
	}
	return append(out, typed{batch.Column{Type: batch.JSON}, docs})
}

func civilMicro(year int) int64 {
	return batch.Civil{Year: year, Month: 5, Day: 4, Hour: 3, Mic: 7}.UnixMicro()
}

// everyType writes the limits of each type to a created table and scans it.
func everyType(t *testing.T, s *testServer) {
	db := s.database(t)
	a := s.writer(t, db, nil)
	claim(t, a, execution("a", 1))
	schema := &batch.Schema{ID: 1, Table: "all_types", Key: []int{0}, PrimaryKey: true, Columns: []batch.Column{{Name: "id", Type: batch.Int32}}}
	cols := typedColumns(s.maria)
	depth := 0
	for i, c := range cols {
		c.Name = fmt.Sprintf("c%d_%s", i, c.Type)
		c.Flags |= batch.Nullable
		schema.Columns = append(schema.Columns, c.Column)
		depth = max(depth, len(c.values))
	}
	var changes []sdk.Change
	for r := range depth + 1 { // the last row holds NULLs
		row := []any{r}
		for _, c := range cols {
			if r < len(c.values) {
				row = append(row, c.values[r])
			} else {
				row = append(row, nil)
			}
		}
		changes = append(changes, insert(t, schema, row...))
	}
	rowtest.Must(t, write(a, next(0, 1), changes...))
	r, n := sdk.Range{Schema: schema, Rows: 3}, 0
	for r.Schema != nil {
		out := batch.NewBuilder(batch.Limits{})
		var err error
		r, err = a.Scan(bg, r, out)
		rowtest.Must(t, err)
		data, err := out.Finish()
		rowtest.Must(t, err)
		reg := batch.NewRegistry()
		rowtest.Must(t, reg.Add(schema))
		var blk batch.Block
		rowtest.Must(t, blk.Decode(data, reg, batch.Limits{}))
		for i := range blk.Len() {
			var e batch.Event
			rowtest.Must(t, blk.Event(i, &e))
			got, err := e.After.Values(nil)
			rowtest.Must(t, err)
			want, err := changes[n].After.Values(nil)
			rowtest.Must(t, err)
			for i := range want {
				g, w := render(&schema.Columns[i], &got[i]), render(&schema.Columns[i], &want[i])
				if g != w {
					t.Errorf("row %d, column %s: got %.80s, want %.80s", n, schema.Columns[i].Name, g, w)
				}
			}
			n++
		}
	}
	if n != len(changes) {
		t.Errorf("scanned %d rows, want %d", n, len(changes))
	}
}

func render(c *batch.Column, v *batch.Value) string {
	if v.State != batch.Present {
		return v.State.String()
	}
	if b, ok := batch.AppendText(nil, c, v); ok {
		return string(b)
	}
	return fmt.Sprintf("%x", v.Bytes())
}

// unfitValues: what the target cannot hold follows the policy.
func unfitValues(t *testing.T, s *testServer) {
	col := func(c batch.Column) batch.Column {
		c.Name, c.Flags = "c", c.Flags|batch.Nullable
		return c
	}
	duplicate := `{"a":1,"a":2}`
	for _, c := range []struct {
		column batch.Column
		have   string
		value  any
		cut    string // with truncate; "" = refused or NULL
	}{
		{batch.Column{Type: batch.Int32}, "TINYINT", 300, "127"},
		{batch.Column{Type: batch.Int64}, "INT UNSIGNED", -5, "0"},
		{batch.Column{Type: batch.Float64}, "DOUBLE", math.NaN(), ""},
		{batch.Column{Type: batch.Float64}, "DOUBLE", math.Inf(1), "1.7976931348623157e308"},
		{batch.Column{Type: batch.Decimal}, "DECIMAL(5,2)", "1.239", "1.23"},
		{batch.Column{Type: batch.Decimal}, "DECIMAL(5,2)", "12345.1", ""},
		{batch.Column{Type: batch.Decimal}, "DECIMAL(5,2)", "NaN", ""},
		{batch.Column{Type: batch.String}, "VARCHAR(3) CHARACTER SET utf8mb4", "é😀xy", "é😀x"},
		{batch.Column{Type: batch.String}, "VARCHAR(9) CHARACTER SET latin1", "あ", ""},
		{batch.Column{Type: batch.Bytes}, "VARBINARY(2)", []byte("abc"), "ab"},
		{batch.Column{Type: batch.Date}, "DATE", int32(batch.InfinityDate), ""},
		{batch.Column{Type: batch.Date}, "DATE", date(-44, 3, 15), ""},
		{batch.Column{Type: batch.Time, Scale: 6}, "TIME(6)", int64(900 * 3600e6), ""},
		{batch.Column{Type: batch.DateTime, Scale: 6}, "DATETIME", civil(2026, 1, 1, 1, 1, 1, 5), ""},
		{batch.Column{Type: batch.Timestamp, Native: "timestamp"}, "TIMESTAMP", civilMicro(2050), ""},
		{batch.Column{Type: batch.Enum, Values: []string{"a", "b"}}, "ENUM('a')", "b", ""},
		{batch.Column{Type: batch.String}, "VARCHAR(9) CHARACTER SET utf8mb4", rowtest.Raw{Name: "utf8mb4", Data: []byte{0xff}}, ""},
		{batch.Column{Type: batch.JSON}, "JSON", duplicate, ""},
	} {
		if s.maria && c.value == duplicate {
			continue // its JSON is text
		}
		for _, policy := range []string{target.DeadLetter, target.Null, target.Truncate} {
			db := s.database(t)
			k := &batch.Schema{ID: 1, Table: "t", Key: []int{0}, Columns: []batch.Column{{Name: "id", Type: batch.Int32}, col(c.column)}}
			s.SQL("CREATE TABLE t (id INT PRIMARY KEY, c "+c.have+" NULL)", db)
			a := s.writer(t, db, func(cfg *Config) { cfg.OnUnfit = policy })
			claim(t, a, execution("a", 1))
			err := write(a, next(0, 1), insert(t, k, 1, c.value))
			// What the server alone can tell is refused under every policy.
			server := strings.Contains(c.have, "latin1")
			if _, raw := c.value.(rowtest.Raw); raw {
				server = true
			}
			switch {
			case policy == target.DeadLetter || server:
				if !errors.Is(err, &sdk.Fault{Code: sdk.CodeUnfit}) {
					t.Errorf("%s, %v into %s: got %v, want %s", policy, c.value, c.have, err, sdk.CodeUnfit)
				}
				expect(t, s, db, "SELECT COUNT(*) FROM t", "0")
			case err != nil:
				t.Errorf("%s, %v into %s: %v", policy, c.value, c.have, err)
			case policy == target.Truncate && c.cut != "":
				if got := s.rows(db, "SELECT c FROM t"); len(got) != 1 || got[0] != c.cut && got[0] != strings.Replace(c.cut, "e308", "e+308", 1) {
					t.Errorf("%s, %v into %s: got %v, want %s", policy, c.value, c.have, got, c.cut)
				}
			default:
				expect(t, s, db, "SELECT c IS NULL FROM t", "1")
			}
		}
	}
}

// unfitKey: a key that the target cannot hold names its record, whatever is done
// with it.
func unfitKey(t *testing.T, s *testServer) {
	db := s.database(t)
	k := &batch.Schema{ID: 1, Table: "t", Key: []int{0}, Columns: []batch.Column{{Name: "id", Type: batch.Int64}, {Name: "c", Type: batch.Int32, Flags: batch.Nullable}}}
	s.SQL("CREATE TABLE t (id TINYINT PRIMARY KEY, c INT)", db)
	a := s.writer(t, db, func(cfg *Config) { cfg.OnUnfit = target.DeadLetter })
	claim(t, a, execution("a", 1))
	rowtest.Must(t, write(a, next(0, 1), insert(t, k, 1, 1)))
	for _, c := range []sdk.Change{insert(t, k, 300, 1), remove(t, k, 300, 1), patch(t, sdk.Patch, k, rowtest.Vals(300, 1), rowtest.Vals(300, 2))} {
		if err := write(a, next(0, 2), remove(t, k, 1, 1), c); !errors.Is(err, &sdk.Fault{Code: sdk.CodeUnfit}) {
			t.Errorf("%s: got %v, want %s", c.Op, err, sdk.CodeUnfit)
		}
	}
	expect(t, s, db, "SELECT * FROM t", "1 1")
}

// collations: a column keeps the source's collation where the server has it; else
// it gets one that tells apart whatever differs.
func collations(t *testing.T, s *testServer) {
	db := s.database(t)
	a := s.writer(t, db, nil)
	claim(t, a, execution("a", 1))
	k := &batch.Schema{ID: 1, Table: "t", Key: []int{0}, Columns: []batch.Column{
		{Name: "id", Type: batch.String, Length: 20, Charset: "latin1", Collation: "latin1_swedish_ci"},
		{Name: "a", Type: batch.String, Length: 20, Collation: "utf8mb4_general_ci"},
		{Name: "b", Type: batch.String, Length: 20, Collation: "utf8mb4_of_nobody"},
		{Name: "c", Type: batch.String, Length: 20},
	}}
	cons, err := a.Prepare(bg, k)
	rowtest.Must(t, err)
	exact := "utf8mb4_0900_bin"
	if s.maria {
		exact = "utf8mb4_nopad_bin"
	}
	expect(t, s, db, "SELECT COLLATION_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 't' ORDER BY ORDINAL_POSITION",
		"latin1_swedish_ci", "utf8mb4_general_ci", exact, exact)
	if d := cmp.Diff([]int{0}, cons.Collated); d != "" {
		t.Error(d)
	}
	if cons.Unordered {
		t.Error("a key of the source's collation is said to be ordered otherwise")
	}
	rowtest.Must(t, write(a, next(0, 1), insert(t, k, "é", "1", "x", "x")))
	rowtest.Must(t, write(a, next(0, 2), insert(t, k, "É", "2", "x", "x")))
	expect(t, s, db, "SELECT id, a FROM t", "É 2")
}

func TestJSONExact(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{}`: true, `[1,2,3]`: true, `{"a":{"a":1},"b":[{"a":1},{"a":2}]}`: true, `{"a":1,"b":2,"a":3}`: false, `{"a":1,"\u0061":3}`: false,
		`[9223372036854775807,18446744073709551615,-9223372036854775808]`: true, `[18446744073709551616]`: false, `[-9223372036854775809]`: false,
		`[0.1,1e22,1.50]`: true, `[0.10000000000000000001]`: false, `[123456789012345678901234567890]`: false, `[-0]`: false,
		strings.Repeat("[", 101) + strings.Repeat("]", 101): false, strings.Repeat("[", 100) + strings.Repeat("]", 100): true, `"no object { in it"`: true,
	} {
		if got := jsonExact([]byte(text)); got != want {
			t.Errorf("%.60s: got %t, want %t", text, got, want)
		}
	}
}
