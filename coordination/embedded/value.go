package embedded

import (
	"encoding/json"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/datalink-go/datalink/coordination"
)

func put(b *bolt.Bucket, key string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %T: %w", v, err)
	}
	return b.Put([]byte(key), data)
}

// get reads the value of key into v and reports whether it was there.
func get(b *bolt.Bucket, key string, v any) (bool, error) {
	if b == nil {
		return false, nil
	}
	data := b.Get([]byte(key))
	if data == nil {
		return false, nil
	}
	if err := json.Unmarshal(data, v); err != nil {
		return false, fmt.Errorf("value %q of the store is damaged: %w", key, err)
	}
	return true, nil
}

// list decodes all values of a bucket whose keys begin with prefix, by key.
func list[T any](b *bolt.Bucket, prefix string) ([]T, error) {
	if b == nil {
		return nil, nil
	}
	var out []T
	c := b.Cursor()
	for k, data := c.Seek([]byte(prefix)); k != nil && len(k) >= len(prefix) && string(k[:len(prefix)]) == prefix; k, data = c.Next() {
		if data == nil { // a bucket
			continue
		}
		var v T
		if err := json.Unmarshal(data, &v); err != nil {
			return nil, fmt.Errorf("value %q of the store is damaged: %w", k, err)
		}
		out = append(out, v)
	}
	return out, nil
}

func decimal(n uint64) string { return fmt.Sprintf("%020d", n) }

func bucket(tx *bolt.Tx, path ...string) *bolt.Bucket {
	b := tx.Bucket([]byte(path[0]))
	for _, p := range path[1:] {
		if b == nil {
			return nil
		}
		b = b.Bucket([]byte(p))
	}
	return b
}

func makeBucket(tx *bolt.Tx, path ...string) (*bolt.Bucket, error) {
	b := tx.Bucket([]byte(path[0]))
	for _, p := range path[1:] {
		if p == "" {
			return nil, fmt.Errorf("empty name under %q: %w", path[0], coordination.ErrInvalid)
		}
		var err error
		if b, err = b.CreateBucketIfNotExists([]byte(p)); err != nil {
			return nil, err
		}
	}
	return b, nil
}
