package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Check looks at the path and the file there. It writes nothing.
func (w *Writer) Check(ctx context.Context) ([]sdk.Finding, error) {
	path, err := filepath.Abs(w.cfg.Path)
	if err != nil {
		return nil, err
	}
	var out []sdk.Finding
	add := func(s sdk.Severity, subject, message, advice string) {
		out = append(out, sdk.Finding{Severity: s, Subject: subject, Message: message, Advice: advice})
	}
	dir := filepath.Dir(path)
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		add(sdk.Error, dir, "the directory of the target file is not there", "create it, or correct the url")
		return out, nil
	}
	if err := syscall.Access(dir, 2|1); err != nil {
		add(sdk.Error, dir, fmt.Sprintf("cannot write the directory of the target file, where SQLite keeps its log: %v", err), "give the user of the plugin write access")
	}
	st, err := os.Stat(path)
	if os.IsNotExist(err) {
		add(sdk.Info, path, "the file is not there and will be created", "")
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		add(sdk.Error, path, "is not a file", "name a SQLite database, or a file that does not exist")
		return out, nil
	}
	if err := syscall.Access(path, 4|2); err != nil {
		add(sdk.Error, path, fmt.Sprintf("cannot read and write the target file: %v", err), "give the user of the plugin access")
		return out, nil
	}
	c, err := open(ctx, &w.cfg, readOnly)
	if leftOver(err) {
		add(sdk.Info, path, "a writer was killed while it changed the file; what it left is taken back at the next claim", "")
		return out, nil
	}
	if err != nil {
		add(sdk.Error, path, fmt.Sprintf("cannot open the target: %v", err), "name a SQLite database, or a file that does not exist")
		return out, nil
	}
	defer c.close()
	mode, err := c.query(ctx, "PRAGMA journal_mode")
	switch {
	case err != nil:
		add(sdk.Error, path, fmt.Sprintf("cannot read the target: %v", err), "name a SQLite database, or a file that does not exist")
		return out, nil
	case text(mode[0][0]) != "wal" && st.Size() > 0:
		add(sdk.Info, path, fmt.Sprintf("journal mode is %v; the writer changes it to wal for good", mode[0][0]), "")
	}
	rows, err := c.query(ctx, "SELECT task, writer, execution_id, epoch, updated_at, task_uid, store_uid FROM datalink_progress WHERE lane = -1 AND NOT released ORDER BY task, writer")
	if err == nil {
		for _, r := range rows {
			add(sdk.Info, path, fmt.Sprintf("holds progress of task %v, writer %v: execution %v, epoch %v, at %v, task uid %v, store %v", r[0], r[1], r[2], r[3], r[4], r[5], r[6]),
				"a task of that name with another uid or of another store is refused unless it takes over: --take-over")
		}
	}
	return out, nil
}

// Discover lists the tables of the target, without the writer's own.
func (w *Writer) Discover(ctx context.Context, out func(*batch.Schema) error) error {
	c, err := open(ctx, &w.cfg, readOnly)
	if err != nil {
		return w.fault("discover", err)
	}
	defer c.close()
	rows, err := c.query(ctx, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE 'datalink\\_%' ESCAPE '\\' ORDER BY name")
	if err != nil {
		return w.fault("discover", err)
	}
	for i, r := range rows {
		t, err := describe(c, text(r[0]))
		if err != nil {
			return w.fault("discover", err)
		}
		if err := out(t.schema(uint32(i + 1))); err != nil {
			return err
		}
	}
	return nil
}

// schema describes the table as a source would; types follow from affinity.
func (t *table) schema(id uint32) *batch.Schema {
	s := &batch.Schema{ID: id, Table: t.name}
	for _, c := range t.columns {
		col := batch.Column{Name: c.name, Native: c.declared}
		switch affinityOf(c.declared, t.strict) {
		case affInteger:
			col.Type = batch.Int64
		case affReal:
			col.Type = batch.Float64
		case affText:
			col.Type = batch.String
		default:
			col.Type = batch.Bytes
		}
		if !c.notNull && c.keyPlace == 0 {
			col.Flags |= batch.Nullable
		}
		s.Columns = append(s.Columns, col)
	}
	if len(t.uniques) > 0 && t.uniques[0].primary {
		s.Key, s.PrimaryKey = t.uniques[0].columns, true
	}
	return s
}
