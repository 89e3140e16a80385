package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Capabilities of the protocol (include/mysql_com.h).
const (
	capLongPassword = 1 << 0
	capLongFlag     = 1 << 2
	capProtocol41   = 1 << 9
	capSSL          = 1 << 11
	capTransactions = 1 << 13
	capSecure       = 1 << 15
	capPluginAuth   = 1 << 19
	capAttributes   = 1 << 20
	capLenEncAuth   = 1 << 21
	// CapDeprecateEOF says that result sets end in an OK packet and their column
	// definitions in nothing.
	CapDeprecateEOF = 1 << 24
)

// Conn is a connection to a server.
type Conn struct {
	Address      string // as it was given to Dial
	Version      string // as the server says it, such as 9.7.4 or 10.11.19-MariaDB
	Number       int    // 90704, 101119
	MariaDB      bool
	ID           uint32 // of the connection, as in SHOW PROCESSLIST
	Capabilities uint32 // that both sides have

	cfg    *Config
	net    net.Conn // sock or TLS over it
	sock   *socket
	seq    byte
	buf    []byte
	r, w   int
	broken error
	once   sync.Once
	secure bool
	unix   bool
}

// Dial connects to one address and logs in.
func Dial(ctx context.Context, cfg Config, address string) (*Conn, error) {
	network, full, host := Address(address)
	ctx, cancel := context.WithTimeout(ctx, cfg.timeout())
	defer cancel()
	d := cfg.Dialer
	if d == nil {
		d = &net.Dialer{KeepAlive: 15 * time.Second}
	}
	raw, err := d.DialContext(ctx, network, full)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	s := newSocket(raw)
	c := &Conn{Address: address, cfg: &cfg, net: s, sock: s, unix: network == "unix"}
	stop := c.bound(ctx)
	err = c.login(host)
	if stop(); err != nil {
		_ = raw.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("log in at %s as %s: %w", address, cfg.User, err)
	}
	return c, nil
}

// bound ends reads and writes with ctx; the returned function undoes that.
func (c *Conn) bound(ctx context.Context) (stop func()) {
	if t, ok := ctx.Deadline(); ok {
		_ = c.net.SetDeadline(t)
	}
	off := context.AfterFunc(ctx, func() { _ = c.net.SetDeadline(time.Unix(1, 0)) })
	return func() {
		if off() {
			_ = c.net.SetDeadline(time.Time{})
		}
	}
}

// private reports whether nobody can listen.
func (c *Conn) private() bool { return c.secure || c.unix }

// Encrypted reports whether the connection is under TLS.
func (c *Conn) Encrypted() bool { return c.secure }

func (c *Conn) login(host string) error {
	p, err := c.ReadPacket()
	if err != nil {
		return err
	}
	if err := AsError(p); err != nil {
		return err
	}
	g, err := parseGreeting(p)
	if err != nil {
		return err
	}
	c.setVersion(g.version)
	c.ID = g.id
	caps := g.caps & (capLongPassword | capLongFlag | capProtocol41 | capTransactions | capSecure | capPluginAuth | capAttributes | capLenEncAuth | CapDeprecateEOF)
	caps |= capLongPassword // MariaDB does not name it
	conf, err := c.cfg.TLS.config(host)
	if err != nil {
		return err
	}
	if g.caps&capSSL == 0 {
		if c.cfg.TLS.must() {
			return fmt.Errorf("%w, and tls.mode is %s", ErrNoTLS, c.cfg.TLS.Mode)
		}
		conf = nil
	}
	if c.unix && !c.cfg.TLS.must() {
		conf = nil
	}
	if conf != nil {
		caps |= capSSL
	}
	c.Capabilities = caps
	head := binary.LittleEndian.AppendUint32(nil, caps)
	head = binary.LittleEndian.AppendUint32(head, 1<<30)
	head = append(head, 45) // utf8mb4_general_ci
	head = append(head, make([]byte, 23)...)
	if conf != nil {
		if err := c.writePacket(head); err != nil {
			return err
		}
		if c.r < c.w {
			return errors.New("bytes came before TLS began")
		}
		t := tls.Client(c.sock, conf)
		if err := t.Handshake(); err != nil {
			return fmt.Errorf("TLS: %w", err)
		}
		c.net, c.secure = t, true
	}
	answer, err := c.answer(g.plugin, g.scramble)
	if errors.Is(err, ErrAuth) {
		answer, err = nil, nil // the server will name the account's plugin
	}
	if err != nil {
		return err
	}
	out := append(append(head, c.cfg.User...), 0)
	if caps&capLenEncAuth != 0 {
		out = appendLenBytes(out, answer)
	} else {
		out = append(append(out, byte(len(answer))), answer...)
	}
	if caps&capPluginAuth != 0 {
		out = append(append(out, g.plugin...), 0)
	}
	if caps&capAttributes != 0 {
		var attrs []byte
		for _, kv := range [][2]string{{"_client_name", "datalink"}, {"program_name", c.cfg.Program}} {
			if kv[1] != "" {
				attrs = appendLenBytes(appendLenBytes(attrs, []byte(kv[0])), []byte(kv[1]))
			}
		}
		out = appendLenBytes(out, attrs)
	}
	if err := c.writePacket(out); err != nil {
		return err
	}
	return c.authenticate(g.plugin, g.scramble)
}

