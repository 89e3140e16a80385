package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/conformance"
)

func fileOf(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "people.csv")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// The kit opens the reader at every position, for one writer and for several.
func TestConformance(t *testing.T) {
	name := fileOf(t, "id,name,town\n1,Ann,Oslo\n2,Bob,\n\n3,\"Cleo, \"\"C\"\"\",\"New\nYork\"\n4,Dora,Bonn\n")
	conformance.RunReader(t, &conformance.ReaderSubject{Name: "csvlines", New: func(context.Context) (sdk.Reader, error) {
		return open(sdk.Env{}, Config{File: name, Table: "people"})
	}})
}

func TestFaults(t *testing.T) {
	for _, test := range []struct{ name, text, at, want string }{
		{"too few fields", "id,name\n1\n", "", "after byte 8"},
		{"no first line", "", "", "first line of"},
		{"file cut off", "id\n1\n", "byte 99", "has 5 bytes, the position is byte 99"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := open(sdk.Env{}, Config{File: fileOf(t, test.text), Table: "t"})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close(t.Context())
			var points []sdk.Point
			if test.at != "" {
				p, err := r.ParsePosition(test.at)
				if err != nil {
					t.Fatal(err)
				}
				points = []sdk.Point{{Position: p}}
			}
			err = r.Open(t.Context(), sdk.Execution{}, points, nil)
			if err == nil {
				err = r.Next(t.Context(), batch.NewBuilder(batch.Limits{}))
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}
