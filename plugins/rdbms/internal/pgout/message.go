package pgout

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrCorrupt is wrapped by all errors of this package.
var ErrCorrupt = errors.New("not a message of pgoutput")

// Types of messages.
const (
	Begin        = 'B'
	Commit       = 'C'
	Origin       = 'O'
	Relation     = 'R'
	TypeInfo     = 'Y'
	Insert       = 'I'
	Update       = 'U'
	Delete       = 'D'
	Truncate     = 'T'
	Message      = 'M'
	StreamStart  = 'S'
	StreamStop   = 'E'
	StreamCommit = 'c'
	StreamAbort  = 'A'
)

// BeginMsg begins a transaction that has committed.
type BeginMsg struct {
	Final uint64 // LSN of the commit record
	Time  int64  // microseconds since 2000-01-01
	XID   uint32
}

// CommitMsg ends a transaction.
type CommitMsg struct {
	Commit, End uint64 // LSN of the commit record and after it
	Time        int64
}

// RelationMsg describes a table. Columns refer to the message.
type RelationMsg struct {
	ID        uint32
	Namespace string
	Table     string
	Identity  byte // d, n, f, i
	Columns   []RelationColumn
}

// RelationColumn is a column of a RelationMsg.
type RelationColumn struct {
	Name string
	Key  bool
	Type uint32
	Mod  int32
}

// Tuple is a row version: one Field for each column of its relation.
type Tuple []Field

// Field is a column of a Tuple: n NULL, u unchanged TOAST, t text, b binary.
type Field struct {
	Kind byte
	Data []byte
}

// RowMsg is an insert, update or delete. Old holds the key columns alone where
// OldKey is set; tuples that are not there are empty.
type RowMsg struct {
	Relation uint32
	OldKey   bool
	Old, New Tuple
}

// TruncateMsg empties tables.
type TruncateMsg struct {
	Relations []uint32
	Cascade   bool
	Restart   bool
}

// StreamMsg is the start, commit or abort of a streamed transaction.
type StreamMsg struct {
	XID, Sub uint32
	First    bool // the first segment
	CommitMsg
}

type cursor struct {
	p    []byte
	what byte
	err  error
}

func (c *cursor) fail(field string) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %q, %s: cut off or not valid", ErrCorrupt, c.what, field)
		c.p = nil
	}
}

func (c *cursor) take(n int, field string) []byte {
	if n < 0 || n > len(c.p) {
		c.fail(field)
		return nil
	}
	v := c.p[:n:n]
	c.p = c.p[n:]
	return v
}

func (c *cursor) u8(field string) byte {
	if v := c.take(1, field); v != nil {
		return v[0]
	}
	return 0
}

func (c *cursor) u16(field string) int {
	if v := c.take(2, field); v != nil {
		return int(binary.BigEndian.Uint16(v))
	}
	return 0
}

func (c *cursor) u32(field string) uint32 {
	if v := c.take(4, field); v != nil {
		return binary.BigEndian.Uint32(v)
	}
	return 0
}