// greeting is the server's first packet.
type greeting struct {
	version  string
	id       uint32
	caps     uint32
	scramble []byte
	plugin   string
}

func parseGreeting(p []byte) (g greeting, err error) {
	bad := fmt.Errorf("%d bytes of greeting are not those of protocol 10; is this the port of a MySQL or MariaDB server?", len(p))
	if len(p) < 1 || p[0] != 10 {
		return g, bad
	}
	version, p, ok := bytes.Cut(p[1:], []byte{0})
	if !ok || len(p) < 15 {
		return g, bad
	}
	g.version, g.id = string(version), binary.LittleEndian.Uint32(p)
	g.scramble = bytes.Clone(p[4:12])
	g.caps = uint32(binary.LittleEndian.Uint16(p[13:]))
	g.plugin = "mysql_native_password"
	if p = p[15:]; len(p) < 16 {
		return g, bad
	}
	g.caps |= uint32(binary.LittleEndian.Uint16(p[3:])) << 16
	n := max(13, int(p[5])-8)
	if p = p[16:]; len(p) < n {
		return g, bad
	}
	g.scramble = append(g.scramble, bytes.TrimSuffix(p[:n], []byte{0})...)
	if p = p[n:]; g.caps&capPluginAuth != 0 {
		name, _, _ := bytes.Cut(p, []byte{0})
		g.plugin = string(name)
	}
	if g.caps&capProtocol41 == 0 || g.caps&capSecure == 0 {
		return g, fmt.Errorf("server %s speaks the protocol before 4.1", g.version)
	}
	return g, nil
}

func (c *Conn) setVersion(v string) {
	// MariaDB before 11 hides behind a version that old replicas accept.
	c.Version = strings.TrimPrefix(v, "5.5.5-")
	c.MariaDB = strings.Contains(strings.ToLower(v), "mariadb")
	c.Number = VersionNumber(c.Version)
}

// VersionNumber turns 10.11.19-MariaDB into 101119 and 8.0.36 into 80036.
func VersionNumber(s string) int {
	v := 0
	for range 3 {
		n := 0
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		d, _ := strconv.Atoi(s[:n])
		v = v*100 + min(d, 99)
		if n < len(s) {
			n++
		}
		s = s[n:]
	}
	return v
}

// SetDeadline bounds all reads and writes from now on.
func (c *Conn) SetDeadline(t time.Time) error { return c.net.SetDeadline(t) }

// NoWait makes reads return ErrWouldBlock instead of waiting, or lets them wait
// again.
func (c *Conn) NoWait(on bool) { c.sock.nowait = on }

// LastRead returns when bytes arrived last.
func (c *Conn) LastRead() time.Time { return c.sock.last }

// Over is another connection, over raw, to one who hands on what the server sends.
// Statements cannot be asked over it.
func (c *Conn) Over(raw net.Conn) *Conn {
	s := newSocket(raw)
	return &Conn{
		Address: c.Address, Version: c.Version, Number: c.Number, MariaDB: c.MariaDB, Capabilities: c.Capabilities,
		cfg: c.cfg, net: s, sock: s, unix: true, broken: errors.New("the connection is not one to the server itself"),
	}
}

// Close says goodbye where the connection is fine, and closes it, within a second.
// It may come while another call waits.
func (c *Conn) Close() error {
	var err error
	c.once.Do(func() {
		_ = c.sock.SetDeadline(time.Now().Add(time.Second))
		if c.broken == nil && !c.secure {
			_, _ = c.sock.Conn.Write([]byte{1, 0, 0, 0, 1}) // COM_QUIT
		}
		err = c.sock.Close()
	})
	return err
}
