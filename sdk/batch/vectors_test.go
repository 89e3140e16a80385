package batch

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the test vectors")

const vectorDir = "testdata/vectors"

// vector is one block of the test vectors. All of them are one stream: ids of
// schemas do not repeat, and a later block uses schemas of an earlier one.
type vector struct {
	name  string
	build func(t *testing.T, b *Builder)
}

// row is a shorthand: one image each, nil = none.
func addRow(t *testing.T, b *Builder, k Kind, s *Schema, before, after func()) {
	t.Helper()
	check(t, b.BeginRow(k, s))
	for side, put := range []func(){before, after} {
		if put != nil {
			b.BeginImage(Side(side))
			put()
			b.EndImage()
		}
	}
	check(t, b.EndRow())
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// typesSchema has one column of each type.
func typesSchema() *Schema {
	s := &Schema{ID: 1, Version: 1, Source: "vectors", Namespace: "all", Table: "types", PrimaryKey: true, Key: []int{4}}
	for typ := Bool; typ < typeEnd; typ++ {
		c := Column{Name: "c_" + typ.String(), Type: typ, Native: "native " + typ.String()}
		if typ != Int64 {
			c.Flags = Nullable
		}
		switch typ {
		case Array:
			c.Elem = Int32
		case Native:
			c.Flags |= TextValue
		case Decimal:
			c.Precision, c.Scale = 30, 10
		case Enum, Set:
			c.Values = []string{"small", "größer"}
		case Bit:
			c.Length = 12
		case Geometry:
			c.SRID = 4326
		}
		s.Columns = append(s.Columns, c)
	}
	return s
}

var le = binary.LittleEndian

// putTypes writes one value of each type: which says which of its values.
func putTypes(b *Builder, s *Schema, which int) {
	ints := map[Type][3]int64{
		Bool: {0, 1, 1}, Int8: {math.MinInt8, 0, math.MaxInt8}, Int16: {math.MinInt16, -1, math.MaxInt16}, Int32: {math.MinInt32, 7, math.MaxInt32},
		Int64: {math.MinInt64, 5, math.MaxInt64}, Uint8: {0, 200, math.MaxUint8}, Uint16: {0, 40000, math.MaxUint16}, Uint32: {0, 3e9, math.MaxUint32},
		Date:     {int64(PackDate(2026, 11, 30)), int64(InfinityDate), int64(PackDate(-44, 3, 15))},
		Time:     {-(838*3600 + 59*60 + 59) * 1e6, 1, 86400e6},
		DateTime: {0, NegInfDateTime, Civil{9999, 12, 31, 23, 59, 59, 999999}.Pack()}, Timestamp: {ZeroTimestamp, -1, InfinityTimestamp},
		Year: {0, 1901, 2155},
	}
	floats := [3]float64{math.Inf(-1), math.NaN(), 0.1}
	vars := map[Type][3]string{
		Decimal: {"-12345678901234567890.0123456789", "NaN", "Infinity"}, String: {"", "größer 東京 🚀", string(bytes.Repeat([]byte("x"), 200))},
		Bytes: {"", "\x00\xff\x80", string(bytes.Repeat([]byte{1, 2}, 70))}, Bit: {"\x0f\xff", "\x00\x00", "\x08\x01"},
		JSON: {`{"a": 1.0}`, `null`, `[]`}, Enum: {"small", "größer", ""}, Set: {"", "small,größer", "small"},
		Geometry: {geometry(0, "\x01\x01\x00\x00\x00"), geometry(4326, "wkb"), geometry(1, "")},
		UUID:     {"0123456789abcdef", string(make([]byte, 16)), "fedcba9876543210"},
		Array: {
			string(AppendArray(nil, nil, nil)),
			string(AppendArray(nil, []Dim{{3, 1}}, [][]byte{le.AppendUint32(nil, 1), nil, le.AppendUint32(nil, math.MaxUint32)})),
			string(AppendArray(nil, []Dim{{2, -1}, {1, 0}}, [][]byte{le.AppendUint32(nil, 8), le.AppendUint32(nil, 9)})),
		},
		Map:    {string(AppendMap(nil, nil)), string(AppendMap(nil, []Pair{{[]byte("a"), []byte("ä")}, {[]byte(""), nil}})), string(AppendMap(nil, []Pair{{[]byte("k"), []byte{}}}))},
		Vector: {"", string(le.AppendUint32(le.AppendUint32(nil, math.Float32bits(0.5)), math.Float32bits(-2))), string(le.AppendUint32(nil, 0x7fc00001))},
		Inet:   {"192.0.2.1", "2001:db8::1/64", "::"}, Native: {"(1,2)", "", "ü"},
		Interval: {interval(1, -2, 3), interval(-1200, 0, math.MinInt64), interval(0, 0, 0)},
		TimeTZ:   {timeTZ(86399999999, -43200), timeTZ(0, 3600), timeTZ(1, 0)},
	}
	for i := range s.Columns {
		switch typ := s.Columns[i].Type; typ {
		case Uint64:
			b.PutUint([3]uint64{0, 1 << 63, math.MaxUint64}[which])
		case Float32, Float64:
			b.PutFloat(floats[which])
		default:
			if v, ok := ints[typ]; ok {
				b.PutInt(v[which])
			} else {
				b.PutString(vars[typ][which])
			}
		}
	}
}

func geometry(srid uint32, wkb string) string {
	return string(append(le.AppendUint32(nil, srid), wkb...))
}

func interval(months, days int32, micros int64) string {
	return string(le.AppendUint64(le.AppendUint32(le.AppendUint32(nil, uint32(months)), uint32(days)), uint64(micros)))
}

func timeTZ(micros int64, offset int32) string {
	return string(le.AppendUint32(le.AppendUint64(nil, uint64(micros)), uint32(offset)))
}

// wideSchema has more columns than one byte of a bitmap, and a key of two types.
func wideSchema() *Schema {
	s := &Schema{ID: 2, Version: 9, Namespace: "shop", Table: "wide", PrimaryKey: true, Key: []int{9, 0}}
	for i := range 11 {
		s.Columns = append(s.Columns, Column{Name: string(rune('a' + i)), Type: String, Flags: Nullable})
	}
	s.Columns[0].Type, s.Columns[0].Flags = Uint16, 0
	s.Columns[9].Flags = 0
	return s
}

func fullSchema() *Schema {
	return &Schema{
		ID: 70000, Version: 1 << 40, Source: "7f3c-source", Namespace: "größe", Table: "ta.ble", PrimaryKey: true, Key: []int{2, 0},
		Columns: []Column{
			{
				Name: "id", Type: Decimal, Native: "decimal(65,30)", Length: 65, Precision: 65, Scale: 30, Default: "0.0",
				Flags: AutoIncrement,
			},
			{Name: "label", Type: Enum, Native: "enum", Charset: "latin1", Collation: "latin1_swedish_ci", Values: []string{"", "a,b", "ü"}, Flags: Nullable | Hidden},
			{Name: "where", Type: Geometry, Native: "point", SRID: math.MaxUint32, Flags: Generated | Virtual},
			{Name: "tags", Type: Array, Elem: Native, Native: "text[]", Flags: TextValue},
		},
		Uniques:     []Index{{Name: "u1", Columns: []int{1}}, {Name: "", Columns: []int{3, 1, 0}}},
		ForeignKeys: []ForeignKey{{Name: "fk", Columns: []int{0, 1}, RefSchema: "other", RefTable: "t", RefColumns: []string{"x", "y"}, OnDelete: "CASCADE", OnUpdate: "SET NULL"}},
	}
}

func vectors() []vector {
	types, wide, full := typesSchema(), wideSchema(), fullSchema()
	keyless := &Schema{ID: 3, Table: "log", Positional: true, Columns: []Column{{Name: "@1", Type: Int32}, {Name: "@2", Type: Native, Native: "txid"}}}
	civil := &Schema{ID: 4, Table: "civil", Columns: []Column{{Name: "d", Type: Date}, {Name: "dt", Type: DateTime, Scale: 6}}}
	begin := func(t *testing.T, b *Builder, tx Tx) { t.Helper(); check(t, b.BeginTx(tx)) }
	end := func(t *testing.T, b *Builder) { t.Helper(); check(t, b.EndTx(true, nil, []byte("end"))) }
	texts := func(b *Builder, v ...string) {
		for _, s := range v {
			b.PutString(s)
		}
	}
	return []vector{
		{"empty", func(*testing.T, *Builder) {}},
		{"types", func(t *testing.T, b *Builder) {
			begin(t, b, Tx{Begins: true})
			for which := range 3 {
				addRow(t, b, Insert, types, nil, func() { putTypes(b, types, which) })
			}
			addRow(t, b, Read, types, nil, func() {
				for i := range types.Columns {
					if types.Columns[i].Type == Int64 {
						b.PutInt(0)
					} else {
						b.PutNull()
					}
				}
			})
			end(t, b)
		}},
		{"civil", func(t *testing.T, b *Builder) {
			begin(t, b, Tx{Begins: true})
			for _, c := range []Civil{
				{},
				{2026, 11, 5, 13, 7, 9, 123456},
				{2026, 0, 10, 0, 0, 0, 0},
				{1582, 10, 15, 22, 58, 1, 999998},
				{-4712, 1, 1, 12, 0, 0, 1},
				{131071, 9, 30, 1, 2, 3, 4},
			} {
				addRow(t, b, Insert, civil, nil, func() {
					b.PutInt(int64(PackDate(c.Year, c.Month, c.Day)))
					b.PutInt(c.Pack())
				})
			}
			for _, v := range [][2]int64{{int64(NegInfDate), NegInfDateTime}, {int64(InfinityDate), InfinityDateTime}} {
				addRow(t, b, Insert, civil, nil, func() { b.PutInt(v[0]); b.PutInt(v[1]) })
			}
			end(t, b)
		}},
		{"images", func(t *testing.T, b *Builder) {
			begin(t, b, Tx{Begins: true})
			// Every state, with values before and behind the place of each bitmap.
			addRow(t, b, Update, wide, func() {
				b.PutInt(1)
				texts(b, "b", "c")
				b.PutAbsent()
				b.PutNull()
				texts(b, "f", "g", "h")
				b.PutRaw("latin1", []byte{0xe4, 0xff})
				texts(b, "key")
				b.PutAbsent()
			}, func() {
				b.PutInt(65535)
				b.PutUnchanged()
				b.PutNull()
				b.PutRaw("", nil)
				b.PutAbsent()
				texts(b, "", "g")
				b.PutUnchanged()
				b.PutNull()
				texts(b, "other key", "k")
			})
			// The key column is not in the after image.
			addRow(t, b, Update, wide, func() {
				b.PutInt(2)
				for range 8 {
					b.PutAbsent()
				}
				texts(b, "key")
				b.PutAbsent()
			}, func() {
				for range 10 {
					b.PutAbsent()
				}
				texts(b, "new")
			})
			// An update without a before image, an unchanged key, a raw key.
			addRow(t, b, Update, wide, nil, func() { b.PutInt(3); texts(b, "b", "c", "d", "e", "f", "g", "h", "i", "j", "k") })
			addRow(t, b, Delete, wide, func() {
				b.PutInt(4)
				for range 8 {
					b.PutNull()
				}
				b.PutRaw("utf8mb4", []byte{0xc3})
				b.PutNull()
			}, nil)
			addRow(t, b, Insert, keyless, nil, func() { b.PutInt(-1); b.PutBytes([]byte{0, 1}) })
			addRow(t, b, Delete, keyless, func() { b.PutInt(-1); b.PutBytes([]byte{0, 1}) }, nil)
			addRow(t, b, Insert, keyless, nil, func() { b.PutRaw("varchar", []byte("12")); b.PutBytes(nil) })
			end(t, b)
		}},
		{"kinds", func(t *testing.T, b *Builder) {
			begin(t, b, Tx{Begins: true})
			check(t, b.Truncate(wide))
			check(t, b.Heartbeat(-5))
			check(t, b.Origin("0190-task"))
			check(t, b.StateItem(&StateItem{Key: "schema/shop.wide", Version: 300, Value: []byte{1, 2}}))
			check(t, b.StateItem(&StateItem{Key: "chunk", Version: 1, Deleted: true}))
			check(t, b.KeyRange(wide, &KeyRange{Hi: []byte("\x01k\x05\x00"), Low: []byte("p1"), High: []byte("p2"), Keys: [][]byte{{1}, {}}, Kept: [][]byte{{2, 3}}}))
			check(t, b.KeyRange(keyless, &KeyRange{Last: true}))
			for k := DDLCreateTable; k <= DDLOther; k++ {
				c := &Change{Kind: k, Namespace: "shop", Table: "t", Statement: "ALTER …", Default: "shop"}
				switch k {
				case DDLCreateTable:
					c.Schema = full
				case DDLRenameTable:
					c.OldName = "old"
				case DDLAddColumn, DDLChangeColumn, DDLRenameColumn:
					c.Column, c.After, c.OldName = &full.Columns[1], "\x00", "was"
				case DDLDropColumn:
					c.Column = &Column{Name: "gone", Type: Native}
				case DDLAddIndex, DDLDropIndex:
					c.Index = &Index{Name: "u", Columns: []int{2, 0}}
				}
				check(t, b.Change(c))
			}
			end(t, b)
		}},
		{"schemas", func(t *testing.T, b *Builder) {
			check(t, b.Define(full))
			check(t, b.Define(&Schema{ID: math.MaxUint32, Table: "nothing"}))
		}},
		{"transactions", func(t *testing.T, b *Builder) {
			log := func(v int64) { addRow(t, b, Insert, keyless, nil, func() { b.PutInt(v); b.PutBytes(nil) }) }
			begin(t, b, Tx{Begins: true, ID: "uuid:1", Committed: 1796040000000000, Covers: []Cover{{Point: 0}, {Point: 300, Upto: 1 << 33}}})
			log(1)
			log(2)
			check(t, b.EndTx(true, nil, []byte("after 1")))
			begin(t, b, Tx{Begins: true, ID: "empty"})
			check(t, b.EndTx(true, []byte("before 2"), []byte("after 2")))
			begin(t, b, Tx{Begins: true, ID: "not a resume point", Committed: -1})
			log(3)
			check(t, b.EndTx(true, nil, nil))
			begin(t, b, Tx{Begins: true, ID: "large"})
			log(4)
			log(5)
			check(t, b.EndTx(false, []byte("before large"), nil))
		}},
		{"continued", func(t *testing.T, b *Builder) {
			// No schema is defined here: the stream has it.
			begin(t, b, Tx{Ordinal: 2, ID: "large"})
			addRow(t, b, Insert, keyless, nil, func() { b.PutInt(6); b.PutBytes(nil) })
			check(t, b.EndTx(false, []byte("before large"), nil))
			begin(t, b, Tx{Ordinal: 3, ID: "large"})
			b.SetOrdinal(200)
			addRow(t, b, Insert, keyless, nil, func() { b.PutInt(7); b.PutBytes(nil) })
			b.HoldOrdinal(300)
			addRow(t, b, Insert, keyless, nil, func() { b.PutInt(8); b.PutBytes(nil) })
			addRow(t, b, Insert, keyless, nil, func() { b.PutInt(9); b.PutBytes(nil) })
			check(t, b.EndTx(true, []byte("before large"), []byte("after large")))
		}},
	}
}

// TestVectors builds each vector, compares it with the file, and what it decodes
// to with the JSON beside it.
func TestVectors(t *testing.T) {
	b, reg := NewBuilder(Limits{}), NewRegistry()
	for _, v := range vectors() {
		b.Reset()
		v.build(t, b)
		data, err := b.Finish()
		check(t, err)
		var blk Block
		check(t, blk.Decode(data, reg, Limits{}))
		d, err := renderBlock(&blk)
		check(t, err)
		text, err := json.MarshalIndent(d, "", "  ")
		check(t, err)
		golden(t, v.name+".bin", data)
		golden(t, v.name+".json", append(text, '\n'))
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join(vectorDir, name)
	if *update {
		check(t, os.MkdirAll(vectorDir, 0o755))
		check(t, os.WriteFile(file, got, 0o644))
	}
	want, err := os.ReadFile(file)
	check(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the code writes (rewrite with -update):\n%s", file, cmp.Diff(string(want), string(got)))
	}
}

// bad returns blocks that every decoder must refuse, made from a good one.
func bad(t *testing.T) map[string][]byte {
	t.Helper()
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(vectorDir, name+".bin"))
		check(t, err)
		return data
	}
	change := func(name string, at int, v ...byte) []byte {
		data := read(name)
		copy(data[at:], v)
		return data
	}
	images := read("images")
	return map[string][]byte{
		"bad-magic":      change("types", 3, 9),
		"bad-length":     append(read("types"), 0),
		"bad-cut":        read("types")[:300],
		"bad-reserved":   change("types", 35, 1),
		"bad-kind":       change("images", 40, 99),
		"bad-flags":      change("images", 41, 0xff),
		"bad-schema":     change("images", 42, 99),
		"bad-image":      change("images", 44, 0xff, 0xff, 0xff, 0x7f),
		"bad-two-states": change("images", 51, 0x18),
		"bad-bits":       change("images", 50, images[50]|0x80),
		"bad-events":     change("images", int(le.Uint32(images[16:]))+2, 6),
		"bad-count":      change("images", 8, 6),
	}
}

