package batch

import (
	"bytes"
	"fmt"
)

// Registry keeps the schemas of one stream by id. It is not safe for concurrent
// use; the schemas it returns are, since they do not change.
type Registry struct {
	byID  map[uint32]*entry
	ids   []uint32
	dense []*Schema // those with small ids, for Get
}

// maxDense bounds dense, whatever ids a stream uses.
const maxDense = 1 << 12

type entry struct {
	schema *Schema
	def    []byte
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry { return &Registry{byID: map[uint32]*entry{}} }

// Get returns the schema with that id, or nil.
func (r *Registry) Get(id uint32) *Schema {
	if int(id) < len(r.dense) {
		return r.dense[id]
	}
	if e := r.byID[id]; e != nil {
		return e.schema
	}
	return nil
}

// All returns the schemas in the order in which they came.
func (r *Registry) All() []*Schema {
	out := make([]*Schema, 0, len(r.ids))
	for _, id := range r.ids {
		out = append(out, r.byID[id].schema)
	}
	return out
}

// Add keeps s. A second, different schema of one id is an error.
func (r *Registry) Add(s *Schema) error {
	return r.add(s, AppendSchema(nil, s))
}

func (r *Registry) add(s *Schema, def []byte) error {
	if e := r.byID[s.ID]; e != nil {
		if bytes.Equal(e.def, def) {
			return nil
		}
		return fmt.Errorf("%w: schema %d of %s comes again with another layout", ErrCorrupt, s.ID, s.Name())
	}
	r.byID[s.ID] = &entry{schema: s, def: bytes.Clone(def)}
	r.ids = append(r.ids, s.ID)
	if s.ID < maxDense {
		r.dense = grow(r.dense, max(len(r.dense), int(s.ID)+1))
		r.dense[s.ID] = s
	}
	return nil
}

// define decodes a definition unless the same bytes are there already.
func (r *Registry) define(def []byte, mem *int) (uint32, error) {
	c := newCursor("schema", def, 0)
	id := c.uint32("id")
	if e := r.byID[id]; e != nil && bytes.Equal(e.def, def) {
		return id, nil
	}
	s, err := decodeSchema(def, mem)
	if err != nil {
		return 0, err
	}
	return s.ID, r.add(s, def)
}
