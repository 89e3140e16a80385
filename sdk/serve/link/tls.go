package link

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"time"
)

// serverName is the name in both certificates.
const serverName = "datalink"

// KeyPair is one side's certificate and key and the other side's certificate,
// all PEM. It lives for one process and is kept in memory alone.
type KeyPair struct {
	Cert string `json:"cert"`
	Key  string `json:"key"`
	Peer string `json:"peer"`
}

// NewKeyPairs makes the pairs of a host and a plugin that trust each other and
// nobody else.
func NewKeyPairs(now time.Time) (host, plugin KeyPair, err error) {
	if host, err = selfSigned(now); err != nil {
		return host, plugin, err
	}
	if plugin, err = selfSigned(now); err != nil {
		return host, plugin, err
	}
	host.Peer, plugin.Peer = plugin.Cert, host.Cert
	return host, plugin, nil
}

func selfSigned(now time.Time) (KeyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return KeyPair{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return KeyPair{}, err
	}
	t := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: serverName}, DNSNames: []string{serverName},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(10, 0, 0),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IsCA:        true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return KeyPair{}, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return KeyPair{}, err
	}
	return KeyPair{
		Cert: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})),
		Key:  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	}, nil
}

// Config returns the configuration for either end.
func (k *KeyPair) Config() (*tls.Config, error) {
	cert, err := tls.X509KeyPair([]byte(k.Cert), []byte(k.Key))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(k.Peer)) {
		return nil, errors.New("the peer's certificate is no PEM certificate")
	}
	return &tls.Config{
		Certificates: []tls.Certificate{cert}, RootCAs: pool, ClientCAs: pool,
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13, ServerName: serverName,
	}, nil
}
