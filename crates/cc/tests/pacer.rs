// SPDX-License-Identifier: Apache-2.0
//! The pacer lets out its rate: no more over any window, no less in the long run.

use penstock_cc::{Pacer, Rate, CREDIT_CAP_BYTES};
use proptest::prelude::*;

const VISIT: u32 = 16;

/// Sends packets back to back for `visits` visits, on a wire of `line` bytes a cycle; returns the
/// bytes that started by each visit.
fn backlogged(rate: Rate, unlimited: bool, packet: u32, line: u32, visits: u32) -> Vec<u64> {
    let mut pacer = Pacer::new();
    let (mut sent, mut wire_free_at) = (0u64, 0u64);
    (0..visits)
        .map(|visit| {
            pacer.grant(rate, VISIT, unlimited);
            let now = u64::from(visit * VISIT);
            while pacer.eligible() && wire_free_at < now + u64::from(VISIT) {
                pacer.charge(packet);
                sent += u64::from(packet);
                wire_free_at = wire_free_at.max(now) + u64::from(packet.div_ceil(line));
            }
            sent
        })
        .collect()
}

#[test]
fn a_flow_at_line_rate_is_never_held_back() {
    let mut pacer = Pacer::new();
    for _ in 0..10_000 {
        pacer.grant(Rate(8 << 24), VISIT, true);
        pacer.charge(4186);
        assert!(pacer.eligible());
    }
}

#[test]
fn credit_counts_no_further_than_the_cap() {
    let mut pacer = Pacer::new();
    for _ in 0..1_000_000 {
        pacer.grant(Rate(u32::MAX), VISIT, false);
    }
    assert_eq!(pacer.credit(), i64::from(CREDIT_CAP_BYTES) << 24);
}

#[test]
fn the_slowest_rate_still_pays_a_packet_off() {
    let mut pacer = Pacer::new();
    pacer.grant(Rate(1), VISIT, false);
    pacer.charge(CREDIT_CAP_BYTES + 1);
    let mut visits = 0;
    while !pacer.eligible() {
        pacer.grant(Rate(1), VISIT, false);
        visits += 1;
    }
    assert_eq!(visits, (1 << 24) / VISIT);
}

proptest! {
    #[test]
    fn over_any_window_no_more_than_rate_cap_and_a_packet(
        rate in 1u32..(8 << 24),
        packet in 84u32..9000,
        window in 1usize..2000,
    ) {
        let sent = backlogged(Rate(rate), false, packet, 8, 4000);
        let allowed = ((window as u64 * u64::from(VISIT) * u64::from(rate)) >> 24)
            + u64::from(CREDIT_CAP_BYTES + packet);
        for pair in sent.windows(window + 1) {
            prop_assert!(pair[window] - pair[0] <= allowed);
        }
    }

    #[test]
    fn in_the_long_run_exactly_the_rate(rate in (1u32 << 20)..(7 << 24), packet in 84u32..4200) {
        let visits = 20_000u32;
        let sent = backlogged(Rate(rate), false, packet, 8, visits)[visits as usize - 1];
        let earned = (u64::from(visits) * u64::from(VISIT) * u64::from(rate)) >> 24;
        prop_assert!(sent + u64::from(CREDIT_CAP_BYTES) >= earned);
        prop_assert!(sent <= earned + u64::from(CREDIT_CAP_BYTES + packet));
    }
}
