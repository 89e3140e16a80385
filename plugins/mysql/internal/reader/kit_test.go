package reader

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/conformance"
)

// TestConformance opens the reader at positions of recorded logs, between and
// inside of transactions, for one writer and for several.
func TestConformance(t *testing.T) {
	logs, err := filepath.Abs("../../../../examples/quickstart/binlogs")
	if err != nil {
		t.Fatal(err)
	}
	for _, files := range []string{"mysql97.00000?", "mysql97-compressed.00000?", "mysql97-minimal.00000?", "mariadb1011.00000?", "mariadb1011-domains.00000?"} {
		t.Run(files, func(t *testing.T) {
			conformance.RunReader(t, &conformance.ReaderSubject{Name: files, New: func(context.Context) (sdk.Reader, error) {
				return New(sdk.Env{}, Config{Files: sdk.Strings{filepath.Join(logs, files)}, OnStatement: "ignore", OnUnknownTable: "positional", Start: "earliest"})
			}})
		})
	}
}
