package reader

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/gtid"
	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
	"github.com/datalink-go/datalink/sdk"
)

// Commands of the protocol and flags of dumps.
const (
	comBinlogDump     = 0x12
	comRegister       = 0x15
	comBinlogDumpGTID = 0x1e

	dumpNonBlock    = 1
	dumpHeartbeatV2 = 2 // MySQL; to MariaDB it means annotations
	dumpThroughGTID = 4
)

// writeTimeout is how many seconds the server waits for a reader that does not
// read, as one does whose targets are slow.
const writeTimeout = 600

// dump asks a server for its log from a place on.
type dump struct {
	from     spot
	nonBlock bool // the end of the log ends the dump
	id       uint32
	uuid     string
	period   time.Duration
	wait     int // seconds that the server waits for a reader that does not read; 0 = writeTimeout
}

// start begins the dump. What comes next from c are its packets.
func (d *dump) start(ctx context.Context, c *server.Conn) error {
	ns := strconv.FormatInt(d.period.Nanoseconds(), 10)
	set := "SET @master_binlog_checksum = @@global.binlog_checksum, @master_heartbeat_period = " + ns +
		", net_write_timeout = " + strconv.Itoa(cmp.Or(d.wait, writeTimeout))
	if c.MariaDB {
		// 4: GTIDs. Without it the server hides them from old replicas.
		set += ", @mariadb_slave_capability = 4"
		if d.from.kind == spotDomains {
			set += ", @slave_connect_state = " + server.Literal(d.from.dom.String()) + ", @slave_gtid_strict_mode = 0, @slave_gtid_ignore_duplicates = 0"
		}
	} else {
		set += ", @source_binlog_checksum = @@global.binlog_checksum, @source_heartbeat_period = " + ns +
			", @slave_uuid = '" + d.uuid + "', @replica_uuid = '" + d.uuid + "'"
	}
	if _, err := c.Exec(ctx, set); err != nil {
		return err
	}
	if err := d.register(c); err != nil {
		return err
	}
	var code byte
	var p []byte
	flags := uint16(0)
	if d.nonBlock {
		flags |= dumpNonBlock
	}
	file, off := "", uint64(4)
	if d.from.kind == spotFile {
		file, off = d.from.file.name(), uint64(d.from.file.off)
	}
	if d.from.kind == spotSet {
		code, flags = comBinlogDumpGTID, flags|dumpThroughGTID|dumpHeartbeatV2
		data := d.from.set.AppendWire(nil)
		p = binary.LittleEndian.AppendUint16(p, flags)
		p = binary.LittleEndian.AppendUint32(p, d.id)
		p = binary.LittleEndian.AppendUint32(p, 0)
		p = binary.LittleEndian.AppendUint64(p, 4)
		p = binary.LittleEndian.AppendUint32(p, uint32(len(data)))
		p = append(p, data...)
	} else {
		if code = comBinlogDump; !c.MariaDB {
			flags |= dumpHeartbeatV2
		}
		if off > math.MaxUint32 {
			off = 4 // the command has 32 bits; what lies before is passed over
		}
		p = binary.LittleEndian.AppendUint32(p, uint32(off))
		p = binary.LittleEndian.AppendUint16(p, flags)
		p = binary.LittleEndian.AppendUint32(p, d.id)
		p = append(p, file...)
	}
	return c.WriteCommand(code, p)
}

// register makes the reader known in SHOW REPLICAS.
func (d *dump) register(c *server.Conn) error {
	p := binary.LittleEndian.AppendUint32(nil, d.id)
	p = append(append(p, byte(len("datalink"))), "datalink"...)
	p = append(p, 0, 0) // neither user nor password
	p = append(p, make([]byte, 2+4+4)...)
	if err := c.WriteCommand(comRegister, p); err != nil {
		return err
	}
	a, err := c.ReadPacket()
	if err != nil {
		return err
	}
	return server.AsError(a)
}

// stream adapts a connection to a Scanner.
type stream struct{ c *server.Conn }

func (s stream) Read(p []byte) (int, error) {
	n, err := s.c.Read(p)
	if err == server.ErrWouldBlock {
		err = binlog.ErrWait
	}
	return n, err
}

// isLost reports whether an error of a stream is one of the connection, so that
// reading goes on at a new one.
func isLost(err error) bool {
	var p *binlog.PacketError
	if errors.As(err, &p) {
		return true // what it says decides
	}
	var op interface{ Timeout() bool }
	return errors.Is(err, errAgain) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &op) || isNet(err)
}

func isNet(err error) bool {
	s := err.Error()
	return strings.Contains(s, "connection reset") || strings.Contains(s, "broken pipe") || strings.Contains(s, "closed network") || strings.Contains(s, "tls:")
}

