package reader

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// wire is a proxy that can be cut, or go silent while its connections stay.
type wire struct {
	l      net.Listener
	to     string
	silent atomic.Bool
	limit  atomic.Int64            // bytes from the server until connections are cut; 0 = none
	mangle func(event []byte) bool // changes an event of a dump in place, true = with a new checksum; nil = none
	cuts   atomic.Int64
	mu     sync.Mutex
	conns  []net.Conn
}

func newWire(t *testing.T, to string) *wire { return newMangledWire(t, to, nil) }

func newMangledWire(t *testing.T, to string, mangle func(event []byte) bool) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{l: l, to: to, mangle: mangle}
	t.Cleanup(func() { _ = l.Close(); w.cut() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", to)
			if err != nil {
				_ = c.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, c, s)
			w.mu.Unlock()
			go w.pass(s, c, false)
			if w.mangle != nil {
				go w.events(c, s)
				continue
			}
			go w.pass(c, s, true)
		}
	}()
	return w
}

func (w *wire) pass(dst, src net.Conn, down bool) {
	defer dst.Close()
	defer src.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if err != nil {
			return
		}
		if w.silent.Load() {
			continue // swallowed: the peers hear nothing of each other any more
		}
		if down && w.limit.Load() > 0 && w.limit.Add(int64(-n)) <= 0 {
			w.limit.Store(0)
			w.cuts.Add(1)
			return
		}
		if _, err := dst.Write(buf[:n]); err != nil {
			return
		}
	}
}

// events passes packets on, and lets mangle see those that hold an event.
func (w *wire) events(dst io.WriteCloser, src io.ReadCloser) {
	defer dst.Close()
	defer src.Close()
	in := bufio.NewReader(src)
	for {
		p := make([]byte, 4)
		if _, err := io.ReadFull(in, p); err != nil {
			return
		}
		p = append(p, make([]byte, int(p[0])|int(p[1])<<8|int(p[2])<<16)...)
		if _, err := io.ReadFull(in, p[4:]); err != nil {
			return
		}
		if ev := p[min(5, len(p)):]; len(ev) > binlog.HeaderSize+4 && p[4] == 0 && int(binary.LittleEndian.Uint32(ev[9:])) == len(ev) && w.mangle(ev) {
			binary.LittleEndian.PutUint32(ev[len(ev)-4:], crc32.ChecksumIEEE(ev[:len(ev)-4]))
		}
		if _, err := dst.Write(p); err != nil {
			return
		}
	}
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
}

func (w *wire) addr() string { return w.l.Addr().String() }

// TestLostConnections cuts the connection within transactions of every size and at
// other places: nothing is lost or comes twice.
func TestLostConnections(t *testing.T) {
	for _, f := range flavours {
		t.Run(f.name, func(t *testing.T) {
			if f.name == "mysql-files" && !full {
				t.Skip("optional: DATALINK_FULL=1 runs it")
			}
			s := stack.Start(t, f.kind, append(f.options, "--max-allowed-packet=64M")...)
			w := newWire(t, s.Addr())
			cfg := liveConfig("latest", w.addr())
			cfg.TLS.Mode = "disabled"
			p := pull(t, cfg, nil, nil)
			s.SQL("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v LONGTEXT);")
			want := 0
			for i, limit := range []int64{300, 700, 5000, 200_000, 9 << 20, 17 << 20} {
				w.limit.Store(limit)
				s.SQL(fmt.Sprintf("BEGIN; INSERT INTO a.t VALUES (%d, REPEAT('a', 18000000)); INSERT INTO a.t VALUES (%d, 'x'), (%d, 'y'); UPDATE a.t SET v = 'z' WHERE id = %d; COMMIT; INSERT INTO a.t VALUES (%d, 'w');", i*10, i*10+1, i*10+2, i*10+1, i*10+3))
				want += 4
				p.until("all rows", p.has("a.t", want))
			}
			if p.changes != 1+6*5 {
				t.Errorf("%d changes, want %d", p.changes, 1+6*5)
			}
			if w.cuts.Load() < 6 {
				t.Errorf("%d cuts", w.cuts.Load())
			}
		})
	}
}

