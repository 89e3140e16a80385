package zookeeper

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// errOver ends the library's attempts to go on after the session is over.
var errOver = errors.New("the session is over")

// wire is a connection to a server as the library uses it. It reads the answer to
// the connect request, which the library keeps to itself: the negotiated time-out
// (B132), the session and its end. It bounds that exchange, for which the library
// would wait many time-outs, and lets no second session begin.
//
// ConnectRequest: length int32, protocolVersion int32, lastZxidSeen int64, timeOut
// int32, sessionId int64, passwd buffer. ConnectResponse: length int32,
// protocolVersion int32, timeOut int32, sessionId int64, passwd buffer
// (zookeeper.jute of ZooKeeper 3.8).
type wire struct {
	net.Conn
	link  *link
	until time.Time // for the connect exchange
	asked bool
	shook atomic.Bool // the answer is complete; Read and SetReadDeadline have one goroutine
	head  []byte
}

const (
	requestSession = 4 + 4 + 8 + 4          // offset of the session in the request
	answerLength   = 4 + 4 + 4 + 8 + 4 + 16 // with a password of 16 bytes
)

// dial is the library's dialer.
func (l *link) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	if l.isOver() {
		return nil, errOver
	}
	bound := l.exchangeTime()
	d := net.Dialer{Timeout: min(timeout, bound), KeepAlive: 15 * time.Second}
	c, err := d.Dial(network, address)
	if err != nil {
		return nil, err
	}
	w := &wire{Conn: c, link: l, until: time.Now().Add(bound)}
	if l.cfg.TLS != nil {
		cfg := l.cfg.TLS.Clone()
		if cfg.ServerName == "" {
			cfg.ServerName, _, _ = net.SplitHostPort(address)
		}
		_ = c.SetDeadline(w.until)
		t := tls.Client(c, cfg)
		if err := t.Handshake(); err != nil {
			c.Close()
			return nil, err
		}
		_ = c.SetDeadline(time.Time{})
		w.Conn = t
	}
	l.connected(w)
	return w, nil
}

// exchangeTime bounds connecting to one server: a session that lives must have time
// to try the next.
func (l *link) exchangeTime() time.Duration {
	if l.session() == 0 {
		return max(l.cfg.Timeout, 2*time.Second)
	}
	return max(l.timeout()/4, 200*time.Millisecond)
}

// Write refuses a connect request for a session other than the first.
func (w *wire) Write(b []byte) (int, error) {
	if !w.asked {
		w.asked = true
		if len(b) >= requestSession+8 && binary.BigEndian.Uint64(b[requestSession:]) == 0 && w.link.session() != 0 {
			w.link.end(errOver)
			return 0, errOver
		}
	}
	return w.Conn.Write(b)
}

// SetReadDeadline implements net.Conn: the connect exchange has its own.
func (w *wire) SetReadDeadline(t time.Time) error {
	if !w.shook.Load() {
		t = w.until
	}
	return w.Conn.SetReadDeadline(t)
}

// Read looks at the answer to the connect request as it passes.
func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if w.shook.Load() || n == 0 {
		return n, err
	}
	w.head = append(w.head, b[:n]...)
	if len(w.head) < 4 || len(w.head) < 4+int(binary.BigEndian.Uint32(w.head)) {
		return n, err
	}
	w.shook.Store(true)
	if len(w.head) >= answerLength {
		be := binary.BigEndian
		timeout := time.Duration(be.Uint32(w.head[8:])) * time.Millisecond
		w.link.greeted(int64(be.Uint64(w.head[12:])), timeout, w.head[24:40])
	}
	return n, err
}
