package pglog

import (
	"testing"

	"github.com/datalink-go/datalink/plugins/rdbms/alltypes"
)

// TestTypes moves each value of each type through the snapshot and through the log,
// and lets the server compare.
func TestTypes(t *testing.T) {
	srv := server(t, "-c", "log_min_messages=warning")
	sqlText(srv, alltypes.Types+alltypes.Create("public.types", ", gen int GENERATED ALWAYS AS (i4 / 2) STORED")+alltypes.Insert("public.types", 1))
	tg := newTarget(t)
	s := tg.mustOpen(Config{URL: url(srv)})
	defer s.close()
	s.caughtUp(srv)
	tg.equal(srv, "public.types")
	if got := len(tg.tables["public.types"].rows); got != alltypes.Rows() {
		t.Fatalf("got %d rows, want %d", got, alltypes.Rows())
	}
	sqlText(srv, alltypes.Insert("public.types", 101)+"UPDATE public.types SET id = id + 1000 WHERE id <= 5;")
	s.caughtUp(srv)
	tg.equal(srv, "public.types")
	schema := tg.tables["public.types"].schema
	for _, c := range alltypes.Cases {
		if i := schema.Column(c.Name); i < 0 || schema.Columns[i].Type != c.Want {
			t.Errorf("column %s %s: got %+v, want type %s", c.Name, c.Type, schema.Columns[max(i, 0)], c.Want)
		}
	}
	if schema.Column("gen") >= 0 {
		t.Error("the generated column is there, which the log does not hold")
	}
}
