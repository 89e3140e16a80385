package zookeeper

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/datalink-go/datalink/coordination"
)

// Config says where the store is and how to behave towards it.
type Config struct {
	Servers []string // HOST:PORT
	Root    string   // chroot, absolute; "" and "/" are the top

	// Timeout is the session time-out that is asked for; the server may grant
	// another (Lease tells). 0 = 10 s.
	Timeout time.Duration
	// Call bounds each call beside its context; 0 = 15 s, but twice Timeout at least.
	Call time.Duration

	User, Password string      // digest authentication; "" = none, nodes are open to everybody
	TLS            *tls.Config // nil = plain TCP

	// Keep is how many executions of a task stay in its journal, beside those
	// that were never closed; 0 = 50.
	Keep int
	// Limit is the greatest request in bytes that the servers accept
	// (jute.maxbuffer); 0 = 1 MiB.
	Limit int
	// OrphanAfter is when a status node is deleted whose take was given up without
	// an answer; 0 = 2 minutes.
	OrphanAfter time.Duration

	// Place is where this process holds the lock of its data directory.
	Place coordination.Place
	Clock coordination.Clock // the machine's if nil
	Log   *slog.Logger       // nobody if nil
}

// ParseURL reads zookeeper://[USER:PASSWORD@]HOST[:PORT][,HOST…][/CHROOT][?OPTIONS].
// Options are sessionTimeout (such as 10s), tls (true), ca, cert, key (paths of PEM
// files) and serverName.
func ParseURL(text string) (Config, error) {
	var c Config
	rest, ok := strings.CutPrefix(text, "zookeeper://")
	if !ok {
		return c, errors.New(`expected zookeeper://HOST:PORT,…/CHROOT`)
	}
	// net/url takes one host only.
	rest, query, _ := strings.Cut(rest, "?")
	hosts, root, _ := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(hosts, '@'); at >= 0 {
		user, password, _ := strings.Cut(hosts[:at], ":")
		var err error
		if c.User, err = url.PathUnescape(user); err != nil {
			return c, errors.New("user: expected %XX where a character stands for itself nowhere")
		}
		if c.Password, err = url.PathUnescape(password); err != nil {
			return c, errors.New("password: expected %XX where a character stands for itself nowhere")
		}
		hosts = hosts[at+1:]
	}
	for h := range strings.SplitSeq(hosts, ",") {
		if h == "" {
			return c, fmt.Errorf("hosts %q: expected HOST:PORT, separated by commas", hosts)
		}
		if _, _, err := net.SplitHostPort(h); err != nil {
			h = net.JoinHostPort(strings.Trim(h, "[]"), "2181")
		}
		c.Servers = append(c.Servers, h)
	}
	if root != "" {
		c.Root = path.Clean("/" + root)
	}
	return c, c.options(query)
}

func (c *Config) options(query string) error {
	q, err := url.ParseQuery(query)
	if err != nil {
		return fmt.Errorf("options %q: %w", query, err)
	}
	get := func(key string) string { v := q.Get(key); delete(q, key); return v }
	if v := get("sessionTimeout"); v != "" {
		if c.Timeout, err = time.ParseDuration(v); err != nil || c.Timeout <= 0 {
			return fmt.Errorf("sessionTimeout %q: expected a duration such as 10s", v)
		}
	}
	ca, cert, key, name, on := get("ca"), get("cert"), get("key"), get("serverName"), get("tls")
	for k := range q {
		return fmt.Errorf("option %q: expected sessionTimeout, tls, ca, cert, key or serverName", k)
	}
	switch {
	case on != "" && on != "true" && on != "false":
		return fmt.Errorf("tls %q: expected true or false", on)
	case on != "true" && (ca != "" || cert != "" || key != "" || name != ""):
		return errors.New("ca, cert, key and serverName: expected tls=true with them")
	case on != "true":
		return nil
	}
	c.TLS = &tls.Config{ServerName: name, MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return fmt.Errorf("ca: %w", err)
		}
		c.TLS.RootCAs = x509.NewCertPool()
		if !c.TLS.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("ca %s: found no certificate, expected PEM", ca)
		}
	}
	if cert == "" && key == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("cert and key: %w", err)
	}
	c.TLS.Certificates = []tls.Certificate{pair}
	return nil
}

func (c *Config) complete() error {
	if len(c.Servers) == 0 {
		return errors.New("zookeeper store: no server given")
	}
	if c.Root = strings.TrimSuffix(c.Root, "/"); c.Root != "" && !strings.HasPrefix(c.Root, "/") {
		return fmt.Errorf("zookeeper store: chroot %q, expected an absolute path", c.Root)
	}
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&c.Timeout, 10*time.Second)
	set(&c.Call, max(15*time.Second, 2*c.Timeout))
	set(&c.OrphanAfter, 2*time.Minute)
	if c.Keep == 0 {
		c.Keep = 50
	}
	if c.Limit == 0 {
		c.Limit = 1<<20 - 1
	}
	if c.Clock == nil {
		c.Clock = coordination.System{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

func (c *Config) acl() []zk.ACL {
	if c.User == "" {
		return zk.WorldACL(zk.PermAll)
	}
	return zk.DigestACL(zk.PermAll, c.User, c.Password)
}

// top is the chroot as a path.
func (c *Config) top() string {
	if c.Root == "" {
		return "/"
	}
	return c.Root
}
