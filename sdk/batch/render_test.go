package batch

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// render turns a block into the JSON that testdata/vectors holds and that
// testdata/decode.py prints.

type doc = map[string]any

func renderBlock(b *Block) (doc, error) {
	out := doc{"events": []any{}, "transactions": []any{}, "schemas": []any{}}
	for _, id := range b.Definitions() {
		out["schemas"] = append(out["schemas"].([]any), renderSchema(b.reg.Get(id)))
	}
	for i := range b.Txs {
		out["transactions"] = append(out["transactions"].([]any), renderTx(&b.Txs[i]))
	}
	for i := range b.Len() {
		var e Event
		if err := b.Event(i, &e); err != nil {
			return nil, err
		}
		d, err := renderEvent(&e)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", i, err)
		}
		out["events"] = append(out["events"].([]any), d)
	}
	return out, nil
}

func renderTx(t *Tx) doc {
	covers := []any{}
	for _, c := range t.Covers {
		covers = append(covers, doc{"point": c.Point, "upto": c.Upto})
	}
	return doc{
		"begins": t.Begins, "ends": t.Ends, "first": t.First, "count": t.Count, "ordinal": t.Ordinal, "start": hex.EncodeToString(t.Start),
		"end": hex.EncodeToString(t.End), "committed": t.Committed, "id": t.ID, "covers": covers,
	}
}

func renderEvent(e *Event) (doc, error) {
	out := doc{"kind": e.Kind.String(), "ordinal": e.Ordinal}
	if e.Schema != nil {
		out["schema"] = e.Schema.ID
	}
	for name, im := range map[string]Image{"before": e.Before, "after": e.After} {
		if im.IsZero() {
			continue
		}
		values, err := im.Values(nil)
		if err != nil {
			return nil, err
		}
		row := []any{}
		for i := range values {
			v, err := renderValue(&im.schema.Columns[i], &values[i])
			if err != nil {
				return nil, err
			}
			row = append(row, v)
		}
		out[name] = row
	}
	for name, key := range map[string][]byte{"key": e.Key, "oldKey": e.OldKey} {
		if key == nil {
			continue
		}
		values, err := e.Schema.KeyValues(key)
		if err != nil {
			return nil, err
		}
		row := []any{}
		for i := range values {
			v, err := renderValue(&e.Schema.Columns[e.Schema.Key[i]], &values[i])
			if err != nil {
				return nil, err
			}
			row = append(row, v)
		}
		out[name] = row
	}
	if e.Kind.IsRow() {
		return out, nil
	}
	body, err := renderBody(e)
	out["body"] = body
	return out, err
}

func renderBody(e *Event) (any, error) {
	switch e.Kind {
	case DDL:
		c, err := e.Change()
		if err != nil {
			return nil, err
		}
		out := doc{
			"kind": c.Kind, "namespace": c.Namespace, "table": c.Table, "oldName": c.OldName, "after": c.After, "statement": c.Statement,
			"default": c.Default,
		}
		if c.Column != nil {
			out["column"] = renderColumn(c.Column)
		}
		if c.Index != nil {
			out["index"] = doc{"name": c.Index.Name, "columns": places(c.Index.Columns)}
		}
		if c.Schema != nil {
			out["schema"] = renderSchema(c.Schema)
		}
		return out, nil
	case Range:
		r, err := e.KeyRange()
		if err != nil {
			return nil, err
		}
		return doc{
			"lo": hex.EncodeToString(r.Lo), "hi": hex.EncodeToString(r.Hi), "low": hex.EncodeToString(r.Low), "high": hex.EncodeToString(r.High),
			"last": r.Last, "keys": hexes(r.Keys), "kept": hexes(r.Kept),
		}, nil
	case State:
		s, err := e.StateItem()
		if err != nil {
			return nil, err
		}
		return doc{"key": s.Key, "version": s.Version, "value": hex.EncodeToString(s.Value), "deleted": s.Deleted}, nil
	case Heartbeat:
		us, _ := binary.Varint(e.Body())
		return us, nil
	case Origin:
		return string(e.Body()), nil
	}
	return nil, nil
}

func hexes(v [][]byte) []any {
	out := []any{}
	for _, b := range v {
		out = append(out, hex.EncodeToString(b))
	}
	return out
}

