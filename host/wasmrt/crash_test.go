package wasmrt

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A child that is killed within a call is replaced and the call repeated.
func TestKilledChildIsReplaced(t *testing.T) {
	r := newRuntime(t)
	s, o := customers(1), orders(2)
	in := sample(t, s, o, 50)
	want := newNative(t, maskConfig, s, o).apply(t, in, 1)
	for _, point := range []string{"wasm.call.before", "wasm.call.after", "wasm.reply.before"} {
		for _, call := range []int{1, 2, 3, 4, 6} { // Configure, Schema twice, Transform
			t.Run(fmt.Sprintf("%s:%d", point, call), func(t *testing.T) {
				m := open(t, r, "mask", maskRust(t), func(c *ModuleConfig) { c.FailPoint = fmt.Sprintf("%s:%d", point, call) })
				configure(t, m, maskConfig, s, o)
				for range 3 {
					got, err := m.Apply(t.Context(), in, []uint32{1})
					if err != nil {
						t.Fatal(err)
					}
					if !bytes.Equal(got, want) {
						t.Error("another result than without the crash")
					}
				}
				if st := m.Stats(); st.Starts != 2 || st.Deaths != 1 {
					t.Errorf("%d children, %d deaths, want 2 and 1", st.Starts, st.Deaths)
				}
			})
		}
	}
}

// The same at moments that nobody chose.
func TestChildKilledAtRandom(t *testing.T) {
	r := newRuntime(t)
	s, o := customers(1), orders(2)
	in := sample(t, s, o, 2000)
	want := newNative(t, maskConfig, s, o).apply(t, in, 1)
	m := open(t, r, "mask", maskRust(t), func(c *ModuleConfig) { c.Deaths = 50 })
	configure(t, m, maskConfig, s, o)
	done := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(done)
	wg.Go(func() {
		// Each child gets so far that it is configured, and a little on.
		for pid, calls, i := 0, uint64(0), 0; ; i++ {
			select {
			case <-done:
				return
			case <-time.After(time.Duration(i%9) * time.Millisecond):
			}
			switch st := m.Stats(); {
			case st.PID != pid:
				pid, calls = st.PID, st.Calls
			case pid != 0 && st.Calls > calls+3:
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	for m.Stats().Deaths < 15 {
		got, err := m.Apply(t.Context(), in, []uint32{1})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Fatal("another result than without the crash")
		}
	}
}

// A context that ends takes the call and its child with it; the next call works.
func TestCancelledCall(t *testing.T) {
	r := newRuntime(t)
	s, o := customers(1), orders(2)
	m, err := transform(t, r, "loop", wat(t, "loop"), func(c *ModuleConfig) { c.Deaths, c.CallTimeout = 1, 100*time.Millisecond })
	if err == nil {
		t.Fatal("an endless call returned")
	}
	m.cfg.CallTimeout = time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := m.Apply(ctx, sample(t, s, o, 1), []uint32{1}); err == nil || time.Since(start) > 10*time.Second {
		t.Errorf("after %s: %v, want the context's error", time.Since(start), err)
	}
	if _, err := m.Check(t.Context()); err != nil {
		t.Errorf("next call: %v", err)
	}
}

const hostArg = "wasm-test-host"

// hostMain is a host that starts a module, prints its child's pid and calls it
// for ever.
func hostMain(path string) {
	binary, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	r, err := New(Config{})
	if err != nil {
		panic(err)
	}
	m, err := r.Open(ModuleConfig{Name: "loop", Binary: binary, SHA256: digest(binary), CallTimeout: time.Hour})
	if err != nil {
		panic(err)
	}
	if _, err := m.Check(context.Background()); err != nil {
		panic(err)
	}
	fmt.Println(m.Stats().PID)
	s := orders(2)
	if _, err := m.Schema(context.Background(), s); err != nil {
		panic(err)
	}
	_, _ = m.Apply(context.Background(), sample(&testing.B{}, customers(1), s, 1), []uint32{2})
}

// The child dies with its host, also in the middle of an endless call and when
// the host had no chance to say goodbye.
func TestChildDiesWithHost(t *testing.T) {
	cmd := exec.Command(os.Args[0], hostArg, "testdata/wat/loop.wasm")
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		cmd.Process.Kill()
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if !busy(pid) {
		t.Error("the child does not run")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for deadline := time.Now().Add(10 * time.Second); running(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("child %d outlives its host", pid)
		}
	}
}

// busy waits until the process has used a tenth of a second of processor time.
func busy(pid int) bool {
	for range 2000 {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return false
		}
		f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if ticks, _ := strconv.Atoi(f[11]); ticks > 10 {
			return true
		}
		time.Sleep(5 * time.Millisecond)
	}
	return false
}

// running reports whether the process is there and no zombie.
func running(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.HasPrefix(string(text[bytes.LastIndexByte(text, ')')+1:]), " Z")
}

func TestCacheDir(t *testing.T) {
	dir := t.TempDir()
	cache := filepath.Join(dir, "cache")
	if err := cacheDir(cache); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(cache); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("made with %v, %v", st.Mode(), err)
	}
	for _, mode := range []os.FileMode{0o755, 0o770, 0o701} {
		if err := os.Chmod(cache, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := New(Config{CacheDir: cache}); err == nil || !strings.Contains(err.Error(), "expected 0700") {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	if err := cacheDir(link); err == nil {
		t.Error("a symbolic link is taken for the cache")
	}
	plain := filepath.Join(dir, "file")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cacheDir(plain); err == nil {
		t.Error("a file is taken for the cache")
	}
	if os.Geteuid() == 0 {
		other := filepath.Join(dir, "other")
		if err := os.Mkdir(other, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(other, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		if err := cacheDir(other); err == nil || !strings.Contains(err.Error(), "uid 12345") {
			t.Errorf("owner: %v", err)
		}
	}
}

// The folder of one module is checked too, before each child.
func TestModuleCacheDir(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "cache")
	r, err := New(Config{CacheDir: cache})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	binary := maskRust(t)
	m := open(t, r, "mask", binary, nil)
	if err := os.Mkdir(filepath.Join(cache, digest(binary)), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Describe(t.Context()); err == nil || !strings.Contains(err.Error(), "expected 0700") {
		t.Errorf("a folder of others is used: %v", err)
	}
}
