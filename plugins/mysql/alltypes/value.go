package alltypes

import (
	"fmt"
	"math/big"
	"strconv"

	"github.com/datalink-go/datalink/sdk/batch"
)

// Value brings a value of package batch into the form of Printed. Raw values
// have their bytes as Stored and no Value.
func Value(c *batch.Column, v *batch.Value) (p Printed, err error) {
	switch v.State {
	case batch.Null:
		p.Null = true
	case batch.Raw:
		_, data, _ := v.Raw()
		p.Stored = string(data)
	case batch.Present:
		p.Value, err = present(c, v)
	default:
		err = fmt.Errorf("column %s: the value is %s", c.Name, v.State)
	}
	return p, err
}

func present(c *batch.Column, v *batch.Value) (string, error) {
	switch c.Type {
	case batch.Bit:
		return new(big.Int).SetBytes(v.Bytes()).String(), nil
	case batch.Year:
		return fmt.Sprintf("%04d", v.Uint64()), nil
	case batch.Float32: // all digits, as the server prints it after CAST
		return strconv.FormatFloat(v.Float64(), 'g', -1, 64), nil
	case batch.Bytes, batch.Geometry, batch.Vector:
		return string(v.Bytes()), nil
	}
	text, ok := batch.AppendText(nil, c, v)
	if !ok {
		return "", fmt.Errorf("column %s: type %s has no text", c.Name, c.Type)
	}
	return string(text), nil
}

// Same compares a value that came by some way with what the server printed; ""
// when they are equal, else what differs.
func Same(c *Case, col Column, got, want Printed) string {
	switch {
	case got.Null != want.Null:
		return fmt.Sprintf("got NULL = %v, want %v", got.Null, want.Null)
	case got == want, got.Null:
		return ""
	case c.Unmapped && got.Value == "" && got.Stored != "":
		if got.Stored != want.Stored {
			return fmt.Sprintf("got bytes % X, want % X", got.Stored, want.Stored)
		}
		return ""
	case got.Stored != "":
		return fmt.Sprintf("got raw bytes % X, want %q", got.Stored, clip(want.Value))
	case got.Value == want.Value:
		return ""
	case col.Form == Float:
		a, err1 := strconv.ParseFloat(got.Value, 64)
		b, err2 := strconv.ParseFloat(want.Value, 64)
		if err1 == nil && err2 == nil && a == b {
			return ""
		}
	}
	return fmt.Sprintf("got %q, want %q", clip(got.Value), clip(want.Value))
}

func clip(s string) string {
	if len(s) > 300 {
		return s[:300] + "…"
	}
	return s
}
