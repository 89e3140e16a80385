package gtid

import (
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	"pgregory.net/rapid"
)

const (
	a = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	b = "4e11fa47-71ca-11e1-9e33-c80aa9429562"
)

func set(tb rapid.TB, text string) Set {
	s, err := ParseSet(text)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestSetText(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{a + ":5", a + ":5"},
		{" " + b + ":1-3:5 ,\n" + a + ":1", a + ":1," + b + ":1-3:5"},
		{a + ":1-3:4:7-9:6", a + ":1-4:6-9"},
		{a + ":1-102:105-150", a + ":1-102:105-150"},
		{a + ":Tag_1:1-3:5:other:7," + a + ":9", a + ":9:other:7:tag_1:1-3:5"},
		{"3E11FA4771CA11E19E33C80AA9429562:9223372036854775806", a + ":9223372036854775806"},
	} {
		if got := set(t, c.in).String(); got != c.want {
			t.Errorf("%q: got %q, want %q", c.in, got, c.want)
		}
	}
	for _, bad := range []string{"x", a, a + ":", a + ":0", a + ":3-1", a + ":tag", a + ":1-x", "3e11fa47:1"} {
		if s, err := ParseSet(bad); err == nil {
			t.Errorf("%q was taken as %q", bad, s)
		}
	}
}

// TestSetAlgebra compares with sets of single transactions, and the wire form with
// that of go-mysql.
func TestSetAlgebra(t *testing.T) {
	sources := []Source{{UUID: [16]byte{1}}, {UUID: [16]byte{1}, Tag: "x"}, {UUID: [16]byte{2}}}
	type one struct {
		src int
		n   int64
	}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) (Set, map[one]bool) {
			var s Set
			m := map[one]bool{}
			for range rapid.IntRange(0, 20).Draw(t, name) {
				src, from := rapid.IntRange(0, 2).Draw(t, "source"), int64(rapid.IntRange(1, 20).Draw(t, "from"))
				to := from + int64(rapid.IntRange(0, 4).Draw(t, "more"))
				s.AddInterval(sources[src], Interval{from, to})
				for n := from; n <= to; n++ {
					m[one{src, n}] = true
				}
			}
			return s, m
		}
		same := func(what string, s Set, in func(one) bool) {
			count := int64(0)
			for src := range sources {
				for n := int64(1); n < 30; n++ {
					want := in(one{src, n})
					if want {
						count++
					}
					if got := s.Contains(sources[src], n); got != want {
						t.Fatalf("%s %s: %v:%d is in: %v, want %v", what, s, sources[src], n, got, want)
					}
				}
			}
			if s.Count() != count {
				t.Fatalf("%s %s: count %d, want %d", what, s, s.Count(), count)
			}
			if again := set(t, s.String()); again.String() != s.String() || !again.Equal(&s) {
				t.Fatalf("%s: %s comes back as %s", what, s, again)
			}
		}
		x, mx := draw("x")
		y, my := draw("y")
		same("x", x, func(o one) bool { return mx[o] })
		same("union", x.Union(&y), func(o one) bool { return mx[o] || my[o] })
		same("intersection", x.Intersect(&y), func(o one) bool { return mx[o] && my[o] })
		same("difference", x.Subtract(&y), func(o one) bool { return mx[o] && !my[o] })
		within := true
		for o := range mx {
			within = within && my[o]
		}
		if got := x.Within(&y); got != within {
			t.Fatalf("%s within %s: %v, want %v", x, y, got, within)
		}
		wire := x.AppendWire(nil)
		if again, err := ParseWire(wire); err != nil || !again.Equal(&x) {
			t.Fatalf("%s comes back as %s, %v", x, again, err)
		}
		if !x.IsEmpty() {
			theirs, err := mysql.DecodeMysqlGTIDSet(wire)
			if err != nil {
				t.Fatal(err)
			}
			if got := set(t, theirs.String()); !got.Equal(&x) {
				t.Fatalf("go-mysql reads %s as %s", x, theirs)
			}
		}
	})
}

func TestDomains(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"1-2-7, 0-1-100", "0-1-100,1-2-7"},
		{"1-23-5,1-321-9,0-1073719201-4", "0-1073719201-4,1-321-9"},
		{"4294967295-4294967295-18446744073709551615", "4294967295-4294967295-18446744073709551615"},
	} {
		d, err := ParseDomains(c.in)
		if err != nil || d.String() != c.want {
			t.Errorf("%q: got %q, %v, want %q", c.in, d, err, c.want)
		}
	}
	for _, bad := range []string{"x", "0-1", "0-1-2-3", "-1-1-1", "4294967296-1-1"} {
		if d, err := ParseDomains(bad); err == nil {
			t.Errorf("%q was taken as %q", bad, d)
		}
	}
	x, _ := ParseDomains("0-1-100,1-1-5,2-1-1")
	y, _ := ParseDomains("0-2-90,1-3-8")
	for _, c := range []struct{ what, got, want string }{
		{"union", x.Union(&y).String(), "0-1-100,1-3-8,2-1-1"},
		{"intersection", x.Intersect(&y).String(), "0-2-90,1-1-5"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %s, want %s", c.what, c.got, c.want)
		}
	}
	if d := x.Subtract(&y); len(d) != 2 || d[0].Domain != 0 || d[1].Domain != 2 {
		t.Errorf("difference %v", d)
	}
	low, _ := ParseDomains("0-2-90,1-1-5")
	if x.Within(&y) || !low.Within(&x) || !low.Within(&y) {
		t.Error("within")
	}
	fork, _ := ParseDomains("0-9-100")
	if fork.Within(&x) {
		t.Error("the same number of another server is the same transaction")
	}
	if x.Contains(GTID{0, 1, 101}) || !x.Contains(GTID{0, 7, 50}) || x.Contains(GTID{3, 1, 1}) {
		t.Error("contains")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(a + ":1-3:5:tag:1")
	f.Add("0-1-100,1-2-7")
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := ParseSet(text); err == nil {
			if again, err := ParseSet(s.String()); err != nil || !again.Equal(&s) {
				t.Errorf("%q: %s comes back as %s, %v", text, s, again, err)
			}
		}
		if d, err := ParseDomains(text); err == nil {
			if again, err := ParseDomains(d.String()); err != nil || !again.Equal(&d) {
				t.Errorf("%q: %s comes back as %s, %v", text, d, again, err)
			}
		}
		_, _ = ParseWire([]byte(text))
	})
}
