package snapshot

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/rows"
	"github.com/datalink-go/datalink/plugins/mysql/internal/schema"
	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
	"github.com/datalink-go/datalink/sdk/batch"
)

// stream is a reader of a server's log that is as simple as can be: what the
// weaver is tried with.
type stream struct {
	t       *testing.T
	srv     *stack.Server
	w       *Weaver
	here    Place
	defs    *session // asks for definitions; nil: the log alone
	format  binlog.Format
	layouts map[uint64]*rows.Layout
	nextID  uint32
	iter    rows.Iter
	inTx    bool
	dirty   bool // the open transaction has an entry in out
	packets chan []byte
	model   *model
	wants   func(db, table string) bool
	out     *batch.Builder
	gtid    string
	blocks  int
	scan    *binlog.Scanner

	committed func() // after each transaction
}

func (s *stream) Dial(ctx context.Context) (*server.Conn, error) { return dialTest(ctx, s.srv) }

func dialTest(ctx context.Context, srv *stack.Server) (*server.Conn, error) {
	return server.Dial(ctx, server.Config{User: "root", TLS: server.TLS{Mode: "disabled"}}, srv.Socket)
}

func (s *stream) Position(step uint64) []byte {
	p := s.here.String()
	if step > 0 {
		p += fmt.Sprintf("~%d", step)
	}
	return []byte(p)
}

// w0 is the last step that was given.
func (s *stream) w0() uint64 {
	if s.w == nil {
		return 0
	}
	return s.w.step
}

func (s *stream) Wants(db, table string) bool { return s.wants(db, table) }

