package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
)

// drain asks for a file of the log and looks at the heads of its events, unchecked:
// what the server can send and the socket brings.
func drain(ctx context.Context, s *spec, m *meter) error {
	c, err := server.Dial(ctx, server.Config{User: "root"}, s.address)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Exec(ctx, "SET @master_binlog_checksum = @@global.binlog_checksum, @source_binlog_checksum = @@global.binlog_checksum, @mariadb_slave_capability = 4"); err != nil {
		return err
	}
	p := binary.LittleEndian.AppendUint32(nil, 4)
	p = binary.LittleEndian.AppendUint16(p, 0)
	p = binary.LittleEndian.AppendUint32(p, 4711)
	if err := c.WriteCommand(0x12, append(p, s.file...)); err != nil {
		return err
	}
	begun := false
	for {
		p, err := c.ReadPacket()
		if err == nil {
			err = server.AsError(p)
		}
		if err != nil {
			return err
		}
		if len(p) < 1+binlog.HeaderSize {
			return fmt.Errorf("packet of %d bytes", len(p))
		}
		t, flags := binlog.Type(p[5]), binary.LittleEndian.Uint16(p[18:])
		switch {
		case t == binlog.Rotate && flags&binlog.FlagArtificial == 0: // the file ends
			m.end(s.rows)
			return nil
		case !begun && t.IsRows():
			begun = true
			m.begin()
		}
	}
}

// selectAll reads a table by its key over several connections.
func selectAll(ctx context.Context, s *spec, m *meter) error {
	var conns []*server.Conn
	for range s.parallel {
		c, err := server.Dial(ctx, server.Config{User: "root"}, s.address)
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		conns = append(conns, c)
	}
	m.begin()
	errs := make([]error, len(conns))
	var g sync.WaitGroup
	for i, c := range conns {
		g.Go(func() {
			sql := fmt.Sprintf("SELECT * FROM %s WHERE id > %d AND id <= %d", s.table, i*s.rows/s.parallel, (i+1)*s.rows/s.parallel)
			if errs[i] = c.WriteCommand(3, []byte(sql)); errs[i] != nil {
				return
			}
			for {
				p, err := c.ReadPacket()
				if err == nil {
					err = server.AsError(p)
				}
				if err != nil {
					errs[i] = err
					return
				}
				if server.IsEnd(p) && c.Capabilities&server.CapDeprecateEOF != 0 {
					return
				}
			}
		})
	}
	g.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	m.end(s.rows)
	return nil
}
