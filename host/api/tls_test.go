package api_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/datalink-go/datalink/host/api"
)

// authority makes certificates in a folder.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.issue("ca")
	return a
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) issue(name string) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: name == "ca", BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if name == "ca" {
		c.ExtKeyUsage, c.KeyUsage = nil, x509.KeyUsageCertSign
		a.cert, a.key = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(a.path(file), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
}

func TestTLS(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	a.issue("server")
	a.issue("client")
	other.issue("client")
	serve := func(files api.TLS) string {
		cfg, err := files.Config()
		if err != nil {
			t.Fatal(err)
		}
		l, err := api.ListenTCP("127.0.0.1:0", false)
		if err != nil {
			t.Fatal(err)
		}
		srv := &http.Server{Handler: api.Handler(&backend{})}
		go func() { _ = srv.Serve(tls.NewListener(l, cfg)) }()
		t.Cleanup(func() { srv.Close() })
		return "https://" + l.Addr().String()
	}
	plain := serve(api.TLS{Cert: a.path("server.pem"), Key: a.path("server.key")})
	mutual := serve(api.TLS{Cert: a.path("server.pem"), Key: a.path("server.key"), ClientCA: a.path("ca.pem")})
	for _, tt := range []struct {
		name, url string
		access    api.Access
		ok        bool
	}{
		{"trusted", plain, api.Access{CA: a.path("ca.pem")}, true},
		{"authority of the system", plain, api.Access{}, false},
		{"another authority", plain, api.Access{CA: other.path("ca.pem")}, false},
		{"without TLS", strings.Replace(plain, "https", "http", 1), api.Access{}, false},
		{"client certificate", mutual, api.Access{CA: a.path("ca.pem"), Cert: a.path("client.pem"), Key: a.path("client.key")}, true},
		{"no client certificate", mutual, api.Access{CA: a.path("ca.pem")}, false},
		{"foreign client certificate", mutual, api.Access{CA: a.path("ca.pem"), Cert: other.path("client.pem"), Key: other.path("client.key")}, false},
	} {
		c, err := api.NewClient(tt.url, tt.access)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = c.Task(context.Background(), "t"); (err == nil) != tt.ok {
			t.Errorf("%s: %v, want it to pass: %v", tt.name, err, tt.ok)
		}
	}
	for _, bad := range []api.TLS{{Cert: a.path("server.pem")}, {Cert: a.path("server.pem"), Key: a.path("client.key")}, {Cert: a.path("server.pem"), Key: a.path("server.key"), ClientCA: a.path("server.key")}} {
		if _, err := bad.Config(); err == nil {
			t.Errorf("%+v passes, want an error", bad)
		}
	}
}
