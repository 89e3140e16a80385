package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/datalink-go/datalink/coordination"
)

// Store is what a cluster needs of a coordination store.
type Store interface {
	coordination.Board
	Workers(ctx context.Context) ([]coordination.Worker, error)
	Tasks(ctx context.Context) ([]coordination.Definition, error)
}

// Session is what it needs of a session.
type Session interface {
	coordination.Session
	coordination.Candidate
}

// Folders of the board.
const (
	PlanFolder    = "plan"      // WORKER → Assigned; "-" → Waiting
	ReportFolder  = "reports"   // WORKER → Report, with the session
	LeavingFolder = "leaving"   // WORKER: hands over all it has, with the session
	DrainFolder   = "drain"     // WORKER: the same, on an operator's word
	EvenFolder    = "rebalance" // GROUP, a blank, ID: even out the group's load once
	HoldFolder    = "holds"     // TASK → worker under whose hands it is, with the session
	OrderFolder   = "orders"    // TASK → Order
)

// waitingNote is the note of tasks that are nowhere.
const waitingNote = "-"

// Assigned is what a worker is to run.
type Assigned struct {
	Term  uint64   `json:"term"` // of the leader that said so last
	Tasks []string `json:"tasks"`
}

// Waiting is why tasks are nowhere.
type Waiting struct {
	Tasks map[string]string `json:"tasks"`
}

// Report is what a worker says of itself.
type Report struct {
	Plugins []string       `json:"plugins"`         // NAME, and NAME@SHA256
	Tasks   map[string]int `json:"tasks,omitempty"` // weights of what it runs
}

// Order is something that the worker of a task is to do.
type Order struct {
	Do string `json:"do"` // restart, take-over
	ID string `json:"id"`
}

// read decodes a folder; a note that is damaged is an error.
func readFolder[T any](ctx context.Context, b coordination.Board, folder string) (map[string]T, error) {
	notes, err := b.Notes(ctx, folder)
	if err != nil {
		return nil, err
	}
	out := make(map[string]T, len(notes))
	for _, n := range notes {
		var v T
		if len(n.Value) > 0 {
			if err := json.Unmarshal(n.Value, &v); err != nil {
				return nil, fmt.Errorf("note %s/%s: %w", folder, n.Name, err)
			}
		}
		out[n.Name] = v
	}
	return out, nil
}

// PlanOf returns the plan that is in force and why tasks wait.
func PlanOf(ctx context.Context, b coordination.Board) (place map[string]string, waiting map[string]string, terms map[string]Assigned, err error) {
	notes, err := b.Notes(ctx, PlanFolder)
	if err != nil {
		return nil, nil, nil, err
	}
	place, terms = map[string]string{}, map[string]Assigned{}
	for _, n := range notes {
		if n.Name == waitingNote {
			var w Waiting
			if err := json.Unmarshal(n.Value, &w); err != nil {
				return nil, nil, nil, fmt.Errorf("plan: %w", err)
			}
			waiting = w.Tasks
			continue
		}
		var a Assigned
		if err := json.Unmarshal(n.Value, &a); err != nil {
			return nil, nil, nil, fmt.Errorf("plan of worker %s: %w", n.Name, err)
		}
		terms[n.Name] = a
		for _, t := range a.Tasks {
			place[t] = n.Name
		}
	}
	return place, waiting, terms, nil
}

// Mine returns what a worker is to run.
func Mine(ctx context.Context, b coordination.Board, worker string) ([]string, error) {
	data, err := b.Note(ctx, PlanFolder, worker)
	if err != nil || data == nil {
		return nil, err
	}
	var a Assigned
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, fmt.Errorf("plan of worker %s: %w", worker, err)
	}
	return a.Tasks, nil
}

// evenRequests reads the requests to even out groups: group → id, and their notes.
func evenRequests(ctx context.Context, b coordination.Board) (map[string]string, []string, error) {
	notes, err := b.Notes(ctx, EvenFolder)
	if err != nil {
		return nil, nil, err
	}
	out := map[string]string{}
	var names []string
	for _, n := range notes {
		group, id, _ := strings.Cut(n.Name, " ")
		out[group] = id
		names = append(names, n.Name)
	}
	return out, names, nil
}
