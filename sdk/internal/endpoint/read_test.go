package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/wire"
)

// source is a reader whose rows come through a channel; each is a transaction.
type source struct {
	rows  chan int
	split bool // transactions end in the next block
	at    int
	fault error
}

var schema = &batch.Schema{ID: 1, Table: "t", Key: []int{0}, Columns: []batch.Column{{Name: "id", Type: batch.Int64}}}

func (s *source) Check(context.Context) ([]sdk.Finding, error)         { return nil, nil }
func (s *source) Close(context.Context) error                          { return nil }
func (s *source) Durable(context.Context, sdk.Position) error          { return nil }
func (s *source) PositionFormat() (string, uint32)                     { return "test", 4 }
func (s *source) ParsePosition(string) (sdk.Position, error)           { panic("not called") }
func (s *source) FormatPosition(sdk.Position) (string, error)          { panic("not called") }
func (s *source) UpgradePosition(p sdk.Position) (sdk.Position, error) { return p, nil }

func (s *source) ComparePositions(a, b sdk.Position) (sdk.Order, error) {
	return sdk.Order(2 + strings.Compare(string(a.Source), string(b.Source))), nil
}

func (s *source) IntersectPositions(a, b sdk.Position) (sdk.Position, error) {
	if o, _ := s.ComparePositions(a, b); o == sdk.After {
		return b, nil
	}
	return a, nil
}

func (s *source) Open(context.Context, sdk.Execution, []sdk.Point, []batch.StateItem) error {
	return nil
}

func (s *source) Next(ctx context.Context, out *batch.Builder) error {
	for !out.Full() {
		select {
		case row, ok := <-s.rows:
			if !ok {
				if s.fault != nil {
					return s.fault
				}
				return io.EOF
			}
			if err := s.put(row, out); err != nil {
				return err
			}
			continue
		default:
		}
		if !out.Empty() {
			return nil
		}
		select {
		case row, ok := <-s.rows:
			if !ok {
				if s.fault != nil {
					return s.fault
				}
				return io.EOF
			}
			if err := s.put(row, out); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (s *source) put(row int, out *batch.Builder) error {
	if err := out.BeginTx(batch.Tx{Begins: true}); err != nil {
		return err
	}
	if err := out.BeginRow(batch.Insert, schema); err != nil {
		return err
	}
	out.BeginImage(batch.AfterImage)
	out.PutInt(int64(row))
	out.EndImage()
	if err := out.EndRow(); err != nil {
		return err
	}
	s.at = row
	if s.split {
		return out.EndTx(false, []byte(strconv.Itoa(row)), nil)
	}
	return out.EndTx(true, nil, []byte(strconv.Itoa(row)))
}

// receiver is the host's end of the stream.
type receiver struct {
	grants chan *wire.ReadRequest
	blocks chan *wire.ReadReply
}

// stream opens s in an endpoint with blocks of at most four rows and runs Read.
func stream(t *testing.T, s *source, points ...sdk.Point) (*receiver, *Endpoint, <-chan error) {
	t.Helper()
	p := &sdk.Plugin{Name: "p", Reader: sdk.ReaderOf(func(sdk.Env, struct{}) (*source, error) { return s, nil })}
	e := New(p, Options{Kind: "process"})
	configure := &wire.ConfigureRequest{Role: string(manifest.Reader), Config: []byte("{}"), Limits: wire.Limits{Events: 4}}
	if _, err := e.Call(t.Context(), wire.Configure, configure); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Call(t.Context(), wire.Open, &wire.OpenRequest{Points: points}); err != nil {
		t.Fatal(err)
	}
	r := &receiver{grants: make(chan *wire.ReadRequest), blocks: make(chan *wire.ReadReply)}
	done := make(chan error, 1)
	go func() {
		done <- e.Read(t.Context(), func() (*wire.ReadRequest, error) {
			if g, ok := <-r.grants; ok {
				return g, nil
			}
			return nil, io.EOF
		}, func(a *wire.ReadReply) error {
			c := *a
			c.Block = append([]byte(nil), a.Block...)
			r.blocks <- &c
			return nil
		})
	}()
	return r, e, done
}

func rows(t *testing.T, a *wire.ReadReply) []int64 {
	t.Helper()
	if a.Fault != nil {
		t.Fatalf("fault %v", a.Fault)
	}
	if len(a.Block) == 0 {
		return nil
	}
	var b batch.Block
	reg := batch.NewRegistry()
	if err := reg.Add(schema); err != nil { // of an earlier block
		t.Fatal(err)
	}
	if err := b.Decode(a.Block, reg, batch.Limits{}); err != nil {
		t.Fatal(err)
	}
	var out []int64
	for i := range b.Len() {
		var e batch.Event
		if err := b.Event(i, &e); err != nil {
			t.Fatal(err)
		}
		v, err := e.After.Values(nil)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, v[0].Int64())
	}
	return out
}

// TestPace shows when blocks are sent: a lone row at once when the receiver is
// idle, what gathers while it is busy together when it is idle again, and full
// blocks while there is credit.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{rows: make(chan int, 100)}
		r, e, done := stream(t, s)
		want := func(what string, ids ...int64) {
			t.Helper()
			synctest.Wait()
			select {
			case a := <-r.blocks:
				if d := cmp.Diff(ids, rows(t, a)); d != "" {
					t.Fatalf("%s: (-want +got)\n%s", what, d)
				}
			default:
				if len(ids) > 0 {
					t.Fatalf("%s: no block, want %v", what, ids)
				}
			}
		}
		s.rows <- 1
		want("without credit")
		r.grants <- &wire.ReadRequest{Records: 10, Bytes: 1 << 20}
		want("lone row, idle receiver", 1)
		s.rows <- 2
		want("row 1 has not arrived")
		s.rows <- 3
		want("nor now")
		r.grants <- &wire.ReadRequest{Taken: 1}
		want("all that gathered, although no credit came back", 2, 3)
		for i := 4; i < 13; i++ {
			s.rows <- i
		}
		want("a full block goes although the receiver is busy", 4, 5, 6, 7)
		want("the next one as well", 8, 9, 10, 11)
		want("the rest waits")
		r.grants <- &wire.ReadRequest{Records: 9, Taken: 3}
		want("one block has not arrived")
		r.grants <- &wire.ReadRequest{Taken: 4}
		want("idle again", 12)
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, context.Canceled) && err != nil {
			t.Errorf("stream ended with %v after Close", err)
		}
		close(r.grants)
	})
}

