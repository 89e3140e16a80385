package main

import (
	"github.com/datalink-go/datalink/examples/mask-go/mask"
	"github.com/datalink-go/datalink/sdk/wasm"
)

func init() { wasm.Export(mask.Plugin()) }

func main() {}
