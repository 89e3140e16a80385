package supervisor

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/wire"
)

var execution = sdk.Execution{Task: "orders", TaskUID: "u", StoreUID: "s", ID: "e", Epoch: 1, Writer: "w"}

// write claims, opens a stream and sends one block for each list of ids.
func write(t *testing.T, c *Client, blocks ...[]int64) pipeline.SinkStream {
	t.Helper()
	claimed, err := c.Claim(context.Background(), execution)
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Write(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for i, ids := range blocks {
		q := &wire.WriteRequest{
			Seq: uint64(i + 1), Block: block(t, twoColumns, ids...),
			Last: sdk.Position{Format: "fixture", Version: 1, Source: []byte("x")},
		}
		if i == 0 {
			for _, p := range claimed.Points {
				q.Lanes = append(q.Lanes, int64(p.Lane))
			}
		}
		if err := s.Send(q); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// drain ends the stream and returns the last reply's ack and points.
func drain(t *testing.T, s pipeline.SinkStream) (acked uint64, points []sdk.Point) {
	t.Helper()
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	for {
		a, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return acked, points
		}
		if err != nil {
			t.Fatal(err)
		}
		if a.Fault != nil {
			t.Fatal(a.Fault)
		}
		acked = max(acked, a.Acked)
		if len(a.Points) > 0 {
			points = a.Points
		}
	}
}

func TestWriter(t *testing.T) {
	c, _ := launch(t, manifest.Writer)
	configure(t, c, nil)
	if l := c.Manifest().Roles[manifest.Writer].Level; l != manifest.LevelTransactional {
		t.Errorf("level %q, want %q: it follows from the code", l, manifest.LevelTransactional)
	}
	acked, points := drain(t, write(t, c, []int64{1, 2}, []int64{3}, []int64{4, 5, 6}))
	if acked != 3 || len(points) != 1 || string(points[0].Position.Source) != "6" {
		t.Errorf("acknowledged %d, points %+v, want 3 and position 6", acked, points)
	}
	again, err := c.Claim(context.Background(), execution)
	if err != nil || len(again.Points) != 1 || string(again.Points[0].Position.Source) != "6" {
		t.Errorf("claimed again: %+v, %v, want position 6", again, err)
	}
}

func TestFencedClaim(t *testing.T) {
	c, _ := launch(t, manifest.Writer)
	configure(t, c, nil)
	ex := execution
	ex.Epoch = 13 // the fixture refuses it
	if _, err := c.Claim(context.Background(), ex); !errors.Is(err, sdk.ErrFenced) {
		t.Errorf("Claim: %v, want %v", err, sdk.ErrFenced)
	}
}

// TestPoison charges a death to the blocks that were sent and not acknowledged.
func TestPoison(t *testing.T) {
	c, _ := launch(t, manifest.Writer)
	configure(t, c, map[string]any{"poison": 5})
	s := write(t, c, []int64{1}, []int64{2})
	for acked := uint64(0); acked < 2; {
		a, err := s.Recv()
		if err != nil || a.Fault != nil {
			t.Fatal(a, err)
		}
		acked = max(acked, a.Acked)
	}
	if c.Charged() {
		t.Error("all is acknowledged, and the client says that it has blocks in hand")
	}
	if err := s.Send(&wire.WriteRequest{Seq: 3, Block: block(t, twoColumns, 5)}); err != nil {
		t.Fatal(err)
	}
	var err error
	for err == nil {
		_, err = s.Recv()
	}
	var died *pipeline.DiedError
	if !errors.As(err, &died) {
		t.Fatalf("Recv: %v, want a DiedError", err)
	}
	if !c.Charged() {
		t.Error("the client does not say that it died with blocks in hand")
	}
	if died.FirstSeq != 3 || died.LastSeq != 3 || died.How != "exit status 3" || died.LastWords != "fatal error: poisoned" {
		t.Errorf("%+v, want blocks 3 to 3, exit status 3 and its last words", died)
	}
}

// TestPoisonIsNoCrashLoop lets a writer die on a block more often than it may die
// by itself.
func TestPoisonIsNoCrashLoop(t *testing.T) {
	l := NewLauncher()
	t.Cleanup(l.Close)
	p := NewPlugin(l, Config{Image: image(t, "fixture"), Role: manifest.Writer, Task: "orders"}, Setup{Config: []byte(`{"poison":5}`)}, Options{Policy: Policy{Deaths: 2}}, nil)
	defer p.Close()
	for range 5 {
		c, err := p.Ready(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		s := write(t, c, []int64{5})
		for err == nil {
			_, err = s.Recv()
		}
		if !errors.Is(err, pipeline.ErrDied) {
			t.Fatal(err)
		}
	}
	if s := p.State(); s.Restarts < 4 || s.Phase == Quarantined || s.Phase == BackOff {
		t.Errorf("%+v after 5 deaths on a block, want neither quarantine nor back-off", s)
	}
}

// TestSecondWrite shows that a stream whose host has gone away does not keep the
// next one out.
func TestSecondWrite(t *testing.T) {
	c, _ := launch(t, manifest.Writer)
	configure(t, c, nil)
	first := write(t, c, []int64{1})
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if acked, _ := drain(t, write(t, c, []int64{1}, []int64{2})); acked != 2 {
		t.Errorf("acknowledged %d, want 2", acked)
	}
}

// TestWriterFailPoints kills the writer around its replies.
func TestWriterFailPoints(t *testing.T) {
	for _, point := range []string{"writer.block.received", "writer.reply.before", "writer.reply.after"} {
		t.Run(point, func(t *testing.T) {
			c, _ := launch(t, manifest.Writer)
			configure(t, c, nil, point)
			s := write(t, c, []int64{1})
			var err error
			for err == nil {
				_, err = s.Recv()
			}
			var died *pipeline.DiedError
			if !errors.As(err, &died) || died.How != "signal: killed" {
				t.Errorf("Recv: %v, want a death by signal: killed", err)
			}
		})
	}
	t.Run("writer.claimed", func(t *testing.T) {
		c, _ := launch(t, manifest.Writer)
		configure(t, c, nil, "writer.claimed")
		if _, err := c.Claim(context.Background(), execution); !errors.Is(err, pipeline.ErrDied) {
			t.Errorf("Claim: %v, want %v", err, pipeline.ErrDied)
		}
	})
	t.Run("connector.close.before", func(t *testing.T) {
		c, _ := launch(t, manifest.Writer)
		configure(t, c, nil, "connector.close.before")
		if err := c.Close(context.Background()); err == nil {
			t.Error("Close reports no error although the plugin was killed in it")
		}
	})
}
