package main

import (
	"os"

	"github.com/goccy/go-yaml"

	"github.com/datalink-go/datalink/host/api"
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
}

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
