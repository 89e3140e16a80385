// Command csvlines is a reader made outside of the project: each line of a CSV
// file is an insert. It is all that an author writes: framing, credit, resuming
// for several writers and restarts are the SDK's and the host's.
package main

import (
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/serve"
)

func plugin() sdk.Plugin {
	return sdk.Plugin{
		Name: "csvlines", Version: "1.0.0", Summary: "reads the lines of a CSV file as inserts",
		Reader: sdk.ReaderOf(open),
	}
}

func main() { serve.Main(plugin()) }
