package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/coordination/zookeeper"
	"github.com/datalink-go/datalink/host/api"
	"github.com/datalink-go/datalink/host/audit"
	"github.com/datalink-go/datalink/host/cluster"
	"github.com/datalink-go/datalink/host/config"
	"github.com/datalink-go/datalink/host/supervisor"
	"github.com/datalink-go/datalink/host/wasmrt"
	"github.com/datalink-go/datalink/registry"
)

// Config of a Node.
type Config struct {
	DataDir  string
	Bundled  Bundled
	Wait     time.Duration  // for the lock of the data directory
	Sources  config.Sources // of secrets; zero = the process's
	LogLevel string         // of plugins
	Log      *slog.Logger
	Grace    time.Duration // from a stop to the kill; 0 = 30 s

	// Cluster is the store that several workers share; nil = this one has a store
	// of its own in the data directory.
	Cluster *Cluster
	// Alerts are the channels that hear of overlaps.
	Alerts audit.Channels
}

// Cluster says how this worker takes part in one.
type Cluster struct {
	Store  zookeeper.Config
	Groups string // separated by commas; "" = default
	// RestartGrace is how long a worker that is gone keeps its tasks; it counts
	// where this worker leads.
	RestartGrace time.Duration
}

// Node owns a data directory: its store, its plugins and the executions of its
// tasks. It implements api.Backend.
type Node struct {
	cfg           Config
	store         coordination.Store
	place         coordination.Place
	lock          *os.File      // of the data directory
	ownLock       bool          // the lock is not the store's
	id            string        // of the worker
	board         cluster.Store // nil = this node is alone
	cluster       clustered
	alerts        *audit.Alerts
	auditor       *audit.Auditor
	launcher      *supervisor.Launcher
	modules       *wasmrt.Runtime
	plugins       Plugins
	metrics       *metrics
	registry      *prometheus.Registry
	sockets       string
	log           *slog.Logger
	keepers       *keepers
	verifications verifications
	serving       atomic.Bool // Serve runs

	mu      sync.Mutex
	session coordination.Session // replaced when it is lost
	runs    map[string]*run      // by task
	closed  bool
	closer  sync.Once
}

var _ api.Backend = (*Node)(nil)

// Open takes the data directory. A directory that another process uses is an
// *embedded.LockedError.
func Open(ctx context.Context, cfg Config) (*Node, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.LogLevel == "" {
		cfg.LogLevel = "warn"
	}
	cfg.Grace = stopGrace(cfg.Grace)
	n := &Node{cluster: clustered{done: map[string]string{}}, cfg: cfg, log: cfg.Log, runs: map[string]*run{}, registry: prometheus.NewRegistry(), keepers: newKeepers(), verifications: verifications{all: map[string]*verification{}}}
	if err := n.open(ctx); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *Node) open(ctx context.Context) error {
	var err error
	if err := n.openStore(ctx); err != nil {
		return err
	}
	began := time.Now()
	if n.id, err = workerID(n.cfg.DataDir); err != nil {
		return err
	}
	if n.session, err = n.store.Join(ctx, n.worker()); err != nil {
		return err
	}
	n.plugins = Plugins{Store: registry.OpenStore(n.cfg.DataDir), Bundled: n.cfg.Bundled}
	n.metrics = newMetrics(n.registry)
	if n.alerts, err = audit.NewAlerts(n.cfg.Alerts, n.registry, n.log); err != nil {
		return err
	}
	n.auditor = audit.New(audit.Config{Store: n.store, LockSince: began, Log: n.log, Notify: func(o coordination.Overlap) {
		n.metrics.overlap(o)
		n.alerts.Overlap(o)
	}})
	cache := filepath.Join(n.cfg.DataDir, "cache", "wasm")
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return fmt.Errorf("cache folder: %w", err)
	}
	if n.modules, err = wasmrt.New(wasmrt.Config{CacheDir: cache, Log: n.log}); err != nil {
		return err
	}
	n.launcher = supervisor.NewLauncher()
	n.sockets, err = socketDir()
	return err
}

// current is the session of now; it may be lost.
func (n *Node) current() coordination.Session {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.session
}

// socketDir makes a folder for the plugins' sockets. Their addresses are short
// (unix(7): 108 bytes), which the folder for temporary files may be too long for.
func socketDir() (string, error) {
	const most = 60
	var errs []error
	for _, base := range []string{os.TempDir(), "/tmp", "/dev/shm"} {
		dir, err := os.MkdirTemp(base, "datalink-")
		switch {
		case err != nil:
			errs = append(errs, err)
		case len(dir) <= most:
			return dir, nil
		default:
			errs = append(errs, fmt.Errorf("%s has %d bytes, expected %d at most", dir, len(dir), most), os.Remove(dir))
		}
	}
	return "", fmt.Errorf("folder for sockets: %w; set TMPDIR to a short path", errors.Join(errs...))
}

// UID returns the store's UUID.
func (n *Node) UID() string { return n.store.UID() }

// ID returns the worker's id.
func (n *Node) ID() string { return n.id }

// Registry returns the metrics.
func (n *Node) Registry() *prometheus.Registry { return n.registry }

// Close stops all tasks and gives the data directory back. It is idempotent.
func (n *Node) Close() error {
	var errs []error
	n.closer.Do(func() {
		n.mu.Lock()
		n.closed = true
		runs := make([]*run, 0, len(n.runs))
		for _, r := range n.runs {
			runs = append(runs, r)
		}
		n.mu.Unlock()
		for _, r := range runs {
			r.stop("the node ends")
		}
		for _, r := range runs {
			<-r.done
		}
		if n.modules != nil {
			errs = append(errs, n.modules.Close())
		}
		if n.launcher != nil {
			n.launcher.Close()
		}
		if x := n.current(); x != nil {
			errs = append(errs, x.Close(context.Background()))
		}
		if n.store != nil {
			errs = append(errs, n.store.Close())
		}
		if n.alerts != nil {
			n.alerts.Close()
		}
		if n.ownLock && n.lock != nil {
			errs = append(errs, n.lock.Close())
		}
		if n.sockets != "" {
			errs = append(errs, os.RemoveAll(n.sockets))
		}
	})
	return errors.Join(errs...)
}

func (n *Node) starter() *starter {
	dir, err := os.Getwd()
	if err != nil {
		dir = "/"
	}
	return &starter{
		plugins: n.plugins, launcher: n.launcher, modules: n.modules, metrics: n.metrics.plugins, sources: n.cfg.Sources,
		lock: n.lock, dir: dir, sockets: n.sockets, log: n.log, level: n.cfg.LogLevel,
	}
}
