package scan_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/scan"
	"github.com/datalink-go/datalink/sdk"
)

// testCharsets reads text of other character sets: as UTF-8, and as it is stored
// where it has no Unicode character. Each text is a key too, whose chunks hold one
// row.
func testCharsets(t *testing.T, s *store) {
	for _, set := range []struct {
		name string
		rows [][2]string // stored bytes and what is read
	}{
		{"sjis", [][2]string{{"", ""}, {"61", "a"}, {"61F040", "sjis 61F040"}, {"61F041", "sjis 61F041"}, {"815FB1835C", "\\ｱソ"}, {"F040", "sjis F040"}}},
		{"cp932", [][2]string{{"61F040", "a\ue000"}, {"815F", "＼"}}},
		{"latin1", [][2]string{{"80", "€"}, {"81", "\u0081"}, {"E9", "é"}}},
		{"greek", [][2]string{{"61AE", "greek 61AE"}, {"E1", "α"}}},
		{"swe7", [][2]string{{"5B", "Ä"}}},
		{"ucs2", [][2]string{{"006100E9", "aé"}, {"0061D800", "ucs2 0061D800"}}},
		{"utf16", [][2]string{{"D83DDE00", "😀"}}},
		{"utf8mb3", [][2]string{{"C3A9", "é"}}},
		{"utf8mb4", [][2]string{{"F09F9880", "😀"}}},
		{"ascii", [][2]string{{"41", "A"}}},
	} {
		t.Run(set.name, func(t *testing.T) {
			table := "set_" + set.name
			s.run(fmt.Sprintf("CREATE TABLE %s (k VARCHAR(20) CHARACTER SET %[2]s PRIMARY KEY, v TEXT CHARACTER SET %[2]s, e ENUM('é', 'x') CHARACTER SET %[3]s);",
				table, set.name, map[bool]string{true: set.name, false: "latin1"}[set.name == "ucs2" || set.name == "utf16"]))
			var want []string
			for _, r := range set.rows {
				s.run(fmt.Sprintf("INSERT INTO %s VALUES (x'%[2]s', x'%[2]s', 1);", table, r[0]))
				want = append(want, r[1]+"\t"+r[1]+"\té")
			}
			f, err := scan.NewFilter([]string{"*." + table})
			if err != nil {
				t.Fatal(err)
			}
			db, err := s.open(scan.Selection{Filter: f})
			if err != nil {
				t.Fatal(err)
			}
			r := scan.NewReader(db, scan.Options{Parallel: 1, Rows: 1, Bytes: 1 << 20})
			defer r.Close(context.Background())
			all := read(t, r, sdk.Position{}, 0)
			got := all.rows[s.ns+table]
			slices.Sort(got)
			slices.Sort(want)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if n := all.ranges[s.ns+table]; n < len(want) {
				t.Errorf("got %d chunks, want one for each of %d rows", n, len(want))
			}
		})
	}
}
