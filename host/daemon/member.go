package daemon

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/coordination/embedded"
	"github.com/datalink-go/datalink/coordination/zookeeper"
)

// openStore opens the store that the configuration names, with the lock of the data
// directory held.
func (n *Node) openStore(ctx context.Context) error {
	if n.cfg.Cluster == nil {
		s, err := embedded.Open(ctx, embedded.Config{Dir: n.cfg.DataDir, Wait: n.cfg.Wait})
		if err != nil {
			return err
		}
		n.store, n.place, n.lock = s, s.Place(), s.LockFile()
		return nil
	}
	var err error
	if n.lock, n.place, err = embedded.Lock(ctx, n.cfg.DataDir, n.cfg.Wait); err != nil {
		return err
	}
	n.ownLock = true
	cfg := n.cfg.Cluster.Store
	cfg.Place, cfg.Log = n.place, n.log
	s, err := zookeeper.Open(ctx, cfg)
	if err != nil {
		return err
	}
	n.store, n.board = s, s
	return nil
}

// worker is this process as a member.
func (n *Node) worker() coordination.Worker {
	w := coordination.Worker{ID: n.id, PID: os.Getpid(), Place: n.place}
	if n.cfg.Cluster != nil {
		w.Group = n.cfg.Cluster.Groups
	}
	return w
}

// WorkerFile is the file in the data directory that holds the worker's id.
const WorkerFile = "worker.id"

// newToken is a text that was never used before.
func newToken() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

var workerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// workerID returns the id that belongs to the data directory, whatever the machine
// is called; the first start makes it.
func workerID(dir string) (string, error) {
	path := filepath.Join(dir, WorkerFile)
	data, err := os.ReadFile(path)
	if err == nil {
		id := strings.TrimSpace(string(data))
		if !workerName.MatchString(id) {
			return "", fmt.Errorf("%s: found %q, expected letters, digits, dots and dashes; remove the file to get a new id", path, id)
		}
		return id, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("id of this worker: %w", err)
	}
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	host, _ := os.Hostname()
	id := host + "-" + hex.EncodeToString(b[:])
	if !workerName.MatchString(id) {
		id = "worker-" + hex.EncodeToString(b[:])
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, []byte(id+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("id of this worker: %w", err)
	}
	return id, os.Rename(tmp, path)
}
