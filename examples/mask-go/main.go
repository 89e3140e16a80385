package main

import (
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/wasm"
)

func init() {
	wasm.Export(sdk.Plugin{
		Name:      "mask-go",
		Version:   "1.0.0",
		Summary:   "Masks text columns, in Go",
		Transform: sdk.TransformOf(New),
	})
}

func main() {}
