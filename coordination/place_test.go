package coordination_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/datalink-go/datalink/coordination"
)

func TestHere(t *testing.T) {
	dir := t.TempDir()
	lock, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	p, err := coordination.Here(dir, lock)
	if err != nil {
		t.Fatal(err)
	}
	if p.Host == "" || p.BootID == "" || p.DataDir != dir || p.LockID == "" || !p.Held || !strings.HasPrefix(p.Process, strconv.Itoa(os.Getpid())+"@") {
		t.Fatalf("place: got %+v", p)
	}
	again, err := coordination.Here(dir, lock)
	if err != nil || again != p {
		t.Fatalf("the same process at another time: got %+v, %v, want %+v", again, err, p)
	}
	if p.Succeeds(again) {
		t.Error("a process succeeds itself")
	}
	without, err := coordination.Here(dir, nil)
	if err != nil || without.Held || without.LockID != "" {
		t.Fatalf("place without a lock: got %+v, %v", without, err)
	}
	heir := p
	heir.Process = "1@1"
	if !heir.Succeeds(p) || heir.Succeeds(without) || without.Succeeds(p) {
		t.Error("only a process that holds the lock succeeds one that held it")
	}
}

func TestBootClock(t *testing.T) {
	a := coordination.System{}.Boot()
	b := coordination.System{}.Boot()
	if a <= 0 || b < a {
		t.Fatalf("CLOCK_BOOTTIME: got %s, then %s", a, b)
	}
	if d := (coordination.Lease{Sent: a, Timeout: time.Minute}).Deadline(); d != a+time.Minute {
		t.Errorf("deadline: got %s, want a minute after %s", d, a)
	}
	if d := (coordination.Lease{Sent: a}).Deadline(); d != 0 {
		t.Errorf("deadline without a time-out: got %s, want none", d)
	}
}
