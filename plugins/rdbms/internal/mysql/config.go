package mysql

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
)

// Config says what a Writer writes to and how. Zero values mean the first choice
// named.
type Config struct {
	target.Options
	// URL is mysql:// or mariadb://user:password@host:port/database, with the
	// parameters of parseURL.
	URL            *url.URL
	Triggers       string        // refuse | run
	Bulk           string        // auto: rows of a snapshot by LOAD DATA LOCAL where the server allows it | off
	ConnectTimeout time.Duration // 0 = 10 s
	NetworkTimeout time.Duration // no sign of life from a peer; 0 = 30 s
	LockWait       time.Duration // for row locks; 0 = 20 s
	Stats          *target.Stats // nil = none
	Dial           Dial          // nil = TCP
}

// Run is the value of Triggers that lets them run.
const Run = "run"

func (c Config) withDefaults() Config {
	c.Options = c.Options.WithDefaults()
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&c.ConnectTimeout, 10*time.Second)
	def(&c.NetworkTimeout, 30*time.Second)
	def(&c.LockWait, 20*time.Second)
	if c.Triggers == "" {
		c.Triggers = target.Refuse
	}
	if c.Bulk == "" {
		c.Bulk = target.Auto
	}
	if c.Stats == nil {
		c.Stats = &target.Stats{}
	}
	return c
}

// address is where and as whom to connect.
type address struct {
	network, addr  string
	user, password string
	database       string
	tls            *tls.Config
}

// where names the target in messages, without secrets.
func (a *address) where() string { return a.addr + "/" + a.database }

const urlForm = "mysql://USER:PASSWORD@HOST:PORT/DATABASE?tls=off|on|skip-verify&ca=FILE&cert=FILE&key=FILE&socket=PATH"

// parseURL reads the url. Parameters: tls off (default) | on | skip-verify, ca,
// cert and key name PEM files, socket a unix socket.
func parseURL(u *url.URL) (*address, error) {
	bad := func(format string, args ...any) error {
		return sdk.Faultf(sdk.CodeInvalidConfig, "url: "+format, args...).Suggest("%s", urlForm)
	}
	a := &address{network: "tcp", user: u.User.Username(), database: strings.TrimPrefix(u.Path, "/")}
	a.password, _ = u.User.Password()
	if a.database == "" || strings.Contains(a.database, "/") {
		return nil, bad("found no database, expected the one that holds the progress")
	}
	q := u.Query()
	for k := range q {
		switch k {
		case "tls", "ca", "cert", "key", "socket":
		default:
			return nil, bad("found parameter %q", k)
		}
	}
	host, port := u.Hostname(), u.Port()
	if port == "" {
		port = "3306"
	}
	a.addr = net.JoinHostPort(host, port)
	if s := q.Get("socket"); s != "" {
		a.network, a.addr = "unix", s
	} else if host == "" {
		return nil, bad("found no host")
	}
	if a.user == "" {
		return nil, bad("found no user")
	}
	switch mode := q.Get("tls"); mode {
	case "", "off":
		if q.Get("ca")+q.Get("cert")+q.Get("key") != "" {
			return nil, bad("found certificates although tls is off")
		}
		return a, nil
	case "on":
		a.tls = &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	case "skip-verify":
		a.tls = &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12, InsecureSkipVerify: true} //nolint:gosec // the operator's choice
	default:
		return nil, bad("found tls=%s", mode)
	}
	if f := q.Get("ca"); f != "" {
		pem, err := os.ReadFile(f)
		if err != nil {
			return nil, bad("ca: %v", err)
		}
		a.tls.RootCAs = x509.NewCertPool()
		if !a.tls.RootCAs.AppendCertsFromPEM(pem) {
			return nil, bad("ca: %s holds no certificate", f)
		}
	}
	if f := q.Get("cert"); f != "" {
		c, err := tls.LoadX509KeyPair(f, q.Get("key"))
		if err != nil {
			return nil, bad("cert and key: %v", err)
		}
		a.tls.Certificates = []tls.Certificate{c}
	}
	return a, nil
}
