package daemon

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/host/api"
	"github.com/datalink-go/datalink/sdk/batch"
)

func showLetter(writer string, d *coordination.DeadLetter) (*api.DeadLetter, error) {
	l := &api.DeadLetter{
		Writer: writer, Number: d.Number, Table: d.Table, Code: d.Fault.Code, Message: d.Fault.Message, Advice: d.Fault.Suggestion,
		Position: printed(d.Position), At: d.At, Key: printable(d.Key),
	}
	e, err := recordOf(d)
	if err != nil {
		return l, fmt.Errorf("record of dead letter %d: %w", d.Number, err)
	}
	l.Kind = e.Kind.String()
	if l.Before, err = rowOf(e.Schema, e.Before); err != nil {
		return l, err
	}
	if l.After, err = rowOf(e.Schema, e.After); err != nil {
		return l, err
	}
	if len(e.Schema.Key) > 0 {
		row := l.After
		if row == nil {
			row = l.Before
		}
		l.Key = ""
		for i, k := range e.Schema.Key {
			if i > 0 {
				l.Key += ", "
			}
			name := e.Schema.Columns[k].Name
			v := "NULL"
			if row[name] != nil {
				v = *row[name]
			}
			l.Key += name + "=" + v
		}
	}
	return l, nil
}

func recordOf(d *coordination.DeadLetter) (*batch.Event, error) {
	var b batch.Block
	if err := b.Decode(d.Record, batch.NewRegistry(), batch.Limits{}); err != nil {
		return nil, err
	}
	e := new(batch.Event)
	if b.Len() != 1 {
		return nil, fmt.Errorf("it holds %d events, expected 1", b.Len())
	}
	return e, b.Event(0, e)
}

// rowOf returns an image as text by column; columns that are not in it are left
// out.
func rowOf(s *batch.Schema, im batch.Image) (map[string]*string, error) {
	if im.IsZero() {
		return nil, nil
	}
	vals, err := im.Values(nil)
	if err != nil {
		return nil, err
	}
	out := map[string]*string{}
	for i := range vals {
		switch v := &vals[i]; v.State {
		case batch.Null:
			out[s.Columns[i].Name] = nil
		case batch.Absent, batch.Unchanged:
		default:
			text := textOf(&s.Columns[i], v)
			out[s.Columns[i].Name] = &text
		}
	}
	return out, nil
}

func textOf(c *batch.Column, v *batch.Value) string {
	if _, data, ok := v.Raw(); ok {
		return printable(data)
	}
	if text, ok := batch.AppendText(nil, c, v); ok {
		return printable(text)
	}
	return printable(v.Bytes())
}

func printable(b []byte) string {
	if utf8.Valid(b) && !bytes.ContainsAny(b, "\x00") {
		return string(b)
	}
	return fmt.Sprintf("0x%X", b)
}
