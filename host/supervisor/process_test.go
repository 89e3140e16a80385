package supervisor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/serve/link"
	"github.com/datalink-go/datalink/sdk/wire"
)

// gone waits for the end of a process that may not be a child.
func gone(t *testing.T, pid int) bool {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return true
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 5000)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err == nil && n == 1
	}
}

func pidIn(t *testing.T, file string) int {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(data))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// TestWhatIsHashedRuns replaces the file after it was read.
func TestWhatIsHashedRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p")
	data, err := os.ReadFile(program(t, "fixture"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil { // not even executable
		t.Fatal(err)
	}
	img, err := OpenImage("fixture", path, digest(t, path))
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	if err := os.WriteFile(path, []byte("#!/bin/false\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if c, _ := launch(t, manifest.Reader, func(c *Config) { c.Image = img }); c.Manifest().Name != "fixture" {
		t.Errorf("another program ran: %+v", c.Manifest())
	}
	if _, err := img.file.WriteAt([]byte{0}, 0); err == nil {
		t.Error("the image can be written to after it was verified")
	}
	if _, err := OpenImage("fixture", path, img.Digest); !errors.Is(err, ErrDigest) || !strings.Contains(err.Error(), img.Digest) {
		t.Errorf("changed file: %v, want %v with the digest expected", err, ErrDigest)
	}
}

// TestEnvironment shows that a plugin gets what is listed and nothing else.
func TestEnvironment(t *testing.T) {
	t.Setenv("SECRET_OF_THE_HOST", "hunter2")
	file := filepath.Join(t.TempDir(), "environ")
	c, _ := launch(t, manifest.Reader, func(c *Config) { c.Env = []string{"TZ=UTC"}; c.MutualTLS = true })
	configure(t, c, map[string]any{"environ": file, "spawn": filepath.Join(t.TempDir(), "hunter3")})
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	environ, args, _ := strings.Cut(string(data), "\n--\n")
	var names []string
	for line := range strings.Lines(environ) {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{"DATALINK_HELLO", "DATALINK_PLUGIN", "PLUGIN_MAX_PORT", "PLUGIN_MIN_PORT", "PLUGIN_PROTOCOL_VERSIONS", "PLUGIN_UNIX_SOCKET_DIR", "TZ"}
	if !slices.Equal(names, want) {
		t.Errorf("environment has %q, want %q", names, want)
	}
	if args != "fixture\x00" {
		t.Errorf("arguments %q, want the name alone", args)
	}
	for _, secret := range []string{"hunter2", "hunter3", "PRIVATE KEY"} {
		if strings.Contains(string(data), secret) {
			t.Errorf("environment or arguments hold %q", secret)
		}
	}
	_, dir, _ := strings.Cut(environ, "PLUGIN_UNIX_SOCKET_DIR=")
	dir, _, _ = strings.Cut(dir, "\n")
	if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("folder of the socket: %v, %v, want mode 0700", fi, err)
	}
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder of the socket after Close: %v, want it gone", err)
	}
}

// TestGroupDies shows that what a plugin started ends with it, whether it is
// closed, too slow, or dies by itself, and that this is the group kill's doing.
func TestGroupDies(t *testing.T) {
	for _, tt := range []struct {
		name   string
		config map[string]any
		off    bool
		end    func(c *Client)
	}{
		{"close", nil, false, func(c *Client) { _ = c.Close(context.Background()) }},
		{"slow close", map[string]any{"slowClose": true}, false, func(c *Client) { _ = c.Close(context.Background()) }},
		{"kill", nil, false, func(c *Client) { c.Kill() }},
		{"crash", nil, false, func(c *Client) { _ = unix.Kill(c.PID(), unix.SIGSEGV) }},
		{"without the group kill", nil, true, func(c *Client) { _ = c.Close(context.Background()) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const grace = 700 * time.Millisecond
			c, _ := launch(t, manifest.Reader, func(c *Config) { c.Grace, c.off.groupKill = grace, tt.off })
			file := filepath.Join(t.TempDir(), "pid")
			config := map[string]any{"spawn": file}
			for k, v := range tt.config {
				config[k] = v
			}
			configure(t, c, config)
			child := pidIn(t, file)
			begun := time.Now()
			tt.end(c)
			<-c.Exited()
			if took := time.Since(begun); took > grace+5*time.Second {
				t.Errorf("the end took %s, want about the grace period of %s", took, grace)
			}
			if tt.off {
				if err := unix.Kill(child, 0); err != nil {
					t.Errorf("grandchild %d: %v, want it alive when nobody kills the group", child, err)
				}
				_ = unix.Kill(child, unix.SIGKILL)
				return
			}
			if !gone(t, child) {
				t.Errorf("grandchild %d outlived the plugin", child)
				_ = unix.Kill(child, unix.SIGKILL)
			}
		})
	}
}

// TestStoppedPluginIsKilled closes a plugin that cannot answer at all.
func TestStoppedPluginIsKilled(t *testing.T) {
	c, _ := launch(t, manifest.Reader, func(c *Config) { c.Grace = 300 * time.Millisecond })
	if err := unix.Kill(c.PID(), unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := unix.Waitid(unix.P_PID, c.PID(), nil, unix.WSTOPPED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(context.Background()); err == nil {
		t.Error("Close of a stopped plugin reports no error")
	}
	<-c.Exited()
	if how := c.How(); how != "signal: killed" {
		t.Errorf("it ended with %q, want signal: killed", how)
	}
}

// hostChild is a host in a process of its own: it starts a plugin, prints its
// pid and waits to be killed. With DEAF the program neither reads its input nor
// serves anything.
func hostChild() {
	l := NewLauncher()
	img, err := OpenImage("fixture", os.Getenv("PROGRAM"), os.Getenv("DIGEST"))
	if err != nil {
		panic(err)
	}
	cfg := Config{Image: img, Role: manifest.Reader, Dir: "/", off: switches{deathSignal: os.Getenv("OFF") != ""}}
	if os.Getenv("DEAF") != "" {
		p := newProcess(l, &cfg, link.Hello{})
		if err := p.Start(context.Background()); err != nil {
			panic(err)
		}
		fmt.Println(p.ID())
		select {}
	}
	c, err := Launch(context.Background(), l, cfg)
	if err != nil {
		panic(err)
	}
	fmt.Println(c.PID())
	select {}
}

// TestDeathWithTheHost kills a host by SIGKILL. Each of the two ways in which a
// plugin learns of it is enough: the kernel's signal, shown with a program that
// does not look at its input, and the end of its input.
func TestDeathWithTheHost(t *testing.T) {
	for _, tt := range []struct{ name, program, env string }{
		{"parent-death signal", "oddball", "DEAF=1"},
		{"end of input", "fixture", "OFF=1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := program(t, tt.program)
			host := exec.Command(os.Args[0])
			host.Env = append(os.Environ(), "SUPERVISOR_TEST_CHILD=host", "PROGRAM="+path, "DIGEST="+digest(t, path), "TMPDIR="+t.TempDir(), tt.env)
			host.Stderr = os.Stderr
			out, err := host.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := host.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil {
				t.Fatal(err)
			}
			if err := host.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = host.Wait()
			if !gone(t, pid) {
				t.Errorf("plugin %d outlived its host", pid)
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		})
	}
}

// TestDiedError tells a crash from an error and names its cause.
func TestDiedError(t *testing.T) {
	c, _ := launch(t, manifest.Reader)
	configure(t, c, map[string]any{"rows": 5000, "panicAt": 3000})
	s, err := c.Open(context.Background(), &wire.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Grant(1000, 1<<20); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = s.Recv()
		_ = s.Grant(1000, 1<<20)
	}
	var died *pipeline.DiedError
	if !errors.As(err, &died) || !errors.Is(err, pipeline.ErrDied) {
		t.Fatalf("Recv: %v, want a DiedError", err)
	}
	if died.Connector != "fixture 1.2.3" || died.Call != wire.Read || died.How != "exit status 2" || died.LastWords != "panic: row 3000 is not to my taste" {
		t.Errorf("%+v, want fixture 1.2.3, Read, exit status 2 and the panic", died)
	}
	if err := c.Ping(context.Background()); !errors.Is(err, pipeline.ErrDied) {
		t.Errorf("a call after the death: %v, want %v", err, pipeline.ErrDied)
	}
}

// TestFailPoint arms a fail point through Configure.
func TestFailPoint(t *testing.T) {
	c, _ := launch(t, manifest.Reader)
	configure(t, c, map[string]any{"rows": 10}, "reader.block.built")
	s, err := c.Open(context.Background(), &wire.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Grant(1000, 1<<20); err != nil {
		t.Fatal(err)
	}
	_, err = s.Recv()
	var died *pipeline.DiedError
	if !errors.As(err, &died) || died.How != "signal: killed" {
		t.Errorf("Recv: %v, want a death by signal: killed", err)
	}
}

// TestRlimits looks at what the kernel holds for the process.
func TestRlimits(t *testing.T) {
	c, _ := launch(t, manifest.Reader, func(c *Config) { c.Rlimits = Rlimits{AddressSpace: 8 << 30, OpenFiles: 333} })
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", c.PID()))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{{"Max core file size", "0", "0"}, {"Max open files", "333", "333"}, {"Max address space", "8589934592", "8589934592"}} {
		i := strings.Index(string(data), want[0])
		line, _, _ := strings.Cut(string(data)[i+len(want[0]):], "\n")
		if f := strings.Fields(line); f[0] != want[1] || f[1] != want[2] {
			t.Errorf("%s is %q, want %q", want[0], f[:2], want[1:])
		}
	}
}

// TestInheritedLock shows that a lock of the host stays taken for as long as a
// plugin lives.
func TestInheritedLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	lock := open()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	c, _ := launch(t, manifest.Reader, func(c *Config) { c.Inherit = []*os.File{lock} })
	lock.Close()
	other := open()
	defer other.Close()
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("lock while the plugin lives: %v, want it taken", err)
	}
	c.Kill()
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Errorf("lock after the plugin's end: %v, want it free", err)
	}
}

// TestNothingIsLeft counts goroutines and descriptors over many lives of a plugin,
// half of which end by a death.
func TestNothingIsLeft(t *testing.T) {
	img := image(t, "fixture")
	l := NewLauncher()
	t.Cleanup(l.Close)
	life := func(i int) {
		t.Helper()
		c, err := Launch(context.Background(), l, Config{Image: img, Role: manifest.Reader})
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			if err := unix.Kill(c.PID(), unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			<-c.Exited()
			c.Kill()
		} else if err := c.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	count := func() (descriptors, goroutines int) {
		t.Helper()
		d, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(d), runtime.NumGoroutine()
	}
	life(0)
	d, g := count()
	for i := range 6 {
		life(i)
	}
	late := time.After(10 * time.Second)
	for {
		d2, g2 := count()
		if d2 <= d && g2 <= g+1 {
			return
		}
		select {
		case <-time.After(50 * time.Millisecond): // goroutines of closed connections end on their own
		case <-late:
			t.Fatalf("after 6 more lives %d descriptors and %d goroutines, want %d and about %d", d2, g2, d, g)
		}
	}
}