// newStream begins at the end of the server's log.
func newStream(t *testing.T, srv *stack.Server) *stream {
	t.Helper()
	s := &stream{
		t: t, srv: srv, layouts: map[uint64]*rows.Layout{}, packets: make(chan []byte, 4096), model: newModel(),
		wants: func(db, _ string) bool { return db == "s" }, out: batch.NewBuilder(batch.Limits{}),
	}
	ctx := t.Context()
	c, err := dialTest(ctx, srv)
	if err != nil {
		t.Fatal(err)
	}
	id, err := c.Identity(ctx)
	if err != nil {
		t.Fatal(err)
	}
	sess := &session{Conn: c, cfg: &Config{}, id: id, format: binlog.Format{MariaDB: c.MariaDB}}
	end, executed, err := sess.end(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s.here, s.here.GTID = end, executed
	for _, sql := range []string{"SET @master_binlog_checksum = @@global.binlog_checksum, @source_binlog_checksum = @@global.binlog_checksum, @mariadb_slave_capability = 4"} {
		if _, err := c.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	p := binary.LittleEndian.AppendUint32(nil, uint32(end.Offset))
	p = append(p, 0, 0)
	p = binary.LittleEndian.AppendUint32(p, 4711)
	if err := c.WriteCommand(0x12, append(p, end.File...)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	go func() {
		for {
			p, err := c.ReadPacket()
			if err != nil || len(p) < 2 || p[0] != 0 {
				if err == nil && server.AsError(p) != nil {
					t.Log("dump:", server.AsError(p))
				}
				close(s.packets)
				return
			}
			select {
			case s.packets <- bytes.Clone(p[1:]):
			case <-ctx.Done():
				return
			}
		}
	}()
	return s
}

// run reads until the stream is at or after until and the weaver is done.
func (s *stream) run(ctx context.Context, finished func() bool) error {
	for {
		next := Go
		if !s.inTx {
			var err error
			if next, err = s.w.Weave(ctx, s.out, s.here); err != nil {
				return err
			}
			if err := s.flush(); err != nil {
				return err
			}
			if next == More {
				continue
			}
			if next == Go && finished() {
				return nil
			}
		}
		if next == Hold {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-s.w.Ready():
			}
			continue
		}
		var ready <-chan struct{}
		if !s.inTx {
			ready = s.w.Ready()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("at %s: %w", s.here, ctx.Err())
		case <-ready:
		case <-time.After(20 * time.Millisecond):
		case p, ok := <-s.packets:
			if !ok {
				return fmt.Errorf("the dump ended")
			}
			if err := s.event(p); err != nil {
				return err
			}
		}
	}
}

func (s *stream) flush() error {
	if s.out.Empty() {
		return nil
	}
	data, err := s.out.Finish()
	if err != nil {
		return err
	}
	s.blocks++
	err = s.model.block(data)
	s.out.Reset()
	return err
}

func (s *stream) event(raw []byte) error {
	var ev binlog.Event
	at := int64(binary.LittleEndian.Uint32(raw[13:])) - int64(len(raw))
	if s.scan == nil {
		s.scan = binlog.NewScanner("log", bytes.NewReader(raw), at, s.format, 0)
	} else {
		s.scan.Reset("log", bytes.NewReader(raw), at, s.format)
	}
	sc := s.scan
	if err := sc.Next(&ev); err != nil {
		return err
	}
	switch t := ev.Type; {
	case t == binlog.FormatDescription:
		s.format = sc.Format
	case t == binlog.Rotate:
		name, err := binlog.DecodeRotate(ev.Body)
		if err != nil {
			return err
		}
		if ev.Flags&binlog.FlagArtificial == 0 {
			s.here.File, s.here.Offset = name, 4
		}
	case t == binlog.GTID || t == binlog.AnonymousGTID || t == binlog.MariaGTID:
		var g binlog.Group
		if err := binlog.DecodeGroup(&ev, nil, &g); err != nil {
			return err
		}
		s.gtid = string(g.ID)
		s.inTx = true
	case t == binlog.TableMap:
		tm, err := rows.ParseTableMap(&s.format, ev.Body)
		if err != nil {
			return err
		}
		delete(s.layouts, tm.ID)
		if !s.wants(tm.Database, tm.Table) {
			return nil
		}
		s.nextID++
		var def *schema.Table
		if s.defs != nil {
			if def, err = s.defs.definition(s.t.Context(), schema.Name{Database: tm.Database, Table: tm.Table}); err != nil {
				return err
			}
		}
		l, err := rows.NewLayout(tm, def, rows.Options{Format: &s.format, ID: s.nextID, Source: "log"})
		if err != nil {
			return err
		}
		s.layouts[tm.ID] = l
	case t.IsRows():
		id, _, err := rows.TableID(ev.Type, &s.format, ev.Body)
		if err != nil || s.layouts[id] == nil {
			return err
		}
		if err := s.iter.Open(ev.Type, &s.format, s.layouts[id], ev.Body); err != nil {
			return err
		}
		for s.iter.More() {
			if !s.dirty {
				s.dirty = true
				_ = s.out.BeginTx(batch.Tx{Begins: true, ID: s.gtid})
			}
			if err := s.iter.Next(s.out); err != nil {
				return err
			}
			if s.w.Active() {
				s.w.Row(s.iter.Layout().Schema, s.out)
			}
		}
	case t == binlog.Xid:
		return s.commit(int64(binary.LittleEndian.Uint32(raw[13:])))
	case t == binlog.Query:
		var st binlog.Statement
		if err := binlog.DecodeQuery(ev.Type, ev.Body, &st); err != nil {
			return err
		}
		text := string(st.Text)
		switch {
		case text == "BEGIN":
			return nil
		case text == "COMMIT":
		default:
			if f := strings.Fields(text); len(f) > 2 && strings.EqualFold(f[1], "TABLE") {
				_, name, _ := strings.Cut(strings.ReplaceAll(strings.Trim(f[2], ";("), "`", ""), ".")
				if strings.EqualFold(f[0], "truncate") {
					s.model.clear("s." + name)
				}
				s.w.Changed("s", name)
			}
		}
		return s.commit(int64(binary.LittleEndian.Uint32(raw[13:])))
	}
	return nil
}

// commit ends the transaction.
func (s *stream) commit(end int64) error {
	s.here.Offset = end
	if s.here.GTID != "" || !s.format.MariaDB && s.gtid != "" && !strings.HasPrefix(s.gtid, "0000") {
		sep := ""
		if s.here.GTID != "" {
			sep = ","
		}
		s.here.GTID = union(s.here.GTID + sep + s.gtid)
	}
	if s.format.MariaDB {
		s.here.GTID = ""
	}
	s.inTx = false
	if s.committed != nil {
		s.committed()
	}
	if s.dirty {
		s.dirty = false
		if err := s.out.EndTx(true, nil, s.Position(0)); err != nil {
			return err
		}
		return s.flush()
	}
	return nil
}
