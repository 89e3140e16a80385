package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// Batch writes mutations, of whatever regions, and returns an error for each: nil
// = the server has it. Mutations of one row keep their order as far as each is
// done when the next is tried, which a caller that needs it gets by separate
// batches. The second error is one that ended everything.
func (c *Client) Batch(ctx context.Context, table string, muts []Mutation) ([]error, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	errs := make([]error, len(muts))
	var todo []int
	for i := range muts {
		if err := muts[i].check(); err != nil {
			errs[i] = err
			continue
		}
		todo = append(todo, i)
	}
	for n := 0; len(todo) > 0; n++ {
		left, last := c.round(ctx, table, muts, todo, errs)
		if len(left) == 0 {
			break
		}
		if ctx.Err() != nil {
			return errs, fmt.Errorf("batch of %d rows to %s: %w (%d rows left after %d tries, last error: %w)", len(muts), table, ctx.Err(), len(left), n+1, last)
		}
		if remedyOf(last) == giveUp {
			return errs, fmt.Errorf("batch of %d rows to %s: %w", len(muts), table, last)
		}
		c.cfg.Log.Debug("rows are tried again", "table", table, "rows", len(left), "try", n+1, "error", last)
		if err := backoff(ctx, n); err != nil {
			return errs, fmt.Errorf("batch of %d rows to %s: %w (%d rows left after %d tries, last error: %w)", len(muts), table, err, len(left), n+1, last)
		}
		todo = left
	}
	return errs, nil
}

// round tries each of todo once and returns those to be tried again, in order,
// with an error of one of them, the worst.
func (c *Client) round(ctx context.Context, table string, muts []Mutation, todo []int, errs []error) (left []int, last error) {
	groups, lost, last := c.group(ctx, table, muts, todo)
	left = lost
	if last != nil && remedyOf(last) == giveUp {
		return left, last
	}
	var mu sync.Mutex
	again := func(i []int, err error) {
		mu.Lock()
		defer mu.Unlock()
		left = append(left, i...)
		if last == nil || remedyOf(err) == giveUp {
			last = err
		}
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8)
	for _, g := range groups {
		slots <- struct{}{}
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer func() { <-slots }()
			c.multi(ctx, g, muts, errs, again)
		}()
	}
	wg.Wait()
	slices.Sort(left)
	return slices.Compact(left), last
}

// part is what one request does in one region.
type part struct {
	region *Region
	muts   []int
}

// multiRequest goes to one server.
type multiRequest struct {
	addr  string
	parts []part
	rows  int
	bytes int
}

// group makes requests of bounded size. Lost are those whose region is not known.
func (c *Client) group(ctx context.Context, table string, muts []Mutation, todo []int) (out []*multiRequest, lost []int, last error) {
	regions := map[*Region][]int{}
	var order []*Region
	var r *Region
	for _, i := range todo {
		if r == nil || !r.Holds(muts[i].Row) {
			var err error
			if r, err = c.Locate(ctx, table, muts[i].Row); err != nil {
				lost, last = append(lost, i), err
				if remedyOf(err) == giveUp || ctx.Err() != nil {
					return nil, todo, err
				}
				continue
			}
		}
		if regions[r] == nil {
			order = append(order, r)
		}
		regions[r] = append(regions[r], i)
	}
	slices.SortStableFunc(order, func(a, b *Region) int { return cmp.Compare(a.Addr, b.Addr) })
	var req *multiRequest
	for _, r := range order {
		var p *part
		for _, i := range regions[r] {
			n := muts[i].Size()
			if req == nil || req.addr != r.Addr || req.rows >= c.cfg.BatchRows || req.rows > 0 && req.bytes+n > c.cfg.BatchBytes {
				req = &multiRequest{addr: r.Addr}
				out = append(out, req)
				p = nil
			}
			if p == nil {
				req.parts = append(req.parts, part{region: r})
				p = &req.parts[len(req.parts)-1]
			}
			p.muts = append(p.muts, i)
			req.rows++
			req.bytes += n
		}
	}
	return out, lost, last
}

