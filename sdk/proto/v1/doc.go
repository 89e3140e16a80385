// Package protov1 is the generated code of datalink.proto, version 1 of the calls
// between host and connector over gRPC. Only sdk/serve and the host's supervisor
// import it; everything else uses sdk/wire, which codes the same messages by hand.
//
// Invariants, held by tests: the file keeps to the subset that PROTOCOL.md states;
// nothing that released.binpb has changes its meaning; every message here and its
// twin in sdk/wire have the same bytes.
package protov1
