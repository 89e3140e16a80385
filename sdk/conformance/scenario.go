package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/delivery"
	"github.com/datalink-go/datalink/sdk/wire"
)

// Scenario says what a random run does beside writing.
type Scenario struct {
	Txs      int           // source transactions; 0 = 25
	Rounds   int           // writers that are killed before the last one; 0 = 3, -1 = none
	Reorder  bool          // after a crash another server delivers independent transactions in another order
	Faults   bool          // deadlocks and lost commits
	Refusals bool          // records are refused for a while, and sent again
	Splits   bool          // large transactions are split
	Duration time.Duration // after which the writer is taken to hang; 0 = 20 s
}

// Random runs one random scenario against a fresh store of the subject and
// compares the target with the model.
func Random(ctx context.Context, sub *Subject, d Drawer, sc Scenario) error {
	if sc.Txs == 0 {
		sc.Txs = 25
	}
	if sc.Rounds == 0 {
		sc.Rounds = 3
	}
	sc.Rounds = max(sc.Rounds, 0)
	if sc.Duration == 0 {
		sc.Duration = 20 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, sc.Duration)
	defer cancel()
	store, err := sub.New(ctx)
	if err != nil {
		return fmt.Errorf("new store: %w", err)
	}
	defer store.Close(context.WithoutCancel(ctx))
	probe, err := store.Open(ctx)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	_, exact := probe.(sdk.TransactionalWriter)
	if err := probe.Close(ctx); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	o := HistoryOptions{Keys: d.Int(2, 9), Rekey: true, Swap: exact, Truncate: true}
	if exact {
		o.Partial, o.List, o.Match = d.Int(0, 1) == 1, sub.Append, sub.Match && d.Int(0, 1) == 1
	}
	h := newHistory(d, o)
	h.grow(sc.Txs)

	// What comes now depends on what a writer gets done before it dies, which is
	// not the same each time.
	d = newRandom(uint64(d.Int(0, 1<<30)))
	w := &world{sub: sub, draw: d, sc: sc, store: store, exact: exact, schemas: Schemas(), order: h.txs, ledger: &ledger{}, version: 1}
	for round := range sc.Rounds + 1 {
		done, err := w.round(ctx, round, round == sc.Rounds)
		if err != nil {
			return fmt.Errorf("writer %d: %w", round, err)
		}
		if w.ledger.broken != nil {
			return w.ledger.broken
		}
		if done {
			break
		}
		if sc.Reorder {
			w.order = reorder(d, h.txs)
		}
	}
	return w.compare(ctx, h)
}

// world is what outlives writers.
type world struct {
	sub     *Subject
	draw    Drawer
	sc      Scenario
	store   Store
	exact   bool
	schemas []*batch.Schema
	order   []*kitTx
	ledger  *ledger
	points  []sdk.Point // kept for writers that store none
	version uint64
	behind  []sdk.Point // of the claim before: where another writer may be
}

