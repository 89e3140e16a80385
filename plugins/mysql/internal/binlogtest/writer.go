package binlogtest

import (
	"encoding/binary"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
)

// Writer writes the events of one file. Errors of the underlying writer stick and
// are returned by Err.
type Writer struct {
	w        io.Writer
	off      int64
	err      error
	checksum bool
	Time     uint32
	Server   uint32
	buf      []byte
}

// Options of a file.
type Options struct {
	Version  string // of the server; "" = 8.4.0
	Checksum bool
	InUse    bool
}

// New writes the head of a file.
func New(w io.Writer, o Options) *Writer {
	bw := &Writer{w: w, checksum: o.Checksum, Time: 1_700_000_000, Server: 1}
	if o.Version == "" {
		o.Version = "8.4.0"
	}
	bw.write([]byte("\xfebin"))
	bw.format(o)
	return bw
}

// Err returns the first error of the underlying writer.
func (w *Writer) Err() error { return w.err }

// Offset returns the offset of the next event.
func (w *Writer) Offset() int64 { return w.off }

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.w.Write(b)
	w.off += int64(n)
	w.err = err
}

// Raw writes bytes that are no event.
func (w *Writer) Raw(b []byte) { w.write(b) }

func (w *Writer) format(o Options) {
	body := make([]byte, 57, 128)
	binary.LittleEndian.PutUint16(body, 4)
	copy(body[2:52], o.Version)
	body[56] = binlog.HeaderSize
	// Sizes of the fixed parts, as MySQL 8 has them; 8 for table maps and rows.
	sizes := make([]byte, 42)
	sizes[binlog.Query-1], sizes[binlog.TableMap-1] = 13, 8
	for _, t := range []binlog.Type{binlog.WriteRowsV0, binlog.UpdateRowsV0, binlog.DeleteRowsV0, binlog.WriteRowsV1, binlog.UpdateRowsV1, binlog.DeleteRowsV1} {
		sizes[t-1] = 8
	}
	for _, t := range []binlog.Type{binlog.WriteRowsV2, binlog.UpdateRowsV2, binlog.DeleteRowsV2, binlog.PartialUpdateRows} {
		sizes[t-1] = 10
	}
	body = append(body, sizes...)
	if o.Checksum {
		body = append(body, 1)
	} else {
		body = append(body, 0)
	}
	raw := w.event(nil, binlog.FormatDescription, 0, body, true)
	if o.InUse {
		raw[17] |= byte(binlog.FlagInUse)
	}
	w.write(raw)
}

func (w *Writer) event(dst []byte, t binlog.Type, flags uint16, body []byte, sum bool) []byte {
	at := len(dst)
	size := binlog.HeaderSize + len(body)
	if sum {
		size += 4
	}
	dst = binary.LittleEndian.AppendUint32(dst, w.Time)
	dst = append(dst, byte(t))
	dst = binary.LittleEndian.AppendUint32(dst, w.Server)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(size))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(w.off)+uint32(size))
	dst = binary.LittleEndian.AppendUint16(dst, flags)
	dst = append(dst, body...)
	if sum {
		dst = binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[at:]))
	}
	return dst
}

// Event writes an event.
func (w *Writer) Event(t binlog.Type, flags uint16, body []byte) {
	w.buf = w.event(w.buf[:0], t, flags, body, w.checksum)
	w.write(w.buf)
}

// GTID writes the GTID event of transaction n.
func (w *Writer) GTID(n uint64) { w.Event(binlog.GTID, 0, gtid(n)) }

func gtid(n uint64) []byte {
	b := make([]byte, 42)
	b[0] = 1
	copy(b[1:], "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10")
	binary.LittleEndian.PutUint64(b[17:], n)
	b[25] = 2
	return b
}

// Query writes a statement in a default database.
func (w *Writer) Query(db, text string) { w.Event(binlog.Query, 0, QueryBody(db, text)) }

// QueryBody is the body of a QUERY event, with the character set utf8mb4.
func QueryBody(db, text string) []byte {
	b := make([]byte, 13, 64)
	b[8] = byte(len(db))
	vars := []byte{4, 45, 0, 45, 0, 45, 0}
	binary.LittleEndian.PutUint16(b[11:], uint16(len(vars)))
	b = append(b, vars...)
	b = append(append(b, db...), 0)
	return append(b, text...)
}

// Begin writes BEGIN.
func (w *Writer) Begin() { w.Query("", "BEGIN") }

// Commit writes the commit of transaction n.
func (w *Writer) Commit(n uint64) {
	w.Event(binlog.Xid, 0, binary.LittleEndian.AppendUint64(nil, n))
}

// Rotate names the file that follows.
func (w *Writer) Rotate(next string) {
	w.Event(binlog.Rotate, 0, append(binary.LittleEndian.AppendUint64(nil, 4), next...))
}

// Payload writes a TRANSACTION_PAYLOAD event that holds the events which f writes
// to the Writer it is given.
func (w *Writer) Payload(f func(in *Writer)) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		w.err = err
		return
	}
	var raw sink
	f(&Writer{w: &raw, Time: w.Time, Server: w.Server})
	data := enc.EncodeAll(raw, nil)
	lenenc := func(v int) []byte { return append([]byte{254}, binary.LittleEndian.AppendUint64(nil, uint64(v))...) }
	body := append([]byte{1, 9}, lenenc(len(data))...)
	body = append(append(body, 2, 1), 0)
	body = append(append(body, 3, 9), lenenc(len(raw))...)
	body = append(body, 0)
	w.Event(binlog.TransactionPayload, 0, append(body, data...))
}

type sink []byte

func (s *sink) Write(p []byte) (int, error) {
	*s = append(*s, p...)
	return len(p), nil
}
