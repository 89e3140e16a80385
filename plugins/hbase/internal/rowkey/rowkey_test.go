package rowkey

import (
	"bytes"
	"cmp"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/sdk/batch"
)

// keyOf returns the values of a key, through a block as writers get them.
func keyOf(t testing.TB, s *batch.Schema, put func(b *batch.Builder)) []batch.Value {
	t.Helper()
	b := batch.NewBuilder(batch.Limits{})
	if err := b.BeginTx(batch.Tx{Begins: true}); err != nil {
		t.Fatal(err)
	}
	if err := b.BeginRow(batch.Insert, s); err != nil {
		t.Fatal(err)
	}
	b.BeginImage(batch.AfterImage)
	put(b)
	b.EndImage()
	if err := b.EndRow(); err != nil {
		t.Fatal(err)
	}
	if err := b.EndTx(true, nil, nil); err != nil {
		t.Fatal(err)
	}
	data, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	var blk batch.Block
	if err := blk.Decode(bytes.Clone(data), batch.NewRegistry(), batch.Limits{}); err != nil {
		t.Fatal(err)
	}
	var ev batch.Event
	if err := blk.Event(0, &ev); err != nil {
		t.Fatal(err)
	}
	v, err := s.KeyValues(ev.Key)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func schemaOf(cols ...batch.Column) *batch.Schema {
	s := &batch.Schema{ID: 1, Table: "t", Columns: cols, PrimaryKey: true}
	for i := range cols {
		s.Key = append(s.Key, i)
	}
	return s
}

// B137: parts that hold the separator, or end where another begins, stay apart.
func TestDifferentValuesGiveDifferentKeys(t *testing.T) {
	s := schemaOf(batch.Column{Name: "a", Type: batch.String}, batch.Column{Name: "b", Type: batch.String})
	pieces := []string{"", "a", "b", "|", "\\", "\x00", "\x01", "\xff"}
	var words []string
	for _, x := range pieces {
		for _, y := range pieces {
			for _, z := range pieces {
				words = append(words, x+y+z)
			}
		}
	}
	for _, spec := range []string{"{a}{b}", "{a:text}|{b:text}", "{a:text}{b:text}", "{hash:4}{a:text}|x{b}", "{salt:16}{a}|{b:text}", "{b}{a}"} {
		tpl, err := Parse(spec, s)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		seen := map[string][2]string{}
		for range 20000 {
			v := [2]string{words[rng.IntN(len(words))], words[rng.IntN(len(words))]}
			key, err := tpl.Encode(nil, values(v[0], v[1]))
			if err != nil {
				continue // an empty key is refused
			}
			if old, ok := seen[string(key)]; ok && old != v {
				t.Fatalf("%s: %q and %q both give %q", spec, old, v, key)
			}
			seen[string(key)] = v
			parts, err := tpl.Decode(key)
			if err != nil {
				t.Fatalf("%s: %q: %v", spec, v, err)
			}
			for _, p := range parts {
				if string(p.Data) != v[p.Column] {
					t.Fatalf("%s: %q decodes as %+v", spec, v, parts)
				}
			}
		}
	}
}

// values makes text values without going through a block.
func values(words ...string) []batch.Value {
	s := schemaOf()
	data := []byte{0}
	for _, w := range words {
		s.Columns = append(s.Columns, batch.Column{Name: w, Type: batch.String})
		data = append(append(data, byte(len(w))), w...)
	}
	v, err := batch.NewImage(s, data).Values(nil)
	if err != nil {
		panic(err)
	}
	return v
}

func TestOrder(t *testing.T) {
	for typ, nums := range map[batch.Type][]float64{
		batch.Int8: {-128, -1, 0, 1, 127}, batch.Int16: {-32768, -1, 0, 300}, batch.Int32: {math.MinInt32, -5, 0, 7}, batch.Int64: {-1 << 53, -1, 0, 1 << 40},
		batch.Float32: {-1e30, -1.5, 0, 1e-30, 2}, batch.Float64: {math.Inf(-1), -1e300, -1, 0, 1e-300, math.Inf(1)},
		batch.Decimal: {-1000, -100.5, -99, -0.01, -0.001, 0, 0.001, 0.01, 1, 1.5, 10, 99, 100.25},
	} {
		s := schemaOf(batch.Column{Name: "a", Type: typ, Scale: 3})
		tpl, err := Parse(Default(s), s)
		if err != nil {
			t.Fatal(err)
		}
		var last []byte
		for i, n := range nums {
			v := keyOf(t, s, func(b *batch.Builder) {
				switch typ {
				case batch.Decimal:
					b.PutString(strings.TrimRight(strings.TrimRight(formatFloat(n), "0"), "."))
				case batch.Float32, batch.Float64:
					b.PutFloat(n)
				default:
					b.PutInt(int64(n))
				}
			})
			key, err := tpl.Encode(nil, v)
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 && bytes.Compare(last, key) >= 0 {
				t.Errorf("%s: key of %g, % x, is not above % x", typ, n, key, last)
			}
			last = key
			parts, err := tpl.Decode(key)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case typ == batch.Decimal:
				if cmp.Compare(len(parts[0].Data), 0) == 0 {
					t.Errorf("decimal %g: %q", n, parts[0].Data)
				}
			case typ == batch.Float32 || typ == batch.Float64:
				if got := math.Float64frombits(parts[0].Bits); float32(got) != float32(n) {
					t.Errorf("%s: %g came back as %g", typ, n, got)
				}
			default:
				if int64(parts[0].Bits) != int64(n) {
					t.Errorf("%s: %g came back as %d", typ, n, int64(parts[0].Bits))
				}
			}
		}
	}
}