func (m *multiRequest) request(muts []Mutation) *request {
	param := make(message, 0, m.rows*48+len(m.parts)*96)
	cells := make([][]byte, 0, m.rows)
	var action, head message
	for i := range m.parts {
		p := &m.parts[i]
		body := make(message, 0, len(p.muts)*48+96).bytes(1, p.region.specifier())
		for k, at := range p.muts {
			mut := &muts[at]
			head = mut.head(head[:0])
			action = action[:0].varint(1, uint64(k)).bytes(2, head)
			body = body.bytes(3, action)
			// Neighbours in one buffer go as one piece.
			if n := len(cells); n > 0 && adjacent(cells[n-1], mut.block) {
				cells[n-1] = cells[n-1][:len(cells[n-1])+len(mut.block)]
			} else {
				cells = append(cells, mut.block)
			}
		}
		param = param.bytes(1, body)
	}
	return &request{method: "Multi", param: param, cells: cells}
}

// adjacent reports whether b lies right behind a in the same array.
func adjacent(a, b []byte) bool {
	return len(b) > 0 && cap(a) >= len(a)+len(b) && &a[:len(a)+1][len(a)] == &b[0]
}

func (c *Client) multi(ctx context.Context, g *multiRequest, muts []Mutation, errs []error, again func([]int, error)) {
	rep, err := c.once(ctx, g.addr, clientService, g.request(muts))
	if err == nil {
		err = g.results(rep, errs, again, c.cache.drop)
	}
	if err == nil {
		return
	}
	var all []int
	for i := range g.parts {
		all = append(all, g.parts[i].muts...)
		if remedyOf(err) == relocate {
			c.cache.drop(g.parts[i].region)
		}
	}
	if errors.Is(err, ErrCorrupt) {
		err = &connError{g.addr, err} // what of it was done is not known: done again
	}
	again(all, err)
}

// results reads a MultiResponse: for each part an exception, or for each mutation a
// result or an exception. A mutation without either is taken as not done.
func (g *multiRequest) results(rep reply, errs []error, again func([]int, error), moved func(*Region)) error {
	at := 0
	err := fields(rep.msg, func(f protowire.Number, _ uint64, b []byte) error {
		if f != 1 {
			return nil
		}
		if at >= len(g.parts) {
			return corrupt("results for more regions than were asked")
		}
		p := &g.parts[at]
		at++
		return p.results(b, errs, again, moved)
	})
	if err != nil {
		return err
	}
	if at != len(g.parts) {
		return corrupt(fmt.Sprintf("results for %d of %d regions", at, len(g.parts)))
	}
	return nil
}

func (p *part) results(data []byte, errs []error, again func([]int, error), moved func(*Region)) error {
	done := make([]bool, len(p.muts))
	var whole *RemoteError
	refuse := func(i []int, e *RemoteError) {
		switch remedyOf(e) {
		case giveUp:
			for _, k := range i {
				errs[k] = e
			}
			return
		case relocate:
			moved(p.region)
		}
		again(i, e)
	}
	err := fields(data, func(f protowire.Number, _ uint64, b []byte) error {
		switch f {
		case 1:
			index, exc, err := parseResultOrException(b)
			if err != nil {
				return err
			}
			if index >= uint64(len(done)) || done[index] {
				return corrupt("index of a result")
			}
			done[index] = true
			if exc != nil {
				refuse(p.muts[index:index+1], exc)
			}
		case 2:
			var e pair
			if err := e.parse(b); err != nil {
				return err
			}
			whole = newRemoteError(string(e.first), e.second)
		}
		return nil
	})
	if err != nil {
		return err
	}
	var rest []int
	for k, i := range p.muts {
		if !done[k] {
			rest = append(rest, i)
		}
	}
	switch {
	case len(rest) == 0:
	case whole != nil:
		refuse(rest, whole)
	default:
		again(rest, &connError{p.region.Addr, errors.New("no result for a mutation")})
	}
	return nil
}

func parseResultOrException(data []byte) (index uint64, exc *RemoteError, err error) {
	err = fields(data, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1:
			index = v
		case 3:
			var e pair
			if err := e.parse(b); err != nil {
				return err
			}
			exc = newRemoteError(string(e.first), e.second)
		}
		return nil
	})
	return index, exc, err
}
