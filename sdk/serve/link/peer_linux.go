package link

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

func peerOf(conn net.Conn) (Peer, error) {
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return Peer{}, fmt.Errorf("connection is a %T, expected a unix socket", conn)
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return Peer{}, err
	}
	var cred *unix.Ucred
	var optErr error
	if err := raw.Control(func(fd uintptr) {
		cred, optErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return Peer{}, err
	}
	if optErr != nil {
		return Peer{}, fmt.Errorf("SO_PEERCRED: %w", optErr)
	}
	return Peer{PID: int(cred.Pid), UID: int(cred.Uid)}, nil
}
