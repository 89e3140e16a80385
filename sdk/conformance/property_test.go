package conformance_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/conformance"
	"github.com/datalink-go/datalink/sdk/conformance/reference"
)

// drawer draws from rapid.
type drawer struct{ t *rapid.T }

func (d drawer) Int(lo, hi int) int { return rapid.IntRange(lo, hi).Draw(d.t, "n") }

type databaseStore struct{ db *reference.Database }

func (s databaseStore) Open(context.Context) (sdk.Target, error) {
	return reference.NewTransactional(s.db), nil
}

func (s databaseStore) Rows(_ context.Context, sc *batch.Schema) ([]string, error) {
	return conformance.TextRows(sc, s.db.Cells(sc)), nil
}

func (s databaseStore) Close(context.Context) error { return nil }

func (s databaseStore) Copy(context.Context) (func(context.Context) error, error) {
	c := s.db.Copy()
	return func(context.Context) error { s.db.Restore(c); return nil }, nil
}

func transactional(lanes ...int32) *conformance.Subject {
	return &conformance.Subject{
		Name: "transactional", Lanes: lanes, Append: true, Match: true,
		New: func(context.Context) (conformance.Store, error) {
			db := reference.NewDatabase()
			db.Shuffle = rand.New(rand.NewPCG(7, 7))
			for _, s := range conformance.Schemas() {
				db.Define(s)
			}
			return databaseStore{db}, nil
		},
	}
}

type cellsStore struct{ cells *reference.Cells }

func (s cellsStore) Open(context.Context) (sdk.Target, error) {
	return reference.NewVersioned(s.cells), nil
}
func (s cellsStore) Close(context.Context) error { return nil }
func (s cellsStore) Rows(_ context.Context, sc *batch.Schema) ([]string, error) {
	return conformance.TextRows(sc, s.cells.Cells(sc)), nil
}

type rowsStore struct{ rows *reference.Rows }

func (s rowsStore) Open(context.Context) (sdk.Target, error) {
	return reference.NewIdempotent(s.rows), nil
}
func (s rowsStore) Close(context.Context) error { return nil }
func (s rowsStore) Rows(_ context.Context, sc *batch.Schema) ([]string, error) {
	return conformance.TextRows(sc, s.rows.Cells(sc)), nil
}

func versioned() *conformance.Subject {
	return &conformance.Subject{Name: "versioned", New: func(context.Context) (conformance.Store, error) { return cellsStore{reference.NewCells()}, nil }}
}

func idempotent() *conformance.Subject {
	return &conformance.Subject{Name: "idempotent", New: func(context.Context) (conformance.Store, error) { return rowsStore{reference.NewRows()}, nil }}
}

func TestProperties(t *testing.T) {
	tests := []struct {
		name string
		sub  *conformance.Subject
		sc   conformance.Scenario
	}{
		{"one lane, no crash", transactional(1), conformance.Scenario{Rounds: -1}},
		{"one lane", transactional(1), conformance.Scenario{Faults: true, Splits: true}},
		{"one lane, failover", transactional(1), conformance.Scenario{Reorder: true, Splits: true}},
		{"four lanes, no crash", transactional(4), conformance.Scenario{Rounds: -1}},
		{"four lanes", transactional(4), conformance.Scenario{Faults: true, Splits: true}},
		{"four lanes, failover", transactional(4), conformance.Scenario{Reorder: true, Splits: true}},
		{"lanes change", transactional(1, 2, 4), conformance.Scenario{Splits: true}},
		{"lanes change, failover", transactional(1, 2, 4), conformance.Scenario{Reorder: true, Faults: true}},
		{"one lane, refusals", transactional(1), conformance.Scenario{Refusals: true, Splits: true}},
		{"four lanes, refusals", transactional(4), conformance.Scenario{Refusals: true, Splits: true, Faults: true}},
		{"lanes change, refusals", transactional(1, 4), conformance.Scenario{Refusals: true, Reorder: true, Splits: true}},
		{"versioned", versioned(), conformance.Scenario{}},
		{"idempotent", idempotent(), conformance.Scenario{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				if err := conformance.Random(context.Background(), tt.sub, drawer{rt}, tt.sc); err != nil {
					rt.Fatal(err)
				}
			})
		})
	}
}
