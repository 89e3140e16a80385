package embedded

import (
	"strings"

	bolt "go.etcd.io/bbolt"

	"github.com/datalink-go/datalink/coordination"
)

// trim removes the oldest executions from a journal so that keep remain. Those
// that nobody closed stay: a successor has to judge them.
func trim(tx *bolt.Tx, taskUID string, keep int) error {
	j, ix := bucket(tx, "journal", taskUID), bucket(tx, "journal-index", taskUID)
	if j.Sequence() < uint64(2*keep) { // an execution has two entries at least
		return nil
	}
	entries, err := list[coordination.Entry](j, "")
	if err != nil {
		return err
	}
	var order []string
	closed := map[string]bool{}
	for _, e := range entries {
		switch e.Kind {
		case coordination.EntryStarted:
			order = append(order, e.ExecutionID)
		case coordination.EntryEnded, coordination.EntryDead:
			closed[e.ExecutionID] = true
		}
	}
	drop := map[string]bool{}
	for _, id := range order[:max(0, len(order)-keep)] {
		drop[id] = closed[id]
	}
	for _, e := range entries {
		if drop[e.ExecutionID] {
			if err := j.Delete([]byte(decimal(e.Seq))); err != nil {
				return err
			}
		}
	}
	var gone [][]byte
	err = ix.ForEach(func(k, _ []byte) error {
		if id, _, _ := strings.Cut(string(k), "/"); drop[id] {
			gone = append(gone, k)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return deleteAll(ix, gone)
}

// deleteAll deletes keys that were collected before: a bbolt cursor that deletes
// while it walks may pass over the next key.
func deleteAll(b *bolt.Bucket, keys [][]byte) error {
	for _, k := range keys {
		if err := b.Delete(k); err != nil {
			return err
		}
	}
	return nil
}
