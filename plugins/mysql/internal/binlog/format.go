package binlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// Format is what a format description event says about the events after it.
type Format struct {
	Server    string // version as the server writes it
	MariaDB   bool
	Checksum  bool // events end in a CRC32
	aware     bool // the format description itself ends in one in any case
	Created   uint32
	ServerID  uint32
	InUse     bool // the file was not closed
	postSizes []byte
}

// PostHeader returns the size of the part of fixed size that follows the header
// of events of type t, or def where the format does not tell.
func (f *Format) PostHeader(t Type, def int) int {
	if i := int(t) - 1; i >= 0 && i < len(f.postSizes) && f.postSizes[i] != 0 {
		return int(f.postSizes[i])
	}
	return def
}

// TableIDSize returns the size of table ids in events of type t.
func (f *Format) TableIDSize(t Type) int {
	if f.PostHeader(t, 8) == 6 {
		return 4
	}
	return 6
}

func (f *Format) decode(raw []byte, place string) error {
	body := raw[HeaderSize:]
	if len(body) < 57 {
		return fmt.Errorf("%w: %s, format description event of %d bytes", ErrCorrupt, place, len(raw))
	}
	if v := binary.LittleEndian.Uint16(body); v != 4 {
		return fmt.Errorf("%w: %s, binary log of format %d, this reader reads format 4 (MySQL 5.0 and later, MariaDB)", ErrCorrupt, place, v)
	}
	if n := body[56]; n != HeaderSize {
		return fmt.Errorf("%w: %s, event headers of %d bytes, expected %d", ErrCorrupt, place, n, HeaderSize)
	}
	version := string(bytes.TrimRight(body[2:52], "\x00"))
	*f = Format{
		Server: version, MariaDB: strings.Contains(strings.ToLower(version), "mariadb"),
		Created: binary.LittleEndian.Uint32(raw), ServerID: binary.LittleEndian.Uint32(raw[5:]),
		InUse: binary.LittleEndian.Uint16(raw[17:])&FlagInUse != 0,
	}
	sizes := body[57:]
	if f.aware = hasChecksums(version, f.MariaDB); f.aware {
		if len(sizes) < 5 {
			return fmt.Errorf("%w: %s, format description event of %d bytes lacks its checksum kind", ErrCorrupt, place, len(raw))
		}
		switch alg := sizes[len(sizes)-5]; alg {
		case 0:
		case 1:
			f.Checksum = true
		default:
			return fmt.Errorf("%w: %s, checksums of kind %d, known are 0 (none) and 1 (CRC32)", ErrCorrupt, place, alg)
		}
		sizes = sizes[:len(sizes)-5]
	}
	f.postSizes = bytes.Clone(sizes)
	return nil
}

// hasChecksums reports whether servers of that version end the format
// description with the checksum kind: MySQL from 5.6.1, MariaDB from 5.3.0.
func hasChecksums(version string, maria bool) bool {
	var v [3]int
	rest := version
	for i := range v {
		n := 0
		for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
			n++
		}
		v[i], _ = strconv.Atoi(rest[:n])
		if n == len(rest) {
			break
		}
		rest = rest[n+1:]
	}
	want := [3]int{5, 6, 1}
	if maria {
		want = [3]int{5, 3, 0}
	}
	for i := range v {
		if v[i] != want[i] {
			return v[i] > want[i]
		}
	}
	return true
}
