package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/datalink-go/datalink/coordination"
)

// Client is a Backend at the other end of HTTP.
type Client struct {
	name  string // for messages
	base  string
	token string
	http  *http.Client
}

var _ Backend = (*Client)(nil)

// Access is what a client shows and trusts.
type Access struct {
	Token     string
	CA        string // file with the authority of an https server; "" = the system's
	Cert, Key string // files, where the server wants a certificate of its clients
}

func (a Access) tls() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.CA != "" {
		pool, err := authority(a.CA)
		if err != nil {
			return nil, As(Usage, fmt.Errorf("--api-ca: %w", err))
		}
		cfg.RootCAs = pool
	}
	if a.Cert != "" || a.Key != "" {
		pair, err := tls.LoadX509KeyPair(a.Cert, a.Key)
		if err != nil {
			return nil, As(Usage, fmt.Errorf("--api-cert %q with --api-key %q: %w", a.Cert, a.Key, err))
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// NewClient returns a client of unix:///path/of/socket, http://host:port or
// https://host:port.
func NewClient(address string, access Access) (*Client, error) {
	token := access.Token
	u, err := url.Parse(address)
	switch {
	case err != nil: // told below
	case u.Scheme == "unix" && u.Path != "":
		path := u.Path
		t := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dialUnix(ctx, path) }}
		return &Client{name: address, base: "http://datalink", token: token, http: &http.Client{Transport: t}}, nil
	case u.Scheme == "http" && u.Host != "":
		return &Client{name: address, base: "http://" + u.Host, token: token, http: &http.Client{Transport: &http.Transport{}}}, nil
	case u.Scheme == "https" && u.Host != "":
		cfg, err := access.tls()
		if err != nil {
			return nil, err
		}
		return &Client{name: address, base: "https://" + u.Host, token: token, http: &http.Client{Transport: &http.Transport{TLSClientConfig: cfg}}}, nil
	}
	return nil, Errorf(Usage, "--api: found %q, expected unix:///path/api.sock, http://127.0.0.1:PORT or https://HOST:PORT", address)
}

// Find returns a client of the daemon that uses a data directory, nil when none
// answers.
func Find(ctx context.Context, dir string) *Client {
	path := filepath.Join(dir, SocketFile)
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	c, err := NewClient((&url.URL{Scheme: "unix", Path: path}).String(), Access{})
	if err != nil || c.do(ctx, "GET", "/healthz", nil, nil) != nil {
		return nil
	}
	return c
}

func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	a, err := c.http.Do(r)
	if err != nil {
		return c.unanswered(ctx, err)
	}
	defer a.Body.Close()
	if a.StatusCode/100 != 2 {
		var f failure
		if err := json.NewDecoder(io.LimitReader(a.Body, maxBody)).Decode(&f); err != nil || f.Error.Message == "" {
			return fmt.Errorf("ask the daemon at %s: %s %s: %s", c.name, method, path, a.Status)
		}
		return &Error{f.Error.Kind, errors.New(f.Error.Message)}
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(a.Body).Decode(out)
}

// unanswered says of a request that got no answer where it went and what may be
// wrong.
func (c *Client) unanswered(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("ask the daemon at %s: %w", c.name, ctx.Err())
	}
	cause := errors.Unwrap(err) // without the request's URL
	var number syscall.Errno
	if errors.As(err, &number) {
		cause = number // without the short path of a socket
	}
	return fmt.Errorf("ask the daemon at %s: %w: does `datalink serve` run there?", c.name, cause)
}

func get[T any](ctx context.Context, c *Client, method, path string, in any) (T, error) {
	var out T
	err := c.do(ctx, method, path, in, &out)
	return out, err
}

func taskPath(name string, more ...string) string {
	return "/v1/tasks/" + url.PathEscape(name) + strings.Join(append([]string{""}, more...), "/")
}

// Apply implements Backend.
func (c *Client) Apply(ctx context.Context, files []File) ([]Applied, error) {
	return get[[]Applied](ctx, c, "POST", "/v1/tasks", files)
}

