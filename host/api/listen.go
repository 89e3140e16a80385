package api

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// Names in the data directory.
const (
	SocketFile    = "api.sock"
	TokenFile     = "api.token"
	ReadTokenFile = "api.read.token"
)

// throughDir runs f with a short path to the folder: the address of a unix socket
// has 108 bytes at most, the path of a data directory may have more.
func throughDir(dir string, f func(short string) error) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return f(fmt.Sprintf("/proc/self/fd/%d", d.Fd()))
}

// ListenUnix listens on the socket of a data directory. Who calls it holds the
// directory's lock: a socket that is there is of a daemon that is gone.
func ListenUnix(dir string) (net.Listener, error) {
	path := filepath.Join(dir, SocketFile)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("socket of the API: %w", err)
	}
	var l *net.UnixListener
	err := throughDir(dir, func(short string) error {
		var err error
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(short, SocketFile), Net: "unix"})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("socket of the API: %w", err)
	}
	l.SetUnlinkOnClose(false) // its short path is gone by then
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &unlinking{l, path}, nil
}

type unlinking struct {
	net.Listener
	path string
}

// Close closes the listener and removes the socket.
func (u *unlinking) Close() error {
	return errors.Join(u.Listener.Close(), os.Remove(u.path))
}

// dialUnix connects to the socket of a data directory.
func dialUnix(ctx context.Context, path string) (net.Conn, error) {
	var c net.Conn
	err := throughDir(filepath.Dir(path), func(short string) error {
		var d net.Dialer
		var err error
		c, err = d.DialContext(ctx, "unix", filepath.Join(short, filepath.Base(path)))
		return err
	})
	return c, err
}

// TLS are the files of a listener: its certificate and key, and the authority of
// clients where they must have certificates too. The zero value is no TLS.
type TLS struct{ Cert, Key, ClientCA string }

// Config reads the files; it is nil without TLS.
func (t TLS) Config() (*tls.Config, error) {
	if t == (TLS{}) {
		return nil, nil
	}
	if t.Cert == "" || t.Key == "" {
		return nil, fmt.Errorf("TLS needs a certificate and its key, found certificate %q and key %q", t.Cert, t.Key)
	}
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("TLS certificate %s with key %s: %w", t.Cert, t.Key, err)
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if t.ClientCA != "" {
		if cfg.ClientCAs, err = authority(t.ClientCA); err != nil {
			return nil, err
		}
		cfg.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return cfg, nil
}

func authority(path string) (*x509.CertPool, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("certificate authority %s: expected certificates in PEM, found none", path)
	}
	return pool, nil
}

// CheckAddress refuses what ListenTCP would not listen on whatever else uses it.
func CheckAddress(address string, anywhere bool) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("found %q, expected HOST:PORT such as 127.0.0.1:8420", address)
	}
	ip := net.ParseIP(host)
	if !anywhere && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("found host %q, expected a loopback address such as 127.0.0.1:8420, or TLS (--tls-cert, --tls-key)", host)
	}
	return nil
}

// ListenTCP listens on an address, which is a loopback one unless anywhere is set.
func ListenTCP(address string, anywhere bool) (net.Listener, error) {
	if err := CheckAddress(address, anywhere); err != nil {
		return nil, err
	}
	return net.Listen("tcp", address)
}

// TokensOf returns the tokens of a data directory and makes those that are missing.
func TokensOf(dir string) (t Tokens, err error) {
	if t.Write, err = token(filepath.Join(dir, TokenFile)); err != nil {
		return t, err
	}
	t.Read, err = token(filepath.Join(dir, ReadTokenFile))
	return t, err
}

func token(path string) (string, error) {
	if data, err := os.ReadFile(path); err == nil && len(data) >= 32 {
		return strings.TrimSpace(string(data)), nil
	}
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	token := hex.EncodeToString(b[:])
	if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("token of the API: %w", err)
	}
	return token, os.Chmod(path, 0o600)
}

func sameToken(got, want string) bool {
	return subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1
}
