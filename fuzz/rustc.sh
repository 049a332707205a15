#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# RUSTC_WRAPPER of the fuzz build: counts coverage in our own crates, and builds their dependencies as ever. With these
# flags, those that `cargo fuzz` gives, a stable compiler is enough; only its address sanitiser needs a nightly one.
rustc=$1
shift
case "$CARGO_PKG_NAME" in
penstock-*) exec "$rustc" "$@" --cfg fuzzing -Cpasses=sancov-module -Ccodegen-units=1 \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares ;;
*) exec "$rustc" "$@" ;;
esac
