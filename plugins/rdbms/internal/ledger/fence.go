package ledger

import (
	"github.com/datalink-go/datalink/sdk"
)

// Refusal says why the fence of batch n in a lane matched no row. Row is what
// is there, nil where nothing is.
func (s *Session) Refusal(lane int32, n uint64, row *Row) *sdk.Fault {
	if row == nil {
		return sdk.Faultf(sdk.CodeTargetWentBack,
			"batch %d of task %s, writer %s, lane %d: the target has no progress row; claim %d of execution %s wrote one", n, s.Task, s.Writer, lane, s.ClaimNo, s.Execution).
			Suggest("the target was replaced or restored: restart the task to continue from what it holds now, or empty it and start over")
	}
	mine := row.Execution == s.Execution && row.Epoch == s.Epoch && row.ClaimNo == s.ClaimNo
	switch {
	case row.Released:
		f := sdk.Faultf(sdk.CodeFenced, "batch %d of task %s, writer %s, lane %d: the task was released from the target", n, s.Task, s.Writer, lane)
		f.Claimant = row.Claimant()
		return f
	case !mine && row.ClaimNo < s.ClaimNo, mine && row.BatchNo+1 < n:
		return sdk.Faultf(sdk.CodeTargetWentBack,
			"batch %d of task %s, writer %s, lane %d: the target holds batch %d of claim %d (execution %s, epoch %d); this is claim %d (execution %s, epoch %d), which had stored batch %d",
			n, s.Task, s.Writer, lane, row.BatchNo, row.ClaimNo, row.Execution, row.Epoch, s.ClaimNo, s.Execution, s.Epoch, n-1).
			Suggest("the target was put back to an older copy: restart the task, it continues from what the target holds now")
	case mine:
		return sdk.Faultf(sdk.CodeFenced, "batch %d of task %s, writer %s, lane %d: batch %d is stored already", n, s.Task, s.Writer, lane, row.BatchNo)
	}
	f := sdk.Faultf(sdk.CodeFenced,
		"batch %d of task %s, writer %s, lane %d: execution %s claimed the target with epoch %d (claim %d, task uid %s, store %s); this is execution %s with epoch %d (claim %d)",
		n, s.Task, s.Writer, lane, row.Execution, row.Epoch, row.ClaimNo, row.TaskUID, row.StoreUID, s.Execution, s.Epoch, s.ClaimNo)
	f.Claimant = row.Claimant()
	return f
}

// Holds reports whether the row is that of the session.
func (s *Session) Holds(row *Row) bool {
	return row != nil && !row.Released && row.Execution == s.Execution && row.Epoch == s.Epoch && row.ClaimNo == s.ClaimNo &&
		row.TaskUID == s.TaskUID && row.StoreUID == s.StoreUID
}
