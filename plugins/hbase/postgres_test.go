package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
)

// everyType is a column for each type that rows of HBase can be given in, and how
// PostgreSQL prints it.
var everyType = []struct{ name, kind, text string }{
	{"b", "bool", "b::int::text"},
	{"i8", "int8", "i8::text"},
	{"i16", "int16", "i16::text"},
	{"i32", "int32", "i32::text"},
	{"i64", "int64", "i64::text"},
	{"u8", "uint8", "u8::text"},
	{"u16", "uint16", "u16::text"},
	{"u32", "uint32", "u32::text"},
	{"u64", "uint64", "u64::text"},
	{"f32", "float32", "(f32 * 4)::bigint::text"},
	{"f64", "float64", "(f64 * 4)::bigint::text"},
	{"n", "decimal, scale: 6", "n::text"},
	{"s", "string", "s::text"},
	{"raw", "bytes", "encode(raw, 'escape')"},
	{"j", "json", "j::text"},
	{"d", "date", "d::text"},
	{"dt", "datetime, scale: 6", "to_char(dt, 'YYYY-MM-DD HH24:MI:SS.US')"},
	{"ts", "timestamp, scale: 6", "to_char(ts::timestamptz AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')"},
}

// valueOf is the text of a cell, and what the comparison expects of it.
func valueOf(kind string, rng *rand.Rand) (cell, want string) {
	kind, _, _ = strings.Cut(kind, ",")
	pick := func(words ...string) (string, string) { w := words[rng.IntN(len(words))]; return w, w }
	switch kind {
	case "bool":
		return pick("0", "1")
	case "int8":
		return pick("-128", "127", "0")
	case "int16":
		return pick("-32768", "32767")
	case "int32":
		return pick("-2147483648", "2147483647")
	case "int64":
		return pick("-9223372036854775808", "9223372036854775807")
	case "uint8":
		return pick("0", "255")
	case "uint16":
		return pick("0", "65535")
	case "uint32":
		return pick("0", "4294967295")
	case "uint64":
		return pick("0", "18446744073709551615")
	case "float32", "float64":
		n := rng.IntN(4000) - 2000
		return fmt.Sprint(float64(n) / 4), fmt.Sprint(n)
	case "decimal":
		return pick("-12345678901234567890.123456", "0.000001", "7.000000")
	case "string":
		return pick("", "é 😀 \\ '", "a\tb")
	case "bytes":
		w, _ := pick("\x00\xff\n", "plain")
		return w, map[string]string{"\x00\xff\n": "\\000\\377\n", "plain": "plain"}[w]
	case "json":
		return pick(`{"a": [1, null]}`, `"é"`)
	case "date":
		return pick("2026-02-28", "0001-01-01")
	}
	return pick("1999-12-31 23:59:59.999999", "2026-03-29 01:30:00.000001")
}

