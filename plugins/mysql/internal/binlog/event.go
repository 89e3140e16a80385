package binlog

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
)

// corrupt says that the body of an event is not what its type demands.
func corrupt(t Type, msg string, args ...any) error {
	return fmt.Errorf("%w: %s event: %s", ErrCorrupt, t, fmt.Sprintf(msg, args...))
}

// Statement is the body of a QUERY or EXECUTE_LOAD_QUERY event. Text and
// Database are views, or scratch space when the event was compressed.
type Statement struct {
	Thread    uint32
	ErrorCode uint16
	Database  []byte
	Text      []byte
	Charset   uint16 // collation id of the client's character set; 0 = not stated
	Server    uint16 // collation id of the server's default; 0 = not stated
	Default   uint16 // collation id of the database's default, where it is stated
	SQLMode   uint64
	HasMode   bool
}

// SQL modes that change how a statement is read (sql/system_variables.h).
const (
	ModeANSIQuotes         uint64 = 4
	ModeNoBackslashEscapes uint64 = 1 << 20
)

// DecodeQuery reads the body of a QUERY or QUERY_COMPRESSED event.
func DecodeQuery(t Type, body []byte, st *Statement) error {
	const fixed = 13
	if len(body) < fixed {
		return corrupt(t, "%d bytes", len(body))
	}
	*st = Statement{Thread: binary.LittleEndian.Uint32(body), ErrorCode: binary.LittleEndian.Uint16(body[9:])}
	db, vars := int(body[8]), int(binary.LittleEndian.Uint16(body[11:]))
	body = body[fixed:]
	if t == ExecuteLoadQuery {
		if len(body) < 13 {
			return corrupt(t, "cut off")
		}
		body = body[13:]
	}
	if len(body) < vars+db+1 {
		return corrupt(t, "%d bytes for status of %d and database of %d", len(body), vars, db)
	}
	st.status(body[:vars])
	st.Database = body[vars : vars+db : vars+db]
	st.Text = body[vars+db+1:]
	if t == QueryCompressed {
		text, err := Inflate(st.Text, nil)
		if err != nil {
			return corrupt(t, "%v", err)
		}
		st.Text = text
	}
	return nil
}

// status reads the status variables that matter. They have no lengths, so the
// first unknown one ends the walk; those that matter come early.
func (st *Statement) status(v []byte) {
	for len(v) > 0 {
		code := v[0]
		v = v[1:]
		n := 0
		switch code {
		case 0: // flags2
			n = 4
		case 1: // sql_mode
			n = 8
			if len(v) >= 8 {
				st.SQLMode, st.HasMode = binary.LittleEndian.Uint64(v), true
			}
		case 2, 5, 6: // catalog, time zone, catalog without NUL
			if len(v) < 1 {
				return
			}
			n = 1 + int(v[0])
			if code == 2 {
				n++
			}
		case 3: // auto_increment
			n = 4
		case 4: // client character set, connection and server collation
			n = 6
			if len(v) >= 6 {
				st.Charset, st.Server = binary.LittleEndian.Uint16(v), binary.LittleEndian.Uint16(v[4:])
			}
		case 7: // lc_time_names
			n = 2
		case 8: // collation of the database
			n = 2
			if len(v) >= 2 {
				st.Default = binary.LittleEndian.Uint16(v)
			}
		default:
			return
		}
		if n > len(v) {
			return
		}
		v = v[n:]
	}
}

// Next is what a ROTATE event names: the file that follows.
func DecodeRotate(body []byte) (name string, err error) {
	if len(body) < 8 {
		return "", corrupt(Rotate, "%d bytes", len(body))
	}
	return string(bytes.TrimRight(body[8:], "\x00")), nil
}

// DecodeIncident reads number and message of an INCIDENT event.
func DecodeIncident(body []byte) (number uint16, message string) {
	if len(body) < 2 {
		return 0, ""
	}
	number = binary.LittleEndian.Uint16(body)
	if len(body) > 3 {
		message = string(body[3:min(len(body), 3+int(body[2]))])
	}
	return number, message
}

