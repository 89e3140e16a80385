package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Config are the options of the writer.
type Config struct {
	Dir string `config:"dir" required:"true" doc:"folder for the rows; one folder a table is made in it"`
}

// writer implements sdk.IdempotentWriter.
type writer struct{ dir string }

var _ sdk.IdempotentWriter = (*writer)(nil)

func open(_ sdk.Env, cfg Config) (*writer, error) {
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, sdk.Faultf(sdk.CodeInvalidConfig, "dir: %v", err)
	}
	return &writer{cfg.Dir}, nil
}

// Check implements sdk.Connector.
func (w *writer) Check(context.Context) ([]sdk.Finding, error) {
	f, err := os.CreateTemp(w.dir, ".check")
	if err != nil {
		return []sdk.Finding{{Severity: sdk.Error, Subject: w.dir, Message: err.Error(), Advice: "make the folder writable"}}, nil
	}
	return nil, errors.Join(f.Close(), os.Remove(f.Name()))
}

// Close implements sdk.Connector.
func (*writer) Close(context.Context) error { return nil }

// Claim implements sdk.Target: files cannot fence, so there is nothing to take.
func (*writer) Claim(context.Context, sdk.Execution) (sdk.Claimed, error) { return sdk.Claimed{}, nil }

// Prepare implements sdk.Target.
func (w *writer) Prepare(_ context.Context, s *batch.Schema) (sdk.Constraints, error) {
	if len(s.Key) == 0 {
		return sdk.Constraints{}, sdk.Faultf(sdk.CodeRefused, "table %s has no key to name its files by", s.Name()).Suggest("leave it out of the task's tables")
	}
	return sdk.Constraints{}, os.MkdirAll(w.folder(s), 0o700)
}

// Apply implements sdk.IdempotentWriter. Files are written beside their place and
// moved there, so that a reader never sees half a row.
func (w *writer) Apply(_ context.Context, ch *sdk.Changes) ([]sdk.RecordError, error) {
	folders := map[string]bool{}
	var refused []sdk.RecordError
	i := 0
	for _, segment := range ch.Segments {
		for k := range segment {
			c := &segment[k]
			err := w.change(c)
			var f *sdk.Fault
			switch {
			case errors.As(err, &f):
				refused = append(refused, sdk.RecordError{Index: i, Err: f})
			case err != nil:
				return nil, err
			case c.Schema != nil:
				folders[w.folder(c.Schema)] = true
			}
			i++
		}
	}
	for dir := range folders {
		if err := syncDir(dir); err != nil {
			return nil, err
		}
	}
	return refused, nil
}

func (w *writer) change(c *sdk.Change) error {
	switch c.Op {
	case sdk.Upsert:
		return w.put(c, nil)
	case sdk.Patch, sdk.Rekey:
		key := c.Key
		if c.Op == sdk.Rekey {
			key = c.OldKey
		}
		old, err := w.get(c.Schema, key)
		if errors.Is(err, fs.ErrNotExist) && c.Op == sdk.Rekey {
			old, err = w.get(c.Schema, c.Key) // it was done before
		}
		if errors.Is(err, fs.ErrNotExist) {
			return sdk.Faultf(sdk.CodeMissingRow, "the row to change is not there: %s", w.file(c.Schema, key))
		}
		if err != nil {
			return err
		}
		if err := w.put(c, old); err != nil || c.Op == sdk.Patch {
			return err
		}
		return w.remove(c.Schema, c.OldKey)
	case sdk.Remove:
		return w.remove(c.Schema, c.Key)
	case sdk.Truncate:
		if err := os.RemoveAll(w.folder(c.Schema)); err != nil {
			return err
		}
		return os.MkdirAll(w.folder(c.Schema), 0o700)
	case sdk.Alter:
		return nil // rows name their columns themselves
	}
	return sdk.Faultf(sdk.CodeUnimplemented, "operation %s is not one of this writer", c.Op)
}

// put writes the row: the columns that the image has, over those of old.
func (w *writer) put(c *sdk.Change, old map[string]*string) error {
	vals, err := c.After.Values(nil)
	if err != nil {
		return err
	}
	row := map[string]*string{}
	for i := range vals {
		col := &c.Schema.Columns[i]
		switch vals[i].State {
		case batch.Null:
			row[col.Name] = nil
		case batch.Absent, batch.Unchanged:
			row[col.Name] = old[col.Name]
		default:
			t := text(col, &vals[i])
			row[col.Name] = &t
		}
	}
	data, err := json.MarshalIndent(row, "", " ")
	if err != nil {
		return err
	}
	return replace(w.file(c.Schema, c.Key), append(data, '\n'))
}

func (w *writer) get(s *batch.Schema, key []byte) (map[string]*string, error) {
	data, err := os.ReadFile(w.file(s, key))
	if err != nil {
		return nil, err
	}
	var row map[string]*string
	return row, json.Unmarshal(data, &row)
}

func (w *writer) remove(s *batch.Schema, key []byte) error {
	if err := os.Remove(w.file(s, key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// folder escapes the table's name, which may hold anything.
func (w *writer) folder(s *batch.Schema) string {
	return filepath.Join(w.dir, strings.ReplaceAll(url.PathEscape(s.Name()), "..", "%2E%2E"))
}

// file is named by the key bytes, so that no two keys share one.
func (w *writer) file(s *batch.Schema, key []byte) string {
	return filepath.Join(w.folder(s), hex.EncodeToString(key)+".json")
}
