package binlog

import "fmt"

// Type is the type of an event.
type Type uint8

// Event types, by the numbers of MySQL (mysql/binlog/event/binlog_event.h) and,
// from 160 on, of MariaDB (sql/log_event.h).
const (
	Query               Type = 2
	Stop                Type = 3
	Rotate              Type = 4
	Intvar              Type = 5
	Load                Type = 6
	CreateFile          Type = 8
	AppendBlock         Type = 9
	ExecLoad            Type = 10
	DeleteFile          Type = 11
	NewLoad             Type = 12
	Rand                Type = 13
	UserVar             Type = 14
	FormatDescription   Type = 15
	Xid                 Type = 16
	BeginLoadQuery      Type = 17
	ExecuteLoadQuery    Type = 18
	TableMap            Type = 19
	WriteRowsV0         Type = 20
	UpdateRowsV0        Type = 21
	DeleteRowsV0        Type = 22
	WriteRowsV1         Type = 23
	UpdateRowsV1        Type = 24
	DeleteRowsV1        Type = 25
	Incident            Type = 26
	Heartbeat           Type = 27
	Ignorable           Type = 28
	RowsQuery           Type = 29
	WriteRowsV2         Type = 30
	UpdateRowsV2        Type = 31
	DeleteRowsV2        Type = 32
	GTID                Type = 33
	AnonymousGTID       Type = 34
	PreviousGTIDs       Type = 35
	TransactionContext  Type = 36
	ViewChange          Type = 37
	XAPrepare           Type = 38
	PartialUpdateRows   Type = 39
	TransactionPayload  Type = 40
	HeartbeatV2         Type = 41
	GTIDTagged          Type = 42
	AnnotateRows        Type = 160
	BinlogCheckpoint    Type = 161
	MariaGTID           Type = 162
	MariaGTIDList       Type = 163
	StartEncryption     Type = 164
	QueryCompressed     Type = 165
	WriteRowsCompressed Type = 166
	UpdateRowsCompr     Type = 167
	DeleteRowsCompr     Type = 168
	// MariaDB reserves these for compressed rows of version 2; no release writes them.
	WriteRowsV2Compr  Type = 169
	UpdateRowsV2Compr Type = 170
	DeleteRowsV2Compr Type = 171
)

var typeNames = map[Type]string{
	Query: "QUERY", Stop: "STOP", Rotate: "ROTATE", Intvar: "INTVAR", Load: "LOAD", CreateFile: "CREATE_FILE",
	AppendBlock: "APPEND_BLOCK", ExecLoad: "EXEC_LOAD", DeleteFile: "DELETE_FILE", NewLoad: "NEW_LOAD", Rand: "RAND",
	UserVar: "USER_VAR", FormatDescription: "FORMAT_DESCRIPTION", Xid: "XID", BeginLoadQuery: "BEGIN_LOAD_QUERY",
	ExecuteLoadQuery: "EXECUTE_LOAD_QUERY", TableMap: "TABLE_MAP", WriteRowsV0: "WRITE_ROWS_V0", UpdateRowsV0: "UPDATE_ROWS_V0",
	DeleteRowsV0: "DELETE_ROWS_V0", WriteRowsV1: "WRITE_ROWS_V1", UpdateRowsV1: "UPDATE_ROWS_V1", DeleteRowsV1: "DELETE_ROWS_V1",
	Incident: "INCIDENT", Heartbeat: "HEARTBEAT", Ignorable: "IGNORABLE", RowsQuery: "ROWS_QUERY", WriteRowsV2: "WRITE_ROWS",
	UpdateRowsV2: "UPDATE_ROWS", DeleteRowsV2: "DELETE_ROWS", GTID: "GTID", AnonymousGTID: "ANONYMOUS_GTID",
	PreviousGTIDs: "PREVIOUS_GTIDS", TransactionContext: "TRANSACTION_CONTEXT", ViewChange: "VIEW_CHANGE", XAPrepare: "XA_PREPARE",
	PartialUpdateRows: "PARTIAL_UPDATE_ROWS", TransactionPayload: "TRANSACTION_PAYLOAD", HeartbeatV2: "HEARTBEAT_V2",
	GTIDTagged: "GTID_TAGGED", AnnotateRows: "ANNOTATE_ROWS", BinlogCheckpoint: "BINLOG_CHECKPOINT", MariaGTID: "GTID (MariaDB)",
	MariaGTIDList: "GTID_LIST", StartEncryption: "START_ENCRYPTION", QueryCompressed: "QUERY_COMPRESSED",
	WriteRowsCompressed: "WRITE_ROWS_COMPRESSED", UpdateRowsCompr: "UPDATE_ROWS_COMPRESSED", DeleteRowsCompr: "DELETE_ROWS_COMPRESSED",
	WriteRowsV2Compr: "WRITE_ROWS_COMPRESSED_V2", UpdateRowsV2Compr: "UPDATE_ROWS_COMPRESSED_V2", DeleteRowsV2Compr: "DELETE_ROWS_COMPRESSED_V2",
}

// String returns the name the server's manual uses, and the number of types
// that are not known.
func (t Type) String() string {
	if n, ok := typeNames[t]; ok {
		return n
	}
	return fmt.Sprintf("event type %d", uint8(t))
}

// Known reports whether t is a type of this package.
func (t Type) Known() bool { return typeNames[t] != "" }

// IsRows reports whether events of the type carry rows.
func (t Type) IsRows() bool {
	return t >= WriteRowsV0 && t <= DeleteRowsV1 || t >= WriteRowsV2 && t <= DeleteRowsV2 ||
		t == PartialUpdateRows || t >= WriteRowsCompressed && t <= DeleteRowsV2Compr
}

// Flags of an event header.
const (
	FlagInUse      uint16 = 0x0001 // format description: the file was not closed
	FlagArtificial uint16 = 0x0020
	FlagIgnorable  uint16 = 0x0080
)

// HeaderSize is the size of an event's header.
const HeaderSize = 19

// Header is the fixed head of an event.
type Header struct {
	Time   uint32 // seconds since the epoch
	Type   Type
	Server uint32
	Size   uint32 // of the whole event
	Next   uint32 // end position as the server wrote it: 0 or wrapped in places
	Flags  uint16
}

// Event is one event of a log. Body is a view that the next call of the
// scanner makes invalid; it holds neither header nor checksum.
type Event struct {
	Header
	Body []byte
	At   int64 // offset of the event
	End  int64 // offset after it
}

// Between reports whether events of the type stand between transactions and belong
// to none.
func (t Type) Between() bool {
	switch t {
	case FormatDescription, PreviousGTIDs, MariaGTIDList, BinlogCheckpoint, Stop, Rotate, Heartbeat, HeartbeatV2, Ignorable, TransactionContext, ViewChange, StartEncryption:
		return true
	}
	return false
}
