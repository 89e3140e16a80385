package link

import (
	"context"
	"errors"
	"fmt"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// ErrPeer is wrapped when the process at the other end of a socket is not the one
// expected.
var ErrPeer = errors.New("peer refused")

// Peer is a process at the other end of a unix socket.
type Peer struct{ PID, UID int }

// Check compares the peer of conn with p.
func (p Peer) Check(conn net.Conn) error {
	got, err := peerOf(conn)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPeer, err)
	}
	if got != p {
		return fmt.Errorf("%w: it is process %d of user %d, expected process %d of user %d", ErrPeer, got.PID, got.UID, p.PID, p.UID)
	}
	return nil
}

// Dial connects to the unix socket and checks who listens there.
func (p Peer) Dial(ctx context.Context, path string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := p.Check(conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// Only returns transport credentials for a server that let in the peer alone;
// inner are those to use then, nil = none. Refused is called with each refusal.
func Only(p Peer, inner credentials.TransportCredentials, refused func(error)) credentials.TransportCredentials {
	if inner == nil {
		inner = insecure.NewCredentials()
	}
	return &only{inner, p, refused}
}

type only struct {
	credentials.TransportCredentials
	peer    Peer
	refused func(error)
}

func (o *only) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if err := o.peer.Check(conn); err != nil {
		o.refused(err)
		return nil, nil, errors.Join(err, conn.Close())
	}
	return o.TransportCredentials.ServerHandshake(conn)
}

func (o *only) Clone() credentials.TransportCredentials {
	return &only{o.TransportCredentials.Clone(), o.peer, o.refused}
}