// round is the life of one writer. Done says that it wrote everything.
func (w *world) round(ctx context.Context, no int, last bool) (done bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	target, err := w.store.Open(ctx)
	if err != nil {
		return false, fmt.Errorf("open: %w", err)
	}
	defer func() { err = errors.Join(err, shut(ctx, target)) }()
	l := &life{ledger: w.ledger, death: cancel, after: w.draw.Int(0, 1) == 1}
	if !last {
		l.dieAt = w.draw.Int(1, 80)
	}
	if w.sc.Faults && w.exact {
		coins := newCoins(w.draw)
		l.fault = func(step string) error {
			if (step == "begin" || step == "apply") && coins.toss(10) {
				return sdk.Faultf(sdk.CodeUnavailable, "a deadlock, as the kit wants it").Retry()
			}
			return nil
		}
		l.lost = func() (bool, bool) { return coins.toss(8), coins.toss(2) }
	}
	if w.sc.Refusals && w.exact {
		coins := newCoins(w.draw)
		l.refuse = func(n int) int {
			if coins.toss(6) {
				return int(coins.roll() % uint64(n))
			}
			return -1
		}
	}
	cfg := w.sub.Engine
	cfg.Records = w.draw.Int(1, 12)
	cfg.Backoff, cfg.Retries = 10*time.Microsecond, 1000
	if w.sc.Splits {
		cfg.SplitRecords = w.draw.Int(0, 4)
	}
	ex := sdk.Execution{Task: "kit", TaskUID: "kit-task", StoreUID: "kit-store", ID: fmt.Sprint("x", no), Epoch: uint64(no + 1), Writer: "w"}
	if n := len(w.sub.Lanes); n > 0 && w.exact {
		ex.Lanes = w.sub.Lanes[w.draw.Int(0, n-1)]
	}
	e, err := delivery.New(mortal(target, l), cfg)
	if err != nil {
		return false, err
	}
	c, err := e.Claim(ctx, ex)
	if err != nil {
		return false, ignoreDeath(err)
	}
	points := c.Points
	if !w.exact {
		points = w.points
	}
	if len(points) == 0 {
		points = []sdk.Point{{}}
	}
	given := points
	if len(w.behind) > 0 && w.draw.Int(0, 1) == 1 {
		// Another writer of the task has done less: the reader starts there.
		given = append(slices.Clone(points), sdk.Point{Writer: "other", Lane: -2, Position: w.behind[0].Position})
	}
	w.behind = points
	s, err := openSession(w.draw, w.schemas, given)
	if err != nil {
		return false, err
	}
	s.version = w.version
	reqs, err := s.requests(w.order)
	if err != nil {
		return false, err
	}
	w.version = s.version
	p := &kitStream{ctx: ctx, reqs: reqs, again: w.sc.Refusals}
	p.cond = sync.NewCond(&p.mu)
	defer context.AfterFunc(ctx, p.cond.Broadcast)()
	err = e.Run(ctx, p)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !w.exact && len(p.points) > 0 {
		w.points = p.points
	}
	switch {
	case p.refused != nil && (err == nil || ctx.Err() != nil):
		return false, p.refused
	case err == nil && p.acked != uint64(len(reqs)):
		return false, fmt.Errorf("the stream has ended with %d of %d blocks acknowledged", p.acked, len(reqs))
	case err == nil:
		return true, nil
	}
	return false, ignoreDeath(err)
}

// shut closes the target, which must not take long.
func shut(ctx context.Context, t sdk.Target) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

func ignoreDeath(err error) error {
	if errors.Is(err, errDied) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// compare says how the target differs from the model.
func (w *world) compare(ctx context.Context, h *history) error {
	for t, s := range w.schemas {
		if t == tabList && !h.opts.List {
			continue
		}
		got, err := w.store.Rows(ctx, s)
		if err != nil {
			return fmt.Errorf("rows of %s: %w", s.Name(), err)
		}
		got = slices.Clone(got)
		slices.Sort(got)
		if want := h.want(t); !slices.Equal(got, want) {
			return fmt.Errorf("table %s differs from the model:\n got %s\nwant %s", s.Name(), strings.Join(got, "  "), strings.Join(want, "  "))
		}
	}
	return nil
}

// kitStream gives requests and keeps what is replied.
type kitStream struct {
	ctx  context.Context
	reqs []*wire.WriteRequest

	mu      sync.Mutex
	cond    *sync.Cond
	next    int
	attempt uint32
	again   bool // what is refused is sent again
	acked   uint64
	points  []sdk.Point
	refused error
}

func (p *kitStream) Recv() (*wire.WriteRequest, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.again && p.next == len(p.reqs) && p.acked < uint64(len(p.reqs)) && p.ctx.Err() == nil {
		p.cond.Wait()
	}
	if err := p.ctx.Err(); err != nil {
		return nil, err
	}
	if p.next == len(p.reqs) {
		return nil, io.EOF
	}
	p.next++
	r := *p.reqs[p.next-1]
	r.Attempt = p.attempt
	return &r, nil
}

func (p *kitStream) Send(r *wire.WriteReply) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acked = max(p.acked, r.Acked)
	if len(r.Points) > 0 {
		p.points = r.Points
	}
	if len(r.Records) > 0 && p.again && r.Attempt == p.attempt && r.Records[0].Fault.Code == sdk.CodeUnfit {
		p.attempt++
		p.next = int(p.acked)
	} else if len(r.Records) > 0 && p.refused == nil {
		p.refused = fmt.Errorf("block %d, record %d was refused: %w", r.FailedSeq, r.Records[0].Index, &r.Records[0].Fault)
	}
	p.cond.Broadcast()
	return p.ctx.Err()
}

// coins are tosses drawn beforehand, for use from many goroutines.
type coins struct {
	mu   sync.Mutex
	seed uint64
}

func newCoins(d Drawer) *coins { return &coins{seed: uint64(d.Int(1, 1<<30))} }

// toss is true once in n.
func (c *coins) toss(n uint64) bool { return c.roll()%n == 0 }

func (c *coins) roll() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seed ^= c.seed << 13
	c.seed ^= c.seed >> 7
	c.seed ^= c.seed << 17
	return c.seed
}
