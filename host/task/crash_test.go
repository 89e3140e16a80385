package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/coordination/embedded"
	"github.com/datalink-go/datalink/host/audit"
	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/failpoint"
)

const crashDir = "DATALINK_TEST_TASK_DIR"

// TestMain runs the task once when it is the child of TestCrashAtEachFailPoint.
func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		if err := runOnce(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// restoredEpoch makes the run pass the fail points of a raised epoch: one writer's
// target holds it at the first claim.
const restoredEpoch = 1000

func runOnce(dir string) error {
	ctx := context.Background()
	s, err := embedded.Open(ctx, embedded.Config{Dir: dir, Wait: 5 * time.Second})
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.CreateTask(ctx, coordination.Definition{Name: "orders", Desired: coordination.Running}); err != nil && !errors.Is(err, coordination.ErrExists) {
		return err
	}
	x, err := s.Join(ctx, coordination.Worker{ID: "w", PID: os.Getpid()})
	if err != nil {
		return err
	}
	d, err := s.Task(ctx, "orders")
	if err != nil {
		return err
	}
	g := &rig{source: &fakeSource{}, level: "transactional", kill: make(chan struct{})}
	target := &fakeSink{rig: g, name: "a", held: sdk.Claimant{Execution: "x", Epoch: restoredEpoch, StoreUID: s.UID(), TaskUID: d.UID}}
	g.writers = []*fakeSink{target, {rig: g, name: "b"}}
	stop := make(chan struct{})
	g.pipe = func(ctx context.Context, cfg pipeline.Config) (pipeline.Result, error) {
		close(stop)
		<-cfg.Stop
		return pipeline.Result{}, ctx.Err()
	}
	r, err := NewRunner(Config{Task: "orders", Store: s, Session: x, Launcher: g, Run: g.run, Audit: audit.New(audit.Config{Store: s, TCP: -1})})
	if err != nil {
		return err
	}
	go func() {
		<-stop
		r.Stop(Ended, "enough")
	}()
	if out := r.Run(ctx); out.Phase != Ended {
		return fmt.Errorf("phase %s: %s", out.Phase, out.Reason)
	}
	return nil
}

// TestCrashAtEachFailPoint kills a process that runs a task at each fail point and
// runs the task again on what it left.
func TestCrashAtEachFailPoint(t *testing.T) {
	for _, point := range FailPoints {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			out, err := child(dir, failpoint.Env+"="+point)
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("run with the fail point: got %v, want SIGKILL; output:\n%s", err, out)
			}
			if out, err := child(dir); err != nil {
				t.Fatalf("run after the crash: %v\n%s", err, out)
			}
			check(t, dir, point)
		})
	}
}

func child(dir string, env ...string) (string, error) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(append(os.Environ(), crashDir+"="+dir), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// check reads the journal that a crash and a whole run leave behind.
func check(t *testing.T, dir, point string) {
	t.Helper()
	s, err := embedded.Open(t.Context(), embedded.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d, err := s.Task(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	journal, err := s.Journal(t.Context(), d.UID)
	if err != nil {
		t.Fatal(err)
	}
	h := audit.History(journal)
	at := slices.Index(FailPoints, point)
	taken := at >= slices.Index(FailPoints, "task.taken")
	ended := at >= slices.Index(FailPoints, "task.ended")
	want := 1
	if taken {
		want = 2
	}
	if len(h) != want {
		t.Fatalf("executions: got %d, want %d: %+v", len(h), want, journal)
	}
	last := h[len(h)-1]
	if last.Ended == nil || !strings.HasPrefix(last.Ended.Reason, "ended") || last.Epoch <= restoredEpoch {
		t.Errorf("last execution: got %+v, want it ended with an epoch above %d", last, restoredEpoch)
	}
	if taken {
		first := h[0]
		if (first.Ended != nil) != ended || (first.Lost != nil && first.Dead != nil) == ended {
			t.Errorf("killed execution: ended %v, lost %v, dead %v; want ended %v, else lost and dead", first.Ended, first.Lost, first.Dead, ended)
		}
		if last.Started.Epoch <= first.Epoch {
			t.Errorf("epochs: got %d after %d", last.Started.Epoch, first.Epoch)
		}
	}
	if o, err := s.Overlaps(t.Context()); err != nil || len(o) != 0 {
		t.Errorf("overlaps: got %+v, %v, want none: the lock proves the death", o, err)
	}
	if _, err := s.Status(t.Context(), "orders"); !errors.Is(err, coordination.ErrNotFound) {
		t.Errorf("status: got %v, want none", err)
	}
}