func (c *cursor) u64(field string) uint64 {
	if v := c.take(8, field); v != nil {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

func (c *cursor) text(field string) string {
	for i, b := range c.p {
		if b == 0 {
			s := string(c.p[:i])
			c.p = c.p[i+1:]
			return s
		}
	}
	c.fail(field)
	return ""
}

func (c *cursor) end() error {
	if c.err == nil && len(c.p) > 0 {
		c.fail(fmt.Sprintf("end: %d bytes left", len(c.p)))
	}
	return c.err
}

func open(m []byte) cursor {
	if len(m) == 0 {
		return cursor{err: fmt.Errorf("%w: empty", ErrCorrupt)}
	}
	return cursor{p: m[1:], what: m[0]}
}

// ReadBegin reads a Begin message.
func ReadBegin(m []byte) (BeginMsg, error) {
	c := open(m)
	v := BeginMsg{Final: c.u64("final LSN"), Time: int64(c.u64("time")), XID: c.u32("xid")}
	return v, c.end()
}

// ReadCommit reads a Commit message.
func ReadCommit(m []byte) (CommitMsg, error) {
	c := open(m)
	c.u8("flags")
	v := c.commit()
	return v, c.end()
}

func (c *cursor) commit() CommitMsg {
	return CommitMsg{Commit: c.u64("commit LSN"), End: c.u64("end LSN"), Time: int64(c.u64("time"))}
}

// ReadOrigin returns the name of the origin.
func ReadOrigin(m []byte) (string, error) {
	c := open(m)
	c.u64("LSN")
	name := c.text("name")
	return name, c.end()
}

// ReadStream reads StreamStart, StreamCommit and StreamAbort.
func ReadStream(m []byte) (StreamMsg, error) {
	c := open(m)
	v := StreamMsg{XID: c.u32("xid")}
	switch c.what {
	case StreamStart:
		v.First = c.u8("first segment") == 1
	case StreamCommit:
		c.u8("flags")
		v.CommitMsg = c.commit()
	case StreamAbort:
		v.Sub = c.u32("subtransaction")
	default:
		c.fail("type")
	}
	return v, c.end()
}

// Sub splits the id of the subtransaction off a message inside of a streamed
// segment.
func Sub(m []byte) (xid uint32, ok bool) {
	if len(m) < 5 {
		return 0, false
	}
	return binary.BigEndian.Uint32(m[1:]), true
}

// Plain rewrites a message inside of a streamed segment, in place, to what it is
// outside of one: without the id of the subtransaction.
func Plain(m []byte) []byte {
	m[4] = m[0]
	return m[4:]
}

// ReadRelation reads a Relation message.
func ReadRelation(m []byte) (RelationMsg, error) {
	c := open(m)
	v := RelationMsg{ID: c.u32("id"), Namespace: c.text("namespace"), Table: c.text("table"), Identity: c.u8("identity")}
	if v.Namespace == "" {
		v.Namespace = "pg_catalog"
	}
	n := c.u16("columns")
	for range n {
		if c.err != nil {
			break
		}
		v.Columns = append(v.Columns, RelationColumn{
			Key: c.u8("column flags")&1 != 0, Name: c.text("column name"), Type: c.u32("column type"), Mod: int32(c.u32("column modifier")),
		})
	}
	return v, c.end()
}

// ReadRow reads an Insert, Update or Delete message into v, whose tuples are used
// again.
func ReadRow(m []byte, v *RowMsg) error {
	c := open(m)
	v.Relation = c.u32("relation")
	v.OldKey, v.Old, v.New = false, v.Old[:0], v.New[:0]
	mark := c.u8("tuple")
	if (mark == 'K' || mark == 'O') && c.what != Insert {
		v.OldKey = mark == 'K'
		v.Old = c.tuple(v.Old)
		if c.what == Delete {
			return c.end()
		}
		mark = c.u8("tuple")
	}
	if mark != 'N' || c.what == Delete {
		c.fail("tuple")
		return c.err
	}
	v.New = c.tuple(v.New)
	return c.end()
}

func (c *cursor) tuple(t Tuple) Tuple {
	n := c.u16("columns")
	for range n {
		if c.err != nil {
			return t
		}
		f := Field{Kind: c.u8("column kind")}
		switch f.Kind {
		case 'n', 'u':
		case 't', 'b':
			f.Data = c.take(int(c.u32("column length")), "column")
		default:
			c.fail("column kind")
		}
		t = append(t, f)
	}
	return t
}

// ReadTruncate reads a Truncate message.
func ReadTruncate(m []byte) (TruncateMsg, error) {
	c := open(m)
	n := c.u32("relations")
	opt := c.u8("options")
	v := TruncateMsg{Cascade: opt&1 != 0, Restart: opt&2 != 0}
	for range n {
		if c.err != nil {
			break
		}
		v.Relations = append(v.Relations, c.u32("relation"))
	}
	return v, c.end()
}
