package target

import (
	"encoding/hex"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// KeyText writes key bytes as their values with commas between them: the form in
// which operators name a key. Bytes stand in hex.
func KeyText(s *batch.Schema, key []byte) string {
	vals, err := s.KeyValues(key)
	if err != nil {
		return hex.EncodeToString(key)
	}
	var b []byte
	for i, k := range s.Key {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendValue(b, &s.Columns[k], &vals[i])
	}
	return string(b)
}

func appendValue(b []byte, c *batch.Column, v *batch.Value) []byte {
	switch v.State {
	case batch.Null:
		return append(b, "NULL"...)
	case batch.Raw:
		_, data, _ := v.Raw()
		return hex.AppendEncode(append(b, "0x"...), data)
	case batch.Absent, batch.Unchanged:
		return append(b, v.State.String()...)
	}
	if out, ok := batch.AppendText(b, c, v); ok {
		return out
	}
	return hex.AppendEncode(append(b, "0x"...), v.Bytes())
}

// Row names a change for messages: "upsert of shop.orders, key 17".
func Row(c *sdk.Change) string {
	if c.Schema == nil {
		return c.Op.String()
	}
	s := c.Op.String() + " of a row of " + c.Schema.Name()
	key := c.Key
	if len(c.OldKey) > 0 {
		key = c.OldKey
	}
	if len(key) > 0 {
		s += ", key " + KeyText(c.Schema, key)
	}
	return s
}

// MissingRow is the fault of a change to a row that the target lacks.
func MissingRow(c *sdk.Change) *sdk.Fault {
	return sdk.Faultf(sdk.CodeMissingRow, "%s: no row has the key, and the change does not hold the whole row", Row(c)).
		Suggest("the target lacks a row of the source: repair the key, or take a new snapshot of the table")
}

// OfRecord reports whether a code is about one change rather than the target.
func OfRecord(c sdk.Code) bool {
	switch c {
	case sdk.CodeConflict, sdk.CodeMissingRow, sdk.CodeUnfit, sdk.CodeTooLarge:
		return true
	}
	return false
}
