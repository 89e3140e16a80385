#!/bin/sh
# Builds mask.wasm and notes its digest. It needs a Rust compiler with the target
# wasm32-unknown-unknown:
#
#   rustup target add wasm32-unknown-unknown
#   or, on Debian: apt-get install rustc libstd-rust-dev-wasm32 lld; RUSTC=/usr/bin/rustc
set -eu
cd "$(dirname "$0")"
"${RUSTC:-rustc}" --edition 2021 --crate-name mask --crate-type cdylib --target wasm32-unknown-unknown \
	-C opt-level=3 -C lto=fat -C codegen-units=1 -C panic=abort -C strip=symbols \
	--remap-path-prefix "$PWD=." -o mask.wasm src/lib.rs
sha256sum mask.wasm >mask.wasm.sha256
chmod 644 mask.wasm
ls -l mask.wasm
