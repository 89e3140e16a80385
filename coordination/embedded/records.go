package embedded

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	bolt "go.etcd.io/bbolt"

	"github.com/datalink-go/datalink/coordination"
)

// appendEntry adds an entry, or moves the execution's mark, and returns whether
// it was new. The first of a kind stays; Raised may come often.
func appendEntry(tx *bolt.Tx, e *coordination.Entry) (bool, error) {
	if e.ExecutionID == "" {
		return false, fmt.Errorf("journal entry %q without an execution: %w", e.Kind, coordination.ErrInvalid)
	}
	j, err := makeBucket(tx, "journal", e.TaskUID)
	if err != nil {
		return false, err
	}
	ix, err := makeBucket(tx, "journal-index", e.TaskUID)
	if err != nil {
		return false, err
	}
	key := e.ExecutionID + "/" + string(e.Kind)
	if e.Kind == coordination.EntryRaised {
		key += "/" + strconv.FormatUint(e.Epoch, 10)
	}
	var at string
	found, err := get(ix, key, &at)
	if err != nil {
		return false, err
	}
	switch {
	case found && e.Kind != coordination.EntryMark:
		return false, nil
	case found:
		e.Seq, err = strconv.ParseUint(at, 10, 64)
	default:
		e.Seq, err = j.NextSequence()
	}
	if err != nil {
		return false, err
	}
	if err := put(ix, key, decimal(e.Seq)); err != nil {
		return false, err
	}
	return !found, put(j, decimal(e.Seq), e)
}

// Append implements coordination.Records.
func (s *Store) Append(ctx context.Context, e coordination.Entry) error {
	switch e.Kind {
	case coordination.EntryEnded, coordination.EntryLost, coordination.EntryDead:
	default:
		return fmt.Errorf("append %q to the journal: %w kind, expected ended, lost or dead", e.Kind, coordination.ErrInvalid)
	}
	if e.At.IsZero() {
		e.At = s.now()
	}
	return s.update(ctx, func(tx *bolt.Tx) error {
		_, err := appendEntry(tx, &e)
		return err
	})
}

// Journal implements coordination.Records.
func (s *Store) Journal(ctx context.Context, taskUID string) (out []coordination.Entry, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		out, err = list[coordination.Entry](bucket(tx, "journal", taskUID), "")
		return err
	})
	return out, err
}

// AddOverlap implements coordination.Records.
func (s *Store) AddOverlap(ctx context.Context, o coordination.Overlap) error {
	if o.ID == "" {
		return fmt.Errorf("overlap record without an id: %w", coordination.ErrInvalid)
	}
	o.Resolutions = nil
	return s.update(ctx, func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("overlaps"))
		if b.Get([]byte(o.ID)) != nil {
			return nil
		}
		return put(b, o.ID, o)
	})
}

// Resolve implements coordination.Records.
func (s *Store) Resolve(ctx context.Context, overlapID string, r coordination.Resolution) error {
	if r.ID == "" {
		return fmt.Errorf("resolution of overlap %s without an id: %w", overlapID, coordination.ErrInvalid)
	}
	return s.update(ctx, func(tx *bolt.Tx) error {
		if tx.Bucket([]byte("overlaps")).Get([]byte(overlapID)) == nil {
			return fmt.Errorf("overlap %q: %w", overlapID, coordination.ErrNotFound)
		}
		b := tx.Bucket([]byte("resolutions"))
		key := overlapID + "/" + r.ID
		if b.Get([]byte(key)) != nil {
			return nil
		}
		return put(b, key, r)
	})
}

func withResolutions(tx *bolt.Tx, o *coordination.Overlap) (err error) {
	o.Resolutions, err = list[coordination.Resolution](tx.Bucket([]byte("resolutions")), o.ID+"/")
	return err
}

// Overlaps implements coordination.Records.
func (s *Store) Overlaps(ctx context.Context) (out []coordination.Overlap, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		if out, err = list[coordination.Overlap](tx.Bucket([]byte("overlaps")), ""); err != nil {
			return err
		}
		for i := range out {
			if err := withResolutions(tx, &out[i]); err != nil {
				return err
			}
		}
		slices.SortStableFunc(out, func(a, b coordination.Overlap) int { return a.At.Compare(b.At) })
		return nil
	})
	return out, err
}

// Overlap implements coordination.Records.
func (s *Store) Overlap(ctx context.Context, id string) (out coordination.Overlap, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		ok, err := get(tx.Bucket([]byte("overlaps")), id, &out)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("overlap %q: %w", id, coordination.ErrNotFound)
		}
		return withResolutions(tx, &out)
	})
	return out, err
}

// Workers implements coordination.Records.
func (s *Store) Workers(ctx context.Context) (out []coordination.Worker, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		out, err = list[coordination.Worker](tx.Bucket([]byte("workers")), "")
		return err
	})
	return out, err
}

// Forget implements coordination.Records.
func (s *Store) Forget(ctx context.Context, f coordination.Forgotten) error {
	if f.Worker == "" {
		return fmt.Errorf("forget a worker without an id: %w", coordination.ErrInvalid)
	}
	if f.At.IsZero() {
		f.At = s.now()
	}
	return s.update(ctx, func(tx *bolt.Tx) error {
		return put(tx.Bucket([]byte("forgotten")), decimal(uint64(f.At.UnixNano()))+"/"+f.Worker, f)
	})
}

// Forgotten implements coordination.Records.
func (s *Store) Forgotten(ctx context.Context) (out []coordination.Forgotten, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		out, err = list[coordination.Forgotten](tx.Bucket([]byte("forgotten")), "")
		return err
	})
	return out, err
}
