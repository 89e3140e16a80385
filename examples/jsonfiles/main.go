// Command jsonfiles is a connector made outside of the project: a writer that
// keeps each row as a JSON file, DIR/TABLE/KEY.json. It is all that an author
// writes: batches, merging, order, retries and restarts are the SDK's.
//
// Its level is idempotent: it stores no position, so that the host keeps it, and
// the tail of the stream may be written again after a crash, which leaves the
// same files.
package main

import (
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/serve"
)

func plugin() sdk.Plugin {
	return sdk.Plugin{
		Name: "jsonfiles", Version: "1.0.0", Summary: "keeps each row as a JSON file",
		Writer: sdk.WriterOf(open),
	}
}

func main() { serve.Main(plugin()) }