func TestBadVectors(t *testing.T) {
	for name, data := range bad(t) {
		golden(t, name+".bin", data)
		reg := NewRegistry()
		for _, s := range []*Schema{typesSchema(), wideSchema()} {
			check(t, reg.Add(s))
		}
		var blk Block
		err := blk.Decode(data, reg, Limits{})
		if err == nil {
			_, err = renderBlock(&blk)
		}
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnknownSchema) {
			t.Errorf("%s: got %v, want ErrCorrupt", name, err)
		}
	}
}

// TestAnotherLanguage has the decoder in Python, written from the protocol page,
// read all vectors.
func TestAnotherLanguage(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("REQUIRE_STACK") == "1" {
			t.Fatal("python3 is not there and REQUIRE_STACK=1")
		}
		t.Skip("python3 is not there")
	}
	// Read here, so that a cached result of this test does not outlive the script.
	_, err = os.ReadFile("testdata/decode.py")
	check(t, err)
	args := []string{"testdata/decode.py"}
	var names []string
	for _, v := range vectors() {
		names = append(names, v.name)
		args = append(args, filepath.Join(vectorDir, v.name+".bin"))
	}
	cmd := exec.Command(python, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	check(t, err)
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if len(lines) != len(names) {
		t.Fatalf("%d lines for %d vectors", len(lines), len(names))
	}
	for i, line := range lines {
		want, err := os.ReadFile(filepath.Join(vectorDir, names[i]+".json"))
		check(t, err)
		if d := cmp.Diff(parseJSON(t, want), parseJSON(t, line)); d != "" {
			t.Errorf("%s (-Go +Python)\n%s", names[i], d)
		}
	}
	var bads []string
	for name := range bad(t) {
		bads = append(bads, filepath.Join(vectorDir, name+".bin"))
	}
	slices.Sort(bads)
	for _, file := range bads {
		// The good ones come first: the bad one uses their schemas.
		cmd := exec.Command(python, "testdata/decode.py", filepath.Join(vectorDir, "types.bin"), filepath.Join(vectorDir, "images.bin"), file)
		if out, err := cmd.CombinedOutput(); err == nil || !bytes.Contains(out, []byte("corrupt: ")) {
			t.Errorf("Python takes %s: %v", file, err)
		}
	}
}

func parseJSON(t *testing.T, data []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	check(t, d.Decode(&v))
	return v
}
