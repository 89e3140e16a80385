package scan

import (
	"bytes"

	"github.com/datalink-go/datalink/sdk/batch"
)

// KeyOf returns the key bytes of the one row that put appends.
func KeyOf(put func(*batch.Builder) error) ([]byte, error) {
	b := batch.NewBuilder(batch.Limits{})
	if err := b.BeginTx(batch.Tx{Begins: true}); err != nil {
		return nil, err
	}
	if err := put(b); err != nil {
		return nil, err
	}
	if err := b.EndTx(true, nil, nil); err != nil {
		return nil, err
	}
	key, _ := b.LastKeys()
	return bytes.Clone(key), nil
}