func formatFloat(f float64) string {
	text, _ := batch.AppendText(nil, &batch.Column{Type: batch.Float64}, floatValue(f))
	s := string(text)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func floatValue(f float64) *batch.Value {
	data := []byte{0}
	for i := range 8 {
		data = append(data, byte(math.Float64bits(f)>>(8*i)))
	}
	v, err := batch.NewImage(&batch.Schema{Columns: []batch.Column{{Name: "f", Type: batch.Float64}}}, data).Values(nil)
	if err != nil {
		panic(err)
	}
	return &v[0]
}

func TestDecimalsComeBack(t *testing.T) {
	for _, tt := range []struct {
		in    string
		scale int
		want  string
	}{
		{"0", 0, "0"},
		{"0.00", 2, "0.00"},
		{"-12.50", 2, "-12.50"},
		{"100", 0, "100"},
		{"0.001", 3, "0.001"},
		{"-1000000", 0, "-1000000"},
		{"NaN", 2, "NaN"},
		{"-Infinity", 0, "-Infinity"},
		{"99999999999999999999999999999.123", 3, "99999999999999999999999999999.123"},
	} {
		got, rest, err := cutDecimal(append(appendDecimal(nil, []byte(tt.in)), 'x'), tt.scale)
		if got != tt.want || string(rest) != "x" || err != nil {
			t.Errorf("%s: got %q, rest %q, %v", tt.in, got, rest, err)
		}
	}
}

func TestTemplatesThatCannotWork(t *testing.T) {
	s := schemaOf(batch.Column{Name: "a", Type: batch.String}, batch.Column{Name: "b", Type: batch.Int32})
	s.Columns = append(s.Columns, batch.Column{Name: "c", Type: batch.String})
	for spec, want := range map[string]string{
		"{a}": "missing", "{a}{b}{c}": "no column of the key", "{a}{b}{a}": "twice", "{a}{salt:3}{b}": "first", "{salt:0}{a}{b}": "want", "{a:x}{b}": "want",
		"{a": "not closed", "{a:reverse}{b}": "reverse",
	} {
		if _, err := Parse(spec, s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", spec, err, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	s := schemaOf(batch.Column{Name: "a", Type: batch.String}, batch.Column{Name: "b", Type: batch.Decimal}, batch.Column{Name: "c", Type: batch.Int64})
	var tpls []*Template
	for _, spec := range []string{"{a}{b}{c}", "{hash:2}{a:text}|{b:text}-{c}", "{c:reverse}{b}{a}"} {
		tpl, err := Parse(spec, s)
		if err != nil {
			f.Fatal(err)
		}
		tpls = append(tpls, tpl)
	}
	f.Add([]byte("a\x00\x01\x02\x80\x00\x00\x00\x00\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, row []byte) {
		for _, tpl := range tpls {
			_, _ = tpl.Decode(row)
		}
	})
}
