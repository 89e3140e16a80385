package model

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the transcripts")

// whole is set by make model: bounds at which the search takes minutes.
var whole = os.Getenv("DATALINK_MODEL") != ""

func TestPromises(t *testing.T) {
	type bounds struct {
		name string
		c    Config
		long bool
	}
	all := []bounds{
		{"fence answered", Config{Workers: 2, Txs: 2, Expire: 1}, false},
		{"one packet", Config{Workers: 2, Txs: 2, Packet: true, Expire: 1}, false},
		{"crash and restart", Config{Workers: 2, Txs: 3, Crash: 1, Again: 1, Cut: 1}, false},
		{"planned move", Config{Workers: 2, Txs: 3, Packet: true, Stop: 1, Again: 1}, false},
		{"schema change", Config{Workers: 2, Txs: 2, DDL: 1, Expire: 1}, false},
		{"idempotent", Config{Workers: 2, Txs: 3, Level: Idempotent, Expire: 1, Crash: 1, Again: 1}, false},
		{"one packet and a broken connection", Config{Workers: 2, Txs: 2, Packet: true, Expire: 1, Cut: 1}, true},
		{"fence answered and a broken connection", Config{Workers: 2, Txs: 2, Expire: 1, Cut: 1}, true},
		{"schema change last, crash", Config{Workers: 2, Txs: 2, DDL: 2, Expire: 1, Crash: 1}, true},
		{"pause, crash, restart", Config{Workers: 2, Txs: 3, Packet: true, Expire: 1, Crash: 1, Again: 1}, true},
		{"three workers", Config{Workers: 3, Txs: 1, Packet: true, Expire: 2}, true},
		{"three workers, idempotent", Config{Workers: 3, Txs: 2, Level: Idempotent, Expire: 2, Crash: 1}, true},
	}
	for _, b := range all {
		t.Run(b.name, func(t *testing.T) {
			if b.long && !whole {
				t.Skip("optional: make model searches it")
			}
			r := Search(b.c)
			t.Logf("%d states, %d steps deep", r.States, r.Depth)
			if r.Broken != "" {
				t.Fatalf("%s:\n%s", r.Broken, strings.Join(r.Trace, "\n"))
			}
			if !r.Whole {
				t.Fatalf("the search ended at %d states, before it was through", r.States)
			}
		})
	}
}

// Without a protection there is an interleaving that breaks a promise. The
// shortest ones are kept: they are the reasons for the protections.
func TestMutations(t *testing.T) {
	for name, c := range map[string]Config{
		"fence":       {Workers: 2, Txs: 2, Packet: true, Expire: 1, Without: Fence},
		"conditional": {Workers: 2, Txs: 2, Level: Idempotent, Expire: 1, Without: Conditional},
		"wait":        {Workers: 2, Txs: 2, Expire: 1, Without: Wait},
		"wait-ddl":    {Workers: 2, Txs: 1, DDL: 1, Expire: 1, Without: Wait},
		"repair":      {Workers: 2, Txs: 3, Level: Idempotent, Expire: 1, Without: Repair},
	} {
		t.Run(name, func(t *testing.T) {
			r := Search(c)
			if r.Broken == "" {
				t.Fatalf("nothing breaks in %d states (all of them: %v)", r.States, r.Whole)
			}
			t.Logf("%d steps, %d states", len(r.Trace), r.States)
			path := filepath.Join("testdata", name+".txt")
			got := strings.Join(append(r.Trace, "→ "+r.Broken), "\n") + "\n"
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(string(want), "\n") != strings.Count(got, "\n") {
				t.Errorf("the shortest counter-example has another length than %s, -update rewrites it:\n%s", path, got)
			}
		})
	}
}
