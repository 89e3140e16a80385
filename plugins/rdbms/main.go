package main

import (
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/serve"
)

// version is set when a release is built.
var version = "0.1.0"

func plugin() sdk.Plugin {
	return sdk.Plugin{
		Name: "rdbms", Version: version, Summary: "writes to MySQL, MariaDB, PostgreSQL and SQLite, rows and progress in one transaction",
		Reader: sdk.ReaderOf(openReader),
		Writer: sdk.WriterOf(open).With(manifest.CanLanes, manifest.FlatNames),
	}
}

func main() { serve.Main(plugin()) }
