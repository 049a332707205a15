// SPDX-License-Identifier: Apache-2.0
//! The body of the fuzz target `tcp_stream` over random bytes; one seed, one sequence.

#[path = "../../../fuzz/src/input.rs"]
#[allow(dead_code, reason = "each target takes its own part")]
mod input;
#[path = "../../../fuzz/src/tcp_stream.rs"]
mod tcp_stream;

#[test]
fn random_events_break_no_promise_of_a_stream() {
    let mut state = 1_u64;
    let mut byte = || {
        // Knuth's MMIX generator; its high bits are the good ones.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    for length in (0..2000).map(|n| n % 1500) {
        let input: Vec<u8> = (0..length).map(|_| byte()).collect();
        tcp_stream::run(&input);
    }
}
