// SPDX-License-Identifier: Apache-2.0
//! Runs the body of the fuzz target on the inputs of `fuzz/corpus`.

#[path = "../../../fuzz/src/corpus.rs"]
mod corpus;
#[path = "../../../fuzz/src/input.rs"]
#[allow(dead_code, reason = "each target takes its own part")]
mod input;
#[path = "../../../fuzz/src/wire.rs"]
mod wire;

#[test]
fn the_corpus_of_wire_breaks_no_promise() {
    corpus::replay("wire", wire::run);
}
