package replica

import (
	"testing"

	"github.com/datalink-go/datalink/plugins/mysql/alltypes"
	"github.com/datalink-go/datalink/sdk/batch"
)

// TestKnownRowsFirst: of rows without a key, one of which a cell is not known fits
// every before image, and must not be taken in the place of the one that is meant.
func TestKnownRowsFirst(t *testing.T) {
	one, five := alltypes.Printed{Value: "1"}, alltypes.Printed{Value: "5"}
	tab := &Table{Schema: &batch.Schema{}, Rows: map[string]*Row{
		"#1": {map[string]alltypes.Printed{"id": one}},
		"#2": {map[string]alltypes.Printed{"id": one, "x": five}},
	}}
	if key, _ := tab.find(map[string]alltypes.Printed{"id": one, "x": five}); key != "#2" {
		t.Errorf("took row %q, want #2", key)
	}
	if key, _ := tab.find(map[string]alltypes.Printed{"id": one, "x": one}); key != "#1" {
		t.Errorf("took row %q, want #1", key)
	}
}
