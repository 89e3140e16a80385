package continuous

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/mysql/alltypes"
	"github.com/datalink-go/datalink/plugins/mysql/internal/replica"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// seconds is how long each server is written to: DATALINK_CONTINUOUS, default 8.
func seconds() time.Duration {
	if n, err := strconv.Atoi(os.Getenv("DATALINK_CONTINUOUS")); err == nil {
		return time.Duration(n) * time.Second
	}
	return 8 * time.Second
}

func seed() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("DATALINK_SEED"), 10, 64); err == nil {
		return n
	}
	return uint64(time.Now().UnixNano()) % 1e6
}

// keep copies the logs of a run that failed to where DATALINK_KEEP says.
func keep(t *testing.T, srv *stack.Server) {
	dir := os.Getenv("DATALINK_KEEP")
	if !t.Failed() || dir == "" {
		return
	}
	logs, _ := filepath.Glob(filepath.Join(srv.Facts["datadir"], "*log.0*"))
	for _, l := range logs {
		if data, err := os.ReadFile(l); err == nil {
			_ = os.WriteFile(filepath.Join(dir, srv.Kind+"-"+filepath.Base(l)), data, 0o600)
		}
	}
}

// flavour is a kind of server, with the options that leave most to the reader.
type flavour struct {
	kind    string
	which   alltypes.Server
	options []string
}

var servers = []flavour{
	{"mysql", alltypes.MySQL, []string{"--binlog-row-metadata=MINIMAL", "--max-binlog-size=4M"}},
	{"mariadb", alltypes.MariaDB, []string{"--binlog-row-metadata=NO_LOG", "--max-binlog-size=4M", "--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"}},
}

// rig is a source that is written to, and a reader that follows it.
type rig struct {
	t      *testing.T
	src    *Source
	db     *sql.DB // of whatever server is the present one
	at     atomic.Value
	follow *replica.Follower
	r      *rand.Rand
	ctx    context.Context
	wrote  chan struct{}
	broken chan error // what went wrong beside the reader
}

var nets atomic.Int64

func newRig(t *testing.T, which alltypes.Server, srv *stack.Server, seed uint64) *rig {
	t.Helper()
	g := &rig{t: t, ctx: t.Context(), r: rand.New(rand.NewPCG(seed, 99)), wrote: make(chan struct{}), broken: make(chan error, 1)}
	g.at.Store(srv.Addr())
	network := fmt.Sprintf("present%d", nets.Add(1))
	mysql.RegisterDialContext(network, func(ctx context.Context, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", g.at.Load().(string))
	})
	var err error
	if g.db, err = sql.Open("mysql", "root@"+network+"(server)/?multiStatements=true"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.db.Close() })
	t.Logf("DATALINK_SEED=%d", seed)
	g.src = New(which, seed)
	g.src.Pause = 2 * time.Millisecond
	return g
}

func (g *rig) begin() {
	g.t.Helper()
	if err := g.src.Begin(g.ctx, g.db); err != nil {
		g.t.Fatal(err)
	}
}

// write begins to write for as long as the check lasts.
func (g *rig) write() {
	busy, stop := context.WithTimeout(g.ctx, seconds())
	g.t.Cleanup(stop)
	go func() {
		defer close(g.wrote)
		g.src.Write(busy, g.db, 8)
	}()
}

// lives runs one reader after the other, each killed after some time at random, while
// there are writes. Passing says which errors end a reader without being faults.
func (g *rig) lives(shortest, longest int, passing func(err error, done bool) bool) error {
	for done := false; !done; {
		select {
		case err := <-g.broken:
			return err
		case <-g.wrote:
			done = true
		default:
		}
		life, kill := context.WithTimeout(g.ctx, time.Duration(shortest+g.r.IntN(longest-shortest))*time.Millisecond)
		err := g.follow.Run(life, 0)
		kill()
		if err != nil && !passing(err, done) {
			return err
		}
		if err != nil || g.follow.Opened%10 == 0 {
			time.Sleep(20 * time.Millisecond) // a server that is away, or a file in the making: not in a tight loop
		}
	}
	return nil
}

// away are the errors of a server that is not there for now.
func away(err error, _ bool) bool {
	var fault *sdk.Fault
	return errors.As(err, &fault) && fault.Retryable || errors.Is(err, context.DeadlineExceeded)
}

// quiet waits until statements whose sessions went away have come to their end.
func (g *rig) quiet() error {
	g.db.SetMaxIdleConns(0) // connections that rest in the pool are no sessions that work
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var who sql.NullString
		err := g.db.QueryRow("SELECT GROUP_CONCAT(CONCAT_WS(' ', ID, COMMAND, TIME, STATE, LEFT(INFO, 100)) SEPARATOR '; ') FROM information_schema.PROCESSLIST WHERE DB = '" + Database + "' AND USER = 'root' AND ID <> CONNECTION_ID()").Scan(&who)
		if err == nil && !who.Valid {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("sessions that are still there: %s, %w", who.String, err)
		}
	}
}

// catchUp writes a mark and follows until it has come.
func (g *rig) catchUp() error {
	ctx, cancel := context.WithTimeout(g.ctx, 2*time.Minute)
	defer cancel()
	if _, err := g.db.ExecContext(ctx, "REPLACE INTO "+Database+".mark VALUES (1)"); err != nil {
		return err
	}
	seen := false
	g.follow.Each = func(_ *batch.Tx, e *batch.Event) {
		if e.Schema != nil && e.Schema.Table == "mark" && e.Kind == batch.Insert {
			seen = true
			cancel()
		}
	}
	if err := g.follow.Run(ctx, 0); err != nil || !seen {
		return fmt.Errorf("the last row was seen: %v, the reader ended with %w", seen, err)
	}
	return nil
}

// compare compares all tables with the source.
func (g *rig) compare() error {
	c, err := g.db.Conn(g.ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	d, err := g.follow.Replica.Compare(g.ctx, c, Database, func(n string) bool { return n == "mark" })
	if err != nil {
		return err
	}
	s, f := g.src, g.follow
	g.t.Logf("%d transactions, %d rolled back, %d by XA, %d statements, %d schema changes; %d readers, events %v; %d tables, %d rows, %d cells equal, %d unknown", s.Committed.Load(), s.RolledBack.Load(), s.XA.Load(), s.Changes.Load(), s.Schema.Load(), f.Opened, f.Replica.Events, d.Tables, d.Rows, d.Cells, d.Unknown)
	if len(d.Found) > 0 {
		return fmt.Errorf("differences:\n%s", strings.Join(d.Found[:min(len(d.Found), 20)], "\n"))
	}
	if d.Rows < 20 || s.Schema.Load() < 1 || d.Unknown > d.Cells {
		return fmt.Errorf("too little was done: %+v", d)
	}
	return nil
}

// dead waits until nothing listens where a server that was killed did.
func dead(srv *stack.Server) {
	for {
		c, err := net.Dial("tcp", srv.Addr())
		if err != nil {
			return
		}
		_ = c.Close()
		time.Sleep(20 * time.Millisecond)
	}
}
