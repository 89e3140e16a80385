package main

import (
	"os"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/datalink-go/datalink/coordination/zookeeper"
	"github.com/datalink-go/datalink/host/api"
	"github.com/datalink-go/datalink/host/audit"
	"github.com/datalink-go/datalink/host/config"
	"github.com/datalink-go/datalink/host/daemon"
)

// serveFile is the file of `serve --config`.
type serveFile struct {
	DataDir        string `yaml:"dataDir"`
	Listen         string `yaml:"listen"`
	ListenAnywhere bool   `yaml:"listenAnywhere"`
	TLS            struct {
		Cert     string `yaml:"cert"`
		Key      string `yaml:"key"`
		ClientCA string `yaml:"clientCA"`
	} `yaml:"tls"`

	Coordination string      `yaml:"coordination"` // zookeeper://…; "" = a store of its own
	Group        string      `yaml:"group"`
	RestartGrace string      `yaml:"restartGrace"`
	Alerts       serveAlerts `yaml:"alerts"`
}

type serveAlerts struct {
	Webhook string            `yaml:"webhook"`
	Headers map[string]string `yaml:"headers"`
	Command []string          `yaml:"command"`
}

// restartGrace is how long a worker that is gone keeps its tasks where nothing else
// is said: a restart of the process takes less.
const restartGrace = 15 * time.Second

func loadServe(path string) (serveFile, error) {
	var c serveFile
	data, err := os.ReadFile(path)
	if err != nil {
		return c, api.Errorf(api.Usage, "--config: %w", err)
	}
	if err := yaml.UnmarshalWithOptions(data, &c, yaml.Strict()); err != nil {
		return c, api.Errorf(api.Usage, "%s: %s", path, yaml.FormatError(err, false, true))
	}
	return c, nil
}

// cluster makes the cluster's part of the configuration; nil = a node alone.
func (f *serveFile) cluster(sources config.Sources) (*daemon.Cluster, error) {
	if f.Coordination == "" {
		if f.Group != "" || f.RestartGrace != "" {
			return nil, api.Errorf(api.Usage, "group, restartGrace: expected coordination with them: a node alone runs all its tasks")
		}
		return nil, nil
	}
	url, err := sources.Expand(f.Coordination)
	if err != nil {
		return nil, api.Errorf(api.Usage, "coordination: %w", err)
	}
	c := &daemon.Cluster{Groups: f.Group, RestartGrace: restartGrace}
	if c.Store, err = zookeeper.ParseURL(url); err != nil {
		return nil, api.Errorf(api.Usage, "coordination: %w", err)
	}
	if f.RestartGrace != "" {
		if c.RestartGrace, err = time.ParseDuration(f.RestartGrace); err != nil || c.RestartGrace < 0 {
			return nil, api.Errorf(api.Usage, "restartGrace: found %q, expected a duration such as 15s", f.RestartGrace)
		}
	}
	return c, nil
}

// channels makes the alert channels, secrets resolved.
func (f *serveFile) channels(sources config.Sources) (audit.Channels, error) {
	c := audit.Channels{Command: f.Alerts.Command}
	var err error
	if c.Webhook, err = sources.Expand(f.Alerts.Webhook); err != nil {
		return c, api.Errorf(api.Usage, "alerts.webhook: %w", err)
	}
	for name, value := range f.Alerts.Headers {
		if value, err = sources.Expand(value); err != nil {
			return c, api.Errorf(api.Usage, "alerts.headers: %s: %w", name, err)
		}
		c.Headers = append(c.Headers, audit.Header{Name: name, Value: value})
	}
	return c, nil
}
