package wasmrt

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/wire"
)

// child is the host's side of one child process.
type child struct {
	cmd    *exec.Cmd
	conn   *net.UnixConn
	alive  *os.File
	exited chan struct{}
	stderr *tailWriter
	limit  int
	buf    []byte // of the last frame
	method [4]byte
	in     uint64
	out    uint64
}

// death says that a child ended, or had to be ended, during a call.
type death struct{ cause string }

func (d *death) Error() string { return d.cause }

// kill ends the child and waits until it is gone.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	c.conn.Close()
	<-c.exited
	c.alive.Close()
}

// hello tells the child what to run and waits until the module is loaded. A
// *sdk.Fault says that the module cannot be run, a *death that the child died.
func (c *child) hello(ctx context.Context, h *hello, timeout time.Duration, m *Module) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	_, err = c.exchange(ctx, timeout, m, "starting it", func() error { return writeFrame(c.conn, frameHello, text) })
	return err
}

// call makes one call and returns the module's reply, valid until the next.
func (c *child) call(ctx context.Context, method wire.Method, request []byte, timeout time.Duration, m *Module) ([]byte, error) {
	if len(request) > c.limit {
		return nil, sdk.Faultf(sdk.CodeTooLarge, "%s of module %s: the request has %d bytes, the limit is %d", method.Name, m.cfg.Name, len(request), c.limit)
	}
	binary.LittleEndian.PutUint32(c.method[:], method.ID)
	c.in += uint64(len(request))
	reply, err := c.exchange(ctx, timeout, m, method.Name, func() error {
		return writeFrame(c.conn, frameCall, c.method[:], request)
	})
	c.out += uint64(len(reply))
	return reply, err
}

// exchange sends and reads frames until the one that answers.
func (c *child) exchange(ctx context.Context, timeout time.Duration, m *Module, what string, send func() error) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	deadline := time.Now().Add(timeout)
	ours := true
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline, ours = d, false
	}
	_ = c.conn.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	reply, err := c.answer(m, send)
	if err == nil {
		return reply, nil
	}
	var fault *sdk.Fault
	switch {
	case errors.As(err, &fault):
		return nil, err
	case ctx.Err() != nil, !ours && errors.Is(err, os.ErrDeadlineExceeded):
		// The call cannot be interrupted: the child goes with it.
		c.kill()
		return nil, errors.Join(context.DeadlineExceeded, ctx.Err())
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.kill()
		return nil, &death{fmt.Sprintf("%s took longer than %s and was ended", what, timeout)}
	}
	var d *death
	if errors.As(err, &d) {
		c.kill()
		return nil, d
	}
	// The connection broke: the child is dead or about to be.
	select {
	case <-c.exited:
	case <-time.After(time.Second):
	}
	c.kill()
	cause := fmt.Sprintf("the child ended during %s: %s", what, c.cmd.ProcessState)
	if t := c.stderr.first(); t != "" {
		cause += ": " + t
	}
	return nil, &death{cause}
}

// What a module may say within one call.
const (
	maxLine    = 4 << 10 // bytes of a line or name
	maxLines   = 100
	maxMetrics = 1000
	maxFrames  = maxLines + maxMetrics + 100 // with what the child adds
)

func (c *child) answer(m *Module, send func() error) ([]byte, error) {
	sendErr := send() // a child that is gone may have left a reason to read
	for n := 0; ; n++ {
		kind, payload, err := readFrame(c.conn, c.buf, c.limit)
		if err != nil {
			return nil, errors.Join(sendErr, err)
		}
		c.buf = payload
		switch kind {
		case frameReady, frameReply:
			if sendErr != nil {
				return nil, sendErr
			}
			return payload, nil
		case frameRefused:
			var f wire.Fault
			if err := f.Decode(payload); err != nil {
				return nil, err
			}
			return nil, &f.Fault
		case frameTrapped:
			var f wire.Fault
			if err := f.Decode(payload); err != nil {
				return nil, err
			}
			return nil, &death{f.Message}
		case frameLog:
			if len(payload) >= 4 {
				m.said(slog.Level(int32(binary.LittleEndian.Uint32(payload))), payload[4:])
			}
		case frameMetric:
			if len(payload) >= 12 && m.cfg.Metric != nil {
				set := binary.LittleEndian.Uint32(payload) == 1
				m.cfg.Metric(string(payload[12:]), set, math.Float64frombits(binary.LittleEndian.Uint64(payload[4:])))
			}
		default:
			return nil, &death{fmt.Sprintf("the child sent a frame of kind %d", kind)}
		}
		if n > maxFrames {
			return nil, &death{fmt.Sprintf("the child sent %d messages without a reply", n)}
		}
	}
}

// tailWriter keeps the beginning of what a child's process prints, where the
// runtime says what went wrong.
type tailWriter struct {
	mu   sync.Mutex
	kept []byte
}

func (t *tailWriter) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := maxLine - len(t.kept); room > 0 {
		t.kept = append(t.kept, p[:min(len(p), room)]...)
	}
	return len(p), nil
}

// first returns the first line that was printed.
func (t *tailWriter) first() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	line, _, _ := bytes.Cut(bytes.TrimSpace(t.kept), []byte("\n"))
	return strings.ToValidUTF8(string(line), "�")
}