func places(v []int) []any {
	out := []any{}
	for _, i := range v {
		out = append(out, i)
	}
	return out
}

func texts(v []string) []any {
	out := []any{}
	for _, s := range v {
		out = append(out, s)
	}
	return out
}

func renderColumn(c *Column) doc {
	return doc{
		"name": c.Name, "type": c.Type.String(), "elem": uint8(c.Elem), "native": c.Native, "length": c.Length, "precision": c.Precision,
		"scale": c.Scale, "charset": c.Charset, "collation": c.Collation, "flags": uint32(c.Flags), "srid": c.SRID, "values": texts(c.Values),
		"default": c.Default,
	}
}

func renderSchema(s *Schema) doc {
	cols, uniques, keys := []any{}, []any{}, []any{}
	for i := range s.Columns {
		cols = append(cols, renderColumn(&s.Columns[i]))
	}
	for _, u := range s.Uniques {
		uniques = append(uniques, doc{"name": u.Name, "columns": places(u.Columns)})
	}
	for _, k := range s.ForeignKeys {
		keys = append(keys, doc{
			"name": k.Name, "columns": places(k.Columns), "refSchema": k.RefSchema, "refTable": k.RefTable, "refColumns": texts(k.RefColumns),
			"onDelete": k.OnDelete, "onUpdate": k.OnUpdate,
		})
	}
	return doc{
		"id": s.ID, "version": s.Version, "source": s.Source, "namespace": s.Namespace, "table": s.Table, "primaryKey": s.PrimaryKey,
		"positional": s.Positional, "columns": cols, "key": places(s.Key), "uniques": uniques, "foreignKeys": keys,
	}
}

func renderValue(c *Column, v *Value) (any, error) {
	switch v.State {
	case Null:
		return nil, nil
	case Absent, Unchanged:
		return doc{v.State.String(): true}, nil
	case Raw:
		name, data, _ := v.Raw()
		return doc{"raw": name, "bytes": hex.EncodeToString(data)}, nil
	}
	return renderPresent(c, v)
}

func renderPresent(c *Column, v *Value) (any, error) {
	le := binary.LittleEndian
	b := v.Bytes()
	switch c.Type {
	case Bool:
		return v.Uint64() == 1, nil
	case Int8, Int16, Int32, Int64, Time, Timestamp:
		return v.Int64(), nil
	case Uint8, Uint16, Uint32, Uint64, Year:
		return v.Uint64(), nil
	case Float32, Float64:
		return fmt.Sprintf("bits:%x", le.AppendUint64(nil, v.num)), nil
	case Date:
		return string(AppendDate(nil, int32(v.Int64()))), nil
	case DateTime:
		return string(AppendDateTime(nil, v.Int64(), 6)), nil
	case Bytes, Bit, UUID:
		return hex.EncodeToString(b), nil
	case Native:
		if c.Flags&TextValue == 0 {
			return hex.EncodeToString(b), nil
		}
	case Geometry:
		return doc{"srid": le.Uint32(b), "wkb": hex.EncodeToString(b[4:])}, nil
	case Interval:
		return doc{"months": int32(le.Uint32(b)), "days": int32(le.Uint32(b[4:])), "micros": int64(le.Uint64(b[8:]))}, nil
	case TimeTZ:
		return doc{"micros": int64(le.Uint64(b)), "offset": int32(le.Uint32(b[8:]))}, nil
	case Vector:
		out := []any{}
		for ; len(b) >= 4; b = b[4:] {
			out = append(out, fmt.Sprintf("bits:%x", b[:4]))
		}
		return out, nil
	case Map:
		pairs, err := DecodeMap(b)
		out := []any{}
		for _, p := range pairs {
			var v any
			if p.Value != nil {
				v = string(p.Value)
			}
			out = append(out, []any{string(p.Key), v})
		}
		return out, err
	case Array:
		dims, values, err := DecodeArray(b, c.Elem)
		if err != nil {
			return nil, err
		}
		d, elems := []any{}, []any{}
		for _, dim := range dims {
			d = append(d, []any{dim.Len, dim.Lower})
		}
		for i := range values {
			e, err := renderValue(&Column{Type: c.Elem}, &values[i])
			if err != nil {
				return nil, err
			}
			elems = append(elems, e)
		}
		return doc{"dims": d, "elements": elems}, nil
	}
	return string(b), nil
}