// TestPaceWithoutNews is a host that returns credit and never says what arrived.
func TestPaceWithoutNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{rows: make(chan int, 10)}
		r, e, done := stream(t, s)
		r.grants <- &wire.ReadRequest{Records: 10, Bytes: 1 << 20}
		s.rows <- 1
		if got := rows(t, <-r.blocks); len(got) != 1 {
			t.Errorf("first block %v, want row 1", got)
		}
		s.rows <- 2
		synctest.Wait()
		select {
		case a := <-r.blocks:
			t.Errorf("block %v before the credit came back", rows(t, a))
		default:
		}
		r.grants <- &wire.ReadRequest{Records: 1}
		synctest.Wait()
		select {
		case <-r.blocks:
		default:
			t.Error("no block although all credit came back")
		}
		_ = e.Close(t.Context())
		<-done
		close(r.grants)
	})
}

// TestResumePoints shows the positions around blocks, also inside transactions.
func TestResumePoints(t *testing.T) {
	pos := func(source string, ordinal uint64) sdk.Position {
		return sdk.Position{Format: "test", Version: 4, Source: []byte(source), Ordinal: ordinal}
	}
	for _, tt := range []struct {
		name        string
		points      []sdk.Point
		split       bool
		first, last sdk.Position
	}{
		{"from nothing", nil, false, sdk.Position{}, pos("7", 0)},
		{"from a point", []sdk.Point{{Position: pos("5", 0)}, {Position: pos("3", 2)}}, false, pos("3", 2), pos("7", 0)},
		{"one point has nothing", []sdk.Point{{Position: pos("5", 0)}, {}}, false, sdk.Position{}, pos("7", 0)},
		{"a writer's own row does not count", []sdk.Point{{Position: pos("5", 0)}, {Lane: sdk.WriterLane}}, false, pos("5", 0), pos("7", 0)},
		{"cut transaction", nil, true, sdk.Position{}, pos("7", 1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &source{rows: make(chan int, 1), split: tt.split}
			s.rows <- 7
			close(s.rows)
			r, _, done := stream(t, s, tt.points...)
			r.grants <- &wire.ReadRequest{Records: 10, Bytes: 1 << 20}
			a := <-r.blocks
			if d := cmp.Diff([]sdk.Position{tt.first, tt.last}, []sdk.Position{a.First, a.Last}); d != "" || !a.End {
				t.Errorf("end %t, first and last (-want +got)\n%s", a.End, d)
			}
			close(r.grants)
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestReaderFault shows that what a reader had finished before its fault counts.
func TestReaderFault(t *testing.T) {
	s := &source{rows: make(chan int, 1), fault: fmt.Errorf("read log: %w", sdk.ErrPositionPurged)}
	s.rows <- 7
	close(s.rows)
	r, _, done := stream(t, s)
	r.grants <- &wire.ReadRequest{Records: 10, Bytes: 1 << 20}
	a := <-r.blocks
	if !errors.Is(a.Fault, sdk.ErrPositionPurged) || len(a.Block) == 0 || string(a.Last.Source) != "7" {
		t.Errorf("fault %v, %d bytes, last %q, want %v with a block to 7", a.Fault, len(a.Block), a.Last.Source, sdk.ErrPositionPurged)
	}
	close(r.grants)
	<-done
}

// TestOrder shows that calls out of order are refused by name.
func TestOrder(t *testing.T) {
	p := &sdk.Plugin{Name: "p", Reader: sdk.ReaderOf(func(sdk.Env, struct{}) (*source, error) { return &source{}, nil })}
	e := New(p, Options{})
	for _, tt := range []struct {
		method string
		req    wire.Message
		code   sdk.Code
	}{
		{wire.Check, &wire.CheckRequest{}, sdk.CodeRefused},
		{"Dance", &wire.Empty{}, sdk.CodeUnimplemented},
		{wire.Configure, &wire.ConfigureRequest{Role: "writer"}, sdk.CodeUnimplemented},
		{wire.Configure, &wire.ConfigureRequest{Role: "reader", LogLevel: "loud", Config: []byte("{}")}, ""},
		{wire.Configure, &wire.ConfigureRequest{Role: "reader", Config: []byte("{}")}, sdk.CodeRefused},
		{wire.Next, &wire.NextRequest{}, sdk.CodeRefused},
		{wire.Claim, &wire.ClaimRequest{}, sdk.CodeUnimplemented},
		{wire.ReadKeys, &wire.KeysRequest{}, sdk.CodeUnimplemented},
		{wire.ApplyTransform, &wire.TransformRequest{}, sdk.CodeUnimplemented},
		{wire.Close, &wire.Empty{}, ""},
		{wire.Close, &wire.Empty{}, ""},
		{wire.Check, &wire.CheckRequest{}, sdk.CodeRefused},
	} {
		_, err := e.Call(t.Context(), tt.method, tt.req)
		if tt.code == "" && err != nil || tt.code != "" && !errors.Is(err, &sdk.Fault{Code: tt.code}) {
			t.Errorf("%s %+v: %v, want code %q", tt.method, tt.req, err, tt.code)
		}
	}
}

// TestNext is the stream for carriers that have none.
func TestNext(t *testing.T) {
	s := &source{rows: make(chan int, 1)}
	p := &sdk.Plugin{Name: "p", Reader: sdk.ReaderOf(func(sdk.Env, struct{}) (*source, error) { return s, nil })}
	e := New(p, Options{})
	for _, c := range []struct {
		method string
		req    wire.Message
	}{{wire.Configure, &wire.ConfigureRequest{Role: "reader", Config: []byte("{}")}}, {wire.Open, &wire.OpenRequest{}}} {
		if _, err := e.Call(t.Context(), c.method, c.req); err != nil {
			t.Fatal(err)
		}
	}
	next := func() *wire.ReadReply {
		t.Helper()
		a, err := e.Call(t.Context(), wire.Next, &wire.NextRequest{WaitMicros: 1000})
		if err != nil {
			t.Fatal(err)
		}
		return a.(*wire.ReadReply)
	}
	if a := next(); a.Block != nil || a.Fault != nil || a.End {
		t.Errorf("nothing there: %+v, want an empty reply", a)
	}
	s.rows <- 7
	if a := next(); len(rows(t, a)) != 1 || string(a.Last.Source) != "7" {
		t.Errorf("one row: %+v", a)
	}
	close(s.rows)
	if a := next(); !a.End {
		t.Errorf("at the end: %+v", a)
	}
}
