package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Table describes a table. Values are attributes as the shell shows them, such as
// KEEP_DELETED_CELLS of a family; Config is configuration set on it.
type Table struct {
	Name     string
	Values   map[string]string
	Families []Family
}

// Family describes a column family.
type Family struct {
	Name   string
	Values map[string]string
	Config map[string]string
}

// Family returns the family of that name, nil where there is none.
func (t *Table) Family(name string) *Family {
	for i := range t.Families {
		if t.Families[i].Name == name {
			return &t.Families[i]
		}
	}
	return nil
}

// Setting returns what holds for a family: its own value or configuration, or the
// table's.
func (t *Table) Setting(family, key string) (string, bool) {
	if f := t.Family(family); f != nil {
		if v, ok := f.Values[key]; ok {
			return v, true
		}
		if v, ok := f.Config[key]; ok {
			return v, true
		}
	}
	v, ok := t.Values[key]
	return v, ok
}

func (t *Table) message() message {
	m := message(nil).bytes(1, tableName(t.Name))
	for k, v := range t.Values {
		m = m.bytes(2, appendPair([]byte(k), []byte(v)))
	}
	for i := range t.Families {
		f := &t.Families[i]
		fm := message(nil).string(1, f.Name)
		for k, v := range f.Values {
			fm = fm.bytes(2, appendPair([]byte(k), []byte(v)))
		}
		for k, v := range f.Config {
			fm = fm.bytes(3, appendPair([]byte(k), []byte(v)))
		}
		m = m.bytes(3, fm)
	}
	return m
}

func parseTable(data []byte) (*Table, error) {
	t := &Table{Values: map[string]string{}}
	put := func(m map[string]string, b []byte) error {
		var p pair
		err := p.parse(b)
		m[string(p.first)] = string(p.second)
		return err
	}
	err := fields(data, func(f protowire.Number, _ uint64, b []byte) (err error) {
		switch f {
		case 1:
			t.Name, err = parseTableName(b)
		case 2:
			err = put(t.Values, b)
		case 3:
			fam := Family{Values: map[string]string{}, Config: map[string]string{}}
			err = fields(b, func(f protowire.Number, _ uint64, b []byte) error {
				switch f {
				case 1:
					fam.Name = string(b)
				case 2:
					return put(fam.Values, b)
				case 3:
					return put(fam.Config, b)
				}
				return nil
			})
			t.Families = append(t.Families, fam)
		case 4:
			err = put(t.Values, b)
		}
		return err
	})
	return t, err
}

// onMaster makes a call of the active master.
func (c *Client) onMaster(ctx context.Context, method string, param message) (msg []byte, err error) {
	err = c.retry(ctx, method, func(ctx context.Context) error {
		addr, err := c.reg.master(ctx)
		if err != nil {
			return err
		}
		rep, err := c.once(ctx, addr, masterService, &request{method: method, param: param})
		msg = rep.msg
		return err
	})
	return msg, err
}

// procedure makes a call that starts a procedure and waits for its end.
func (c *Client) procedure(ctx context.Context, method string, param message) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	msg, err := c.onMaster(ctx, method, param)
	if err != nil {
		return err
	}
	id, ok := uint64(0), false
	if err := fields(msg, func(f protowire.Number, v uint64, _ []byte) error {
		if f == 1 {
			id, ok = v, true
		}
		return nil
	}); err != nil || !ok {
		return err
	}
	for n := 0; ; n++ {
		msg, err := c.onMaster(ctx, "getProcedureResult", message(nil).varint(1, id))
		if err != nil {
			return err
		}
		state, failed := uint64(0), error(nil)
		if err := fields(msg, func(f protowire.Number, v uint64, b []byte) error {
			switch f {
			case 1:
				state = v
			case 5:
				failed = foreignException(b)
			}
			return nil
		}); err != nil {
			return err
		}
		switch {
		case failed != nil:
			return fmt.Errorf("%s: %w", method, failed)
		case state != 1:
			return nil
		}
		if err := backoff(ctx, min(n, 4)); err != nil {
			return fmt.Errorf("%s: procedure %d is still running: %w", method, id, err)
		}
	}
}

// foreignException reads a ForeignExceptionMessage: field 2 is a
// GenericExceptionMessage with class and message.
func foreignException(data []byte) error {
	e := &RemoteError{Class: "Exception", DoNotRetry: true}
	_ = fields(data, func(f protowire.Number, _ uint64, b []byte) error {
		if f != 2 {
			return nil
		}
		return fields(b, func(f protowire.Number, _ uint64, b []byte) error {
			switch f {
			case 1:
				e.Class = string(b)
			case 2:
				e.Message = string(b)
			}
			return nil
		})
	})
	return e
}

// Describe returns a table's settings; ErrNoTable where there is none.
func (c *Client) Describe(ctx context.Context, table string) (*Table, error) {
	msg, err := c.onMaster(ctx, "GetTableDescriptors", message(nil).bytes(1, tableName(table)).bool(3, true))
	if err != nil {
		return nil, err
	}
	var t *Table
	err = fields(msg, func(f protowire.Number, _ uint64, b []byte) (err error) {
		if f == 1 {
			t, err = parseTable(b)
		}
		return err
	})
	if err == nil && t == nil {
		err = fmt.Errorf("describe %s: %w", table, ErrNoTable)
	}
	return t, err
}

