package mysql

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/rowtest"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/failpoint"
)

func init() {
	suite["a process killed at every fail point"] = crashes
	suite["a process stopped and continued"] = zombies
}

const (
	crashURL     = "DATALINK_TEST_TARGET"
	crashBatches = 6
)

// TestChild is not a test: it is the process that the tests kill and stop.
func TestChild(t *testing.T) {
	at := os.Getenv(crashURL)
	if at == "" {
		t.Skip("optional: run by other tests")
	}
	u, err := url.Parse(at)
	rowtest.Must(t, err)
	w, err := New(Config{URL: u, Options: target.Options{Keyless: target.Append}})
	rowtest.Must(t, err)
	if err := fill(t, w, execution("x1", 1)); err != nil {
		fmt.Printf("ended: %s: %v\n", sdk.AsFault(err).Code, err)
		os.Exit(3)
	}
}

// fill writes what the target does not hold yet, trying again as the engine does.
func fill(t *testing.T, w *Writer, ex sdk.Execution) error {
	c, err := w.Claim(bg, ex)
	if err != nil {
		return err
	}
	k := rowtest.Keyless()
	_, err = w.Prepare(bg, k)
	if err != nil && sdk.AsFault(err).Retryable {
		_, err = w.Prepare(bg, k)
	}
	if err != nil {
		return err
	}
	for n := c.Points[0].BatchNo + 1; n <= crashBatches; {
		err := write(w, next(0, n), rowtest.Change(t, sdk.Append, k, nil, rowtest.Vals(int(n), "x")))
		switch {
		case errors.Is(err, sdk.ErrCommitUnknown):
			p, err := w.Settle(bg, 0)
			if err != nil {
				return err
			}
			n = p.BatchNo
		case err != nil && sdk.AsFault(err).Retryable:
			continue
		case err != nil:
			return err
		}
		n++
	}
	return nil
}

func (s *testServer) child(db, fp string) (*exec.Cmd, *bytes.Buffer) {
	ctx, cancel := context.WithTimeout(bg, 2*time.Minute)
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestChild$", "-test.count=1")
	context.AfterFunc(ctx, cancel)
	cmd.Env = append(os.Environ(), crashURL+"="+s.url(s.Addr(), db).String(), failpoint.Env+"="+fp)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

const lines = "SELECT GROUP_CONCAT(a ORDER BY a) FROM log"

// crashes: rows of a table without a key show what came twice or not at all.
func crashes(t *testing.T, s *testServer) {
	for _, fp := range []string{
		"rdbms.claim.begun:1", "rdbms.claim.written:1", "rdbms.claimed:1", "rdbms.prepare.begun:1", "rdbms.prepare.written:1", "rdbms.prepared:1",
		"rdbms.begun:1", "rdbms.fenced:3", "rdbms.stored:3", "rdbms.applied:3", "rdbms.committed:3",
	} {
		db := s.database(t)
		cmd, out := s.child(db, fp)
		err := cmd.Run()
		if x, ok := err.(*exec.ExitError); !ok || x.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("%s: the process ended with %v, want SIGKILL: the fail point was not passed\n%s", fp, err, out)
		}
		cmd, out = s.child(db, "")
		if err := cmd.Run(); err != nil {
			t.Fatalf("after %s: %v\n%s", fp, err, out)
		}
		expect(t, s, db, lines, "1,2,3,4,5,6")
	}
}

// zombies: a process stands still, inside a transaction or between two, another
// one takes the target and writes all of it; the first wakes, is refused, and has
// changed nothing.
func zombies(t *testing.T, s *testServer) {
	for _, fp := range []string{"rdbms.begun:2", "rdbms.fenced:2", "rdbms.applied:2", "rdbms.committed:2", "rdbms.claim.written:1", "rdbms.prepare.begun:1"} {
		db := s.database(t)
		cmd, out := s.child(db, fp+":stop")
		rowtest.Must(t, cmd.Start())
		var ws syscall.WaitStatus
		if _, err := syscall.Wait4(cmd.Process.Pid, &ws, syscall.WUNTRACED, nil); err != nil || !ws.Stopped() {
			t.Fatalf("%s: wait: %v, %v\n%s", fp, err, ws, out)
		}
		w := s.writer(t, db, func(c *Config) { c.Keyless = target.Append })
		err := fill(t, w, execution("x2", 2))
		cerr := cmd.Process.Signal(syscall.SIGCONT)
		werr := cmd.Wait()
		rowtest.Must(t, errors.Join(err, cerr))
		if werr == nil || !strings.Contains(out.String(), "ended: fenced") && !strings.Contains(fp, "claim") {
			t.Errorf("%s: the late process ended with %v, want it fenced:\n%s", fp, werr, out)
		}
		expect(t, s, db, lines, "1,2,3,4,5,6")
	}
}
