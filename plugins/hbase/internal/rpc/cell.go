package rpc

import (
	"encoding/binary"
	"math"
)

// CellType is the kind of a cell: a value, or one of the tombstones.
type CellType uint8

// The kinds. DeleteColumn hides all versions of a column up to its own,
// DeleteFamily those of all columns of the family, the others one version.
const (
	TypePut                 CellType = 4
	TypeDelete              CellType = 8
	TypeDeleteFamilyVersion CellType = 10
	TypeDeleteColumn        CellType = 12
	TypeDeleteFamily        CellType = 14
)

// LatestTimestamp makes the server give the timestamp.
const LatestTimestamp uint64 = math.MaxInt64

// Cell is one version of a column of a row, or a tombstone.
type Cell struct {
	Row       []byte
	Family    []byte
	Qualifier []byte
	Timestamp uint64
	Type      CellType
	Value     []byte
	Tags      []byte
}

// KeyValueCodec is the form of cells in cell blocks; the one with tags is what
// replication uses.
const (
	KeyValueCodec         = "org.apache.hadoop.hbase.codec.KeyValueCodec"
	KeyValueCodecWithTags = "org.apache.hadoop.hbase.codec.KeyValueCodecWithTags"
)

// AppendCell appends a cell in the form of KeyValueCodec: the length, then a
// KeyValue: key length, value length, row with its 16-bit length, family with its
// 8-bit length, qualifier, timestamp, type, value.
func AppendCell(dst []byte, row, family, qualifier []byte, ts uint64, typ CellType, value []byte) []byte {
	key := 2 + len(row) + 1 + len(family) + len(qualifier) + 9
	dst = binary.BigEndian.AppendUint32(dst, uint32(8+key+len(value)))
	dst = binary.BigEndian.AppendUint32(dst, uint32(key))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(value)))
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(row)))
	dst = append(dst, row...)
	dst = append(dst, byte(len(family)))
	dst = append(dst, family...)
	dst = append(dst, qualifier...)
	dst = binary.BigEndian.AppendUint64(dst, ts)
	dst = append(dst, byte(typ))
	return append(dst, value...)
}

// CutCell decodes the first cell of a block and returns what follows it. The cell
// refers to data. WithTags says that the codec is KeyValueCodecWithTags; a cell
// without tags looks the same there but for a length.
func CutCell(data []byte, withTags bool) (Cell, []byte, error) {
	var c Cell
	if len(data) < 4 {
		return c, nil, corrupt("cell: no length")
	}
	n := binary.BigEndian.Uint32(data)
	if uint64(n) > uint64(len(data)-4) {
		return c, nil, corrupt("cell: cut off")
	}
	kv, rest := data[4:4+n:4+n], data[4+n:]
	if len(kv) < 8 {
		return c, nil, corrupt("cell: no lengths")
	}
	keyLen, valLen := uint64(binary.BigEndian.Uint32(kv)), uint64(binary.BigEndian.Uint32(kv[4:]))
	kv = kv[8:]
	if keyLen > uint64(len(kv)) || valLen > uint64(len(kv))-keyLen || keyLen < 12 {
		return c, nil, corrupt("cell: lengths of key and value")
	}
	key := kv[:keyLen:keyLen]
	c.Value = kv[keyLen : keyLen+valLen : keyLen+valLen]
	if tags := kv[keyLen+valLen:]; len(tags) > 0 {
		if !withTags || len(tags) < 2 || int(binary.BigEndian.Uint16(tags)) != len(tags)-2 {
			return c, nil, corrupt("cell: bytes behind the value")
		}
		c.Tags = tags[2:]
	}
	row := int(binary.BigEndian.Uint16(key))
	key = key[2:]
	if len(key) < row+1+9 {
		return c, nil, corrupt("cell: row")
	}
	c.Row, key = key[:row:row], key[row:]
	fam := int(key[0])
	key = key[1:]
	if len(key) < fam+9 {
		return c, nil, corrupt("cell: family")
	}
	c.Family, key = key[:fam:fam], key[fam:]
	q := len(key) - 9
	c.Qualifier = key[:q:q]
	c.Timestamp = binary.BigEndian.Uint64(key[q:])
	c.Type = CellType(key[q+8])
	return c, rest, nil
}

// Cells decodes all cells of a block.
func Cells(block []byte, withTags bool) ([]Cell, error) {
	var out []Cell
	for len(block) > 0 {
		c, rest, err := CutCell(block, withTags)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
		block = rest
	}
	return out, nil
}
