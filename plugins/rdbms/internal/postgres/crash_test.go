package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/ledger"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/failpoint"
)

const crashURL = "DATALINK_TEST_TARGET"

// failpoints of this package, in the order in which they are passed.
var failpoints = []string{
	"rdbms.claim.begun", "rdbms.claim.written", "rdbms.claimed", "rdbms.prepare.begun", "rdbms.prepare.written", "rdbms.prepared",
	"rdbms.begun", "rdbms.fenced", "rdbms.stored", "rdbms.row", "rdbms.applied", "rdbms.committed",
}

const crashBatches = 6

func child(url, fp string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^TestCrash$", "-test.count=1")
	cmd.Env = append(os.Environ(), crashURL+"="+url, failpoint.Env+"="+fp)
	return cmd
}

// crashChild writes what the target does not hold yet.
func crashChild(t *testing.T, url string) {
	cfg := on(ledger.FromEnv())
	cfg.URL = url
	w, err := New(cfg)
	must(t, err)
	ctx := context.Background()
	c := claim(t, w, execution("x1", 1))
	if _, err := w.Prepare(ctx, keyless()); err != nil {
		t.Fatal(err)
	}
	for n := c.Points[0].BatchNo + 1; n <= crashBatches; n++ {
		if p := c.Points[0].Position; n == c.Points[0].BatchNo+1 && n > 1 && string(p.Source) != fmt.Sprint(n-1) {
			t.Fatalf("batch %d stands at position %s", n-1, p.Source)
		}
		err := write(w, nextOf(0, n), line(t, int(n)))
		if errors.Is(err, sdk.ErrCommitUnknown) {
			p, serr := w.Settle(ctx, 0)
			must(t, serr)
			if p.BatchNo == n {
				continue
			}
		}
		for try := 0; err != nil && sdk.AsFault(err).Retryable && try < 5; try++ {
			err = write(w, nextOf(0, n), line(t, int(n)))
		}
		must(t, err)
	}
	must(t, w.Close(ctx))
}

// A process is killed at every fail point and another one goes on from what the
// target holds. Rows of a table without a key show what came twice or not at all.
func TestCrash(t *testing.T) {
	if url := os.Getenv(crashURL); url != "" {
		crashChild(t, url)
		return
	}
	s := start(t)
	for i, fp := range failpoints {
		count := 1
		if i >= 6 {
			count = 3
		}
		t.Run(fp, func(t *testing.T) {
			d := s.db(t)
			err := child(d.url, fmt.Sprintf("%s:%d", fp, count)).Run()
			if x, ok := err.(*exec.ExitError); !ok || x.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("the process ended with %v, want SIGKILL: the fail point was not passed", err)
			}
			if out, err := child(d.url, "").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if got := d.list(t, lines); got != "1,2,3,4,5,6" {
				t.Errorf("rows %s", got)
			}
		})
	}
}

// A process is stopped inside of its transaction and between two; another one
// claims at once and writes the rest; the first wakes, is refused, and writes
// nothing.
func TestZombie(t *testing.T) {
	s := start(t)
	for _, fp := range []string{"rdbms.fenced:2:stop", "rdbms.applied:2:stop", "rdbms.committed:2:stop", "rdbms.claim.begun:1:stop"} {
		t.Run(fp, func(t *testing.T) {
			d := s.db(t)
			cmd := child(d.url, fp)
			var out strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &out
			must(t, cmd.Start())
			defer cmd.Process.Kill() //nolint:errcheck
			var ws syscall.WaitStatus
			if _, err := syscall.Wait4(cmd.Process.Pid, &ws, syscall.WUNTRACED, nil); err != nil || !ws.Stopped() {
				t.Fatalf("wait: %v, %v", err, ws)
			}
			w := d.writer(t, on(ledger.Switches{}))
			began := time.Now()
			n := claim(t, w, execution("x2", 2)).Points[0].BatchNo
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("the claim took %s beside a stopped process", took)
			}
			for n++; n <= crashBatches; n++ {
				must(t, write(w, nextOf(0, n), line(t, int(n))))
			}
			must(t, cmd.Process.Signal(syscall.SIGCONT))
			if err := cmd.Wait(); err == nil || !strings.Contains(out.String(), "claimed by execution x2") && !strings.Contains(out.String(), "execution x2 claimed the target with epoch 2") {
				t.Errorf("the late process: %v: %s", err, out.String())
			}
			if got := d.list(t, lines); got != "1,2,3,4,5,6" {
				t.Errorf("rows %s", got)
			}
		})
	}
}
