package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/datalink-go/datalink/host/api"
	"github.com/datalink-go/datalink/host/config"
	"github.com/datalink-go/datalink/host/daemon"
)

const serviceDir = "/var/lib/datalink"

func (a *app) serveCommand() *cobra.Command {
	var listen, file string
	var anywhere bool
	var files api.TLS
	var cfg serveFile
	c := &cobra.Command{
		Use: "serve", Short: "Run all applied tasks as a daemon",
		Long: `Run all tasks of the data directory as a single node, or with --coordination as a
worker that shares tasks with others through ZooKeeper. The API is on the socket
api.sock in the data directory, and with --listen also on an address, where each
request carries the token of the file api.token, or of api.read.token, which
changes nothing. /v1/openapi.json describes the API. /metrics is for
Prometheus, /healthz says that the process lives, /readyz that it runs tasks.`,
		Example: "  datalink serve --data-dir /var/lib/datalink --listen 127.0.0.1:8420",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			standard := cmp.Or(os.Getenv(dataDirEnv), serviceDir)
			if file != "" {
				given := cfg
				var err error
				if cfg, err = loadServe(file); err != nil {
					return err
				}
				cfg.Coordination = cmp.Or(given.Coordination, cfg.Coordination)
				cfg.Group = cmp.Or(given.Group, cfg.Group)
				cfg.RestartGrace = cmp.Or(given.RestartGrace, cfg.RestartGrace)
				if !c.Flags().Changed("data-dir") {
					standard = cmp.Or(cfg.DataDir, standard)
				}
				if cfg.Listen != "" && listen == "" {
					listen = cfg.Listen
				}
				anywhere = anywhere || cfg.ListenAnywhere
				if files == (api.TLS{}) {
					files = api.TLS(cfg.TLS)
				}
			}
			if !c.Flags().Changed("data-dir") {
				a.dataDir = standard
			}
			return a.serve(c.Context(), listen, anywhere, files, &cfg)
		},
	}
	c.Flags().StringVar(&file, "config", "", "file with dataDir, listen, listenAnywhere, tls: {cert, key, clientCA}, coordination, group, restartGrace and alerts")
	c.Flags().StringVar(&cfg.Coordination, "coordination", "", "store that workers share: zookeeper://HOST:PORT,…/CHROOT (default: one of its own)")
	c.Flags().StringVar(&cfg.Group, "group", "", "groups whose tasks this worker may run, separated by commas (default: default)")
	c.Flags().StringVar(&cfg.RestartGrace, "restart-grace", "", "how long a worker that is gone keeps its tasks (default: "+restartGrace.String()+")")
	c.Flags().StringVar(&listen, "listen", "", "address for the API, such as 127.0.0.1:8420; one that is not loopback needs TLS")
	c.Flags().StringVar(&files.Cert, "tls-cert", "", "file with the API's certificate")
	c.Flags().StringVar(&files.Key, "tls-key", "", "file with its key")
	c.Flags().StringVar(&files.ClientCA, "tls-client-ca", "", "file with the authority of clients' certificates, which are then demanded beside the token")
	c.Flags().BoolVar(&anywhere, "listen-anywhere", false, "allow an address that is not a loopback one without TLS")
	return c
}

func (a *app) serve(ctx context.Context, listen string, anywhere bool, files api.TLS, cfg *serveFile) error {
	log := a.logger(slog.LevelInfo)
	secure, err := files.Config()
	if err != nil {
		return api.As(api.Usage, err)
	}
	anywhere = anywhere || secure != nil
	if listen != "" {
		if err := api.CheckAddress(listen, anywhere); err != nil {
			return api.As(api.Usage, fmt.Errorf("--listen: %w", err))
		}
	}
	var sources config.Sources
	shared, err := cfg.cluster(sources)
	if err != nil {
		return err
	}
	channels, err := cfg.channels(sources)
	if err != nil {
		return err
	}
	n, err := a.nodeWith(context.WithoutCancel(ctx), slog.LevelInfo, daemon.Config{Wait: 30 * time.Second, Cluster: shared, Alerts: channels})
	if err != nil {
		return err
	}
	defer func() {
		if err := n.Close(); err != nil {
			log.Error("close", "cause", err)
		}
	}()
	sock, err := api.ListenUnix(a.dataDir)
	if err != nil {
		return err
	}
	var ready atomic.Bool
	h := handler(n, &ready)
	var servers []*http.Server
	if listen != "" {
		tokens, err := api.TokensOf(a.dataDir)
		if err != nil {
			return err
		}
		l, err := api.ListenTCP(listen, anywhere)
		if err != nil {
			return api.As(api.Usage, errors.Join(fmt.Errorf("--listen: %w", err), sock.Close()))
		}
		scheme := "http://"
		if secure != nil {
			l, scheme = tls.NewListener(l, secure), "https://"
		}
		log.Info("API listens", "address", scheme+l.Addr().String(), "token", "in "+api.TokenFile+" of the data directory")
		servers = append(servers, start(l, guarded(tokens, h), log))
	}
	servers = append(servers, start(sock, h, log))
	log.Info("daemon runs", "dataDir", a.dataDir, "store", n.UID(), "worker", n.ID(), "version", version)
	ready.Store(true)
	err = n.Serve(ctx)
	ready.Store(false)
	log.Info("daemon ends: all tasks are drained")
	end, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, s := range servers {
		if serr := s.Shutdown(end); serr != nil {
			_ = s.Close()
		}
	}
	return err
}

func start(l net.Listener, h http.Handler, log *slog.Logger) *http.Server {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
	go func() {
		if err := s.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			log.Error("API has ended", "cause", err)
		}
	}()
	return s
}

// handler serves API, health and metrics.
func handler(n *daemon.Node, ready *atomic.Bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/v1/", api.Handler(n))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			http.Error(w, "tasks are not run yet, or not any more", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(n.Registry(), promhttp.HandlerOpts{}))
	return mux
}

// guarded asks for the token except for health and readiness.
func guarded(tokens api.Tokens, h http.Handler) http.Handler {
	behind := api.Guard(tokens, h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" || r.URL.Path == "/readyz" {
			h.ServeHTTP(w, r)
			return
		}
		behind.ServeHTTP(w, r)
	})
}