// refusal turns an error that the server sends in place of the log into one that
// says what to do.
func refusal(c *server.Conn, from *spot, err error) error {
	var p *binlog.PacketError
	if errors.As(err, &p) {
		err = server.AsError(p.Payload)
	}
	var e *server.Error
	if !errors.As(err, &e) {
		return err
	}
	text := strings.ToLower(e.Message)
	at := fmt.Sprintf("server %s", c.Address)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("same server_uuid", "same server_id", "same server id"):
		return sdk.Faultf(sdk.CodeUnavailable, "%s ended this reader because another one with its server id has connected: another execution of this task, or a replica with that id (%v)", at, e).
			Suggest("see which other reader runs: SHOW REPLICAS, or SHOW SLAVE HOSTS, at the source; give this task another serverId if it is a stranger").Retry()
	case e.Code == 1045, e.Code == 1227, e.Code == 1142, e.Code == 1044:
		return sdk.Faultf(sdk.CodeUnauthorized, "%s: %v", at, e).Suggest("grant what the reader needs: see datalink doctor")
	case has("purged", "could not find first log file", "too old"):
		return sdk.Faultf(sdk.CodePositionPurged, "%s no longer has the log after position %s (%v)", at, from, e).
			Suggest("%s", advicePurged)
	case has("not in the master's binlog", "not in the source", "has more gtids", "impossible position", "position > file size", "greater than file size", "bogus data", "not exist in binlog", "diverged", "exceeds", "client requested master to start"):
		return sdk.Faultf(sdk.CodePositionUnknown, "%s never had position %s, or lost it (%v)", at, from, e).
			Suggest("%s", adviceUnknown)
	case has("max_allowed_packet", "exceeded max"):
		return sdk.Faultf(sdk.CodeTooLarge, "%s cannot send an event that is larger than its max_allowed_packet (%v)", at, e).
			Suggest("raise max_allowed_packet at the source")
	case has("auto_position", "anonymous"):
		return sdk.Faultf(sdk.CodeUnsupportedEvent, "%s: the log holds transactions without GTIDs after position %s (%v)", at, from, e).
			Suggest("set gtid_mode=ON at the source and begin after that place")
	case e.Code == 1236:
		return sdk.Faultf(sdk.CodeCorruptSource, "%s cannot send its log after position %s: %v", at, from, e).Suggest("look at the server's error log")
	}
	return fmt.Errorf("%s: %w", at, e)
}

const (
	advicePurged  = "onPurged: resnapshot takes the tables anew; or set another position on purpose with datalink task position, which leaves out what was purged; keep the log longer at the source (binlog_expire_logs_seconds)"
	adviceUnknown = "see whether the address is the right server and whether it was restored from a backup; if it is right, take the tables anew with a new task, or set a position that it has with datalink task position"
)

// facts are what a connection has to be known of before it is read from.
type facts struct {
	name             string // UUID of the server
	kind             kind
	executed, purged gtid.Set
	binlogPos        gtid.Domains
	logBin           bool
	file             string // end of the log
	off              int64
	id               uint32
	first            string // file of the log
	files            []sizedFile
}

type sizedFile struct {
	name string
	size int64
}

// learn asks a server about its log.
func learn(ctx context.Context, c *server.Conn) (f facts, err error) {
	v, err := c.Variables(ctx, "server_uuid", "server_id", "gtid_mode", "log_bin", "gtid_executed", "gtid_purged", "gtid_binlog_pos", "hostname", "port")
	if err != nil {
		return f, err
	}
	if f.name = v["server_uuid"]; f.name == "" {
		f.name = v["server_id"] + "@" + v["hostname"] + ":" + v["port"]
	}
	id, _ := strconv.ParseUint(v["server_id"], 10, 32)
	f.id = uint32(id)
	if f.logBin = strings.EqualFold(v["log_bin"], "ON"); !f.logBin {
		return f, sdk.Faultf(sdk.CodeUnsupportedEvent, "server %s writes no binary log", c.Address).Suggest("set log_bin and binlog_format=ROW at the source and restart it")
	}
	switch {
	case c.MariaDB && c.Number >= 100002:
		f.kind = spotDomains
		f.binlogPos, err = gtid.ParseDomains(v["gtid_binlog_pos"])
	case strings.EqualFold(v["gtid_mode"], "ON"):
		f.kind = spotSet
		if f.executed, err = gtid.ParseSet(v["gtid_executed"]); err == nil {
			f.purged, err = gtid.ParseSet(v["gtid_purged"])
		}
	default:
		f.kind = spotFile
	}
	return f, err
}

// status asks for the end of the log and for its files.
func (f *facts) status(ctx context.Context, c *server.Conn) error {
	res, err := c.Query(ctx, statusStatement(c))
	if err != nil {
		return err
	}
	if len(res.Rows) == 0 {
		return sdk.Faultf(sdk.CodeUnsupportedEvent, "server %s writes no binary log", c.Address)
	}
	f.file = res.Get(0, "File")
	f.off, _ = strconv.ParseInt(res.Get(0, "Position"), 10, 64)
	logs, err := c.Query(ctx, "SHOW BINARY LOGS")
	if err != nil {
		return err
	}
	f.files = nil
	for i := range logs.Rows {
		n, _ := strconv.ParseInt(logs.Get(i, "File_size"), 10, 64)
		f.files = append(f.files, sizedFile{logs.Get(i, "Log_name"), n})
	}
	if len(f.files) > 0 {
		f.first = f.files[0].name
	}
	return nil
}

// statusStatement is the statement that shows the end of the log.
func statusStatement(c *server.Conn) string {
	switch {
	case c.MariaDB && c.Number >= 100502:
		return "SHOW BINLOG STATUS"
	case c.MariaDB || c.Number < 80200:
		return "SHOW MASTER STATUS"
	}
	return "SHOW BINARY LOG STATUS"
}
