package ledger

import (
	"slices"

	"github.com/datalink-go/datalink/sdk"
)

// Claim is what a claim writes.
type Claim struct {
	Session Session
	Rows    []Row   // as they are after the claim, the writer's own row first
	Drop    []int32 // lanes that are no longer there
	Fresh   bool    // nothing of an earlier owner counts: reader state and dead letters go
	From    *Row    // whose rows were taken over, nil where that was none
}

// Decide says whether ex may claim the rows of (task, writer) and what the rows
// are then. Lanes is the count that the execution gets where it asks for none.
// Rows may come in any order.
func Decide(rows []Row, ex sdk.Execution, lanes int32, sw Switches) (*Claim, error) {
	if ex.Lanes > 0 {
		lanes = ex.Lanes
	}
	c := &Claim{Fresh: len(rows) == 0}
	no := uint64(1)
	for i := range rows {
		r := &rows[i]
		no = max(no, r.ClaimNo+1)
		fresh, err := admit(r, ex, sw)
		if err != nil {
			return nil, err
		}
		if fresh {
			c.Fresh = true
		}
		if foreign(r, ex) && c.From == nil {
			c.From = r
		}
	}
	c.Session = Session{
		Task: ex.Task, TaskUID: ex.TaskUID, Writer: ex.Writer, StoreUID: ex.StoreUID,
		Execution: ex.ID, Epoch: ex.Epoch, ClaimNo: no,
	}
	old, err := lanesOf(rows, ex)
	if err != nil {
		return nil, err
	}
	if c.Fresh {
		old = nil
	}
	held, mapping := layout(old, ex, lanes)
	lanes = int32(len(held))
	c.Session.Lanes, c.Session.Mapping = lanes, mapping
	for lane := sdk.WriterLane; lane < lanes; lane++ {
		row := Row{
			Task: ex.Task, TaskUID: ex.TaskUID, Writer: ex.Writer, Lane: lane, StoreUID: ex.StoreUID, Epoch: ex.Epoch,
			Execution: ex.ID, ClaimNo: no, Lanes: lanes, Mapping: mapping,
		}
		if lane >= 0 {
			row.BatchNo, row.Position = held[lane].BatchNo, held[lane].Position
		}
		c.Rows = append(c.Rows, row)
	}
	for i := range rows {
		if rows[i].Lane >= lanes {
			c.Drop = append(c.Drop, rows[i].Lane)
		}
	}
	return c, nil
}

func foreign(r *Row, ex sdk.Execution) bool {
	return r.TaskUID != ex.TaskUID || r.StoreUID != ex.StoreUID
}

// admit says whether ex may claim the row, and whether what the row holds does
// not count for it.
func admit(r *Row, ex sdk.Execution, sw Switches) (fresh bool, err error) {
	if foreign(r, ex) {
		switch {
		case r.Released:
			return true, nil
		case ex.TakeOver, sw.StoreOff:
			return false, nil
		}
		f := sdk.Faultf(sdk.CodeForeignClaim,
			"the target holds progress of task uid %s in store %s (execution %s, epoch %d); this is task uid %s in store %s",
			r.TaskUID, r.StoreUID, r.Execution, r.Epoch, ex.TaskUID, ex.StoreUID).
			Suggest("give this task another name, delete the other one with --release, or take over from it with --take-over, which fences it")
		f.Claimant = r.Claimant()
		return false, f
	}
	switch {
	case sw.EpochOff:
	case ex.Epoch < r.Epoch, ex.Epoch == r.Epoch && ex.ID != r.Execution:
		f := sdk.Faultf(sdk.CodeFenced, "claim of task %s, writer %s: execution %s has epoch %d, the target was claimed by execution %s with epoch %d",
			ex.Task, ex.Writer, ex.ID, ex.Epoch, r.Execution, r.Epoch)
		f.Claimant = r.Claimant()
		return false, f
	case r.Released && ex.Epoch == r.Epoch:
		f := sdk.Faultf(sdk.CodeFenced, "claim of task %s, writer %s: execution %s was released from the target at epoch %d", ex.Task, ex.Writer, ex.ID, r.Epoch)
		f.Claimant = r.Claimant()
		return false, f
	}
	return r.Released, nil
}

// lanesOf returns the lane rows in order, without the writer's own.
func lanesOf(rows []Row, ex sdk.Execution) ([]Row, error) {
	var out []Row
	for _, r := range rows {
		if r.Lane >= 0 {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b Row) int { return int(a.Lane) - int(b.Lane) })
	for i := range out {
		if int(out[i].Lane) != i || len(rows) != len(out)+1 || int(out[i].Lanes) != len(out) {
			return nil, sdk.Faultf(sdk.CodeTargetWentBack, "claim of task %s, writer %s: datalink_progress has %d rows, among them lane %d of %d; expected lanes -1 to %d, each once",
				ex.Task, ex.Writer, len(rows), out[i].Lane, out[i].Lanes, out[i].Lanes-1).
				Suggest("the table was edited or restored in part: restore all of the target, or release the task and start over")
		}
	}
	return out, nil
}

// layout says what each lane has done and under which mapping. Lanes and mapping
// change only where all lanes stand at one position: a change that one old lane
// holds and another lacks has no place in a new layout. Else the old one stays,
// for the engine to drain.
func layout(old []Row, ex sdk.Execution, n int32) ([]Row, string) {
	if len(old) == 0 {
		return make([]Row, n), ex.Mapping
	}
	if len(old) == int(n) && old[0].Mapping == ex.Mapping {
		return old, ex.Mapping
	}
	var batch uint64
	for i := range old {
		batch = max(batch, old[i].BatchNo)
		if old[i].Position != old[0].Position {
			return old, old[0].Mapping
		}
	}
	out := make([]Row, n)
	for i := range out {
		out[i] = Row{BatchNo: batch, Position: old[0].Position}
	}
	return out, ex.Mapping
}
