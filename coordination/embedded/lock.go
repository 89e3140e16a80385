package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datalink-go/datalink/coordination"
)

// LockName is the lock file's name in the data directory.
const LockName = "lock"

// holder is the content of the lock file: who took it last.
type holder struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

// LockedError says that the data directory is in use. PIDs are the processes that
// have the lock file open, as far as /proc tells; Owner is who took the lock.
type LockedError struct {
	Dir     string
	Owner   int
	Command string
	PIDs    []int
}

// Error names the holder.
func (e *LockedError) Error() string {
	switch {
	case e.Owner == 0:
		return fmt.Sprintf("data directory %s is in use by another process", e.Dir)
	case e.alive():
		return fmt.Sprintf("data directory %s is in use by pid %d (%s)", e.Dir, e.Owner, e.Command)
	case len(e.PIDs) > 0:
		return fmt.Sprintf("data directory %s: pid %d is gone, but processes that it started still hold the lock: %s; they end by themselves, else end them",
			e.Dir, e.Owner, joinInts(e.PIDs))
	}
	return fmt.Sprintf("data directory %s: pid %d is gone, but the lock is still held: try again", e.Dir, e.Owner)
}

func (e *LockedError) alive() bool { return syscall.Kill(e.Owner, 0) != syscall.ESRCH }

// Is matches ErrLocked.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// ErrLocked matches any LockedError.
var ErrLocked = errors.New("data directory is in use")

func joinInts(n []int) string {
	s := make([]string, len(n))
	for i, v := range n {
		s[i] = strconv.Itoa(v)
	}
	return strings.Join(s, ", ")
}

// Lock takes the lock of a data directory, which is made if it is not there, for a
// process that keeps its state elsewhere. Who closes the file gives the lock back,
// once no child holds it.
func Lock(ctx context.Context, dir string, wait time.Duration) (*os.File, coordination.Place, error) {
	if dir == "" {
		return nil, coordination.Place{}, errors.New("no data directory given")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, coordination.Place{}, fmt.Errorf("data directory: %w", err)
	}
	f, err := takeLock(ctx, dir, wait)
	if err != nil {
		return nil, coordination.Place{}, err
	}
	p, err := coordination.Here(dir, f)
	if err != nil {
		return nil, p, errors.Join(err, f.Close())
	}
	return f, p, nil
}

// takeLock opens and locks the lock file, trying again until wait is over.
func takeLock(ctx context.Context, dir string, wait time.Duration) (*os.File, error) {
	path := filepath.Join(dir, LockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock file of the data directory: %w", err)
	}
	if err := ownerOnly(f); err != nil {
		f.Close()
		return nil, err
	}
	until := time.Now().Add(wait)
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		left := time.Until(until)
		if left <= 0 || ctx.Err() != nil {
			defer f.Close()
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, lockedBy(dir, f)
		}
		select { // flock has no wait with a limit
		case <-ctx.Done():
		case <-time.After(min(left, 20*time.Millisecond)):
		}
	}
	if err := sign(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return f, nil
}

// sign writes who has the lock into its file.
func sign(f *os.File) error {
	data, err := json.Marshal(holder{PID: os.Getpid(), Command: filepath.Base(os.Args[0]), Since: time.Now().UTC()})
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(append(data, '\n'), 0)
	return err
}

// ownerOnly refuses a file of another user and takes all rights from others.
func ownerOnly(f *os.File) error {
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || !fi.Mode().IsRegular() || int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s: found %s, expected a regular file of uid %d", f.Name(), fi.Mode(), os.Geteuid())
	}
	if fi.Mode().Perm()&0o077 != 0 {
		return f.Chmod(0o600)
	}
	return nil
}

func lockedBy(dir string, f *os.File) error {
	e := &LockedError{Dir: dir}
	var h holder
	if data, err := io.ReadAll(io.LimitReader(f, 4096)); err == nil && json.Unmarshal(data, &h) == nil {
		e.Owner, e.Command = h.PID, h.Command
	}
	e.PIDs = openBy(f)
	return e
}

// openBy returns the other processes that have the file open.
func openBy(f *os.File) []int {
	self, err := f.Stat()
	if err != nil {
		return nil
	}
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, p := range procs {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		dir := filepath.Join("/proc", p.Name(), "fd")
		fds, err := os.ReadDir(dir)
		if err != nil {
			continue // another user's, or gone meanwhile
		}
		for _, fd := range fds {
			if fi, err := os.Stat(filepath.Join(dir, fd.Name())); err == nil && os.SameFile(fi, self) {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}