// Group is what a GTID event of either kind of server says about the
// transaction it begins.
type Group struct {
	ID         []byte   // printable, appended to the buffer given to DecodeGroup
	UUID       [16]byte // MySQL, with Tag and Number; Number 0 = the transaction has no id
	Tag        []byte   // view of the event
	Number     int64
	Domain     uint32 // MariaDB, with Server and Sequence
	Server     uint32
	Sequence   uint64
	Committed  int64 // microseconds; 0 = not stated
	Standalone bool  // MariaDB: a single statement follows and no commit
	MariaDB    bool  // the event takes the place of BEGIN
	Prepared   bool  // MariaDB: an XA transaction that is prepared
	Completed  bool  // MariaDB: an XA COMMIT or XA ROLLBACK
	Pending    bool  // MariaDB: the ALTER that follows begins or was given up; where it ends it is logged again
}

// MariaDB's flags of a GTID event.
const (
	mariaStandalone  = 1
	mariaCommitGroup = 2
	mariaPrepared    = 64
	mariaCompleted   = 128

	mariaStartAlter    = 2 // in the byte of more flags
	mariaRollbackAlter = 8
)

// DecodeGroup reads a GTID event. The id is appended to buf.
func DecodeGroup(ev *Event, buf []byte, g *Group) error {
	b := ev.Body
	*g = Group{ID: buf}
	switch ev.Type {
	case MariaGTID:
		if len(b) < 13 {
			return corrupt(ev.Type, "%d bytes", len(b))
		}
		g.Domain, g.Server, g.Sequence = binary.LittleEndian.Uint32(b[8:]), ev.Server, binary.LittleEndian.Uint64(b)
		g.ID = strconv.AppendUint(g.ID, uint64(g.Domain), 10)
		g.ID = strconv.AppendUint(append(g.ID, '-'), uint64(g.Server), 10)
		g.ID = strconv.AppendUint(append(g.ID, '-'), g.Sequence, 10)
		g.MariaDB, g.Standalone = true, b[12]&mariaStandalone != 0
		g.Prepared, g.Completed = b[12]&mariaPrepared != 0, b[12]&mariaCompleted != 0
		// A byte of more flags follows the id of a group; an ALTER has no XA transaction.
		at := 13
		if b[12]&mariaCommitGroup != 0 {
			at += 8
		}
		if !g.Prepared && !g.Completed && len(b) > at {
			g.Pending = b[at]&(mariaStartAlter|mariaRollbackAlter) != 0
		}
	case GTID, AnonymousGTID:
		if len(b) < 25 {
			return corrupt(ev.Type, "%d bytes", len(b))
		}
		if ev.Type == GTID {
			copy(g.UUID[:], b[1:])
			g.Number = int64(binary.LittleEndian.Uint64(b[17:]))
			g.ID = appendUUID(g.ID, b[1:17])
			g.ID = strconv.AppendInt(append(g.ID, ':'), g.Number, 10)
		}
		// After the ids: a type byte 2, two logical clocks, then 7 bytes of commit time.
		if len(b) >= 25+1+16+7 && b[25] == 2 {
			g.Committed = int64(uint56(b[42:]) &^ (1 << 55))
		}
	case GTIDTagged:
		return g.tagged(b)
	}
	return nil
}

func uint56(b []byte) uint64 {
	_ = b[6]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 | uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48
}

func appendUUID(dst, b []byte) []byte {
	for i, cut := range [...][2]int{{0, 4}, {4, 6}, {6, 8}, {8, 10}, {10, 16}} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, b[cut[0]:cut[1]])
	}
	return dst
}

// AppendXID appends the name of the distributed transaction of an XA_PREPARE
// event in the notation of the server's log, X'…',X'…',1, and says whether it
// was committed in one phase.
func AppendXID(dst, body []byte) (id []byte, onePhase bool, err error) {
	if len(body) < 13 {
		return dst, false, corrupt(XAPrepare, "%d bytes", len(body))
	}
	g, b := int(binary.LittleEndian.Uint32(body[5:])), int(binary.LittleEndian.Uint32(body[9:]))
	if g < 0 || b < 0 || g > 64 || b > 64 || len(body) < 13+g+b {
		return dst, false, corrupt(XAPrepare, "ids of %d and %d bytes in %d", g, b, len(body))
	}
	dst = hex.AppendEncode(append(dst, "X'"...), body[13:13+g])
	dst = hex.AppendEncode(append(dst, "',X'"...), body[13+g:13+g+b])
	dst = strconv.AppendUint(append(dst, "',"...), uint64(binary.LittleEndian.Uint32(body[1:])), 10)
	return dst, body[0] != 0, nil
}
