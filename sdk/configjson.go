package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// object is a JSON object whose keys keep their order.
type object struct {
	keys []string
	vals map[string]any
}

const maxConfigDepth = 64

// parseJSON reads one JSON value as object, []any, json.Number, string, bool or
// nil. Unlike encoding/json it notices a key that comes twice.
func parseJSON(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	v, err := jsonValue(dec, 0)
	if err == nil {
		if _, end := dec.Token(); !errors.Is(end, io.EOF) {
			err = fmt.Errorf("text after the value at byte %d", dec.InputOffset())
		}
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return v, err
}

func jsonValue(dec *json.Decoder, depth int) (any, error) {
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if depth > maxConfigDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxConfigDepth)
	}
	switch t {
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			v, err := jsonValue(dec, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = dec.Token()
		return list, err
	case json.Delim('{'):
		o := &object{vals: map[string]any{}}
		for dec.More() {
			t, err := dec.Token()
			if err != nil {
				return nil, err
			}
			key, _ := t.(string)
			if _, twice := o.vals[key]; twice {
				return nil, fmt.Errorf("key %q comes twice", key)
			}
			o.keys = append(o.keys, key)
			if o.vals[key], err = jsonValue(dec, depth+1); err != nil {
				return nil, err
			}
		}
		_, err = dec.Token()
		return o, err
	}
	return t, nil
}

// kindOf names what a JSON value is, without its contents.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing (null)"
	case bool:
		return "a truth value"
	case json.Number:
		return "a number"
	case string:
		return "text"
	case []any:
		return fmt.Sprintf("a list of %d", len(v))
	case *object:
		return "an object"
	}
	return fmt.Sprintf("%T", v)
}

// show prints a JSON value for a message, short.
func show(v any) string {
	switch v := v.(type) {
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return shorten(string(v))
	case string:
		return strconv.Quote(shorten(v))
	}
	return kindOf(v)
}

func shorten(s string) string {
	const most = 60
	n := 0
	for i := range s {
		if n++; n > most {
			return s[:i] + "…"
		}
	}
	return s
}
