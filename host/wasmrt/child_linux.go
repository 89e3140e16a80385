package wasmrt

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/failpoint"
	"github.com/datalink-go/datalink/sdk/wire"
)

// Descriptors of a child, in the order in which the host passes them.
const (
	fdSocket = 3 // frames
	fdModule = 4 // sealed memfd with the module
	fdAlive  = 5 // pipe that the host keeps open while it lives
)

// ChildMain is the main function of a child: it runs the module that it finds
// in its descriptors and does not return.
func ChildMain() {
	_ = os.WriteFile("/proc/self/comm", []byte(ChildArg), 0) // it would be called exe
	go func() {
		var b [1]byte
		_, _ = os.NewFile(fdAlive, "alive").Read(b[:])
		os.Exit(4) // the host is gone
	}()
	if err := runChild(os.NewFile(fdSocket, "host"), os.NewFile(fdModule, "module")); err != nil {
		fmt.Fprintln(os.Stderr, "wasm child:", err)
		os.Exit(3)
	}
	os.Exit(0)
}

func runChild(conn, module *os.File) error {
	ctx := context.Background()
	kind, payload, err := readFrame(conn, nil, slack)
	if err != nil {
		return fmt.Errorf("read what to run: %w", err)
	}
	var h hello
	if err := json.Unmarshal(payload, &h); err != nil || kind != frameHello {
		return fmt.Errorf("read what to run: frame of kind %d: %w", kind, err)
	}
	if err := confine(&h); err != nil {
		return err
	}
	binary, err := moduleBytes(module, h.SHA256)
	if err != nil {
		return err
	}
	out := &output{w: conn}
	g, err := load(ctx, &h, binary, out)
	var fault *sdk.Fault
	switch {
	case errors.As(err, &fault):
		return writeFrame(conn, frameRefused, (&wire.Fault{Fault: *fault}).Append(nil))
	case err != nil:
		return err
	}
	binary = nil
	debug.FreeOSMemory() // the compiler's garbage
	out.end()
	if err := writeFrame(conn, frameReady); err != nil {
		return err
	}
	for {
		err := serveCall(ctx, conn, g, &h)
		var died *trapped
		switch {
		case err == io.EOF:
			return nil
		case errors.As(err, &died):
			f := &wire.Fault{Fault: sdk.Fault{Code: sdk.CodeInternal, Message: died.text}}
			_ = writeFrame(conn, frameTrapped, f.Append(nil))
			return err
		case err != nil:
			return err
		}
	}
}

// trapped says that the module's instance can no longer be used.
type trapped struct{ text string }

func (t *trapped) Error() string { return t.text }

// serveCall reads one call straight into the module's memory and answers
// straight from there.
func serveCall(ctx context.Context, conn *os.File, g *guest, h *hello) error {
	kind, n, err := readHeader(conn, h.Message)
	if err != nil {
		return err
	}
	if kind != frameCall || n < 4 {
		return fmt.Errorf("frame of kind %d and %d bytes from the host", kind, n)
	}
	var method [4]byte
	if _, err := io.ReadFull(conn, method[:]); err != nil {
		return err
	}
	n -= 4
	g.out.begin()
	ptr, view, err := g.room(ctx, n)
	if err != nil {
		return &trapped{err.Error()}
	}
	if _, err := io.ReadFull(conn, view); err != nil {
		return err
	}
	failpoint.Hit("wasm.call.before")
	reply, err := g.invoke(ctx, binary.LittleEndian.Uint32(method[:]), ptr, n)
	if err != nil {
		return &trapped{err.Error()}
	}
	failpoint.Hit("wasm.call.after")
	if g.out.end(); g.out.err != nil {
		return g.out.err
	}
	failpoint.Hit("wasm.reply.before")
	return writeFrame(conn, frameReply, reply)
}

// confine limits what this process may take, whatever the module does.
func confine(h *hello) error {
	for _, l := range []struct {
		which int
		name  string
		max   uint64
	}{
		{unix.RLIMIT_DATA, "RLIMIT_DATA", h.Data},
		{unix.RLIMIT_CORE, "RLIMIT_CORE", 0},
		{unix.RLIMIT_NOFILE, "RLIMIT_NOFILE", 64},
		{unix.RLIMIT_FSIZE, "RLIMIT_FSIZE", 1 << 30},
	} {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.which, &now); err != nil {
			return fmt.Errorf("read %s: %w", l.name, err)
		}
		m := min(l.max, now.Max)
		if err := unix.Setrlimit(l.which, &unix.Rlimit{Cur: m, Max: m}); err != nil {
			return fmt.Errorf("set %s to %d: %w", l.name, m, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	// When memory runs short the child goes before the daemon.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	return nil
}

// moduleBytes reads the module and checks that it is the one that was meant.
func moduleBytes(f *os.File, want string) ([]byte, error) {
	defer f.Close()
	seals, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
	if err != nil || seals&memfdSeals != memfdSeals {
		return nil, fmt.Errorf("the module's memory file is not sealed (%#x): %w", seals, err)
	}
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	p := make([]byte, st.Size())
	if _, err := f.ReadAt(p, 0); err != nil && err != io.EOF {
		return nil, err
	}
	if got := digest(p); got != want {
		return nil, fmt.Errorf("the module's SHA-256 is %s, expected %s", got, want)
	}
	return p, nil
}
