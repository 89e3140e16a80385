package share

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// ErrTaken says that another reader of the worker is the relay.
var ErrTaken = errors.New("there is a relay")

// Name is the name of the relay of a server for the tasks of this worker that use
// one account: the worker is the parent of its readers' processes.
func Name(server, user string) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%d\x00%d\x00%s\x00%s", os.Getuid(), os.Getppid(), server, user))
	return "@datalink-mysql-" + hex.EncodeToString(h[:12])
}

// Listen takes a name; it returns ErrTaken where another has it.
func Listen(name string) (*net.UnixListener, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: name})
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, ErrTaken
	}
	return l, err
}

// ours reports whether the peer runs under this user: anybody could take a name.
func ours(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var cred *syscall.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		cred, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil {
		return err
	}
	if failed != nil {
		return os.NewSyscallError("getsockopt", failed)
	}
	if int(cred.Uid) != os.Getuid() {
		return fmt.Errorf("the other end of the relay's socket runs as user %d, this reader as %d", cred.Uid, os.Getuid())
	}
	return nil
}
