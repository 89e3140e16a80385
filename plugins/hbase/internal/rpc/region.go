package rpc

import (
	"bytes"
	"fmt"
	"net"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Region is one region of a table and where it is served.
type Region struct {
	Name  []byte // table,start,id.encoded.
	Table string // namespace:name, without the namespace where that is "default"
	ID    uint64
	Start []byte // first row
	End   []byte // first row after it; empty = the end of the table
	Addr  string // host:port of its server; empty while it has none
	State string // OPEN and others, as hbase:meta says

	offline, split bool
	replica        uint64
}

// Encoded returns the hash that names the region's folder.
func (r *Region) Encoded() string {
	s := bytes.TrimSuffix(r.Name, []byte("."))
	return string(s[bytes.LastIndexByte(s, '.')+1:])
}

// Holds reports whether the row lies in the region.
func (r *Region) Holds(row []byte) bool {
	return bytes.Compare(row, r.Start) >= 0 && (len(r.End) == 0 || bytes.Compare(row, r.End) < 0)
}

func (r *Region) specifier() message { return message(nil).varint(1, 1).bytes(2, r.Name) }

// info returns the RegionInfo message.
func (r *Region) info() message {
	return message(nil).varint(1, r.ID).bytes(2, tableName(r.Table)).bytes(3, r.Start).bytes(4, r.End).
		bool(5, r.offline).bool(6, r.split).varint(7, r.replica)
}

var metaRegion = Region{Name: []byte("hbase:meta,,1"), Table: "hbase:meta", ID: 1}

func tableName(name string) message {
	ns, q, ok := strings.Cut(name, ":")
	if !ok {
		ns, q = "default", name
	}
	return message(nil).string(1, ns).string(2, q)
}

func parseTableName(data []byte) (name string, err error) {
	var ns, q string
	err = fields(data, func(f protowire.Number, _ uint64, b []byte) error {
		switch f {
		case 1:
			ns = string(b)
		case 2:
			q = string(b)
		}
		return nil
	})
	if ns == "default" || ns == "" {
		return q, err
	}
	return ns + ":" + q, err
}

// parseRegion reads a row of hbase:meta. Nil: the row describes no region.
func parseRegion(cells []Cell) (*Region, error) {
	var r *Region
	var addr, state string
	for i := range cells {
		c := &cells[i]
		if string(c.Family) != "info" {
			continue
		}
		switch string(c.Qualifier) {
		case "regioninfo":
			data, err := pbuf(c.Value)
			if err != nil {
				return nil, err
			}
			r = &Region{Name: bytes.Clone(c.Row)}
			err = fields(data, func(f protowire.Number, v uint64, b []byte) (err error) {
				switch f {
				case 1:
					r.ID = v
				case 2:
					r.Table, err = parseTableName(b)
				case 3:
					r.Start = bytes.Clone(b)
				case 4:
					r.End = bytes.Clone(b)
				case 5:
					r.offline = v != 0
				case 6:
					r.split = v != 0
				case 7:
					r.replica = v
				}
				return err
			})
			if err != nil {
				return nil, err
			}
		case "server":
			addr = string(c.Value)
		case "state":
			state = string(c.Value)
		}
	}
	if r == nil {
		return nil, nil
	}
	if addr != "" {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return nil, corrupt(fmt.Sprintf("server %q of region %s", addr, r.Name))
		}
	}
	r.Addr, r.State = addr, state
	return r, nil
}
