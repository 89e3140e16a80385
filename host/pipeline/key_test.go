package pipeline

import (
	"testing"

	"github.com/datalink-go/datalink/sdk/batch"
)

// What is no row has no key, also where its table has one: a refused range of a
// snapshot or a refused schema change is named, too.
func TestDescribeKeyWithoutRow(t *testing.T) {
	s := &batch.Schema{ID: 1, Table: "t", Key: []int{0}, PrimaryKey: true, Columns: []batch.Column{{Name: "id", Type: batch.Int64}}}
	for _, k := range []batch.Kind{batch.Delete, batch.Truncate} {
		if got := describeKey(&batch.Event{Kind: k, Schema: s}); got != "(none)" {
			t.Errorf("%s: got %q, want (none)", k, got)
		}
	}
}
