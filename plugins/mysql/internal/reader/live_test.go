package reader

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// TestLiveRecord has real servers write files anew and compares what the reader
// makes of them with go-mysql, and with what the server itself prints.
func TestLiveRecord(t *testing.T) {
	for _, c := range []struct {
		name, kind string
		options    []string
	}{
		{"mysql", "mysql", nil},
		{"mysql-minimal", "mysql", []string{"--binlog-row-metadata=MINIMAL", "--binlog-transaction-compression=ON"}},
		{"mariadb", "mariadb", nil},
		{"mariadb-nolog", "mariadb", []string{"--binlog-row-metadata=NO_LOG", "--log-bin-compress=1", "--log-bin-compress-min-len=10"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := stack.Start(t, c.kind, append(c.options, "--log-bin=live")...)
			srv.SQL(liveSQL(c.kind == "mariadb"))
			files := filepath.Join(srv.Facts["datadir"], "live.0*")
			m := newModel(t)
			if err := collect(t, Config{Files: sdk.Strings{files}}, func(_ *batch.Tx, e *batch.Event) { m.apply(e) }); err != nil {
				t.Fatal(err)
			}
			// The server prints each row as text; the model has the same.
			printed := srv.SQL("SELECT CONCAT_WS('|', id, IFNULL(s, 'NULL'), IFNULL(d, 'NULL'), IFNULL(dt, 'NULL'), IFNULL(t, 'NULL'), IFNULL(j, 'NULL'), IFNULL(e, 'NULL')) FROM live.v ORDER BY id;", "-N", "--default-character-set=utf8mb4")
			want := strings.Split(strings.TrimSpace(printed), "\n")
			got := map[string]bool{}
			for _, r := range m.table("live.v").rows {
				var cells []string
				for _, v := range r.values {
					if v == null {
						v = "NULL"
					}
					cells = append(cells, strings.NewReplacer(`\`, `\\`).Replace(v))
				}
				got[strings.Join(cells, "|")] = true
			}
			for _, w := range want {
				if !got[w] {
					t.Errorf("no row is %q in %v", w, got)
				}
			}
			if len(got) != len(want) || len(want) < 50 {
				t.Errorf("%d rows, the server has %d", len(got), len(want))
			}
			paths, _ := filepath.Glob(files)
			for _, p := range paths {
				compareFile(t, p)
			}
		})
	}
}

// liveSQL makes a table and rows of many values, doubles in JSON among them.
func liveSQL(maria bool) string {
	var b strings.Builder
	b.WriteString("SET NAMES utf8mb4; SET time_zone = '+00:00'; CREATE DATABASE live CHARACTER SET utf8mb4; USE live;\n")
	b.WriteString("CREATE TABLE v (id INT UNSIGNED PRIMARY KEY, s VARCHAR(40) CHARACTER SET gbk, d DECIMAL(20,6), dt DATETIME(3), t TIME(2), j JSON, e ENUM('é','b'));\n")
	doubles := []string{"0.0", "1e15", "1e14", "123456789012345680000.0", "1e-5", "1e-14", "1e-15", "1e-16", "123.456e-20", "0.1", "1.7976931348623157e308", "5e-324", "2.5e15", "999999999999999.9", "1e21", "1.5e300", "-0.0"}
	for i := range 60 {
		j := fmt.Sprintf(`{"n": %s, "i": %d, "s": "男\\n"}`, doubles[i%len(doubles)], i*i*i-5000)
		fmt.Fprintf(&b, "INSERT INTO v VALUES (%d, '中%d', %d.%06d, '2024-02-%02d 01:02:03.%03d', '%s%d:59:%02d.%02d', '%s', '%s');\n",
			4294967295-i, i, i*7919-1000, i*997, 1+i%29, i, []string{"", "-"}[i%2], i*13, i, i, j, []string{"é", "b"}[i%2])
	}
	b.WriteString("UPDATE v SET s = NULL, e = NULL WHERE id % 7 = 0; DELETE FROM v WHERE id % 11 = 0; UPDATE v SET id = id - 1000 WHERE id % 5 = 1;\n")
	if maria {
		b.WriteString("CREATE TABLE u (id UUID PRIMARY KEY, a INET6); INSERT INTO u VALUES (UUID(), '::1'), ('6ccd780c-baba-1026-9564-5b8c656024db', '2001:db8::');\n")
	}
	return b.String()
}
