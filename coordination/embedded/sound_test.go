package embedded

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/datalink-go/datalink/coordination"
)

// filled returns the bytes of a store with pages of all kinds, after checking that
// they are found sound.
func filled(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	s, err := Open(context.Background(), Config{Dir: dir, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	err = s.db.Update(func(tx *bolt.Tx) error {
		b, err := tx.Bucket([]byte("tasks")).CreateBucket([]byte("nested"))
		if err != nil {
			return err
		}
		for i := range 2000 {
			k := []byte{byte(i >> 8), byte(i)}
			if err := b.Put(k, make([]byte, 50)); err != nil {
				return err
			}
		}
		return b.Put([]byte("long"), make([]byte, 20000))
	})
	for i := range 5 {
		err = errors.Join(err, s.db.Update(func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("tasks")).Bucket([]byte("nested")).Put([]byte{0, byte(i)}, []byte("x"))
		}))
	}
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, FileName)
	if err := sound(path); err != nil {
		t.Fatalf("a sound store: %v", err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// openCopy opens a store with such bytes; a panic or a fault fails the test by
// itself.
func openCopy(t *testing.T, data []byte) error {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, FileName), data, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(context.Background(), Config{Dir: dir, NoSync: true})
	if err != nil {
		return err
	}
	if _, err := s.CreateTask(context.Background(), coordination.Definition{Name: "probe", Spec: "x", Desired: coordination.Running}); err != nil {
		t.Logf("create: %v", err)
	}
	return s.Close()
}

func TestDamagedFile(t *testing.T) {
	good := filled(t)
	if err := openCopy(t, good); err != nil {
		t.Fatal(err)
	}
	t.Run("cut", func(t *testing.T) {
		m := newestMeta(good)
		for _, pages := range []uint64{m.pages - 1, m.pages / 2, 4} {
			if err := openCopy(t, good[:pages*m.pageSize]); !errors.Is(err, ErrDamaged) {
				t.Errorf("%d of %d pages: %v, want ErrDamaged", pages, m.pages, err)
			}
		}
	})
	t.Run("page lost", func(t *testing.T) {
		m := newestMeta(good)
		for _, id := range []uint64{m.root, m.freelist} {
			bad := append([]byte(nil), good...)
			clear(bad[id*m.pageSize : (id+1)*m.pageSize])
			if err := openCopy(t, bad); !errors.Is(err, ErrDamaged) {
				t.Errorf("page %d of zeros: %v, want ErrDamaged", id, err)
			}
		}
	})
	t.Run("random bytes", func(t *testing.T) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 1))
		found := 0
		for range 150 {
			bad := append([]byte(nil), good...)
			for range 1 + r.IntN(40) {
				bad[8192+r.IntN(len(bad)-8192)] = byte(r.Uint32())
			}
			if errors.Is(openCopy(t, bad), ErrDamaged) {
				found++
			}
		}
		if found == 0 {
			t.Error("no damage was found in 150 damaged files")
		}
	})
}
