package wasm

import "github.com/datalink-go/datalink/sdk"

// exported is the module of this program. Exports of a WebAssembly module are
// functions without a receiver, so there has to be one.
var exported *Module

// Export makes the plugin what this module is. It is called once, from an init
// function of package main.
func Export(p sdk.Plugin) {
	if exported != nil {
		panic("wasm: Export called twice")
	}
	exported = New(p)
}