// TestB114Silence and B115: a peer that is silent while its connection stays is
// noticed within three heartbeats.
func TestB114Silence(t *testing.T) {
	for _, kind := range []string{"mysql", "mariadb"} {
		t.Run(kind, func(t *testing.T) {
			if kind == "mysql" && !full {
				t.Skip("optional: DATALINK_FULL=1 runs it")
			}
			s := stack.Start(t, kind)
			w := newWire(t, s.Addr())
			s.SQL("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY);")
			cfg := liveConfig("latest", w.addr(), s.Addr())
			cfg.Heartbeat = 500 * time.Millisecond
			p := pull(t, cfg, nil, nil)
			s.SQL("INSERT INTO a.t VALUES (1);")
			p.until("a row", p.has("a.t", 1))
			p.until("a sign of life", func() bool { return p.beats > 0 })
			w.silent.Store(true)
			s.SQL("INSERT INTO a.t VALUES (2);")
			begun := time.Now()
			p.until("the row behind the silence", p.has("a.t", 2))
			// 3 heartbeats until it is noticed; the rest is the login at the next address.
			if d := time.Since(begun); d > 3*cfg.Heartbeat+20*time.Second || d < cfg.Heartbeat {
				t.Errorf("noticed after %s", d)
			}
			// B116: closing is bounded, also while everything is silent.
			begun = time.Now()
			if err := p.r.Close(context.Background()); err != nil || time.Since(begun) > 3*time.Second {
				t.Errorf("close took %s: %v", time.Since(begun), err)
			}
		})
	}
}

// TestB112Clash has two executions of one task read at once: the older is ended
// and says why.
func TestB112Clash(t *testing.T) {
	for _, kind := range []string{"mysql", "mariadb"} {
		t.Run(kind, func(t *testing.T) {
			s := stack.Start(t, kind)
			s.SQL("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY);")
			old := pull(t, liveConfig("latest", s.Addr()), nil, nil)
			s.SQL("INSERT INTO a.t VALUES (1);")
			old.until("a row", old.has("a.t", 1))
			young := pull(t, liveConfig("latest", s.Addr()), nil, nil)
			s.SQL("INSERT INTO a.t VALUES (2);")
			young.until("a row", young.has("a.t", 1))
			end := time.Now().Add(30 * time.Second)
			for old.err == nil && time.Now().Before(end) {
				old.next(time.Second)
			}
			var f *sdk.Fault
			if !errors.As(old.err, &f) || f.Code != sdk.CodeUnavailable || !f.Retryable || !strings.Contains(f.Message, "server id") {
				t.Errorf("the older reader: %v", old.err)
			}
			s.SQL("INSERT INTO a.t VALUES (3);")
			young.until("more rows", young.has("a.t", 2))
		})
	}
}

// TestWrongPositions: purged, never had, of another server are told apart, with
// what to do.
func TestWrongPositions(t *testing.T) {
	for _, f := range flavours {
		t.Run(f.name, func(t *testing.T) {
			s := stack.Start(t, f.kind, f.options...)
			s.SQL("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY); INSERT INTO a.t VALUES (1);")
			p := pull(t, liveConfig("earliest", s.Addr()), nil, nil)
			p.until("a row", p.has("a.t", 1))
			early := p.last
			s.SQL("INSERT INTO a.t VALUES (2); FLUSH BINARY LOGS; INSERT INTO a.t VALUES (3); FLUSH BINARY LOGS; INSERT INTO a.t VALUES (4);")
			p.until("rows", p.has("a.t", 4))
			late := p.last
			_ = p.r.Close(t.Context())
			check := func(name string, at sdk.Position, code sdk.Code, words ...string) {
				t.Helper()
				_, err := tryPull(t, liveConfig("earliest", s.Addr()), []sdk.Point{{Position: at}}, nil)
				var f *sdk.Fault
				if !errors.As(err, &f) || f.Code != code || f.Suggestion == "" {
					t.Errorf("%s: %v, want code %s", name, err, code)
					return
				}
				for _, w := range words {
					if !strings.Contains(err.Error(), w) {
						t.Errorf("%s: %v lacks %q", name, err, w)
					}
				}
			}
			at := func(text string) sdk.Position {
				pos, err := parseLive(text)
				if err != nil {
					t.Fatal(err)
				}
				return pos
			}
			last := strings.Fields(s.SQL("SHOW BINARY LOGS", "-N"))
			newest := ""
			for _, w := range last {
				if strings.HasPrefix(w, "binlog.") {
					newest = w
				}
			}
			s.SQL("PURGE BINARY LOGS TO '" + newest + "';")
			check("purged", early, sdk.CodePositionPurged, "purged", "onPurged: resnapshot")
			switch f.name {
			case "mysql":
				check("never had", at(string(late.Source)+",11111111-1111-1111-1111-111111111111:1-5"), sdk.CodePositionUnknown, "11111111-1111-1111-1111-111111111111:1-5")
				check("another kind", at("0-1-5"), sdk.CodePositionUnknown)
			case "mariadb":
				check("never had", at("0-1-100000"), sdk.CodePositionUnknown)
				check("another kind", at("11111111-1111-1111-1111-111111111111:1-5"), sdk.CodePositionUnknown)
			default:
				_, server, _ := strings.Cut(string(late.Source), "@")
				check("beyond the file", at(newest+":99999999@"+server), sdk.CodePositionUnknown, "99999999")
				check("no such file", at("binlog.999999:4@"+server), sdk.CodePositionUnknown, "binlog.999999")
				check("another server", at(newest+":4@11111111-1111-1111-1111-111111111111"), sdk.CodePositionUnknown, "gtid_mode=ON")
			}
			resnapshot(t, s, early, p.state)
			// A position that is there goes on.
			again := pull(t, liveConfig("earliest", s.Addr()), []sdk.Point{{Position: late}}, p.state)
			s.SQL("INSERT INTO a.t VALUES (5);")
			again.until("the next row", again.has("a.t", 1))
		})
	}
}

