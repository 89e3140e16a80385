package zookeeper_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/coordination/zookeeper"
)

const childEnv = "DATALINK_TEST_ZOOKEEPER_CHILD" // URL of the store

// child owns a task and saves for ever, until it is told that it does not own it.
func child(url string) {
	cfg, err := zookeeper.ParseURL(url)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	s, err := zookeeper.Open(ctx, cfg)
	if err != nil {
		panic(err)
	}
	x, err := s.Join(ctx, coordination.Worker{ID: "child"})
	if err != nil {
		panic(err)
	}
	st, err := x.Take(ctx, coordination.Take{Task: "orders", ExecutionID: newID()})
	if err != nil {
		panic(err)
	}
	clock := coordination.System{}
	for n := 0; ; n++ {
		// As a writer would, it looks at the lease before it writes.
		expired := clock.Boot() >= x.Lease().Deadline()
		err := x.Save(ctx, st.Owner(), step(1))
		if n == 0 {
			fmt.Println("saved", st.ExecutionID)
		}
		if expired {
			fmt.Println("expired", err == nil)
		}
		if err != nil {
			fmt.Println("refused", errors.Is(err, coordination.ErrSessionLost))
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// A stopped process finds by its own clock that its lease is over, before it asks
// anybody, and is refused by the store.
func TestStoppedProcess(t *testing.T) {
	e := servers(t, 1)
	cfg := config(e)
	s := open(t, t.Context(), cfg)
	_, err := s.CreateTask(t.Context(), coordination.Definition{Name: "orders", Desired: coordination.Running})
	ok(t, "create", err)
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), fmt.Sprintf("%s=zookeeper://%s%s?sessionTimeout=1s", childEnv, e.Addrs(), cfg.Root))
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	ok(t, "pipe", err)
	ok(t, "start", c.Start())
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	lines := bufio.NewScanner(out)
	next := func() string {
		if !lines.Scan() {
			t.Fatal("the child has ended")
		}
		return lines.Text()
	}
	if got := next(); len(got) < 6 || got[:6] != "saved " {
		t.Fatalf("child: got %q", got)
	}
	ok(t, "stop", c.Process.Signal(syscall.SIGSTOP))
	x, err := s.Join(t.Context(), coordination.Worker{ID: "heir"})
	ok(t, "join", err)
	until(t, "the heir has the task", 10*time.Second, func() bool {
		_, err := x.Take(t.Context(), coordination.Take{Task: "orders", ExecutionID: newID()})
		return err == nil
	})
	ok(t, "go on", c.Process.Signal(syscall.SIGCONT))
	// It may have been stopped between its look at the lease and the save.
	got := next()
	if got == "expired false" {
		got = next()
	}
	if got != "refused true" {
		t.Errorf("child: got %q, want refused with a lost session", got)
	}
}
