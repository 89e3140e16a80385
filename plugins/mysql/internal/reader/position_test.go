package reader

import (
	"testing"

	"github.com/datalink-go/datalink/sdk"
)

func TestPositions(t *testing.T) {
	r := &Reader{}
	parse := func(s string) sdk.Position {
		t.Helper()
		if s == "" {
			return sdk.Position{}
		}
		p, err := r.ParsePosition(s)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.FormatPosition(p); err != nil || got != s {
			t.Errorf("%s prints as %s, %v", s, got, err)
		}
		return p
	}
	for _, c := range []struct {
		a, b string
		want sdk.Order
	}{
		{"mysql-bin.000003:1234", "mysql-bin.000003:1234", sdk.Equal},
		{"mysql-bin.000003:1234", "mysql-bin.000003:1235", sdk.Before},
		{"mysql-bin.999999:1234", "mysql-bin.1000000:4", sdk.Before},
		{"mysql-bin.000003:4294967297", "mysql-bin.000003:4294967296", sdk.After},
		{"mysql-bin.000003:2147483649", "mysql-bin.000004:4", sdk.Before},
		{"mysql-bin.000003:4+2", "mysql-bin.000003:4", sdk.After},
		{"mysql-bin.000003:4+2", "mysql-bin.000003:5", sdk.Before},
		{"mysql-bin.000003:4@1.10", "mysql-bin.000003:4", sdk.Equal},
		{"mysql-bin.000003:4@1.10", "mysql-bin.000003:4@1.11", sdk.Incomparable},
		{"mysql-bin.000003:4@1.10", "mysql-bin.000004:4@1.11", sdk.Before},
		{"mysql-bin.000003:4", "other-bin.000003:4", sdk.Incomparable},
		{"", "mysql-bin.000003:4", sdk.Before},
		{"", "", sdk.Equal},
	} {
		a, b := parse(c.a), parse(c.b)
		if got, err := r.ComparePositions(a, b); got != c.want || err != nil {
			t.Errorf("%q and %q: %v %v, want %v", c.a, c.b, got, err, c.want)
		}
		back := map[sdk.Order]sdk.Order{sdk.Before: sdk.After, sdk.After: sdk.Before}
		want := c.want
		if w, ok := back[c.want]; ok {
			want = w
		}
		if got, _ := r.ComparePositions(b, a); got != want {
			t.Errorf("%q and %q: %v, want %v", c.b, c.a, got, want)
		}
		low, err := r.IntersectPositions(a, b)
		if (err != nil) != (c.want == sdk.Incomparable) {
			t.Errorf("intersection of %q and %q: %v", c.a, c.b, err)
		}
		if err == nil {
			if o, _ := r.ComparePositions(low, a); o == sdk.After {
				t.Errorf("intersection of %q and %q is above the first", c.a, c.b)
			}
		}
	}
	for _, s := range []string{"", "mysql-bin.000003", "mysql-bin.000003:", "mysql-bin.000003:-1", "/var/lib/mysql/bin.000001:4", "a.000001:4+", "a.000001:4@1"} {
		if p, err := r.ParsePosition(s); err == nil {
			t.Errorf("%q is taken for %s", s, p.Source)
		}
	}
	if _, err := r.FormatPosition(sdk.Position{Format: "lsn", Version: 1, Source: []byte("x:1")}); err == nil {
		t.Error("a position of another reader is printed")
	}
}
