package config_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/host/config"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestBadFiles compares what is said about wrong files. A file with several names
// in its first comment ("# with: a.yaml b.yaml") is loaded together with them.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.bad.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test files: %v", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			load := []string{f}
			if line, _, _ := strings.Cut(string(data), "\n"); strings.HasPrefix(line, "# with: ") {
				for _, n := range strings.Fields(line[8:]) {
					load = append(load, filepath.Join("testdata", n))
				}
			}
			_, err = config.Load(load...)
			if err == nil {
				t.Fatalf("no problem found in %s, want some", f)
			}
			golden := strings.TrimSuffix(f, ".yaml") + ".golden"
			got := err.Error() + "\n"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("problems of %s (-want +got):\n%s", f, d)
			}
		})
	}
}
