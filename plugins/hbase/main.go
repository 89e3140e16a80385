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
		Name: "hbase", Version: version, Summary: "reads tables of HBase and their changes; writes to HBase, cells dated by the versions of their changes",
		Reader: sdk.ReaderOf(openReader).With(manifest.WantsDurable),
		Writer: sdk.WriterOf(openWriter),
	}
}

func main() { serve.Main(plugin()) }
