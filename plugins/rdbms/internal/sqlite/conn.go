package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
)

// conn is one connection of the driver, without the pool of database/sql in
// front of it: a pool would connect anew on its own. It is not safe for
// concurrent use.
type conn struct {
	dc    driver.Conn
	path  string
	file  os.FileInfo // the file that is open
	wal   os.FileInfo // its write-ahead log, nil where there is none
	stmts map[string]*stmt
}

type stmt struct {
	driver.StmtExecContext
	driver.StmtQueryContext
	closer io.Closer
}

// Modes of open.
const (
	readOnly  = "ro"
	readWrite = "rw"
	create    = "rwc"
)

// open connects to the file. Writers get write-ahead logging, a sync at every
// commit and identifiers that never turn into strings.
func open(ctx context.Context, cfg *Config, mode string) (*conn, error) {
	path, err := filepath.Abs(cfg.Path)
	if err != nil {
		return nil, err
	}
	u := url.URL{Scheme: "file", Path: path}
	dsn := u.String() + "?mode=" + mode + fmt.Sprintf("&_dqs=0&_error_rc=1&_busy_timeout=%d&_foreign_keys=0", cfg.BusyTimeout.Milliseconds())
	if mode != readOnly {
		dsn += "&_journal_mode=WAL&_synchronous=FULL"
	}
	k, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	dc, err := k.Connect(ctx)
	if err != nil {
		return nil, err
	}
	c := &conn{dc: dc, path: path, stmts: map[string]*stmt{}}
	if mode != readOnly {
		rows, err := c.query(ctx, "PRAGMA journal_mode")
		if err == nil && len(rows) == 1 && rows[0][0] != "wal" {
			err = fmt.Errorf("journal mode is %v, expected wal: the file system may not support shared memory", rows[0][0])
		}
		if err != nil {
			c.close()
			return nil, err
		}
	}
	// A read makes SQLite open the log, so that both files are known.
	if _, err := c.query(ctx, "SELECT count(*) FROM sqlite_schema"); err != nil {
		c.close()
		return nil, err
	}
	if c.file, err = os.Stat(path); err != nil {
		c.close()
		return nil, err
	}
	c.wal, _ = os.Stat(path + "-wal")
	return c, nil
}

// place says what stands at the path of an open connection.
type place uint8

const (
	samePlace place = iota
	otherFile       // another file or none: what is written to the open one is lost
	otherLog        // the same file with another log or none: it was overwritten in place
)

// place compares the open files with those at the path. It opens nothing, since
// closing a second descriptor of the file would drop SQLite's locks (POSIX).
func (c *conn) place() place {
	now, err := os.Stat(c.path)
	if err != nil || !os.SameFile(now, c.file) {
		return otherFile
	}
	if c.wal == nil {
		return samePlace
	}
	now, err = os.Stat(c.path + "-wal")
	if err != nil || !os.SameFile(now, c.wal) {
		return otherLog
	}
	return samePlace
}

func (c *conn) close() {
	for _, s := range c.stmts {
		_ = s.closer.Close()
	}
	clear(c.stmts)
	_ = c.dc.Close()
}

// compile prepares a statement that the caller closes.
func (c *conn) compile(text string) (*stmt, error) {
	s, err := c.dc.(driver.ConnPrepareContext).PrepareContext(context.Background(), text)
	if err != nil {
		return nil, err
	}
	return &stmt{StmtExecContext: s.(driver.StmtExecContext), StmtQueryContext: s.(driver.StmtQueryContext), closer: s}, nil
}

// prepare returns the statement of a text, compiled once and kept: for the few
// statements whose text does not depend on data.
func (c *conn) prepare(text string) (*stmt, error) {
	if s := c.stmts[text]; s != nil {
		return s, nil
	}
	s, err := c.compile(text)
	if err != nil {
		return nil, err
	}
	c.stmts[text] = s
	return s, nil
}

// exec runs a statement with a context, which the driver watches in a goroutine
// of its own: for statements that may wait for a lock.
func (c *conn) exec(ctx context.Context, text string, args ...any) error {
	_, err := c.dc.(driver.ExecerContext).ExecContext(ctx, text, named(args))
	return err
}

// run runs a statement that is not worth keeping, inside a transaction.
func (c *conn) run(text string, args ...any) error {
	return c.exec(context.Background(), text, args...)
}

// change runs a prepared statement and returns the count of rows it matched. It
// is for statements inside a transaction, which wait for nothing.
func (c *conn) change(text string, args ...any) (int64, error) {
	s, err := c.prepare(text)
	if err != nil {
		return 0, err
	}
	return s.change(named(args))
}

func (s *stmt) change(args []driver.NamedValue) (int64, error) {
	r, err := s.ExecContext(context.Background(), args)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// query returns all rows of a small result.
func (c *conn) query(ctx context.Context, text string, args ...any) ([][]driver.Value, error) {
	r, err := c.dc.(driver.QueryerContext).QueryContext(ctx, text, named(args))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var out [][]driver.Value
	for {
		row := make([]driver.Value, len(r.Columns()))
		switch err := r.Next(row); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, err
		}
		out = append(out, row)
	}
}

func named(args []any) []driver.NamedValue {
	out := make([]driver.NamedValue, len(args))
	for i, a := range args {
		out[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	return out
}

// text returns a column of query as a string.
func text(v driver.Value) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	case nil:
		return ""
	}
	return fmt.Sprint(v)
}

// number returns a column of query as an integer.
func number(v driver.Value) int64 {
	n, _ := v.(int64)
	return n
}

// list joins quoted names.
func list(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = quote(n)
	}
	return strings.Join(q, ", ")
}
