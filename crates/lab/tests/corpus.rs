// SPDX-License-Identifier: Apache-2.0
//! What the fuzzer has found worth keeping keeps its promises: the inputs of `fuzz/corpus` through the fuzz target's body.

#[path = "../../../fuzz/src/corpus.rs"]
mod corpus;
#[path = "../../../fuzz/src/input.rs"]
#[allow(dead_code, reason = "each target takes its own part")]
mod input;
#[path = "../../../fuzz/src/scenario.rs"]
mod scenario;

#[test]
fn the_corpus_of_scenario_breaks_no_promise() {
    corpus::replay("scenario", scenario::run);
}
