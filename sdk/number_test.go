package sdk

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/sdk/batch"
)

var lines = Numbers{Format: "test-lines", Unit: "line"}

func TestNumbersText(t *testing.T) {
	for _, test := range []struct{ in, out string }{
		{"line 0", "line 0"},
		{"17", "line 17"},
		{" line 17 ", "line 17"},
		{"line 17+3", "line 17+3"},
		{"line17", "line 17"},
		{"18446744073709551615", "line 18446744073709551615"},
	} {
		p, err := lines.ParsePosition(test.in)
		if err != nil {
			t.Errorf("ParsePosition(%q): %v", test.in, err)
			continue
		}
		if got, err := lines.FormatPosition(p); err != nil || got != test.out {
			t.Errorf("FormatPosition of %q: got %q, %v, want %q", test.in, got, err, test.out)
		}
	}
	for _, in := range []string{"", "line", "lime 3", "-1", "3+", "3+x", "18446744073709551616"} {
		if p, err := lines.ParsePosition(in); AsFault(err) == nil || AsFault(err).Code != CodeInvalidPosition {
			t.Errorf("ParsePosition(%q): got %v, %v, want %s", in, p, err, CodeInvalidPosition)
		}
	}
	if got, _ := (Numbers{Format: "x"}).FormatPosition(Position{}); got != "0" {
		t.Errorf("without a unit: got %q, want 0", got)
	}
}

func TestNumbersOrder(t *testing.T) {
	at := func(text string) Position {
		p, err := lines.ParsePosition(text)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, test := range []struct {
		a, b string
		want Order
		low  string
	}{
		{"9", "10", Before, "9"},
		{"10", "9", After, "9"},
		{"10", "10", Equal, "10"},
		{"9+1", "9", After, "9"},
		{"9+1", "9+2", Before, "9+1"},
		{"9+7", "10", Before, "9+7"},
	} {
		got, err := lines.ComparePositions(at(test.a), at(test.b))
		if err != nil || got != test.want {
			t.Errorf("Compare(%s, %s) = %v, %v, want %v", test.a, test.b, got, err, test.want)
		}
		low, err := lines.IntersectPositions(at(test.a), at(test.b))
		if diff := cmp.Diff(at(test.low), low); diff != "" || err != nil {
			t.Errorf("Intersect(%s, %s): %v %s", test.a, test.b, err, diff)
		}
	}
	foreign := Position{Format: "mysql-files", Version: 1, Source: []byte("1")}
	if _, err := lines.ComparePositions(foreign, at("1")); !errors.Is(err, &Fault{Code: CodeInvalidPosition}) {
		t.Errorf("a foreign position: got %v, want %s", err, CodeInvalidPosition)
	}
	if _, err := lines.UpgradePosition(Position{Format: "test-lines", Version: 2, Source: []byte("1")}); err == nil {
		t.Error("a newer version: got nil, want an error")
	}
}

func TestNumberPoints(t *testing.T) {
	all, err := lines.Points([]Point{
		{Position: Position{Format: "test-lines", Version: 1, Source: []byte("12")}},
		{Position: Position{Format: "test-lines", Version: 1, Source: []byte("10"), Ordinal: 2}},
		{Position: Position{Format: "test-lines", Version: 1, Source: []byte("10")}},
	})
	if err != nil || all.Start() != 10 {
		t.Fatalf("got %v, %v, want to start at 10", all, err)
	}
	for _, test := range []struct {
		from, to uint64
		want     []batch.Cover
	}{
		{9, 10, []batch.Cover{{Point: 0}, {Point: 1}, {Point: 2}}},
		{10, 11, []batch.Cover{{Point: 0}, {Point: 1, Upto: 2}}},
		{11, 12, []batch.Cover{{Point: 0}}},
		{12, 13, nil},
	} {
		if diff := cmp.Diff(test.want, all.Covers(nil, test.from, test.to)); diff != "" {
			t.Errorf("covers of %d to %d: (-want +got)\n%s", test.from, test.to, diff)
		}
	}
	if none, _ := lines.Points([]Point{{}}); none.Start() != 0 {
		t.Errorf("a point that holds nothing: got %d, want 0", none.Start())
	}
}
