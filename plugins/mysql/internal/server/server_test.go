package server

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/sdk"
)

func TestPackets(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	c := &Conn{net: newSocket(b), sock: newSocket(b), cfg: &Config{}}
	sizes := []int{0, 1, 250, 70000, maxPacket - 1, maxPacket, maxPacket + 1, 2 * maxPacket, 40 << 20}
	go func() {
		w := &Conn{net: a}
		for i, n := range sizes {
			p := make([]byte, n)
			for k := range p {
				p[k] = byte(k*7 + i)
			}
			_ = w.writePacket(p)
		}
	}()
	for i, n := range sizes {
		p, err := c.ReadPacket()
		if err != nil || len(p) != n {
			t.Fatalf("packet of %d bytes: %d, %v", n, len(p), err)
		}
		for k := range p {
			if p[k] != byte(k*7+i) {
				t.Fatalf("packet of %d bytes: byte %d is %d", n, k, p[k])
			}
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestEd25519 compares the signature with that of go-mysql.
func TestEd25519(t *testing.T) {
	scramble := []byte("0123456789abcdefghijklmnopqrstuv")
	for _, password := range []string{"", "x", "p25519 ä"} {
		want, err := mysql.CalcEd25519Password(scramble, password)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ed25519Sign(scramble, password); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%q: got %x, %v, want %x", password, got, err, want)
		}
	}
}

// authority makes certificates in a folder: ca.pem, NAME.pem, NAME.key.
func authority(t *testing.T, dir string, names ...string) {
	t.Helper()
	write := func(name, kind string, der []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	caKey := key()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		t.Fatal(err)
	}
	write("ca.pem", "CERTIFICATE", der)
	for i, name := range names {
		k := key()
		c := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i) + 2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
			NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
		if ip := net.ParseIP(name); ip != nil {
			c.DNSNames, c.IPAddresses = nil, []net.IP{ip}
		}
		if der, err = x509.CreateCertificate(rand.Reader, c, ca, k.Public(), caKey); err != nil {
			t.Fatal(err)
		}
		write(name+".pem", "CERTIFICATE", der)
		if der, err = x509.MarshalPKCS8PrivateKey(k); err != nil {
			t.Fatal(err)
		}
		write(name+".key", "PRIVATE KEY", der)
	}
}

// TestLogin logs in in every way, and is refused in every way, at real servers.
func TestLogin(t *testing.T) {
	for _, kind := range []string{"mysql", "mariadb"} {
		t.Run(kind, func(t *testing.T) {
			dir, other := t.TempDir(), t.TempDir()
			authority(t, dir, "127.0.0.1", "client", "wronghost")
			authority(t, other, "client")
			options := []string{"--ssl-ca=" + dir + "/ca.pem", "--ssl-cert=" + dir + "/127.0.0.1.pem", "--ssl-key=" + dir + "/127.0.0.1.key"}
			if plugins := os.Getenv("DATALINK_MARIADB_PLUGINS"); plugins != "" && kind == "mariadb" {
				options = append(options, "--plugin-dir="+plugins)
			}
			s := stack.Start(t, kind, options...)
			accounts := map[string]string{"x509": "pw"}
			if kind == "mysql" {
				s.SQL(`CREATE USER sha2 IDENTIFIED WITH caching_sha2_password BY 'p\'ä'; CREATE USER sha256 IDENTIFIED WITH sha256_password BY 'p256'; CREATE USER x509 IDENTIFIED BY 'pw' REQUIRE X509; CREATE USER nopass IDENTIFIED BY '';`)
				accounts["sha2"], accounts["sha256"], accounts["nopass"] = "p'ä", "p256", ""
			} else {
				s.SQL(`CREATE USER native IDENTIFIED BY 'pn'; CREATE USER x509 IDENTIFIED BY 'pw' REQUIRE X509; CREATE USER nopass IDENTIFIED BY '';`)
				accounts["native"], accounts["nopass"] = "pn", ""
				if dir := strings.TrimSpace(s.SQL("SELECT @@plugin_dir", "-N")); exists(dir + "auth_ed25519.so") {
					s.SQL(`INSTALL SONAME 'auth_ed25519'; CREATE USER ed IDENTIFIED VIA ed25519 USING PASSWORD('p25519');`)
					accounts["ed"] = "p25519"
				}
			}
			dial := func(user, password string, o TLS) (bool, error) {
				c, err := Dial(t.Context(), Config{User: user, Password: sdk.NewSecret(password), TLS: o}, s.Addr())
				if err != nil {
					return false, err
				}
				defer c.Close()
				if _, err := c.Exec(t.Context(), "DO 1"); err != nil {
					t.Errorf("%s: %v", user, err)
				}
				if c.MariaDB != (kind == "mariadb") || c.Number < 90000 || c.ID == 0 {
					t.Errorf("server %+v", c)
				}
				return c.Encrypted(), nil
			}
			for user, password := range accounts {
				var o TLS
				if user == "x509" {
					o = TLS{Mode: "required", Cert: dir + "/client.pem", Key: dir + "/client.key"}
				}
				for _, mode := range []string{"preferred", "disabled", "required", "required"} {
					if user == "x509" && mode == "disabled" {
						continue
					}
					o.Mode = mode
					enc, err := dial(user, password, o)
					if err != nil || enc != (mode != "disabled") {
						t.Errorf("%s, tls %s: encrypted %v, %v", user, mode, enc, err)
					}
				}
				if _, err := dial(user, password+"x", o); Code(err) != 1045 {
					t.Errorf("%s with a wrong password: %v", user, err)
				}
			}
			for _, c := range []struct {
				name string
				user string
				tls  TLS
				ok   bool
			}{
				{"verify-ca", "nopass", TLS{Mode: "verify-ca", CA: dir + "/ca.pem"}, true},
				{"verify-identity", "nopass", TLS{Mode: "verify-identity", CA: dir + "/ca.pem"}, true},
				{"verify-ca, another authority", "nopass", TLS{Mode: "verify-ca", CA: other + "/ca.pem"}, false},
				{"verify-identity, another authority", "nopass", TLS{Mode: "verify-identity", CA: other + "/ca.pem"}, false},
				{"no client certificate", "x509", TLS{Mode: "required"}, false},
				{"client certificate of another authority", "x509", TLS{Mode: "required", Cert: other + "/client.pem", Key: other + "/client.key"}, false},
			} {
				enc, err := dial(c.user, accounts[c.user], c.tls)
				if (err == nil) != c.ok || c.ok && !enc {
					t.Errorf("%s: encrypted %v, %v", c.name, enc, err)
				}
			}
			// A certificate of another host: the authority is right, the name is not.
			s.Stop()
			s.Restart("--ssl-ca="+dir+"/ca.pem", "--ssl-cert="+dir+"/wronghost.pem", "--ssl-key="+dir+"/wronghost.key")
			if _, err := dial("nopass", "", TLS{Mode: "verify-ca", CA: dir + "/ca.pem"}); err != nil {
				t.Errorf("verify-ca, another host: %v", err)
			}
			if _, err := dial("nopass", "", TLS{Mode: "verify-identity", CA: dir + "/ca.pem"}); err == nil || !strings.Contains(err.Error(), "127.0.0.1") {
				t.Errorf("verify-identity, another host: %v", err)
			}
			s.Stop()
			s.Restart(map[string]string{"mysql": "--tls-version=", "mariadb": "--skip-ssl"}[kind])
			if _, err := dial("nopass", "", TLS{Mode: "required"}); !errors.Is(err, ErrNoTLS) {
				t.Errorf("required at a server without TLS: %v", err)
			}
			if enc, err := dial("nopass", "", TLS{Mode: "preferred"}); err != nil || enc {
				t.Errorf("preferred at a server without TLS: encrypted %v, %v", enc, err)
			}
			statements(t, s)
		})
	}
}

func statements(t *testing.T, s *stack.Server) {
	c, err := Dial(t.Context(), Config{User: "root"}, s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := t.Context()
	if err := c.Pin(ctx, false); err != nil {
		t.Fatal(err)
	}
	res, err := c.Query(ctx, "SELECT 1 a, NULL b, '' c, 'ä' d UNION ALL SELECT 2, 'x', NULL, "+Literal("a'b\\c\x00\n"))
	if err != nil || len(res.Rows) != 2 || res.Get(0, "B") != "" || res.Rows[0][1] != nil || res.Rows[0][2] == nil || res.Get(1, "d") != "a'b\\c\x00\n" || res.Get(0, "d") != "ä" {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := c.Exec(ctx, "SELEC"); Code(err) != 1064 {
		t.Errorf("syntax error: %v", err)
	}
	if _, err := c.Exec(ctx, "SET max_error_count = 1"); err != nil { // the connection goes on after an error
		t.Error(err)
	}
	if got, err := c.One(ctx, "SELECT LENGTH(REPEAT('x', 1000000))"); err != nil || got != "1000000" {
		t.Errorf("%s, %v", got, err)
	}
	rows, bytes := 0, 0
	err = c.Stream(ctx, "SELECT REPEAT('x', 200000) FROM information_schema.collations LIMIT 50", func(_ []Column, r Row) error {
		rows++
		bytes += len(r[0])
		return nil
	})
	if err != nil || rows != 50 || bytes != 10_000_000 {
		t.Errorf("%d rows, %d bytes, %v", rows, bytes, err)
	}
	if id, err := c.Identity(ctx); err != nil || id == "" {
		t.Errorf("identity %q, %v", id, err)
	}
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	begun := time.Now()
	if _, err := c.Exec(short, "SELECT SLEEP(30)"); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) > 5*time.Second {
		t.Errorf("after %s: %v", time.Since(begun), err)
	}
	if _, err := c.Exec(ctx, "DO 1"); err == nil {
		t.Error("a connection whose answer was not read was used again")
	}
}
