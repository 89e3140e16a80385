// Package registry finds plugins in a registry and installs them: the files go to
// a folder by digest, what is installed to plugins.lock.
//
//	registry folder  ── Install ──►  DATA/plugins/sha256-…  +  DATA/plugins.lock  ── Resolve ──►  the host
//
// Invariants:
//
//   - What plugins.lock does not name is not installed.
//   - A file is used only with the digest that the lock has. The registry's
//     manifest is compared at installation, the installed file at each Resolve, and
//     by the host again on the very bytes that it executes.
//   - A version is installed once: the same version with other bytes is refused.
//   - Whatever stands in a registry is foreign: names, versions and paths are
//     checked before they become part of a path.
//
// Layout of a registry folder:
//
//	registry.json                 {"format": 1}
//	NAME/VERSION/plugin.json      manifest, with a platform and digest for each file
//	NAME/VERSION/FILE             program of one platform, or one .wasm for all
//
// What the package does not do: signatures, remote registries, and the decision
// whether a plugin deserves trust.
package registry
