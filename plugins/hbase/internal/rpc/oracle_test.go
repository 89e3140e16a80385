package rpc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/examples/stack"
)

// oracle runs HBase's own client.
func oracle(t *testing.T, s *stack.Server, args ...string) string {
	t.Helper()
	classes := filepath.Join(s.Dir, "classes")
	path := classes + ":" + s.Facts["conf"] + ":" + s.Facts["lib"] + "/*"
	if _, err := os.Stat(classes); err != nil {
		if out, err := exec.Command(filepath.Join(filepath.Dir(s.Facts["java"]), "javac"), "-proc:none", "-d", classes, "-cp", path, "testdata/Oracle.java").CombinedOutput(); err != nil {
			t.Fatalf("compile Oracle.java: %v\n%s", err, out)
		}
	}
	cmd := exec.Command(s.Facts["java"], append([]string{"-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", path, "Oracle"}, args...)...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, errs.String())
	}
	return string(out)
}

// dump prints a table as Oracle.java does.
func dump(t *testing.T, c *Client, s Scan) string {
	t.Helper()
	var out strings.Builder
	x := c.Scanner(s)
	for {
		rows, err := x.Next(testContext(t))
		if errors.Is(err, io.EOF) {
			return out.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			for _, c := range r {
				fmt.Fprintf(&out, "x%x x%x x%x %d %d x%x\n", c.Row, c.Family, c.Qualifier, c.Timestamp, c.Type, c.Value)
			}
		}
	}
}

// Each client reads what the other wrote, byte for byte.
func TestAgainstHBasesOwnClient(t *testing.T) {
	s := stack.Start(t, "hbase")
	c := testClient(t, s)
	ctx := testContext(t)
	create(t, c, "java")
	create(t, c, "ours", "m")
	oracle(t, s, "write", "java")
	if d := cmp.Diff(oracle(t, s, "print", "java"), dump(t, c, Scan{Table: "java", Rows: 7})); d != "" {
		t.Errorf("written by Java (-Java +ours): %s", d)
	}
	if d := cmp.Diff(oracle(t, s, "raw", "java"), dump(t, c, Scan{Table: "java", Raw: true, Versions: 1 << 30})); d != "" {
		t.Errorf("written by Java, raw (-Java +ours): %s", d)
	}
	var muts []Mutation
	f := []byte("f")
	for i := range 300 {
		m := NewMutation([]byte{byte(i), byte(i >> 8), 'k'}, nil)
		m.Put(f, []byte{byte(i)}, uint64(i+1), make([]byte, i*50))
		m.Put(f, nil, 1<<50, []byte("no qualifier"))
		switch i % 5 {
		case 1:
			m.Delete(f, []byte("q"), 3, TypeDeleteColumn)
		case 2:
			m.Delete(f, []byte{byte(i)}, uint64(i+1), TypeDelete)
		case 3:
			m.Delete(f, nil, 2, TypeDeleteFamily)
		case 4:
			m.Delete(f, nil, 7, TypeDeleteFamilyVersion)
		}
		muts = append(muts, m)
	}
	errs, err := c.Batch(ctx, "ours", muts)
	if err = errors.Join(append(errs, err)...); err != nil {
		t.Fatal(err)
	}
	for _, raw := range []bool{false, true} {
		verb, scan := "print", Scan{Table: "ours"}
		if raw {
			verb, scan = "raw", Scan{Table: "ours", Raw: true, Versions: 1 << 30}
		}
		got, want := dump(t, c, scan), oracle(t, s, verb, "ours")
		if d := cmp.Diff(want, got); d != "" || len(got) < 1000 {
			t.Errorf("written by us, raw %t, %d bytes (-Java +ours): %s", raw, len(got), d)
		}
	}
}
