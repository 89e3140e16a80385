#!/bin/sh
# Assembles the modules of the tests; wat2wasm is in the package wabt.
set -eu
cd "$(dirname "$0")"
for f in *.wat; do
	wat2wasm --debug-names "$f" -o "${f%.wat}.wasm"
done
