package reader

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/schema"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// tableKey begins the keys of state items that hold the layouts of a table,
// databaseKey of those that hold the character set of a database.
const (
	tableKey    = "table:"
	databaseKey = "database:"
)

// remember puts the layouts that a statement changed into the stream.
func (r *Reader) remember(out *batch.Builder, eff *schema.Effect) error {
	keep := func(n schema.Name) error {
		r.begin1(out)
		return r.stateOf(out, n)
	}
	for i := range eff.Changes {
		c := &eff.Changes[i]
		if c.Kind == schema.Renamed {
			if err := keep(c.Old); err != nil {
				return err
			}
		}
		if err := keep(c.Table); err != nil {
			return err
		}
	}
	if eff.Charset != "" {
		d := r.hist.Database(eff.Charset)
		value, err := json.Marshal(d)
		if err != nil {
			return err
		}
		r.begin1(out)
		return out.StateItem(&batch.StateItem{Key: databaseKey + eff.Charset, Version: uint64(r.hist.Generation()) + 1, Value: value})
	}
	return nil
}

// restore brings the layouts of tables to what they were at the place where
// reading begins: from the state, where there is some, else from the statements
// in the files before.
func (r *Reader) restore(ctx context.Context, state []batch.StateItem) error {
	at := r.coveredFrom()
	used := false
	for i := range state {
		it := &state[i]
		if it.Deleted {
			continue
		}
		bad := func(err error) error {
			return sdk.Faultf(sdk.CodeInvalidPosition, "reader state %q: %v", it.Key, err).Suggest("drop the task's progress, or restore the state that belongs to it")
		}
		if name, ok := strings.CutPrefix(it.Key, onlineKey); ok {
			if err := r.restoreOnline(name, it.Value, at); err != nil {
				return bad(err)
			}
		} else if strings.HasPrefix(it.Key, doubtKey) {
			if err := r.restoreDoubt(it); err != nil {
				return bad(err)
			}
		} else if name, ok := strings.CutPrefix(it.Key, tableKey); ok {
			var v []schema.Version
			if err := json.Unmarshal(it.Value, &v); err != nil {
				return bad(err)
			}
			db, table, _ := strings.Cut(name, ".")
			if len(v) > 0 {
				db, table = v[0].Name.Database, v[0].Name.Table
			}
			r.hist.Restore(schema.Name{Database: db, Table: table}, v, it.Version, at)
			used = true
		} else if db, ok := strings.CutPrefix(it.Key, databaseKey); ok {
			var d schema.Default
			if err := json.Unmarshal(it.Value, &d); err != nil {
				return bad(err)
			}
			r.hist.RestoreDatabase(db, d)
			used = true
		}
	}
	r.known = used
	if used || r.live != nil {
		return nil
	}
	return r.warm(ctx)
}

// warm reads the statements of the log up to the place where reading begins.
func (r *Reader) warm(ctx context.Context) error {
	for i := 0; i <= r.file; i++ {
		if err := r.warmFile(ctx, i); err != nil {
			return r.fault(err)
		}
	}
	return nil
}

func (r *Reader) warmFile(ctx context.Context, i int) error {
	f := &r.files[i]
	src, format, end, err := openFormat(f, int(r.cfg.MaxEvent))
	if err != nil {
		return err
	}
	_ = src.Close()
	if i == r.file && end >= r.here.off {
		return nil
	}
	if src, err = f.OpenAt(end); err != nil {
		return err
	}
	defer src.Close()
	s := binlog.NewScanner(f.Name(), src, end, format, int(r.cfg.MaxEvent))
	var h binlog.Header
	var ev binlog.Event
	var g binlog.Group
	for n := 0; i < r.file || s.Offset() < r.here.off; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := s.Peek(&h); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if h.Type != binlog.Query && h.Type != binlog.QueryCompressed && h.Type != binlog.MariaGTID {
			if err := s.Skip(&h); err != nil {
				return err
			}
			continue
		}
		if err := s.Next(&ev); err != nil {
			return err
		}
		if ev.Type == binlog.MariaGTID {
			if err := binlog.DecodeGroup(&ev, g.ID[:0], &g); err != nil {
				return fmt.Errorf("%s: %w", s.Place(ev.At), err)
			}
			continue
		}
		var st binlog.Statement
		if err := binlog.DecodeQuery(ev.Type, ev.Body, &st); err != nil {
			return fmt.Errorf("%s: %w", s.Place(ev.At), err)
		}
		if v, _ := binlog.Control(st.Text); v != binlog.Other || g.Pending {
			continue
		}
		r.hist.SetPlace(schema.Place{File: f.Number, Offset: ev.End})
		r.hist.Apply(statementOf(&st, &format))
	}
	return nil
}
