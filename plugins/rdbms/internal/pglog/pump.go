package pglog

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgcat"
)

// pump receives the stream on a goroutine of its own and answers the server, also
// while nobody asks for more: a sender that hears nothing ends the connection.
type pump struct {
	net     net.Conn
	front   *pgproto3.Frontend
	in      *bufio.Reader
	full    chan *slab
	free    chan *slab
	stop    chan struct{}
	once    sync.Once
	wg      sync.WaitGroup
	err     error // set before full is closed
	got     atomic.Uint64
	flushed atomic.Uint64

	flushAll bool // see Switches.FlushOff

	write sync.Mutex
	buf   [39]byte
}

// slab holds messages that were received together.
type slab struct {
	data []byte
	msgs []received
}

// received is a message of the log, or a sign of life where it is empty.
type received struct {
	from, to int
	wal      lsn // of a sign of life: all commits before it were sent
}

const (
	slabBytes   = 256 << 10
	slabs       = 16
	statusEvery = time.Second
	// microseconds between 1970-01-01 and 2000-01-01, where PostgreSQL counts from
	epoch2000 = 946684800000000
)

// startPump starts the stream at a place. The connection is the pump's from here on.
func startPump(ctx context.Context, conn *pgconn.PgConn, in *bufio.Reader, slot, publication string, at lsn, streaming bool) (*pump, error) {
	args := []string{"proto_version '1'", "publication_names " + pgcat.Literal(`"`+publication+`"`)}
	if streaming {
		args[0] = "proto_version '2'"
		args = append(args, "streaming 'true'")
	}
	err := pglogrepl.StartReplication(ctx, conn, slot, pglogrepl.LSN(at), pglogrepl.StartReplicationOptions{Mode: pglogrepl.LogicalReplication, PluginArgs: args})
	if err != nil {
		pgcat.Close(conn)
		return nil, err
	}
	h, err := conn.Hijack()
	if err != nil {
		return nil, err
	}
	p := &pump{net: h.Conn, front: h.Frontend, in: in, full: make(chan *slab, slabs), free: make(chan *slab, slabs+2), stop: make(chan struct{})}
	_ = p.net.SetDeadline(time.Time{})
	p.got.Store(uint64(at))
	p.flushed.Store(uint64(at))
	p.wg.Add(2)
	go func() {
		defer p.wg.Done()
		defer close(p.full)
		p.err = p.receive()
	}()
	go func() {
		defer p.wg.Done()
		p.answer()
	}()
	return p, nil
}

// close ends the connection and waits for the goroutines.
func (p *pump) close() {
	p.once.Do(func() {
		close(p.stop)
		// Terminate, so that the server lets the slot go at once.
		_ = p.net.SetWriteDeadline(time.Now().Add(time.Second))
		p.write.Lock()
		_, _ = p.net.Write([]byte{'X', 0, 0, 0, 4})
		p.write.Unlock()
		_ = p.net.Close()
	})
	p.wg.Wait()
}

func (p *pump) slab() *slab {
	select {
	case s := <-p.free:
		s.data, s.msgs = s.data[:0], s.msgs[:0]
		return s
	default:
		return &slab{data: make([]byte, 0, slabBytes)}
	}
}

// recycle takes back a slab that was worked off.
func (p *pump) recycle(s *slab) {
	if cap(s.data) > 4*slabBytes {
		return
	}
	select {
	case p.free <- s:
	default:
	}
}

var errServerEnded = errors.New("the server has ended the stream")

func (p *pump) receive() error {
	s := p.slab()
	for {
		m, err := p.front.Receive()
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *pgproto3.CopyData:
			if err := p.take(s, m.Data); err != nil {
				return err
			}
		case *pgproto3.ErrorResponse:
			return pgconn.ErrorResponseToPgError(m)
		case *pgproto3.NoticeResponse, *pgproto3.ParameterStatus:
		case *pgproto3.CopyDone, *pgproto3.CommandComplete, *pgproto3.ReadyForQuery:
			return errServerEnded
		default:
			return fmt.Errorf("message %T in the stream", m)
		}
		if len(s.msgs) > 0 && (len(s.data) >= slabBytes || len(s.msgs) >= 4096 || p.front.ReadBufferLen() == 0 && p.in.Buffered() == 0) {
			select {
			case p.full <- s:
			case <-p.stop:
				return errServerEnded
			}
			s = p.slab()
		}
	}
}

func (p *pump) take(s *slab, d []byte) error {
	switch {
	case len(d) >= 25 && d[0] == 'w':
		p.got.Store(max(p.got.Load(), binary.BigEndian.Uint64(d[1:])))
		at := len(s.data)
		s.data = append(s.data, d[25:]...)
		s.msgs = append(s.msgs, received{from: at, to: len(s.data)})
	case len(d) == 18 && d[0] == 'k':
		wal := binary.BigEndian.Uint64(d[1:])
		p.got.Store(max(p.got.Load(), wal))
		// Of several in a row the last one counts.
		if n := len(s.msgs); n > 0 && s.msgs[n-1].from == s.msgs[n-1].to {
			s.msgs = s.msgs[:n-1]
		}
		s.msgs = append(s.msgs, received{wal: lsn(wal)})
		if d[17] != 0 {
			return p.status()
		}
	default:
		return fmt.Errorf("%d bytes of the stream that begin with %q", len(d), d[:min(len(d), 1)])
	}
	return nil
}

// answer tells the server how far things are, now and then.
func (p *pump) answer() {
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
			if p.status() != nil {
				return
			}
		}
	}
}

// status sends a standby status update: what is durable is what the server may
// forget.
func (p *pump) status() error {
	p.write.Lock()
	defer p.write.Unlock()
	b := p.buf[:]
	b[0] = 'd'
	binary.BigEndian.PutUint32(b[1:], 38)
	b[5] = 'r'
	flushed := p.flushed.Load()
	if p.flushAll {
		flushed = p.got.Load()
	}
	binary.BigEndian.PutUint64(b[6:], max(p.got.Load(), flushed))
	binary.BigEndian.PutUint64(b[14:], flushed)
	binary.BigEndian.PutUint64(b[22:], flushed)
	binary.BigEndian.PutUint64(b[30:], uint64(time.Now().UnixMicro()-epoch2000))
	b[38] = 0
	_ = p.net.SetWriteDeadline(time.Now().Add(10 * time.Second))
	_, err := p.net.Write(b)
	return err
}

// durable says that everything before at is stored.
func (p *pump) durable(at lsn) error {
	for {
		old := p.flushed.Load()
		if uint64(at) <= old {
			return nil
		}
		if p.flushed.CompareAndSwap(old, uint64(at)) {
			return p.status()
		}
	}
}
