// SPDX-License-Identifier: Apache-2.0
//! The pacer keeps its rate, no more and no less over any window, alone or among other queue pairs.

use penstock_cc::{CycleRate, Pacer};
use proptest::prelude::*;

const VISIT: u32 = 16;
const LINE: u32 = 8; // bytes a cycle
const PACKET: u32 = 4186; // MTU 4096 with everything around it
const TURN: u32 = 512; // cycles of one packet in a turn

/// Always eager to send on a wire that all share in turn.
struct Backlogged {
    pacer: Pacer,
    rate: CycleRate,
    packet: u32,
    sent: u64,
}

/// Lets flows of these rates and packets send for as many visits; calls `look` after each.
fn share(flows: &[(u32, u32)], visits: u32, mut look: impl FnMut(&[Backlogged])) -> Vec<Backlogged> {
    let turn = TURN * flows.len() as u32 / VISIT;
    let backlogged = |&(rate, packet)| Backlogged { pacer: Pacer::new(turn), rate: CycleRate(rate), packet, sent: 0 };
    let mut flows: Vec<_> = flows.iter().map(backlogged).collect();
    let (mut free_at, mut next) = (0, 0);
    for visit in 0..visits {
        for flow in &mut flows {
            flow.pacer.grant(flow.rate, VISIT, false, true);
        }
        let (now, count) = (u64::from(visit * VISIT), flows.len());
        while free_at < now + u64::from(VISIT) {
            let turn = (0..count).map(|i| (next + i) % count).find(|&i| flows[i].pacer.eligible());
            let Some(chosen) = turn else { break };
            let flow = &mut flows[chosen];
            flow.pacer.charge(flow.packet);
            flow.sent += u64::from(flow.packet);
            free_at = free_at.max(now) + u64::from(flow.packet.div_ceil(LINE));
            next = chosen + 1;
        }
        look(&flows);
    }
    flows
}

/// What a rate is worth over a time, in bytes, rounded up.
fn worth(rate: u32, cycles: u64) -> u64 {
    (cycles * u64::from(rate)).div_ceil(1 << CycleRate::FRACTION_BITS)
}

/// 10 Gb/s is the line.
fn gigabits(rate: f64) -> u32 {
    (rate / 10.0 * f64::from(LINE << CycleRate::FRACTION_BITS)) as u32
}

#[test]
fn a_flow_at_line_rate_is_never_held_back() {
    let mut pacer = Pacer::new(TURN / VISIT);
    for _ in 0..10_000 {
        pacer.grant(CycleRate(8 << 24), VISIT, true, true);
        pacer.charge(PACKET);
        assert!(pacer.eligible());
    }
}

#[test]
fn a_flow_that_left_the_line_rate_has_nothing_saved_and_owes_its_last_packet_only() {
    let mut pacer = Pacer::new(TURN / VISIT);
    for _ in 0..100 {
        pacer.grant(CycleRate(8 << 24), VISIT, true, true);
    }
    assert_eq!(pacer.credit(), i64::from(VISIT * LINE) << 24);
    pacer.charge(PACKET);
    pacer.grant(CycleRate(4 << 24), VISIT, false, true);
    assert_eq!(pacer.credit(), (i64::from(VISIT * (LINE + LINE / 2)) - i64::from(PACKET)) << 24);
}

#[test]
fn nothing_is_saved_without_a_packet_that_waits_and_no_more_than_a_turn_with_one() {
    for rate in [1, 12_345, 1 << 24, u32::MAX] {
        let mut pacer = Pacer::new(TURN / VISIT);
        let grant = i64::from(rate) * i64::from(VISIT);
        for _ in 0..1_000 {
            pacer.grant(CycleRate(rate), VISIT, false, false);
            assert_eq!(pacer.credit(), grant);
        }
        let mut most = 0;
        for _ in 0..1_000 {
            pacer.grant(CycleRate(rate), VISIT, false, true);
            most = most.max(pacer.credit());
        }
        assert!(most <= i64::from(rate) * i64::from(TURN) + grant && most < (128 << 34) + grant, "{rate}: {most}");
        assert!(most >= (i64::from(rate) * i64::from(TURN)).min(128 << 34), "{rate}: {most}");
    }
}

#[test]
fn the_slowest_rate_still_pays_a_packet_off() {
    let mut pacer = Pacer::new(TURN / VISIT);
    pacer.grant(CycleRate(1), VISIT, false, true);
    pacer.charge(1);
    let mut visits = 0;
    while !pacer.eligible() {
        pacer.grant(CycleRate(1), VISIT, false, true);
        visits += 1;
    }
    assert_eq!(visits, (1 << 24) / VISIT - 1);
}

#[test]
fn flows_that_share_a_wire_lose_nothing_by_waiting_for_each_other() {
    let slow_and_fast = |slow: usize, rate: f64, fast: f64| {
        let mut flows = vec![(gigabits(rate), PACKET); slow];
        flows.push((gigabits(fast), PACKET));
        flows
    };
    let wires: [(&str, Vec<(u32, u32)>); 6] = [
        ("4 x 2.4 Gb/s", vec![(gigabits(2.4), PACKET); 4]),
        ("16 x 0.6 Gb/s", vec![(gigabits(0.6), PACKET); 16]),
        ("nearly equal", (0..16).map(|i| (gigabits(0.55 + 0.006 * f64::from(i)), PACKET)).collect()),
        ("mixed packets", [PACKET, PACKET, 1114, 350].map(|packet| (gigabits(2.4), packet)).to_vec()),
        ("15 x 0.3 and 5 Gb/s", slow_and_fast(15, 0.3, 5.0)),
        ("63 x 0.07 and 5 Gb/s", slow_and_fast(63, 0.07, 5.0)),
    ];
    let visits = 2_000_000;
    for (name, flows) in wires {
        for flow in share(&flows, visits, |_| ()) {
            let kept = flow.sent as f64 / worth(flow.rate.0, u64::from(visits * VISIT)) as f64;
            assert!(kept > 0.998, "{name}: a flow of {} kept {kept:.4} of its rate", flow.rate);
        }
    }
}

proptest! {
    #[test]
    fn over_any_window_the_rate_and_two_visits_and_a_packet(
        rate in 1u32..(7 << 24),
        packet in 84u32..4200,
        window in 1usize..2000,
    ) {
        let mut sent = vec![];
        share(&[(rate, packet)], 4000, |flows| sent.push(flows[0].sent));
        let cycles = window as u64 * u64::from(VISIT);
        let two = 2 * u64::from(VISIT);
        for pair in sent.windows(window + 1) {
            let out = pair[window] - pair[0];
            prop_assert!(out <= worth(rate, cycles + two) + u64::from(packet));
            prop_assert!(out + u64::from(packet) + 1 >= worth(rate, cycles.saturating_sub(two)));
        }
    }

    #[test]
    fn over_any_window_a_flow_among_others_makes_up_for_a_turn_at_most(
        flows in prop::collection::vec((1u32..(4 << 24), 84u32..4200), 1..5),
        window in 1usize..1000,
    ) {
        let mut sent = vec![];
        share(&flows, 2000, |flows| sent.push(flows[0].sent));
        let cycles = (window as u64 + 2) * u64::from(VISIT) + u64::from(TURN) * flows.len() as u64;
        let allowed = worth(flows[0].0, cycles) + u64::from(flows[0].1);
        for pair in sent.windows(window + 1) {
            prop_assert!(pair[window] - pair[0] <= allowed);
        }
    }
}
