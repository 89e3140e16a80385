package reader

import (
	"fmt"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/examples/stack"
)

// TestCharsetsBesideOthers has columns of character sets that disagree about every
// byte above 127 beside one of each other type: which columns have a place in the
// log's list of character sets depends on server and type, as does which have one in
// the list of signs.
func TestCharsetsBesideOthers(t *testing.T) {
	types := []string{
		"INT", "BIT(9)", "YEAR", "DATETIME(3)", "DECIMAL(10,2)", "VARBINARY(20)", "BINARY(4)", "BLOB", "CHAR(5)", "LONGTEXT",
		"ENUM('é') CHARACTER SET latin1", "SET('é') CHARACTER SET latin1", "JSON", "GEOMETRY", "POINT", "TIMESTAMP(6) NULL",
	}
	only := map[string][]string{"mysql": {"VECTOR(3)"}, "mariadb": {"UUID", "INET6", "INET4", "VARCHAR(20) COMPRESSED", "BLOB COMPRESSED"}}
	for _, kind := range []string{"mysql", "mariadb"} {
		t.Run(kind, func(t *testing.T) {
			s := stack.Start(t, kind)
			cfg := liveConfig("latest", s.Addr())
			cfg.Tables = []string{"a.*"}
			p := pull(t, cfg, nil, nil)
			var sql strings.Builder
			sql.WriteString("SET NAMES utf8mb4; CREATE DATABASE a;\n")
			want := map[string]string{}
			for i, metadata := range []string{"FULL", "MINIMAL"} {
				fmt.Fprintf(&sql, "SET GLOBAL binlog_row_metadata = %s;\n", metadata)
				for k, typ := range append(types, only[kind]...) {
					// First, in the middle, last: which of the forms of the list the server
					// takes depends on how many columns share a set.
					for place, cols := range []string{"o %s, x %s, y %s, z %s", "x %[2]s, o %[1]s, y %[3]s, z %[4]s", "x %[2]s, y %[3]s, z %[4]s, o %[1]s"} {
						name := fmt.Sprintf("t%d_%d_%d", i, k, place)
						one := func(set string) string { return "VARCHAR(9) CHARACTER SET " + set }
						def := fmt.Sprintf(cols, typ, one("cp1250"), one("koi8r"), one("latin1"))
						fmt.Fprintf(&sql, "CREATE TABLE a.%s (id INT PRIMARY KEY, %s, n INT, u BIGINT UNSIGNED); INSERT INTO a.%s (id, x, y, z, n, u) VALUES (1, 'Łź', 'Жя', 'éÿ', -1, 18446744073709551615);\n", name, def, name)
						want["a."+name] = typ + ", " + metadata
					}
				}
			}
			s.SQL(sql.String(), "--default-character-set=utf8mb4")
			for name, what := range want {
				p.until(name, p.has(name, 1))
				row := p.rows(name)[0]
				for _, text := range []string{"Łź", "Жя", "éÿ", "|-1|18446744073709551615"} {
					if !strings.Contains(row, text) {
						t.Errorf("beside %s, in %s: the row is %q, want %q in it", what, name, row, text)
					}
				}
			}
		})
	}
}
