package rpc

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// Entry is one entry of a region's write-ahead log: cells that became visible in
// one step.
type Entry struct {
	Table     string
	Region    string // encoded name
	Sequence  uint64
	WriteTime int64    // milliseconds
	Clusters  []string // ids of clusters that have seen it
	Cells     []Cell
}

// Shipment is what one call of a source brings. The source sends nothing more from
// that log until it is answered, and the same again where the answer fails.
type Shipment struct {
	Entries []Entry
	Bytes   int
	Raw     []byte // parameter and cells of the call, as ParseEntries takes them
	Cells   int    // where in Raw the cells begin
	Tags    bool

	sum  [sha256.Size]byte
	once sync.Once
	done chan struct{}
	err  error
}

// Done answers the source: nil = all of it is durable.
func (s *Shipment) Done(err error) {
	s.once.Do(func() {
		s.err = err
		close(s.done)
	})
}

// Sink is a server that sources of replication take for a region server of a peer.
type Sink struct {
	ln        net.Listener
	limit     int // bytes that wait
	shipments chan *Shipment
	ctx       context.Context
	cancel    context.CancelFunc
	wg        sync.WaitGroup

	mu       sync.Mutex
	held     int
	conns    map[net.Conn]bool
	pending  map[[sha256.Size]byte]*Shipment
	answered [][sha256.Size]byte // with success, the newest last
}

// remembered is how many shipments that were answered are known again: a source
// that did not wait for the answer sends the same once more.
const remembered = 256

