package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Durability of a mutation.
type Durability int

// The durabilities: what the table says, no log, log written later, log handed to
// the file system, log forced to disk.
const (
	UseDefault Durability = iota
	SkipWAL
	AsyncWAL
	SyncWAL
	FsyncWAL
)

// Mutation writes cells of one row in one step. A mutation that holds nothing but
// tombstones is a delete; one that holds both kinds is a put, which servers take
// tombstones in as well.
type Mutation struct {
	Row        []byte
	block      []byte // cells, in the form of KeyValueCodec
	n          int
	puts       int
	Durability Durability
	Attributes []Attribute
}

// Attribute is handed to the server with a mutation.
type Attribute struct {
	Name  string
	Value []byte
}

// NewMutation returns a mutation of a row that appends its cells to buf[len(buf):],
// so that many may share one buffer. Tail returns the buffer for the next.
func NewMutation(row, buf []byte) Mutation { return Mutation{Row: row, block: buf[len(buf):]} }

// Put adds a value.
func (m *Mutation) Put(family, qualifier []byte, ts uint64, value []byte) {
	m.block = AppendCell(m.block, m.Row, family, qualifier, ts, TypePut, value)
	m.n++
	m.puts++
}

// Delete adds a tombstone.
func (m *Mutation) Delete(family, qualifier []byte, ts uint64, typ CellType) {
	m.block = AppendCell(m.block, m.Row, family, qualifier, ts, typ, nil)
	m.n++
}

// AddCell adds a cell as it is, but for its row.
func (m *Mutation) AddCell(c *Cell) {
	m.block = AppendCell(m.block, m.Row, c.Family, c.Qualifier, c.Timestamp, c.Type, c.Value)
	m.n++
	if c.Type == TypePut {
		m.puts++
	}
}

// Tail returns the buffer behind the mutation's cells.
func (m *Mutation) Tail() []byte { return m.block[len(m.block):] }

// Len returns how many cells there are, Size their bytes.
func (m *Mutation) Len() int { return m.n }

// Size returns how many bytes the cells have.
func (m *Mutation) Size() int { return len(m.block) }

// Block returns the cells in the form of KeyValueCodec.
func (m *Mutation) Block() []byte { return m.block }

// head appends the MutationProto without the cells.
func (m *Mutation) head(dst message) message {
	typ := uint64(2)
	if m.puts == 0 {
		typ = 3
	}
	dst = dst.bytes(1, m.Row).varint(2, typ)
	for _, a := range m.Attributes {
		dst = dst.bytes(5, message(nil).string(1, a.Name).bytes(2, a.Value))
	}
	if m.Durability != UseDefault {
		dst = dst.varint(6, uint64(m.Durability))
	}
	return dst.varint(8, uint64(m.n))
}

// ClusterAttribute makes the attribute that names the clusters which have seen a
// mutation: replication does not ship it to them. Each id is 16 bytes.
func ClusterAttribute(ids ...[16]byte) Attribute {
	v := binary.BigEndian.AppendUint32(nil, uint32(len(ids)))
	for _, id := range ids {
		v = append(v, id[:]...)
	}
	return Attribute{"_cs.id", v}
}

// Condition holds where the newest version of a column of the row has the value;
// an empty value stands for a column that is not there.
type Condition struct {
	Family, Qualifier, Value []byte
}

// CheckAndMutate writes if the condition holds, in one step, and reports whether
// it did. An answer that was lost is an error: the caller reads the row.
func (c *Client) CheckAndMutate(ctx context.Context, table string, cond Condition, m *Mutation) (done bool, err error) {
	comparator := message(nil).bytes(1, message(nil).bytes(1, cond.Value))
	condition := message(nil).bytes(1, m.Row).bytes(2, cond.Family).bytes(3, cond.Qualifier).varint(4, 2).
		bytes(5, message(nil).string(1, "org.apache.hadoop.hbase.filter.BinaryComparator").bytes(2, comparator))
	rep, err := c.onRegion(ctx, table, m.Row, "check and mutate", clientService, func(r *Region) *request {
		return &request{
			method: "Mutate", cells: [][]byte{m.block},
			param: message(nil).bytes(1, r.specifier()).bytes(2, m.head(nil)).bytes(3, condition),
		}
	})
	if err != nil {
		return false, err
	}
	err = fields(rep.msg, func(f protowire.Number, v uint64, _ []byte) error {
		if f == 2 {
			done = v != 0
		}
		return nil
	})
	return done, err
}

func (m *Mutation) check() error {
	switch {
	case len(m.Row) == 0:
		return fmt.Errorf("a row key is empty")
	case len(m.Row) > 1<<15-1:
		return fmt.Errorf("row key %q… has %d bytes, 32767 are possible", m.Row[:20], len(m.Row))
	case m.n == 0:
		return fmt.Errorf("mutation of row %q holds nothing", bytes.Clone(m.Row))
	}
	return nil
}
