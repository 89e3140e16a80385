package mask

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Plugin describes the transform.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Name:      "mask-go",
		Version:   "1.0.0",
		Summary:   "Masks text columns, in Go",
		Transform: sdk.TransformOf(New),
	}
}

// Config is the configuration of one mask.
type Config struct {
	Columns []string   `config:"columns" required:"true" doc:"columns to mask, each as namespace.table.column"`
	Mode    string     `config:"mode" default:"stars" enum:"stars|hash" doc:"stars: as many stars as characters; hash: hexadecimal HMAC-SHA-256, cut to the column's length"`
	Keep    int        `config:"keep" default:"0" min:"0" unit:"characters" doc:"how many of the last characters stay readable with mode stars, half of them at most"`
	Secret  sdk.Secret `config:"secret" doc:"key of the hash, 16 bytes or more"`
}

// Validate checks what concerns several options.
func (c Config) Validate() []sdk.Problem {
	var all []sdk.Problem
	for i, name := range c.Columns {
		if at := strings.LastIndexByte(name, '.'); at <= 0 || at == len(name)-1 {
			all = append(all, sdk.Problem{
				Path: fmt.Sprintf("columns[%d]", i), Message: "is no name of a column", Found: strconv.Quote(name), Expected: "namespace.table.column",
			})
		}
	}
	if n := len(c.Secret.Reveal()); c.Mode == "hash" && n < 16 {
		all = append(all, sdk.Problem{
			Path: "secret", Message: "is too short: what a hash hides can be guessed without it", Found: fmt.Sprintf("%d bytes", n), Expected: "16 or more",
		})
	}
	return all
}

var _ sdk.Transform = (*Mask)(nil)

// Mask is the transform.
type Mask struct {
	columns map[string][]string // by table
	keep    int
	mac     hash.Hash // nil = stars
	places  map[*batch.Schema][]bool
	schema  *batch.Schema // of the last row
	edit    []bool        // its masked columns
	sum     []byte
}

// New makes a Mask.
func New(_ sdk.Env, c Config) (*Mask, error) {
	m := &Mask{columns: map[string][]string{}, keep: c.Keep, places: map[*batch.Schema][]bool{}}
	for _, name := range c.Columns {
		i := strings.LastIndexByte(name, '.')
		m.columns[name[:i]] = append(m.columns[name[:i]], name[i+1:])
	}
	if c.Mode == "hash" {
		m.mac = hmac.New(sha256.New, []byte(c.Secret.Reveal()))
	}
	return m, nil
}

// Check finds nothing: there is no store.
func (m *Mask) Check(context.Context) ([]sdk.Finding, error) { return nil, nil }

// Close ends the instance.
func (m *Mask) Close(context.Context) error { return nil }

// Schema refuses a table whose columns cannot be masked as told: to let them
// pass as they are would give away what is to be hidden.
func (m *Mask) Schema(_ context.Context, in *batch.Schema) (*batch.Schema, error) {
	if len(m.columns[in.Name()]) == 0 {
		return sdk.Pass, nil
	}
	_, err := m.mask(in)
	return in, err
}

// mask returns for each column of s whether it is masked.
func (m *Mask) mask(s *batch.Schema) ([]bool, error) {
	if p, ok := m.places[s]; ok {
		return p, nil
	}
	p := make([]bool, len(s.Columns))
	for _, name := range m.columns[s.Name()] {
		i := s.Column(name)
		switch {
		case i < 0:
			return nil, sdk.Faultf(sdk.CodeSchemaMismatch, "table %s has no column %s to mask", s.Name(), name).
				Suggest("mend the option columns of mask")
		case s.Columns[i].Type != batch.String:
			return nil, sdk.Faultf(sdk.CodeSchemaMismatch, "column %s.%s is of type %s, mask expects string", s.Name(), name, s.Columns[i].Type).
				Suggest("select it away instead")
		case slices.Contains(s.Key, i):
			return nil, sdk.Faultf(sdk.CodeSchemaMismatch, "column %s.%s is part of the key, which a mask does not change", s.Name(), name).
				Suggest("select it away instead")
		}
		p[i] = true
	}
	m.places[s] = p
	return p, nil
}

// Apply masks one row.
func (m *Mask) Apply(_ context.Context, in *batch.Event, s *batch.Schema, out *batch.Builder) error {
	if m.schema != s {
		p, err := m.mask(s)
		if err != nil {
			return err
		}
		m.schema, m.edit = s, p
	}
	if err := out.EditRow(in, s, m.edit, m.hide); err != nil {
		return fmt.Errorf("mask a row of %s: %w", s.Name(), err)
	}
	return nil
}

const stars = "****************************************************************"

// hide appends the masked text. A raw value, which is no text of a known
// charset, is hidden whole, one star a byte.
func (m *Mask) hide(dst []byte, column int, v *batch.Value) []byte {
	text, keep := v.Bytes(), m.keep
	_, raw, isRaw := v.Raw()
	if isRaw {
		text, keep = raw, 0
	}
	if m.mac != nil {
		m.mac.Reset()
		m.mac.Write(text)
		m.sum = m.mac.Sum(m.sum[:0])
		at := len(dst)
		dst = hex.AppendEncode(dst, m.sum)
		if n := int(m.schema.Columns[column].Length); n > 0 && n < len(dst)-at {
			dst = dst[:at+n]
		}
		return dst
	}
	n := len(text)
	if !isRaw {
		n = utf8.RuneCount(text)
	}
	keep = min(keep, n/2) // half of a short text is hidden at least
	for k := n - keep; k > 0; k -= len(stars) {
		dst = append(dst, stars[:min(k, len(stars))]...)
	}
	return append(dst, tail(text, keep)...)
}

// tail returns the last n characters.
func tail(text []byte, n int) []byte {
	at := len(text)
	for range n {
		_, size := utf8.DecodeLastRune(text[:at])
		at -= size
	}
	return text[at:]
}
