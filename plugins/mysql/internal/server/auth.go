package server

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"filippo.io/edwards25519"
)

// nativePassword is the answer of mysql_native_password:
// SHA1(password) XOR SHA1(scramble, SHA1(SHA1(password))).
func nativePassword(scramble []byte, password string) []byte {
	if password == "" {
		return nil
	}
	one := sha1.Sum([]byte(password))
	two := sha1.Sum(one[:])
	three := sha1.Sum(append(bytes.Clone(scramble[:min(20, len(scramble))]), two[:]...))
	for i := range one {
		one[i] ^= three[i]
	}
	return one[:]
}

// cachingSHA2 is the first answer of caching_sha2_password:
// SHA256(password) XOR SHA256(SHA256(SHA256(password)), scramble).
func cachingSHA2(scramble []byte, password string) []byte {
	if password == "" {
		return nil
	}
	one := sha256.Sum256([]byte(password))
	two := sha256.Sum256(one[:])
	three := sha256.Sum256(append(bytes.Clone(two[:]), scramble[:min(20, len(scramble))]...))
	for i := range one {
		one[i] ^= three[i]
	}
	return one[:]
}

// ed25519Sign is the answer of MariaDB's client_ed25519: a signature of the
// scramble whose key is the hash of the password itself (plugin/auth_ed25519).
func ed25519Sign(scramble []byte, password string) ([]byte, error) {
	h := sha512.Sum512([]byte(password))
	s, err := new(edwards25519.Scalar).SetBytesWithClamping(h[:32])
	if err != nil {
		return nil, err
	}
	public := new(edwards25519.Point).ScalarBaseMult(s).Bytes()
	sum := sha512.Sum512(append(bytes.Clone(h[32:]), scramble...))
	r, err := new(edwards25519.Scalar).SetUniformBytes(sum[:])
	if err != nil {
		return nil, err
	}
	big := new(edwards25519.Point).ScalarBaseMult(r).Bytes()
	sum = sha512.Sum512(append(append(bytes.Clone(big), public...), scramble...))
	k, err := new(edwards25519.Scalar).SetUniformBytes(sum[:])
	if err != nil {
		return nil, err
	}
	return append(big, new(edwards25519.Scalar).MultiplyAdd(k, s, r).Bytes()...), nil
}

// encrypted is the password for a server without TLS: with the scramble, by the
// server's RSA key.
func encrypted(key, scramble []byte, password string) ([]byte, error) {
	block, _ := pem.Decode(key)
	if block == nil {
		return nil, fmt.Errorf("%w: the server's public key is not PEM", ErrAuth)
	}
	pub, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: the server's public key: %w", ErrAuth, err)
	}
	rk, ok := pub.(*rsa.PublicKey)
	if !ok {
		return nil, fmt.Errorf("%w: the server's public key is of type %T, expected RSA", ErrAuth, pub)
	}
	plain := append([]byte(password), 0)
	for i := range plain {
		plain[i] ^= scramble[i%20]
	}
	return rsa.EncryptOAEP(sha1.New(), rand.Reader, rk, plain, nil)
}

// answer is the first answer of a way of login.
func (c *Conn) answer(plugin string, scramble []byte) ([]byte, error) {
	password := c.cfg.Password.Reveal()
	clear := append([]byte(password), 0)
	switch plugin {
	case "mysql_native_password":
		return nativePassword(scramble, password), nil
	case "caching_sha2_password":
		return cachingSHA2(scramble, password), nil
	case "client_ed25519":
		return ed25519Sign(scramble, password)
	case "sha256_password":
		switch {
		case password == "":
			return []byte{0}, nil
		case c.private():
			return clear, nil
		}
		return []byte{1}, nil // asks for the key
	case "mysql_clear_password", "dialog":
		if !c.private() {
			return nil, fmt.Errorf("%w: the account's plugin %s sends the password in the clear, and the connection is not encrypted; set tls.mode: required", ErrAuth, plugin)
		}
		return clear, nil
	}
	return nil, fmt.Errorf("%w: the account's plugin %q is not known; known are caching_sha2_password, sha256_password, mysql_native_password, client_ed25519 and mysql_clear_password", ErrAuth, plugin)
}

// authenticate follows the exchange after the first answer to its end.
func (c *Conn) authenticate(plugin string, scramble []byte) error {
	for {
		p, err := c.ReadPacket()
		if err != nil {
			return err
		}
		if len(p) == 0 {
			return fmt.Errorf("%w: an empty packet", ErrAuth)
		}
		switch p[0] {
		case 0x00:
			return nil
		case 0xff:
			return AsError(p)
		case 0xfe: // another plugin
			if len(p) == 1 {
				return fmt.Errorf("%w: the server asks for the password in the form before 4.1", ErrAuth)
			}
			name, data, _ := bytes.Cut(p[1:], []byte{0})
			plugin, scramble = string(name), bytes.Clone(bytes.TrimSuffix(data, []byte{0}))
			a, err := c.answer(plugin, scramble)
			if err != nil {
				return err
			}
			if err := c.writePacket(a); err != nil {
				return err
			}
		case 0x01:
			if err := c.more(plugin, scramble, p[1:]); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%w: packet %#02x", ErrAuth, p[0])
		}
	}
}

// more is a further step of the plugins that hash with SHA-256.
func (c *Conn) more(plugin string, scramble, data []byte) error {
	password := c.cfg.Password.Reveal()
	switch {
	case plugin == "caching_sha2_password" && len(data) == 1 && data[0] == 3:
		return nil // the server remembers the password; OK follows
	case plugin == "caching_sha2_password" && len(data) == 1 && data[0] == 4:
		if c.private() {
			return c.writePacket(append([]byte(password), 0))
		}
		return c.writePacket([]byte{2}) // asks for the key
	case plugin == "caching_sha2_password" || plugin == "sha256_password":
		e, err := encrypted(data, scramble, password)
		if err != nil {
			return err
		}
		return c.writePacket(e)
	}
	return fmt.Errorf("%w: plugin %s asks for more", ErrAuth, plugin)
}
