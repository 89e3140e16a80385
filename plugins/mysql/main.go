package main

import (
	"github.com/datalink-go/datalink/plugins/mysql/internal/reader"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/serve"
)

// version is set at build time.
var version = "0.1.0"

func main() { serve.Main(plugin()) }

func plugin() sdk.Plugin {
	return sdk.Plugin{
		Name: "mysql", Version: version, Summary: "reads tables and their changes from MySQL and MariaDB",
		Reader: sdk.ReaderOf(reader.New),
	}
}
