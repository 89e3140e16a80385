package embedded

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/datalink-go/datalink/coordination"
)

// CreateTask implements coordination.Definitions.
func (s *Store) CreateTask(ctx context.Context, d coordination.Definition) (coordination.Definition, error) {
	if err := d.Validate(); err != nil {
		return d, err
	}
	d.UID, d.Version, d.CreatedAt = uuid.NewString(), 1, s.now()
	d.UpdatedAt = d.CreatedAt
	err := s.update(ctx, func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("tasks"))
		if b.Get([]byte(d.Name)) != nil {
			return fmt.Errorf("task %q: %w", d.Name, coordination.ErrExists)
		}
		return put(b, d.Name, d)
	})
	if err != nil {
		return coordination.Definition{}, err
	}
	s.watch.changed(d.Name)
	return d, nil
}

func task(tx *bolt.Tx, name string) (coordination.Definition, error) {
	var d coordination.Definition
	ok, err := get(tx.Bucket([]byte("tasks")), name, &d)
	if err == nil && !ok {
		err = fmt.Errorf("task %q: %w", name, coordination.ErrNotFound)
	}
	return d, err
}

// Task implements coordination.Definitions.
func (s *Store) Task(ctx context.Context, name string) (d coordination.Definition, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		d, err = task(tx, name)
		return err
	})
	return d, err
}

// Tasks implements coordination.Definitions.
func (s *Store) Tasks(ctx context.Context) (out []coordination.Definition, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		out, err = list[coordination.Definition](tx.Bucket([]byte("tasks")), "")
		return err
	})
	return out, err
}

// UpdateTask implements coordination.Definitions.
func (s *Store) UpdateTask(ctx context.Context, d coordination.Definition) (coordination.Definition, error) {
	if err := d.Validate(); err != nil {
		return d, err
	}
	err := s.update(ctx, func(tx *bolt.Tx) error {
		have, err := task(tx, d.Name)
		if err != nil {
			return err
		}
		if have.Version != d.Version {
			return &coordination.VersionError{Task: d.Name, Given: d.Version, Have: have.Version}
		}
		d.UID, d.CreatedAt, d.UpdatedAt = have.UID, have.CreatedAt, s.now()
		d.Version++
		return put(tx.Bucket([]byte("tasks")), d.Name, d)
	})
	if err != nil {
		return coordination.Definition{}, err
	}
	s.watch.changed(d.Name)
	return d, nil
}

// DeleteTask implements coordination.Definitions.
func (s *Store) DeleteTask(ctx context.Context, name string, version uint64) error {
	err := s.update(ctx, func(tx *bolt.Tx) error {
		d, err := task(tx, name)
		if err != nil {
			return err
		}
		if d.Version != version {
			return &coordination.VersionError{Task: name, Given: version, Have: d.Version}
		}
		if st, err := status(tx, d.UID); err != nil || st != nil {
			if err != nil {
				return err
			}
			return &coordination.HeldError{Status: *st}
		}
		if err := tx.Bucket([]byte("progress")).DeleteBucket([]byte(d.UID)); err != nil && !errors.Is(err, berrors.ErrBucketNotFound) {
			return err
		}
		return tx.Bucket([]byte("tasks")).Delete([]byte(name))
	})
	if err == nil {
		s.watch.changed(name)
	}
	return err
}

// status returns a task's status node, nil when there is none.
func status(tx *bolt.Tx, taskUID string) (*coordination.Status, error) {
	var st coordination.Status
	ok, err := get(tx.Bucket([]byte("status")), taskUID, &st)
	if err != nil || !ok {
		return nil, err
	}
	return &st, nil
}

// Status implements coordination.Definitions.
func (s *Store) Status(ctx context.Context, name string) (out coordination.Status, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		d, err := task(tx, name)
		if err != nil {
			return err
		}
		st, err := status(tx, d.UID)
		if err != nil {
			return err
		}
		if st == nil {
			return fmt.Errorf("status of task %q: %w", name, coordination.ErrNotFound)
		}
		out = *st
		return nil
	})
	return out, err
}

// Watch implements coordination.Definitions.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.watch.add(ctx, name), nil
}
