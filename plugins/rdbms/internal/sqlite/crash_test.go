package sqlite

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/failpoint"
)

const crashFile = "DATALINK_TEST_TARGET"

// failpoints of this package, in the order in which they are passed.
var failpoints = []string{
	"rdbms.claim.begun", "rdbms.claim.written", "rdbms.claimed", "rdbms.prepare.begun", "rdbms.prepare.written", "rdbms.prepared",
	"rdbms.begun", "rdbms.fenced", "rdbms.stored", "rdbms.applied", "rdbms.committed",
}

const crashBatches = 6

// A process is killed at every fail point and another one goes on from what the
// target holds. Rows of a keyless table show what came twice or not at all.
func TestCrash(t *testing.T) {
	if file := os.Getenv(crashFile); file != "" {
		crashChild(t, file)
		return
	}
	for _, fp := range failpoints {
		for _, count := range []int{1, 3} {
			if count > 1 && !strings.Contains("rdbms.begun rdbms.fenced rdbms.stored rdbms.applied rdbms.committed", fp) {
				continue
			}
			t.Run(fmt.Sprintf("%s:%d", fp, count), func(t *testing.T) {
				t.Parallel()
				file := path(t)
				err := crashRun(t, file, fmt.Sprintf("%s:%d", fp, count))
				if x, ok := err.(*exec.ExitError); !ok || x.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
					t.Fatalf("the process ended with %v, want SIGKILL: the fail point was not passed", err)
				}
				must(t, crashRun(t, file, ""))
				if got := lines(t, file); got != "1,2,3,4,5,6" {
					t.Errorf("rows %s", got)
				}
			})
		}
	}
}

func crashRun(t *testing.T, file, fp string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestCrash$", "-test.count=1")
	cmd.Env = append(os.Environ(), crashFile+"="+file, failpoint.Env+"="+fp)
	out, err := cmd.CombinedOutput()
	if err != nil && fp == "" {
		t.Logf("%s", out)
	}
	return err
}

// crashChild writes what the target does not hold yet.
func crashChild(t *testing.T, file string) {
	w := writer(t, Config{Path: file, Keyless: Append})
	c := claim(t, w, execution("x1", 1))
	if _, err := w.Prepare(context.Background(), keyless()); err != nil {
		t.Fatal(err)
	}
	for n := c.Points[0].BatchNo + 1; n <= crashBatches; n++ {
		if p := c.Points[0].Position; n == c.Points[0].BatchNo+1 && n > 1 && string(p.Source) != fmt.Sprint(n-1) {
			t.Fatalf("batch %d stands at position %s", n-1, p.Source)
		}
		must(t, write(w, next(0, n), line(t, int(n))))
	}
}

// A process is stopped inside its transaction: the claim of another one names it
// and succeeds once it is gone; the rows it had sent are rolled back.
func TestStoppedInTransaction(t *testing.T) {
	file := path(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestCrash$", "-test.count=1")
	cmd.Env = append(os.Environ(), crashFile+"="+file, failpoint.Env+"=rdbms.applied:2:stop")
	must(t, cmd.Start())
	defer cmd.Process.Kill() //nolint:errcheck
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(cmd.Process.Pid, &ws, syscall.WUNTRACED, nil); err != nil || !ws.Stopped() {
		t.Fatalf("wait: %v, %v", err, ws)
	}
	w := writer(t, Config{Path: file, Keyless: Append})
	_, err := w.Claim(context.Background(), execution("x2", 2))
	if f := sdk.AsFault(err); f == nil || f.Code != sdk.CodeUnavailable || !strings.Contains(f.Message, "x1") {
		t.Fatalf("claim beside a stopped writer: got %v, want unavailable, naming x1", err)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	c := claim(t, w, execution("x2", 2))
	if c.Points[0].BatchNo != 1 {
		t.Errorf("batch %d, want 1", c.Points[0].BatchNo)
	}
	if got := lines(t, file); got != "1" {
		t.Errorf("rows %s, want 1", got)
	}
}

// A process is stopped between two transactions, with rows read; the other claims
// and writes them; it wakes, is refused, and writes nothing.
func TestZombie(t *testing.T) {
	file := path(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestCrash$", "-test.count=1")
	cmd.Env = append(os.Environ(), crashFile+"="+file, failpoint.Env+"=rdbms.committed:2:stop")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	must(t, cmd.Start())
	defer cmd.Process.Kill() //nolint:errcheck
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(cmd.Process.Pid, &ws, syscall.WUNTRACED, nil); err != nil || !ws.Stopped() {
		t.Fatalf("wait: %v, %v", err, ws)
	}
	w := writer(t, Config{Path: file, Keyless: Append})
	n := claim(t, w, execution("x2", 2)).Points[0].BatchNo
	for n++; n <= crashBatches; n++ {
		must(t, write(w, next(0, n), line(t, int(n))))
	}
	must(t, cmd.Process.Signal(syscall.SIGCONT))
	if err := cmd.Wait(); err == nil || !strings.Contains(out.String(), "execution x2 claimed the target with epoch 2") {
		t.Errorf("the late process: %v: %s", err, out.String())
	}
	if got := lines(t, file); got != "1,2,3,4,5,6" {
		t.Errorf("rows %s", got)
	}
}
