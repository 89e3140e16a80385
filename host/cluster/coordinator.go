package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/datalink-go/datalink/coordination"
)

// Coordinator campaigns for a session and leads while it is elected.
type Coordinator struct {
	Store   Store
	Session Session
	Config  Config
	Log     *slog.Logger
	// OnLook hears of each look of the leader: how long it took and what changed.
	// Nil = nobody.
	OnLook func(took time.Duration, out Outcome)
	// Now is the wall clock if nil.
	Now func() time.Time
}

// reportEvery is how often a leader reads what workers report without being told of
// a change.
const reportEvery = 10 * time.Second

// leastPause parts two looks: what changes together is looked at together.
const leastPause = 30 * time.Millisecond

// Run leads or waits to lead until ctx ends or the session is lost.
func (c *Coordinator) Run(ctx context.Context) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-c.Session.Lost():
			cancel()
		case <-ctx.Done():
		}
	}()
	for ctx.Err() == nil {
		changed, err := c.Store.Changes(ctx, coordination.Topic{Folder: coordination.LeaderFolder, Note: coordination.LeaderNote})
		var term uint64
		if err == nil {
			term, err = c.Session.Campaign(ctx)
		}
		switch {
		case err == nil:
			c.Log.Info("this worker leads", "term", term)
			err = c.lead(ctx, term)
			if ctx.Err() == nil {
				c.Log.Warn("this worker leads no more", "term", term, "cause", err)
			}
		case errors.Is(err, coordination.ErrHeld):
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		case ctx.Err() == nil:
			c.Log.Warn("campaign", "cause", err)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// lead looks and writes the plan until something ends its term.
func (c *Coordinator) lead(ctx context.Context, term uint64) error {
	var s State
	for {
		changed, err := c.Store.Changes(ctx, coordination.Members, coordination.AllTasks, coordination.Topic{Folder: ReportFolder},
			coordination.Topic{Folder: LeavingFolder}, coordination.Topic{Folder: DrainFolder}, coordination.Topic{Folder: EvenFolder})
		if err != nil {
			return err
		}
		began := time.Now()
		next, err := c.look(ctx, &s, term)
		if err != nil {
			return err
		}
		wait := reportEvery
		if next > 0 {
			wait = min(wait, next)
		}
		timer := time.NewTimer(wait)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if rest := leastPause - time.Since(began); rest > 0 {
			select {
			case <-time.After(rest):
			case <-ctx.Done():
			}
		}
	}
}

// look sees, judges and writes.
func (c *Coordinator) look(ctx context.Context, s *State, term uint64) (time.Duration, error) {
	v, was, requests, err := c.see(ctx)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	next, out := Step(*s, *v)
	took := time.Since(began)
	notes := map[string][]byte{}
	for _, w := range out.Changed {
		of := out.Plan.Of(w)
		if len(of) == 0 && !slices.ContainsFunc(v.Members, func(m Present) bool { return m.ID == w }) {
			notes[w] = nil
			continue
		}
		if notes[w], err = json.Marshal(Assigned{Term: term, Tasks: of}); err != nil {
			return 0, err
		}
	}
	if !maps.Equal(was, out.Plan.Unplaced) {
		if notes[waitingNote], err = json.Marshal(Waiting{out.Plan.Unplaced}); err != nil {
			return 0, err
		}
		for name, why := range out.Plan.Unplaced {
			c.Log.Warn("task waits for a worker", "task", name, "cause", why)
		}
	}
	if err := c.write(ctx, term, notes); err != nil {
		return 0, err
	}
	*s = next
	for _, r := range requests {
		if err := c.Store.Remove(ctx, EvenFolder, r); err != nil {
			return 0, err
		}
	}
	if len(out.Changed) > 0 {
		c.Log.Info("tasks are assigned", "workers", len(v.Members), "tasks", len(out.Plan.Place), "changed", out.Changed)
	}
	if c.OnLook != nil {
		c.OnLook(took, out)
	}
	return out.Next, nil
}

// write stores the notes in parts that fit into one request. A move whose halves
// come one after the other is no danger: the task's status node parts the two.
func (c *Coordinator) write(ctx context.Context, term uint64, notes map[string][]byte) error {
	const most = 512 << 10
	part, size := map[string][]byte{}, 0
	for _, name := range slices.Sorted(maps.Keys(notes)) {
		if size += len(notes[name]); size > most && len(part) > 0 {
			if err := c.Session.PutAs(ctx, term, PlanFolder, part); err != nil {
				return err
			}
			part, size = map[string][]byte{}, len(notes[name])
		}
		part[name] = notes[name]
	}
	if len(part) == 0 {
		return nil
	}
	return c.Session.PutAs(ctx, term, PlanFolder, part)
}

// see reads all that Step judges.
func (c *Coordinator) see(ctx context.Context) (v *View, waiting map[string]string, requests []string, err error) {
	v = &View{Now: c.Now(), Config: c.Config}
	if v.Plan, waiting, _, err = PlanOf(ctx, c.Store); err != nil {
		return nil, nil, nil, err
	}
	members, err := c.Store.Workers(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	reports, err := readFolder[Report](ctx, c.Store, ReportFolder)
	if err != nil {
		return nil, nil, nil, err
	}
	leaving, err := readFolder[json.RawMessage](ctx, c.Store, LeavingFolder)
	if err != nil {
		return nil, nil, nil, err
	}
	drained, err := readFolder[json.RawMessage](ctx, c.Store, DrainFolder)
	if err != nil {
		return nil, nil, nil, err
	}
	if v.Even, requests, err = evenRequests(ctx, c.Store); err != nil {
		return nil, nil, nil, err
	}
	weights := map[string]int{}
	for _, m := range members {
		r := reports[m.ID]
		has := make(map[string]bool, len(r.Plugins))
		for _, p := range r.Plugins {
			has[p] = true
		}
		for t, w := range r.Tasks {
			weights[t] = w
		}
		_, goes := leaving[m.ID]
		_, drain := drained[m.ID]
		v.Members = append(v.Members, Present{ID: m.ID, Groups: Groups(m.Group), Has: has, Leaving: goes || drain})
	}
	defs, err := c.Store.Tasks(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, d := range defs {
		if d.Desired != coordination.Running {
			continue
		}
		group := d.Group
		if group == "" {
			group = DefaultGroup
		}
		v.Tasks = append(v.Tasks, Task{Name: d.Name, Group: group, Needs: d.Needs, Weight: weights[d.Name]})
	}
	return v, waiting, requests, nil
}