// TestHBaseIntoPostgreSQL copies rows with all types into PostgreSQL, first those
// that are there, then changes, deletes and rows that move to other keys, while
// regions split, move and merge, a region server ends, the task is killed, and at
// last HBase itself is killed and comes again.
func TestHBaseIntoPostgreSQL(t *testing.T) {
	pg := stack.Start(t, "postgres", "-c", "timezone=Asia/Kolkata")
	s := stack.Start(t, "hbase", "--regionservers", "2", "replication.sleep.before.failover=500", "replication.source.maxretriesmultiplier=3")
	pg.SQL("CREATE SCHEMA shop")
	zk := s.Facts["zookeeper"]
	c, err := rpc.Dial(rpc.Config{ZooKeeper: zk})
	must(t, err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	must(t, c.Create(ctx, &rpc.Table{Name: "shop:things", Families: []rpc.Family{{Name: "d", Values: map[string]string{"REPLICATION_SCOPE": "1"}}}}, []byte("300")))
	var columns, texts []string
	for _, x := range everyType {
		columns = append(columns, fmt.Sprintf("{name: %s, type: %s}", x.name, x.kind))
		texts = append(texts, `coalesce(`+x.text+`, '\N')`)
	}
	k := newTask(t, fmt.Sprintf(`apiVersion: datalink/v1
task: into-postgres
reader:
  plugin: hbase
  config:
    zookeeper: %s
    tables:
      "shop:things":
        rowKey: "{area:text}|{id:text}"
        key: [{name: area, type: string}, {name: id, type: int32}]
        columns: [%s]
writers:
  - name: pg
    plugin: rdbms
    config: {url: "postgres://postgres@%s/postgres"}
`, zk, strings.Join(columns, ", "), pg.Addr()))

	rng := rand.New(rand.NewPCG(3, 3))
	have := map[string][]string{}
	ts := uint64(0)
	change := func(rows int) {
		t.Helper()
		var muts []rpc.Mutation
		for range rows {
			key := fmt.Sprintf("%03d|%d", rng.IntN(600), rng.IntN(2)-1)
			ts = max(ts+1, uint64(time.Now().UnixMilli()))
			m := rpc.NewMutation([]byte(key), nil)
			row := have[key]
			switch {
			case row != nil && rng.IntN(5) == 0:
				m.Delete([]byte("d"), nil, ts, rpc.TypeDeleteFamily)
				delete(have, key)
				if rng.IntN(2) == 0 { // the row goes on under another key
					muts = append(muts, m)
					key = fmt.Sprintf("moved|%d", rng.IntN(1<<30))
					m, row = rpc.NewMutation([]byte(key), nil), nil
				} else {
					break
				}
				fallthrough
			default:
				row = append([]string(nil), row...)
				if len(row) == 0 {
					for range everyType {
						row = append(row, `\N`)
					}
				}
				for i, x := range everyType {
					switch rng.IntN(6) {
					case 0:
						if row[i] != `\N` {
							m.Delete([]byte("d"), []byte(x.name), ts, rpc.TypeDeleteColumn)
							row[i] = `\N`
						}
					case 1, 2, 3:
						cell, want := valueOf(x.kind, rng)
						m.Put([]byte("d"), []byte(x.name), ts, []byte(cell))
						row[i] = want
					}
				}
				if !slices.ContainsFunc(row, func(w string) bool { return w != `\N` }) {
					m.Put([]byte("d"), []byte("s"), ts, []byte("x"))
					row[slices.IndexFunc(everyType, func(x struct{ name, kind, text string }) bool { return x.name == "s" })] = "x"
				}
				have[key] = row
			}
			if m.Len() > 0 {
				muts = append(muts, m)
			}
		}
		errs, err := c.Batch(ctx, "shop:things", muts)
		must(t, errors.Join(append(errs, err)...))
	}
	source := func() (out []string) {
		for key, row := range have {
			out = append(out, escaper.Replace(key+"|"+strings.Join(row, "|")))
		}
		slices.Sort(out)
		return out
	}
	target := func() []string {
		if strings.TrimSpace(pg.SQL("SELECT to_regclass('shop.things') IS NULL", "-A", "-t")) != "f" {
			return nil
		}
		text := pg.SQL(`SELECT replace(replace(replace(concat_ws('|', area, id, `+strings.Join(texts, ", ")+`), '\', '\\'), E'\n', '\n'), E'\t', '\t') FROM shop.things`, "-A", "-t", "-q")
		if text = strings.TrimSuffix(text, "\n"); text == "" {
			return nil
		}
		out := strings.Split(text, "\n")
		slices.Sort(out)
		return out
	}
	equal := func(what string) {
		t.Helper()
		k.until(what, 100*time.Second, source, target)
	}
	change(300)
	k.start()
	equal("scan")
	change(200)
	equal("changes")
	for i, disturb := range []struct {
		name string
		do   func()
	}{
		{"split", func() { must(t, c.Split(ctx, "shop:things", []byte("150"))) }},
		{"moves", func() {
			regions, err := c.Regions(ctx, "shop:things")
			must(t, err)
			for _, r := range regions {
				must(t, c.Move(ctx, r, nil))
			}
		}},
		{"task killed", func() { k.kill(); change(50); k.start() }},
		{"merge", func() {
			must(t, c.MajorCompact(ctx, "shop:things")) // what was split lies in files of the parent before
			regions, err := c.Regions(ctx, "shop:things")
			must(t, err)
			must(t, c.Merge(ctx, regions[0], regions[1]))
		}},
		{"region server stopped", func() {
			regions, err := c.Regions(ctx, "shop:things")
			must(t, err)
			must(t, c.StopServer(ctx, regions[len(regions)-1].Addr))
		}},
		{"HBase killed", func() { s.Kill(); s.Restart() }},
	} {
		change(60)
		disturb.do()
		change(60)
		change(60)
		equal(fmt.Sprint(i, " ", disturb.name))
	}
}
