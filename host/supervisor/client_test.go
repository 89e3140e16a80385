package supervisor

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/wire"
)

// ids reads the stream to its end and returns the first column of each row.
func ids(t testing.TB, s pipeline.SourceStream) (out []int64, last sdk.Position) {
	t.Helper()
	if err := s.Grant(1000, 1<<20); err != nil {
		t.Fatal(err)
	}
	var (
		reg    = batch.NewRegistry()
		block  batch.Block
		values []batch.Value
	)
	for {
		a, err := s.Recv()
		if err != nil {
			t.Fatalf("after %d rows: %v", len(out), err)
		}
		if a.Fault != nil {
			t.Fatalf("after %d rows: %v", len(out), a.Fault)
		}
		last = a.Last
		if len(a.Block) > 0 {
			if err := block.Decode(a.Block, reg, batch.Limits{}); err != nil {
				t.Fatal(err)
			}
			for i := range block.Len() {
				var e batch.Event
				if err := block.Event(i, &e); err != nil {
					t.Fatal(err)
				}
				if values, err = e.After.Values(values[:0]); err != nil {
					t.Fatal(err)
				}
				out = append(out, values[0].Int64())
			}
			if err := s.Grant(uint64(block.Len()), uint64(len(a.Block))); err != nil {
				t.Fatal(err)
			}
		}
		if a.End {
			return out, last
		}
	}
}

func TestReader(t *testing.T) {
	ctx := context.Background()
	c, j := launch(t, manifest.Reader)
	if c.Protocol() != int(sdk.ProtocolMax) {
		t.Errorf("protocol %d, want the newest, %d", c.Protocol(), sdk.ProtocolMax)
	}
	configure(t, c, map[string]any{"rows": 5000})
	findings, err := c.Check(ctx)
	if want := []sdk.Finding{{Severity: sdk.Warning, Subject: "fixture", Message: "m", Advice: "a"}}; err != nil || !cmp.Equal(findings, want) {
		t.Errorf("Check = %v, %v, want %v", findings, err, want)
	}
	for _, start := range []string{"", "4990"} {
		var points []sdk.Point
		want := 5000
		if start != "" {
			p, err := c.ParsePosition(start)
			if err != nil {
				t.Fatal(err)
			}
			points, want = []sdk.Point{{Writer: "w", Position: p}}, 10
		}
		s, err := c.Open(ctx, &wire.OpenRequest{Points: points})
		if err != nil {
			t.Fatal(err)
		}
		got, last := ids(t, s)
		if len(got) != want || got[len(got)-1] != 5000 || string(last.Source) != "5000" {
			t.Errorf("from %q: %d rows to %d, position %s, want %d to 5000, position 5000", start, len(got), got[len(got)-1], last.Source, want)
		}
	}
	if l := j.wait(t, "reader made"); l["level"] != "INFO" || l["rows"] != 5000.0 || l["plugin"] != "fixture" || l["task"] != "orders" {
		t.Errorf("structured log line %v, want level INFO with rows, plugin and task", l)
	}
	if l := j.wait(t, "fixture starts"); l["level"] != "WARN" || l["pipe"] != "stderr" {
		t.Errorf("line on stderr %v, want level WARN and pipe stderr", l)
	}
	if l := j.wait(t, "printed by Check"); l["pipe"] != "stdout" {
		t.Errorf("printed line %v, want pipe stdout", l)
	}
	if err := c.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
	<-c.Exited()
	if how := c.How(); how != "exit status 0" {
		t.Errorf("plugin ended with %s, want exit status 0", how)
	}
}
