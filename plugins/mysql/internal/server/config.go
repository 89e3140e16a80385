package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/datalink-go/datalink/sdk"
)

// TLS is how connections are encrypted.
type TLS struct {
	Mode string `config:"mode" doc:"encryption: off; where the server offers it; always; always with the server's certificate checked against ca; and its host name too" enum:"disabled|preferred|required|verify-ca|verify-identity" default:"preferred"`
	CA   string `config:"ca" doc:"file with the certificates of authorities; left out = those of the system"`
	Cert string `config:"cert" doc:"file with the client's certificate"`
	Key  string `config:"key" doc:"file with the client's key"`
}

// Config says how to reach a server and log in.
type Config struct {
	User     string
	Password sdk.Secret
	TLS      TLS
	Timeout  time.Duration // of connecting and logging in; 0 = 10 s
	// Program is the program_name that MySQL shows of the connection.
	Program string
	// Dialer opens the connection; nil = the net package.
	Dialer *net.Dialer
}

func (c *Config) timeout() time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return 10 * time.Second
}

// Check reports what of the TLS options cannot work, without a server.
func (t *TLS) Check() []sdk.Problem {
	var p []sdk.Problem
	if (t.Cert == "") != (t.Key == "") {
		p = append(p, sdk.Problem{Path: "tls.cert", Found: t.Cert, Expected: "cert and key together", Message: "a client's certificate needs its key"})
	}
	if t.CA != "" && (t.Mode == "disabled" || t.Mode == "preferred" || t.Mode == "required") {
		p = append(p, sdk.Problem{Path: "tls.ca", Found: t.CA, Expected: "mode: verify-ca or verify-identity", Message: fmt.Sprintf("mode %s does not look at the server's certificate", t.Mode)})
	}
	return p
}

// config returns nil where no encryption is wanted.
func (t *TLS) config(host string) (*tls.Config, error) {
	c := &tls.Config{ServerName: host}
	switch t.Mode {
	case "disabled":
		return nil, nil
	case "", "preferred", "required":
		c.InsecureSkipVerify = true
	case "verify-ca", "verify-identity":
	default:
		return nil, fmt.Errorf("tls.mode: found %q, expected disabled, preferred, required, verify-ca or verify-identity", t.Mode)
	}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("tls.ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls.ca: %s holds no certificate", t.CA)
		}
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("tls.cert: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if t.Mode == "verify-ca" {
		// The chain is checked here, as the names in it must not be.
		roots := c.RootCAs
		c.InsecureSkipVerify = true
		c.VerifyConnection = func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return errors.New("the server shows no certificate")
			}
			o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
			for _, cert := range s.PeerCertificates[1:] {
				o.Intermediates.AddCert(cert)
			}
			_, err := s.PeerCertificates[0].Verify(o)
			return err
		}
	}
	return c, nil
}

func (t *TLS) must() bool { return t.Mode != "" && t.Mode != "preferred" && t.Mode != "disabled" }

// Address completes an address: host, host:port or the path of a Unix socket.
func Address(s string) (network, address, host string) {
	if strings.HasPrefix(s, "/") {
		return "unix", s, "localhost"
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		host, port = strings.Trim(s, "[]"), "3306"
	}
	return "tcp", net.JoinHostPort(host, port), host
}
