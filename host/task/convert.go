package task

import (
	"errors"
	"slices"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

func toStore(p sdk.Position) coordination.Position {
	return coordination.Position{Format: p.Format, Version: p.Version, Source: slices.Clone(p.Source), Ordinal: p.Ordinal}
}

func fromStore(p coordination.Position) sdk.Position {
	return sdk.Position{Format: p.Format, Version: p.Version, Source: p.Source, Ordinal: p.Ordinal}
}

func claimedOf(p coordination.Progress) *sdk.Claimed {
	c := &sdk.Claimed{Ceiling: p.Ceiling}
	for _, x := range p.Points {
		c.Points = append(c.Points, sdk.Point{Writer: p.Writer, Lane: x.Lane, BatchNo: x.BatchNo, Position: fromStore(x.Position)})
	}
	for _, x := range p.Items {
		c.State = append(c.State, batch.StateItem{Key: x.Key, Version: x.Version, Value: x.Value})
	}
	for _, d := range p.DeadLetters {
		c.DeadLetters = append(c.DeadLetters, sdk.DeadLetter{
			Number: d.Number, Table: d.Table, Key: d.Key, Record: d.Record, Position: fromStore(d.Position), At: d.At,
			Fault: sdk.Fault{Code: sdk.Code(d.Fault.Code), Message: d.Fault.Message, Retryable: d.Fault.Retryable, Suggestion: d.Fault.Suggestion},
		})
	}
	return c
}

func letterToStore(d *sdk.DeadLetter) coordination.DeadLetter {
	return coordination.DeadLetter{
		Number: d.Number, Table: d.Table, Key: d.Key, Record: d.Record, Position: toStore(d.Position), At: d.At,
		Fault: coordination.Fault{Code: string(d.Fault.Code), Message: d.Fault.Message, Retryable: d.Fault.Retryable, Suggestion: d.Fault.Suggestion},
	}
}

// faultOf classifies an error of the coordination store.
func faultOf(err error) *sdk.Fault {
	var fenced *coordination.FencedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &fenced):
		f := sdk.Faultf(sdk.CodeFenced, "%s", err)
		if fenced.Found != nil {
			f.Claimant = &sdk.Claimant{
				Execution: fenced.Found.ExecutionID, Epoch: fenced.Found.Epoch, TaskUID: fenced.Found.TaskUID, Worker: fenced.Found.Worker,
			}
		}
		return f
	case errors.Is(err, coordination.ErrHeld), errors.Is(err, coordination.ErrVersion), errors.Is(err, coordination.ErrExists):
		return sdk.Faultf(sdk.CodeRefused, "%s", err)
	case errors.Is(err, coordination.ErrNotFound):
		return sdk.Faultf(sdk.CodeRefused, "%s", err).Suggest("the task was deleted meanwhile: apply its file again")
	case errors.Is(err, coordination.ErrInvalid):
		return sdk.Faultf(sdk.CodeInvalidConfig, "%s", err)
	case errors.Is(err, coordination.ErrSessionLost):
		return sdk.Faultf(sdk.CodeFenced, "%s", err)
	}
	return sdk.Faultf(sdk.CodeUnavailable, "coordination store: %s", err).Retry()
}
