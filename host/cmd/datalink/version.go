package main

import (
	"runtime"

	"github.com/spf13/cobra"

	"github.com/datalink-go/datalink/host/wasmrt"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print version, commit, Go, protocol and batch versions",
		Example: "  datalink version -o json", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := struct {
				Version     string `json:"version"`
				Commit      string `json:"commit"`
				Go          string `json:"go"`
				Platform    string `json:"platform"`
				ProtocolMin uint32 `json:"protocolMin"`
				ProtocolMax uint32 `json:"protocolMax"`
				BatchFormat uint32 `json:"batchFormat"`
			}{version, commit, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, sdk.ProtocolMin, sdk.ProtocolMax, batch.Format}
			return a.show(v, func() {
				a.line("datalink %s (commit %s, %s, %s)", v.Version, v.Commit, v.Go, v.Platform)
				a.line("protocol %d to %d, batch format %d", v.ProtocolMin, v.ProtocolMax, v.BatchFormat)
			})
		},
	}
}

// childCommand is the child process of a WASM module; main handles it before.
func (a *app) childCommand() *cobra.Command {
	return &cobra.Command{
		Use: wasmrt.ChildArg, Hidden: true, Args: cobra.NoArgs,
		Run: func(*cobra.Command, []string) { wasmrt.ChildMain() },
	}
}
