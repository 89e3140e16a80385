package embedded_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/coordination/embedded"
)

func open(t *testing.T, cfg embedded.Config) *embedded.Store {
	t.Helper()
	s, err := embedded.Open(t.Context(), cfg)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestSecondOpenNamesTheHolder(t *testing.T) {
	dir := t.TempDir()
	s := open(t, embedded.Config{Dir: dir})
	_, err := embedded.Open(t.Context(), embedded.Config{Dir: dir, Wait: 30 * time.Millisecond})
	if !errors.Is(err, embedded.ErrLocked) || !strings.Contains(err.Error(), "pid "+strconv.Itoa(os.Getpid())) {
		t.Fatalf("second open: got %v, want ErrLocked that names pid %d", err, os.Getpid())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, embedded.Config{Dir: dir})
}

// A plugin that outlives its host keeps the directory locked until it is gone.
func TestChildKeepsTheLock(t *testing.T) {
	dir := t.TempDir()
	s := open(t, embedded.Config{Dir: dir})
	child := exec.Command("sleep", "60")
	child.ExtraFiles = []*os.File{s.LockFile()}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Process.Kill()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := embedded.Open(t.Context(), embedded.Config{Dir: dir})
	var locked *embedded.LockedError
	if !errors.As(err, &locked) || len(locked.PIDs) != 1 || locked.PIDs[0] != child.Process.Pid {
		t.Fatalf("open while the child lives: got %#v, want a LockedError with pid %d", err, child.Process.Pid)
	}
	locked.Owner = gonePID(t) // as if the host had been killed
	if !strings.Contains(err.Error(), "processes that it started still hold the lock: "+strconv.Itoa(child.Process.Pid)) {
		t.Fatalf("message: got %q, want the child's pid", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	open(t, embedded.Config{Dir: dir})
}

func gonePID(t *testing.T) int {
	t.Helper()
	c := exec.Command("true")
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	return c.Process.Pid
}

// A child without the lock's descriptor keeps nothing.
func TestLockIsNotInheritedByAccident(t *testing.T) {
	dir := t.TempDir()
	s := open(t, embedded.Config{Dir: dir})
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, embedded.Config{Dir: dir})
}

func TestFilesAreOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := open(t, embedded.Config{Dir: dir})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, embedded.FileName), 0o644); err != nil {
		t.Fatal(err)
	}
	open(t, embedded.Config{Dir: dir})
	for _, f := range []string{"", embedded.FileName, embedded.LockName} {
		fi, err := os.Stat(filepath.Join(dir, f))
		if err != nil {
			t.Fatal(err)
		}
		if fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: got mode %s, want owner only", fi.Name(), fi.Mode())
		}
	}
}

func TestLockFileMayNotBeALink(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("/dev/null", filepath.Join(dir, embedded.LockName)); err != nil {
		t.Fatal(err)
	}
	if s, err := embedded.Open(t.Context(), embedded.Config{Dir: dir}); err == nil {
		s.Close()
		t.Fatal("opened through a symbolic link")
	}
}

// The next owner of the lock ends the sessions of the one that was killed.
func TestOpenEndsFormerSessions(t *testing.T) {
	dir := t.TempDir()
	s := open(t, embedded.Config{Dir: dir})
	if _, err := s.CreateTask(t.Context(), coordination.Definition{Name: "a", Desired: coordination.Running}); err != nil {
		t.Fatal(err)
	}
	x, err := s.Join(t.Context(), coordination.Worker{ID: "w"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Take(t.Context(), coordination.Take{Task: "a", ExecutionID: "0190a000-0000-7000-8000-000000000000"}); err != nil {
		t.Fatal(err)
	}
	s.Abandon(x.ID()) // Close finds nothing to end, as after SIGKILL
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, embedded.Config{Dir: dir})
	if _, err := s.Status(t.Context(), "a"); !errors.Is(err, coordination.ErrNotFound) {
		t.Errorf("status of a former session: got %v, want ErrNotFound", err)
	}
	if w, err := s.Workers(t.Context()); err != nil || len(w) != 0 {
		t.Errorf("workers: got %v, %v, want none", w, err)
	}
	if d, err := s.Task(t.Context(), "a"); err != nil || d.Version != 1 {
		t.Errorf("definition: got %+v, %v", d, err)
	}
}

func TestFormatIsChecked(t *testing.T) {
	dir := t.TempDir()
	if err := open(t, embedded.Config{Dir: dir}).Close(); err != nil {
		t.Fatal(err)
	}
	edit(t, dir, func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("store"), []byte(`{"format":9,"uid":"x"}`))
	})
	if _, err := embedded.Open(t.Context(), embedded.Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "format 9") {
		t.Fatalf("open of a later format: got %v, want an error that names it", err)
	}
}

// Every value of the store is JSON, every key text.
func TestLayoutIsJSON(t *testing.T) {
	dir := t.TempDir()
	s := open(t, embedded.Config{Dir: dir})
	d, _ := s.CreateTask(t.Context(), coordination.Definition{Name: "a", Desired: coordination.Running})
	x, _ := s.Join(t.Context(), coordination.Worker{ID: "w"})
	st, _ := x.Take(t.Context(), coordination.Take{Task: "a", ExecutionID: "0190a000-0000-7000-8000-000000000000"})
	step := coordination.Step{
		Writer: "w", Points: []coordination.Point{{Lane: -1}, {Lane: 3}}, Items: []coordination.Item{{Key: "k"}}, SetAside: []coordination.DeadLetter{{Number: 1}},
	}
	if err := x.Save(t.Context(), st.Owner(), step); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.AddOverlap(t.Context(), coordination.Overlap{ID: "o"}), s.Resolve(t.Context(), "o", coordination.Resolution{ID: "r"}),
		s.Forget(t.Context(), coordination.Forgotten{Worker: "w"})); err != nil {
		t.Fatal(err)
	}
	s.Abandon(x.ID())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	edit(t, dir, func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error { return walk(t, string(name), b, seen) })
	})
	for _, want := range []string{
		"meta/store", "tasks/a", "status/" + d.UID, "epochs/" + d.UID, "journal/" + d.UID + "/00000000000000000001",
		"progress/" + d.UID + "/w/head", "progress/" + d.UID + "/w/point/0000000000", "progress/" + d.UID + "/w/point/0000000004",
		"progress/" + d.UID + "/w/item/k", "progress/" + d.UID + "/w/dead/00000000000000000001", "overlaps/o", "resolutions/o/r", "workers/w",
	} {
		if !seen[want] {
			t.Errorf("no value at %s", want)
		}
	}
}

func walk(t *testing.T, path string, b *bolt.Bucket, seen map[string]bool) error {
	return b.ForEach(func(k, v []byte) error {
		p := path + "/" + string(k)
		if v == nil {
			return walk(t, p, b.Bucket(k), seen)
		}
		seen[p] = true
		if !json.Valid(v) {
			t.Errorf("%s: %q is no JSON", p, v)
		}
		return nil
	})
}

func edit(t *testing.T, dir string, f func(*bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(filepath.Join(dir, embedded.FileName), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(f), db.Close()); err != nil {
		t.Fatal(err)
	}
}
