package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/conformance"
)

// store is a folder as the conformance kit wants to see it.
type store struct{ dir string }

func (s store) Open(context.Context) (sdk.Target, error) { return open(sdk.Env{}, Config{Dir: s.dir}) }
func (s store) Close(context.Context) error              { return os.RemoveAll(s.dir) }

func (s store) Rows(_ context.Context, sc *batch.Schema) ([]string, error) {
	files, err := filepath.Glob(filepath.Join((&writer{s.dir}).folder(sc), "*.json"))
	if err != nil {
		return nil, err
	}
	var rows []string
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		var row map[string]*string
		if err := json.Unmarshal(data, &row); err != nil {
			return nil, err
		}
		var cells []string
		for _, c := range sc.Columns {
			cell := conformance.Null
			if row[c.Name] != nil {
				cell = *row[c.Name]
			}
			cells = append(cells, cell)
		}
		rows = append(rows, strings.Join(cells, "|"))
	}
	return rows, nil
}

// The kit duplicates, cuts and kills as a host in trouble does.
func TestConformance(t *testing.T) {
	conformance.Run(t, &conformance.Subject{Name: "jsonfiles", New: func(context.Context) (conformance.Store, error) {
		return store{t.TempDir()}, nil
	}})
}
