package decimal

import (
	"encoding/hex"
	"testing"
)

func TestAppend(t *testing.T) {
	for _, c := range []struct {
		prec, scale int
		in, want    string
	}{
		{10, 2, "800004d22d", "1234.45"},
		{10, 2, "7ffffb2dd2", "-1234.45"},
		{1, 0, "89", "9"},
		{1, 1, "89", "0.9"},
		{1, 1, "76", "-0.9"},
		{9, 2, "8000000000", "0.00"},
		{9, 2, "7fffffffff", "0.00"},
		{4, 2, "8001", "0.01"},
		{20, 0, "8000000000000000000a"[:18], "0"},
	} {
		raw, _ := hex.DecodeString(c.in)
		if len(raw) != Size(c.prec, c.scale) {
			t.Errorf("decimal(%d,%d): size %d, want %d", c.prec, c.scale, Size(c.prec, c.scale), len(raw))
			continue
		}
		if got := string(Append(nil, raw, c.prec, c.scale)); got != c.want {
			t.Errorf("decimal(%d,%d) %s: got %s, want %s", c.prec, c.scale, c.in, got, c.want)
		}
	}
}