// Tables returns the names of all tables but those of HBase itself.
func (c *Client) Tables(ctx context.Context) (names []string, err error) {
	msg, err := c.onMaster(ctx, "GetTableNames", nil)
	if err != nil {
		return nil, err
	}
	err = fields(msg, func(f protowire.Number, _ uint64, b []byte) error {
		if f == 1 {
			n, err := parseTableName(b)
			if err != nil {
				return err
			}
			names = append(names, n)
		}
		return nil
	})
	return names, err
}

// Create makes a table, split at the given rows. It is no error if the table is
// there: another may have made it meanwhile.
func (c *Client) Create(ctx context.Context, t *Table, splits ...[]byte) error {
	if ns, _, ok := strings.Cut(t.Name, ":"); ok {
		err := c.procedure(ctx, "CreateNamespace", message(nil).bytes(1, message(nil).string(1, ns)))
		if err != nil && !isClass(err, "NamespaceExistException") {
			return err
		}
	}
	param := message(nil).bytes(1, t.message())
	for _, s := range splits {
		param = param.bytes(2, s)
	}
	if err := c.procedure(ctx, "CreateTable", param); err != nil && !isClass(err, "TableExistsException") {
		return fmt.Errorf("create table %s: %w", t.Name, err)
	}
	return nil
}

// Modify gives a table other settings.
func (c *Client) Modify(ctx context.Context, t *Table) error {
	return c.procedure(ctx, "ModifyTable", message(nil).bytes(1, tableName(t.Name)).bytes(2, t.message()))
}

// Disable takes a table off.
func (c *Client) Disable(ctx context.Context, table string) error {
	defer c.cache.forget(table)
	return c.procedure(ctx, "DisableTable", message(nil).bytes(1, tableName(table)))
}

// Delete removes a table that was disabled.
func (c *Client) Delete(ctx context.Context, table string) error {
	defer c.cache.forget(table)
	return c.procedure(ctx, "DeleteTable", message(nil).bytes(1, tableName(table)))
}

func isClass(err error, simple string) bool {
	var re *RemoteError
	return errors.As(err, &re) && (re.simple() == simple || strings.Contains(re.Message, simple))
}

// Flush writes a table's memory to files.
func (c *Client) Flush(ctx context.Context, table string) error {
	return c.eachRegion(ctx, table, "FlushRegion", func(r *Region) message { return message(nil).bytes(1, r.specifier()) }, nil)
}

// MajorCompact rewrites all files of a table and waits until that is done.
func (c *Client) MajorCompact(ctx context.Context, table string) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	err := c.eachRegion(ctx, table, "CompactRegion", func(r *Region) message { return message(nil).bytes(1, r.specifier()).bool(2, true) }, nil)
	for n := 0; err == nil; n++ {
		busy := false
		err = c.eachRegion(ctx, table, "GetRegionInfo", func(r *Region) message { return message(nil).bytes(1, r.specifier()).bool(2, true) }, func(msg []byte) error {
			return fields(msg, func(f protowire.Number, v uint64, _ []byte) error {
				busy = busy || f == 2 && v != 0
				return nil
			})
		})
		if err == nil && !busy {
			return nil
		}
		if err == nil {
			err = backoff(ctx, min(n, 4))
		}
	}
	return fmt.Errorf("major compaction of %s: %w", table, err)
}

func (c *Client) eachRegion(ctx context.Context, table, method string, param func(*Region) message, got func([]byte) error) error {
	regions, err := c.Regions(ctx, table)
	if err != nil {
		return err
	}
	for _, r := range regions {
		rep, err := c.onRegion(ctx, table, r.Start, method, adminService, func(r *Region) *request {
			return &request{method: method, param: param(r)}
		})
		if err != nil {
			return err
		}
		if got != nil {
			if err := got(rep.msg); err != nil {
				return err
			}
		}
	}
	return nil
}

// Split divides the region that holds the row, at the row.
func (c *Client) Split(ctx context.Context, table string, row []byte) error {
	r, err := c.fresh(ctx, table, row)
	if err != nil {
		return err
	}
	return c.procedure(ctx, "SplitRegion", message(nil).bytes(1, r.info()).bytes(2, row))
}

// Merge joins neighbouring regions.
func (c *Client) Merge(ctx context.Context, regions ...*Region) error {
	var param message
	for _, r := range regions {
		param = param.bytes(1, message(nil).varint(1, 2).string(2, r.Encoded()))
	}
	return c.procedure(ctx, "MergeTableRegions", param.bool(3, true))
}

// Move puts a region on another server, of the master's choice without one given,
// and waits until it is there.
func (c *Client) Move(ctx context.Context, r *Region, to *ServerName) error {
	param := message(nil).bytes(1, message(nil).varint(1, 2).string(2, r.Encoded()))
	if to != nil {
		param = param.bytes(2, to.message())
	}
	_, err := c.onMaster(ctx, "MoveRegion", param)
	return err
}

// fresh looks a region up in hbase:meta, whatever the cache says.
func (c *Client) fresh(ctx context.Context, table string, row []byte) (*Region, error) {
	regions, err := c.Regions(ctx, table)
	if err != nil {
		return nil, err
	}
	for _, r := range regions {
		if r.Holds(row) {
			return r, nil
		}
	}
	return nil, fmt.Errorf("row %q of %s: %w", row, table, ErrNoTable)
}

// StopServer ends a region server.
func (c *Client) StopServer(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := c.once(ctx, addr, adminService, &request{method: "StopServer", param: message(nil).string(1, "asked for")})
	return err
}
