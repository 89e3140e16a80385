package ledger

import (
	"github.com/datalink-go/datalink/sdk"
)

// Row is one row of datalink_progress.
type Row struct {
	Task      string
	TaskUID   string
	Writer    string
	Lane      int32
	StoreUID  string
	Epoch     uint64
	Execution string
	ClaimNo   uint64
	BatchNo   uint64
	Position  string // see EncodePosition; "" = nothing yet
	Lanes     int32
	Mapping   string
	Released  bool
}

// Session is a claim in force: what each write has to find in its row.
type Session struct {
	Task, TaskUID, Writer, StoreUID string
	Execution                       string
	Epoch, ClaimNo                  uint64
	Lanes                           int32  // in force
	Mapping                         string // in force
}

// Claimant names the owner of the row for faults.
func (r *Row) Claimant() *sdk.Claimant {
	return &sdk.Claimant{Execution: r.Execution, Epoch: r.Epoch, TaskUID: r.TaskUID, StoreUID: r.StoreUID}
}

// Point returns the row's progress.
func (r *Row) Point() (sdk.Point, error) {
	p, err := DecodePosition(r.Position)
	if err != nil {
		return sdk.Point{}, sdk.Faultf(sdk.CodeInvalidPosition, "progress of task %s, writer %s, lane %d: %v", r.Task, r.Writer, r.Lane, err)
	}
	return sdk.Point{Writer: r.Writer, Lane: r.Lane, BatchNo: r.BatchNo, Position: p}, nil
}
