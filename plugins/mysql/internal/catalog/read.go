package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/datalink-go/datalink/plugins/mysql/internal/schema"
	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
)

// Conn is a connection to the server, used for nothing else meanwhile.
type Conn interface {
	Exec(ctx context.Context, sql string) (server.Result, error)
	Query(ctx context.Context, sql string) (*server.Result, error)
}

// Request says what to read.
type Request struct {
	Want    func(database, table string) bool
	Dialect schema.Dialect
	// Position asks for the end of the log, on the same connection. Nil leaves it
	// out.
	Position func(ctx context.Context) (string, error)
	// Patience is how long schema changes that are under way are waited for;
	// 0 = a minute.
	Patience time.Duration

	unlocked bool // for tests: no lock is taken
}

// Catalog is what was read.
type Catalog struct {
	Position  string
	Tables    []*schema.Table
	Databases map[string]schema.Default
	Refused   map[schema.Name]error // tables whose definition is not understood
}

// lockWait is how long a metadata lock is waited for at once, in seconds: while
// it waits, statements on the table queue up behind it.
const lockWait = 2

// locked are the errors after which reading starts over: a table that is gone, a
// lock that was not given, a deadlock, a table that changed while it was looked at.
var locked = []uint16{1146, 1205, 1213, 1412, 1049, 1932, 1684}

// Read reads the layouts of all tables that are wanted, and the position at which
// they hold.
func Read(ctx context.Context, c Conn, r Request) (*Catalog, error) {
	if r.Patience == 0 {
		r.Patience = time.Minute
	}
	if err := prepare(ctx, c); err != nil {
		return nil, err
	}
	deadline := time.Now().Add(r.Patience)
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		cat, err := read(ctx, c, r)
		if err == nil {
			return cat, nil
		}
		var e *server.Error
		again := errors.Is(err, errMoved) || errors.As(err, &e) && slices.Contains(locked, e.Code)
		if _, end := c.Exec(ctx, "ROLLBACK"); end != nil || !again {
			return nil, errors.Join(err, end)
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("schema changes kept the layouts of tables from being read for %s: %w", r.Patience, err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// errMoved says that a table was made while the others were looked at.
var errMoved = errors.New("a table was made meanwhile")

func prepare(ctx context.Context, c Conn) error {
	_, err := c.Exec(ctx, fmt.Sprintf("SET SESSION sql_mode = '', sql_quote_show_create = 1, autocommit = 1, lock_wait_timeout = %d", lockWait))
	return err
}

func read(ctx context.Context, c Conn, r Request) (*Catalog, error) {
	names, err := list(ctx, c, r.Want)
	if err != nil {
		return nil, err
	}
	if _, err := c.Exec(ctx, "START TRANSACTION READ ONLY"); err != nil {
		return nil, err
	}
	for _, n := range names {
		if r.unlocked {
			break
		}
		if _, err := c.Exec(ctx, "SELECT 1 FROM "+quote(n)+" LIMIT 0"); err != nil {
			return nil, err
		}
	}
	cat := &Catalog{Refused: map[schema.Name]error{}}
	if r.Position != nil {
		if cat.Position, err = r.Position(ctx); err != nil {
			return nil, err
		}
	}
	now, err := list(ctx, c, r.Want)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(names, now) {
		return nil, errMoved
	}
	h := schema.NewHistory()
	if cat.Databases, err = databases(ctx, c); err != nil {
		return nil, err
	}
	for db, d := range cat.Databases {
		h.RestoreDatabase(db, d)
	}
	for _, n := range names {
		create, err := show(ctx, c, n)
		if err != nil {
			return nil, err
		}
		h.Apply(schema.Statement{Text: create, Database: n.Database, Dialect: r.Dialect})
		if t := h.Get(n.Database, n.Table); t != nil {
			cat.Tables = append(cat.Tables, t)
			continue
		}
		why := h.Unknown(n.Database, n.Table)
		if why == nil {
			why = fmt.Errorf("%w: %.200s", schema.ErrRefused, create)
		}
		cat.Refused[n] = why
	}
	_, err = c.Exec(ctx, "COMMIT")
	return cat, err
}

// list names the tables that are wanted, in order.
func list(ctx context.Context, c Conn, want func(database, table string) bool) ([]schema.Name, error) {
	res, err := c.Query(ctx, "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED', 'SEQUENCE') AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema')")
	if err != nil {
		return nil, err
	}
	var out []schema.Name
	for _, row := range res.Rows {
		if n := (schema.Name{Database: row.Text(0), Table: row.Text(1)}); want(n.Database, n.Table) {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(a, b schema.Name) int { return strings.Compare(a.String(), b.String()) })
	return out, nil
}

func databases(ctx context.Context, c Conn) (map[string]schema.Default, error) {
	res, err := c.Query(ctx, "SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA")
	if err != nil {
		return nil, err
	}
	out := map[string]schema.Default{}
	for _, row := range res.Rows {
		cs, coll := row.Text(1), row.Text(2)
		if cs == "utf8" {
			cs = "utf8mb3"
		}
		if rest, ok := strings.CutPrefix(coll, "utf8_"); ok {
			coll = "utf8mb3_" + rest
		}
		out[row.Text(0)] = schema.Default{Charset: cs, Collation: coll}
	}
	return out, nil
}

func show(ctx context.Context, c Conn, n schema.Name) (string, error) {
	res, err := c.Query(ctx, "SHOW CREATE TABLE "+quote(n))
	if err != nil {
		return "", err
	}
	if len(res.Rows) != 1 || len(res.Rows[0]) < 2 {
		return "", fmt.Errorf("SHOW CREATE TABLE %s: %d rows, want one of two columns", n, len(res.Rows))
	}
	return res.Rows[0].Text(1), nil
}

func quote(n schema.Name) string { return server.Quote(n.Database) + "." + server.Quote(n.Table) }