// resnapshot takes the tables anew at a position that was purged.
func resnapshot(t *testing.T, s *stack.Server, at sdk.Position, state map[string]batch.StateItem) {
	t.Helper()
	cfg := liveConfig("earliest", s.Addr())
	cfg.OnPurged = "resnapshot"
	cfg.Heartbeat = 300 * time.Millisecond
	r := pull(t, cfg, []sdk.Point{{Position: at}}, state)
	r.model.loose, r.durable = true, true
	// Stopped at once and begun again, it still knows that it has to.
	r.until("a position", func() bool { return len(r.last.Source) > 0 })
	again := pull(t, cfg, []sdk.Point{{Position: r.last}}, r.state)
	again.model, again.durable = r.model, true
	_ = r.r.Close(t.Context())
	again.until("all rows anew", func() bool { return len(again.rows("a.t")) == 4 && again.r.live.anew == anewNone })
	_ = again.r.Close(t.Context())
}

// TestFailover goes on at a replica when the source is gone, where an earlier
// point holds transactions that come in another order there.
func TestFailover(t *testing.T) {
	for _, kind := range []string{"mysql", "mariadb"} {
		t.Run(kind, func(t *testing.T) {
			a := stack.Start(t, kind, "--log-slave-updates=1")
			b := stack.Start(t, kind, "--log-slave-updates=1")
			if kind == "mysql" {
				b.SQL(fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=%d, SOURCE_USER='repl', SOURCE_PASSWORD='p', SOURCE_SSL=1, SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1;", a.Port))
				a.SQL("CREATE USER repl@'%' IDENTIFIED BY 'p'; GRANT REPLICATION SLAVE ON *.* TO repl@'%';")
				b.SQL("START REPLICA;")
			} else {
				a.SQL("CREATE USER repl@'%' IDENTIFIED BY 'p'; GRANT REPLICATION SLAVE ON *.* TO repl@'%';")
				b.SQL(fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=%d, MASTER_USER='repl', MASTER_PASSWORD='p', MASTER_USE_GTID=slave_pos; START SLAVE;", a.Port))
			}
			a.SQL("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v INT);")
			cfg := liveConfig("earliest", a.Addr(), b.Addr())
			cfg.Tables = sdk.Strings{"a.*"}
			p := pull(t, cfg, nil, nil)
			var sql strings.Builder
			for i := range 200 {
				fmt.Fprintf(&sql, "INSERT INTO a.t VALUES (%d, 0); UPDATE a.t SET v = v + 1 WHERE id <= %d;\n", i, i)
			}
			a.SQL(sql.String())
			p.until("rows of the first server", func() bool { return len(p.rows("a.t")) > 20 })
			end := time.Now().Add(60 * time.Second)
			for strings.TrimSpace(b.SQL("SELECT COUNT(*) FROM a.t WHERE v > 0", "-N", "--force")) != "200" {
				if time.Now().After(end) {
					t.Fatal("the replica does not follow")
				}
				time.Sleep(50 * time.Millisecond)
			}
			a.Kill()
			if kind == "mysql" {
				b.SQL("STOP REPLICA;")
			} else {
				b.SQL("STOP SLAVE;")
			}
			b.SQL("INSERT INTO a.t VALUES (1000, 7); DELETE FROM a.t WHERE id < 100;")
			p.until("rows of the second server", func() bool { return slices.Contains(p.rows("a.t"), "1000|7") && len(p.rows("a.t")) == 101 })
			want := strings.Split(strings.TrimSpace(b.SQL("SELECT CONCAT_WS('|', id, v) FROM a.t", "-N")), "\n")
			slices.Sort(want)
			if got := p.rows("a.t"); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
