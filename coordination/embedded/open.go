package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"
	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/datalink-go/datalink/coordination"
)

// FileName is the store's name in the data directory.
const FileName = "state.db"

const format = 1

// Config says where the store is. Dir is made if it is not there.
type Config struct {
	Dir  string
	Wait time.Duration // for the lock; 0 = do not wait

	// Keep is how many executions of a task stay in its journal, beside those
	// that were never closed; 0 = 1000.
	Keep int
	// Clock is the machine's if nil.
	Clock coordination.Clock
	// NoSync leaves out fsync: for tests that open hundreds of stores.
	NoSync bool
}

// Store is an open store. It is safe for concurrent use.
type Store struct {
	db    *bolt.DB
	lock  *os.File
	place coordination.Place
	uid   string
	keep  int
	clock coordination.Clock
	watch watchers

	mu       sync.Mutex
	sessions map[string]*Session
	closed   bool
}

var _ coordination.Store = (*Store)(nil)

type metaValue struct {
	Format    int       `json:"format"`
	UID       string    `json:"uid"`
	CreatedAt time.Time `json:"createdAt"`
}

// Open takes the lock and opens or creates the store. A LockedError names who has
// the data directory.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if cfg.Dir == "" {
		return nil, errors.New("embedded store: no data directory given")
	}
	if cfg.Clock == nil {
		cfg.Clock = coordination.System{}
	}
	if cfg.Keep == 0 {
		cfg.Keep = 1000
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	lock, err := takeLock(ctx, cfg.Dir, cfg.Wait)
	if err != nil {
		return nil, err
	}
	s := &Store{lock: lock, keep: cfg.Keep, clock: cfg.Clock, sessions: map[string]*Session{}}
	if err := s.open(cfg); err != nil {
		if s.db != nil {
			err = errors.Join(err, s.db.Close())
		}
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

func (s *Store) open(cfg Config) error {
	var err error
	if s.place, err = coordination.Here(cfg.Dir, s.lock); err != nil {
		return err
	}
	path := filepath.Join(cfg.Dir, FileName)
	if err := sound(path); err != nil {
		return unusable(path, err)
	}
	s.db, err = bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second, NoSync: cfg.NoSync, FreelistType: bolt.FreelistMapType})
	if errors.Is(err, berrors.ErrTimeout) {
		return fmt.Errorf("%s is open in a process that does not hold the lock file: stop it", path)
	}
	if err != nil {
		return unusable(path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	return s.db.Update(s.prepare)
}

func unusable(path string, err error) error {
	return fmt.Errorf("open %s: %w: if the file is damaged, put back a copy; tasks go on from what their targets hold", path, err)
}

var buckets = []string{"meta", "tasks", "status", "epochs", "journal", "journal-index", "progress", "overlaps", "resolutions", "forgotten", "workers"}

// prepare makes the buckets, checks the format and ends the sessions of former owners.
func (s *Store) prepare(tx *bolt.Tx) error {
	for _, b := range []string{"status", "workers"} {
		if err := tx.DeleteBucket([]byte(b)); err != nil && !errors.Is(err, berrors.ErrBucketNotFound) {
			return err
		}
	}
	for _, b := range buckets {
		if _, err := tx.CreateBucketIfNotExists([]byte(b)); err != nil {
			return err
		}
	}
	b := tx.Bucket([]byte("meta"))
	var m metaValue
	switch data := b.Get([]byte("store")); {
	case data == nil:
		m = metaValue{Format: format, UID: uuid.NewString(), CreatedAt: s.now()}
		if err := put(b, "store", m); err != nil {
			return err
		}
	default:
		if err := json.Unmarshal(data, &m); err != nil {
			return fmt.Errorf("%s: meta: %w", s.db.Path(), err)
		}
	}
	if m.Format != format {
		return fmt.Errorf("%s has format %d, this program reads format %d: use the program version that wrote it", s.db.Path(), m.Format, format)
	}
	s.uid = m.UID
	return nil
}

// UID returns the store's UUID.
func (s *Store) UID() string { return s.uid }

// Place describes this process and its data directory.
func (s *Store) Place() coordination.Place { return s.place }

// LockFile is the lock's open file, for the children that are to hold it too:
// passed as one of exec.Cmd's ExtraFiles, it keeps the data directory locked until
// they are gone. It belongs to the store.
func (s *Store) LockFile() *os.File { return s.lock }

// Backup writes a consistent copy of state.db.
func (s *Store) Backup(w io.Writer) error {
	return s.db.View(func(tx *bolt.Tx) error {
		_, err := tx.WriteTo(w)
		return err
	})
}

// Close ends the sessions, closes the file and this process's share of the lock.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	sessions := make([]*Session, 0, len(s.sessions))
	for _, x := range s.sessions {
		sessions = append(sessions, x)
	}
	s.mu.Unlock()
	var errs []error
	for _, x := range sessions {
		errs = append(errs, x.Close(context.Background()))
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.watch.close()
	return errors.Join(append(errs, s.db.Close(), s.lock.Close())...)
}

func (s *Store) now() time.Time { return s.clock.Now().UTC() }

func (s *Store) view(ctx context.Context, f func(*bolt.Tx) error) error {
	return s.do(ctx, s.db.View, f)
}

func (s *Store) update(ctx context.Context, f func(*bolt.Tx) error) error {
	return s.do(ctx, s.db.Update, f)
}

func (s *Store) do(ctx context.Context, run func(func(*bolt.Tx) error) error, f func(*bolt.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := run(f)
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return coordination.ErrClosed
	}
	return err
}
