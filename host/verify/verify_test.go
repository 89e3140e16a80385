package verify_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/host/verify"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// tables is a source of which nothing is read.
type tables struct {
	verify.Source
	list []*batch.Schema
}

func (s tables) Tables(context.Context) ([]*batch.Schema, error) { return s.list, nil }

// A pattern without a table must not look as if all were equal.
func TestPatternOfNoTable(t *testing.T) {
	cfg := verify.Config{
		Source: tables{list: []*batch.Schema{{ID: 1, Version: 1, Namespace: "shop", Table: "orders", Columns: []batch.Column{{Name: "id", Type: batch.Int32}}}}},
		Wants:  func(name string) bool { return strings.HasPrefix(name, "nope.") },
	}
	if err := verify.Run(t.Context(), cfg, &verify.State{}); !errors.Is(err, sdk.Faultf(sdk.CodeUnknownTable, "")) {
		t.Errorf("got %v", err)
	}
	cfg.Wants = func(name string) bool { return name == "shop.orders" }
	if err := verify.Run(t.Context(), cfg, &verify.State{}); err != nil {
		t.Error(err)
	}
}