// Tasks implements Backend.
func (c *Client) Tasks(ctx context.Context) ([]Task, error) {
	return get[[]Task](ctx, c, "GET", "/v1/tasks", nil)
}

// Task implements Backend.
func (c *Client) Task(ctx context.Context, name string) (*Task, error) {
	return get[*Task](ctx, c, "GET", taskPath(name), nil)
}

// Change implements Backend.
func (c *Client) Change(ctx context.Context, name string, to Change) (*Task, error) {
	return get[*Task](ctx, c, "POST", taskPath(name, "change"), change{to})
}

// Delete implements Backend.
func (c *Client) Delete(ctx context.Context, name string, release bool) error {
	return c.do(ctx, "DELETE", taskPath(name)+"?release="+strconv.FormatBool(release), nil, nil)
}

// Position implements Backend.
func (c *Client) Position(ctx context.Context, name string) ([]Position, error) {
	return get[[]Position](ctx, c, "GET", taskPath(name, "position"), nil)
}

// SetPosition implements Backend.
func (c *Client) SetPosition(ctx context.Context, name, to string) ([]Position, error) {
	return get[[]Position](ctx, c, "PUT", taskPath(name, "position"), position{to})
}

// Snapshot implements Backend.
func (c *Client) Snapshot(ctx context.Context, task string, q SnapshotQuery) (*Snapshot, error) {
	if len(q.Tables) == 0 && q.Action == "" {
		return get[*Snapshot](ctx, c, "GET", taskPath(task, "snapshot"), nil)
	}
	return get[*Snapshot](ctx, c, "POST", taskPath(task, "snapshot"), q)
}

// DeadLetters implements Backend.
func (c *Client) DeadLetters(ctx context.Context, task string) ([]DeadLetter, error) {
	return get[[]DeadLetter](ctx, c, "GET", taskPath(task, "dead-letters"), nil)
}

// DeadLetter implements Backend.
func (c *Client) DeadLetter(ctx context.Context, task, writer string, number uint64) (*DeadLetter, error) {
	path := taskPath(task, "dead-letters", strconv.FormatUint(number, 10)) + "?writer=" + url.QueryEscape(writer)
	return get[*DeadLetter](ctx, c, "GET", path, nil)
}

// Retry implements Backend.
func (c *Client) Retry(ctx context.Context, task, writer string, n []uint64) ([]Outcome, error) {
	return get[[]Outcome](ctx, c, "POST", taskPath(task, "dead-letters", "retry"), numbers{writer, n})
}

// Drop implements Backend.
func (c *Client) Drop(ctx context.Context, task, writer string, n []uint64) ([]Outcome, error) {
	return get[[]Outcome](ctx, c, "POST", taskPath(task, "dead-letters", "drop"), numbers{writer, n})
}

// Overlaps implements Backend.
func (c *Client) Overlaps(ctx context.Context) ([]coordination.Overlap, error) {
	return get[[]coordination.Overlap](ctx, c, "GET", "/v1/overlaps", nil)
}

// Overlap implements Backend.
func (c *Client) Overlap(ctx context.Context, id string) (*coordination.Overlap, error) {
	return get[*coordination.Overlap](ctx, c, "GET", "/v1/overlaps/"+url.PathEscape(id), nil)
}

// Plugins implements Backend.
func (c *Client) Plugins(ctx context.Context) ([]Plugin, error) {
	return get[[]Plugin](ctx, c, "GET", "/v1/plugins", nil)
}

// Plugin implements Backend.
func (c *Client) Plugin(ctx context.Context, name, version string) (*Plugin, error) {
	return get[*Plugin](ctx, c, "GET", "/v1/plugins/"+url.PathEscape(name)+"?version="+url.QueryEscape(version), nil)
}

// Install implements Backend.
func (c *Client) Install(ctx context.Context, registry, name, version string) (*Plugin, error) {
	return get[*Plugin](ctx, c, "POST", "/v1/plugins", install{registry, name, version})
}

// Doctor implements Backend.
func (c *Client) Doctor(ctx context.Context, files []File) ([]Finding, error) {
	return get[[]Finding](ctx, c, "POST", "/v1/doctor", files)
}