// ListenSink begins to listen. Limit bounds the bytes of shipments that are not
// answered; beyond it sources are told to come again.
func ListenSink(addr string, limit int) (*Sink, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &Sink{ln: ln, limit: limit, shipments: make(chan *Shipment), conns: map[net.Conn]bool{}, pending: map[[sha256.Size]byte]*Shipment{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.wg.Add(1)
	go s.accept()
	return s, nil
}

// Port returns the port that is listened on.
func (s *Sink) Port() int { return s.ln.Addr().(*net.TCPAddr).Port }

// Shipments gives what arrives, one at a time.
func (s *Sink) Shipments() <-chan *Shipment { return s.shipments }

// Close ends the server; shipments that are not answered are sent again to whoever
// comes next.
func (s *Sink) Close() {
	s.cancel()
	_ = s.ln.Close()
	s.mu.Lock()
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

func (s *Sink) accept() {
	defer s.wg.Done()
	for {
		c, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[c] = true
		s.mu.Unlock()
		if s.ctx.Err() != nil {
			_ = c.Close()
		}
		s.wg.Add(1)
		go func() {
			defer s.wg.Done()
			s.serve(c)
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
			_ = c.Close()
		}()
	}
}

// serve reads calls of one connection. Each waits for its answer by itself.
func (s *Sink) serve(c net.Conn) {
	in := bufio.NewReaderSize(c, 64<<10)
	var hello [6]byte
	if _, err := io.ReadFull(in, hello[:]); err != nil || hello != preamble {
		return
	}
	header, err := sinkFrame(in)
	if err != nil {
		return
	}
	tags := true
	if fields(header, func(f protowire.Number, _ uint64, b []byte) error {
		if f == 3 {
			tags = string(b) != KeyValueCodec
		}
		return nil
	}) != nil {
		return
	}
	var write sync.Mutex
	for {
		frame, err := sinkFrame(in)
		if err != nil {
			return
		}
		s.wg.Add(1)
		go func() {
			defer s.wg.Done()
			id, err := s.handle(frame, tags)
			if s.ctx.Err() != nil {
				return // no answer: it comes again
			}
			out := sinkReply(id, err)
			write.Lock()
			defer write.Unlock()
			_, _ = c.Write(out)
		}()
	}
}

func sinkFrame(in io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return nil, corrupt("frame")
	}
	return readFrame(in, int(n))
}

func sinkReply(id uint32, err error) []byte {
	h := message(nil).varint(1, uint64(id))
	if err != nil {
		class := "java.io.IOException"
		var re *RemoteError
		if errors.As(err, &re) {
			class = re.Class
		}
		h = h.bytes(2, message(nil).string(1, class).string(2, class+": "+err.Error()))
	}
	out := protowire.AppendBytes(make([]byte, 4), h)
	if err == nil {
		out = protowire.AppendBytes(out, nil)
	}
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	return out
}

func (s *Sink) handle(frame []byte, tags bool) (uint32, error) {
	id, method, param, cells, err := parseCall(frame)
	if err != nil {
		return id, err
	}
	if method != "ReplicateWALEntry" {
		return id, &RemoteError{Class: "org.apache.hadoop.hbase.DoNotRetryIOException", Message: "unsupported call " + method}
	}
	raw := frame[len(frame)-len(param)-len(cells):]
	sh, first, err := s.admit(&Shipment{Bytes: len(frame), Raw: raw, Cells: len(param), Tags: tags, sum: sha256.Sum256(raw), done: make(chan struct{})})
	if sh == nil {
		return id, err
	}
	if first {
		defer s.discharge(sh)
		if sh.Entries, err = ParseEntries(param, cells, tags); err != nil {
			sh.Done(err)
			return id, err
		}
		select {
		case s.shipments <- sh:
		case <-s.ctx.Done():
			return id, s.ctx.Err()
		}
	}
	select {
	case <-sh.done:
		return id, sh.err
	case <-s.ctx.Done():
		return id, s.ctx.Err()
	}
}

// admit takes a shipment, or finds that it is there already: sources ask again when
// they have waited long, and must not be given twice what is slow. None at all: it
// was answered before, or there is no room.
func (s *Sink) admit(sh *Shipment) (in *Shipment, first bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.answered, sh.sum) {
		return nil, false, nil
	}
	if p := s.pending[sh.sum]; p != nil {
		return p, false, nil
	}
	if s.held > 0 && s.held+sh.Bytes > s.limit {
		return nil, false, &RemoteError{Class: "org.apache.hadoop.hbase.CallQueueTooBigException", Message: "shipments wait for the target"}
	}
	s.held += sh.Bytes
	s.pending[sh.sum] = sh
	return sh, true, nil
}

func (s *Sink) discharge(sh *Shipment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held -= sh.Bytes
	delete(s.pending, sh.sum)
	select {
	case <-sh.done:
		if sh.err == nil {
			s.answered = append(s.answered, sh.sum)
			s.answered = s.answered[max(0, len(s.answered)-remembered):]
		}
	default:
	}
}

func parseCall(frame []byte) (id uint32, method string, param, cells []byte, err error) {
	h, rest, err := delimited(frame)
	if err != nil {
		return 0, "", nil, nil, err
	}
	size := uint64(0)
	err = fields(h, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1:
			id = uint32(v)
		case 3:
			method = string(b)
		case 5:
			return fields(b, func(f protowire.Number, v uint64, _ []byte) error {
				if f == 1 {
					size = v
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return id, method, nil, nil, err
	}
	if param, rest, err = delimited(rest); err != nil {
		return id, method, nil, nil, err
	}
	if size != uint64(len(rest)) {
		return id, method, nil, nil, corrupt(fmt.Sprintf("cell block of %d bytes, %d announced", len(rest), size))
	}
	return id, method, param, rest, nil
}

// ParseEntries reads a ReplicateWALEntryRequest with its cell block.
func ParseEntries(param, block []byte, tags bool) (out []Entry, err error) {
	err = fields(param, func(f protowire.Number, _ uint64, b []byte) error {
		if f != 1 {
			return nil
		}
		var e Entry
		cells := 0
		err := fields(b, func(f protowire.Number, v uint64, b []byte) error {
			switch f {
			case 1:
				return e.parseKey(b)
			case 2:
				c, _, err := CutCell(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...), tags)
				e.Cells = append(e.Cells, c)
				return err
			case 3:
				cells = int(int32(v))
			}
			return nil
		})
		for i := 0; err == nil && i < cells; i++ {
			var c Cell
			if c, block, err = CutCell(block, tags); err == nil {
				e.Cells = append(e.Cells, c)
			}
		}
		out = append(out, e)
		return err
	})
	if err == nil && len(block) > 0 {
		err = corrupt("bytes behind the cells of a shipment")
	}
	return out, err
}

func (e *Entry) parseKey(data []byte) error {
	return fields(data, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1:
			e.Region = string(b)
		case 2:
			e.Table = strings.TrimPrefix(string(b), "default:")
		case 3:
			e.Sequence = v
		case 4:
			e.WriteTime = int64(v)
		case 8:
			var lo, hi uint64
			err := fields(b, func(f protowire.Number, v uint64, _ []byte) error {
				switch f {
				case 1:
					lo = v
				case 2:
					hi = v
				}
				return nil
			})
			e.Clusters = append(e.Clusters, fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", hi>>32, hi>>16&0xffff, hi&0xffff, lo>>48, lo&0xffffffffffff))
			return err
		}
		return nil
	})
}
