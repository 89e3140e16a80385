package embedded

import (
	"context"
	"fmt"
	"strings"

	bolt "go.etcd.io/bbolt"

	"github.com/datalink-go/datalink/coordination"
)

// Progress implements coordination.Definitions.
func (s *Store) Progress(ctx context.Context, taskUID, writer string) (p coordination.Progress, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		p, err = progress(tx, taskUID, writer)
		return err
	})
	return p, err
}

func progress(tx *bolt.Tx, taskUID, writer string) (p coordination.Progress, err error) {
	p.Writer = writer
	b := bucket(tx, "progress", taskUID, writer)
	if b == nil {
		return p, nil
	}
	if _, err = get(b, "head", &p); err != nil {
		return p, err
	}
	if p.Points, err = list[coordination.Point](b, "point/"); err != nil {
		return p, err
	}
	if p.Items, err = list[coordination.Item](b, "item/"); err != nil {
		return p, err
	}
	p.DeadLetters, err = list[coordination.DeadLetter](b, "dead/")
	return p, err
}

// Writers implements coordination.Definitions.
func (s *Store) Writers(ctx context.Context, taskUID string) (out []string, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		b := bucket(tx, "progress", taskUID)
		if b == nil {
			return nil
		}
		return b.ForEachBucket(func(k []byte) error {
			out = append(out, string(k))
			return nil
		})
	})
	return out, err
}

// lane −1 is the writer's own row and comes first.
func laneKey(lane int32) string { return fmt.Sprintf("point/%010d", int64(lane)+1) }

func save(tx *bolt.Tx, st *coordination.Status, step coordination.Step, head coordination.Progress) error {
	b, err := makeBucket(tx, "progress", st.TaskUID, step.Writer)
	if err != nil {
		return err
	}
	if step.Lanes > 0 {
		var gone [][]byte
		c := b.Cursor()
		for k, _ := c.Seek([]byte(laneKey(step.Lanes))); k != nil && strings.HasPrefix(string(k), "point/"); k, _ = c.Next() {
			gone = append(gone, k)
		}
		if err := deleteAll(b, gone); err != nil {
			return err
		}
	}
	for _, p := range step.Points {
		if p.Lane < -1 {
			return fmt.Errorf("lane %d of writer %q: %w", p.Lane, step.Writer, coordination.ErrInvalid)
		}
		if err := put(b, laneKey(p.Lane), p); err != nil {
			return err
		}
	}
	for _, it := range step.Items {
		if it.Deleted {
			err = b.Delete([]byte("item/" + it.Key))
		} else {
			err = put(b, "item/"+it.Key, it)
		}
		if err != nil {
			return err
		}
	}
	for _, d := range step.SetAside {
		key := "dead/" + decimal(d.Number)
		if b.Get([]byte(key)) != nil {
			continue
		}
		if err := put(b, key, d); err != nil {
			return err
		}
	}
	for _, n := range step.Dropped {
		if err := b.Delete([]byte("dead/" + decimal(n))); err != nil {
			return err
		}
	}
	var old coordination.Progress
	if _, err := get(b, "head", &old); err != nil {
		return err
	}
	head.Ceiling = max(old.Ceiling, step.Ceiling)
	return put(b, "head", head)
}
