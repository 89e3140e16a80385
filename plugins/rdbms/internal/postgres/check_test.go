package postgres

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/ledger"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

func TestCheck(t *testing.T) {
	cert, key := certificate(t)
	s := start(t, "-c", "fsync=on", "-c", "ssl=on", "-c", "ssl_cert_file="+cert, "-c", "ssl_key_file="+key)
	ctx := context.Background()
	texts := func(t *testing.T, w *Writer) string {
		t.Helper()
		found, err := w.Check(ctx)
		must(t, err)
		var out []string
		for _, f := range found {
			out = append(out, fmt.Sprintf("%s: %s %s (%s)", f.Severity, f.Subject, f.Message, f.Advice))
		}
		return strings.Join(out, "\n")
	}
	t.Run("privileges", func(t *testing.T) {
		d := s.db(t)
		d.rows(t, "CREATE ROLE poor LOGIN; REVOKE TEMPORARY ON DATABASE "+d.name+" FROM PUBLIC; SELECT 1")
		cfg := Config{URL: strings.Replace(d.url, "postgres@", "poor@", 1)}
		w := d.writer(t, cfg)
		got := texts(t, w)
		for _, want := range []string{`GRANT CREATE ON SCHEMA "public" TO "poor"`, "GRANT TEMPORARY ON DATABASE", "error: privileges"} {
			if !strings.Contains(got, want) {
				t.Errorf("lacks %q:\n%s", want, got)
			}
		}
		if _, err := w.Claim(ctx, execution("x1", 1)); sdk.AsFault(err) == nil || sdk.AsFault(err).Code != sdk.CodeUnauthorized {
			t.Errorf("claim: %v", err)
		}
		d.rows(t, "GRANT CREATE ON SCHEMA public TO poor; GRANT TEMPORARY ON DATABASE "+d.name+" TO poor; SELECT 1")
		if got := texts(t, w); got != "" {
			t.Errorf("with the grants:\n%s", got)
		}
		// A user that is not the administrator ends its own sessions.
		cfg.Options = on(ledger.Switches{}).Options
		cfg.ClaimTimeout = 5 * time.Second
		a, b := d.writer(t, cfg), d.writer(t, cfg)
		claim(t, a, execution("x1", 1))
		must(t, write(a, nextOf(0, 1), line(t, 1)))
		claim(t, b, execution("x2", 2))
		must(t, write(b, nextOf(0, 2), line(t, 2)))
		if got := texts(t, w); !strings.Contains(got, "holds progress of task orders, writer w: execution x2, epoch 2") {
			t.Errorf("progress:\n%s", got)
		}
		var names []string
		must(t, w.Discover(ctx, func(s *batch.Schema) error { names = append(names, s.Name()); return nil }))
		if strings.Join(names, ",") != "public.log" {
			t.Errorf("tables %v", names)
		}
	})
	t.Run("TLS", func(t *testing.T) {
		d := s.db(t)
		url := func(args string) string { return strings.Replace(d.url, "sslmode=disable", args, 1) }
		w := d.writer(t, Config{URL: url("sslmode=verify-full&sslrootcert=" + cert)})
		claim(t, w, execution("x1", 1))
		if got := d.list(t, "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'datalink'"); got == "f" {
			t.Error("a session without TLS")
		}
		other, _ := certificate(t)
		bad := d.writer(t, Config{URL: url("sslmode=verify-full&sslrootcert=" + other)})
		if got := texts(t, bad); !strings.Contains(got, "certificate") {
			t.Errorf("an unknown certificate: %s", got)
		}
	})
	t.Run("no server", func(t *testing.T) {
		w, err := New(Config{URL: "postgres://u:hidden@127.0.0.1:1/db"})
		must(t, err)
		got := texts(t, w)
		if !strings.HasPrefix(got, "error: ") || strings.Contains(got, "hidden") {
			t.Errorf("%s", got)
		}
	})
}

// certificate writes a certificate for 127.0.0.1 that signs itself, and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k)
	must(t, err)
	pk, err := x509.MarshalPKCS8PrivateKey(k)
	must(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	must(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pk}), 0o600))
	return cert, key
}
