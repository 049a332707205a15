// SPDX-License-Identifier: Apache-2.0
//! A peer that sends arbitrary packets: the responder never panics, never writes outside registered memory and posted
//! receives, never completes a receive twice, and gives the same result for the same input.

mod common;

use common::*;
use penstock_transport::{Mtu, QpState, RecvStatus};
use penstock_units::Time;
use penstock_wire::{Ecn, Opcode, RocePacket};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Packet(Box<RocePacket>),
    Post(u32),
}

prop_compose! {
    /// Mostly plausible packets, so that the deep checks are reached too.
    fn any_packet()(
        code in prop_oneof![8 => 0x00..0x0Cu8, 1 => any::<u8>()],
        offset in prop_oneof![6 => Just(0i32), 2 => -3..4i32, 1 => any::<i32>()],
        len in prop_oneof![4 => Just(256usize), 1 => 0..300usize],
        (va, dma_len) in (BASE - 300..BASE + 2 * REGION, prop_oneof![Just(256), 0..1200u32, any::<u32>()]),
        rkey in prop_oneof![9 => Just(RKEY), 1 => any::<u32>()],
        flags in any::<(bool, bool, bool)>(),
    ) -> (i32, RocePacket) {
        let opcode = Opcode::from(code);
        let mut packet = packet(opcode, 0, vec![code; len]);
        if opcode.has_reth() || flags.0 && flags.1 && flags.2 {
            packet = with_reth(packet, va, dma_len);
            packet.reth.as_mut().unwrap().rkey = rkey;
        }
        packet.bth.ack_req = flags.0;
        packet.ecn = if flags.1 { Ecn::Ce } else { Ecn::Ect0 };
        (offset, packet)
    }
}

fn step() -> impl Strategy<Value = (i32, Step)> {
    prop_oneof![
        5 => any_packet().prop_map(|(offset, packet)| (offset, Step::Packet(Box::new(packet)))),
        1 => prop_oneof![Just(2000), 0..600u32].prop_map(|len| (0, Step::Post(len))),
    ]
}

/// Plays the steps, PSNs counted from the one expected; returns everything that came out.
fn play(start: u32, steps: &[(i32, Step)]) -> (Bench, Vec<String>, Vec<u64>) {
    let mut b = Bench::new(config(start, Mtu::B256));
    let (mut out, mut ended, mut posted) = (Vec::new(), Vec::new(), 0);
    for (now, (offset, step)) in steps.iter().enumerate() {
        match step {
            Step::Post(len) => {
                b.responder.post_receive(receive(posted, BASE + 1000, *len));
                posted += 1;
            }
            Step::Packet(packet) => {
                let mut packet = packet.clone();
                packet.bth.psn = b.responder.expected_psn().add(*offset as u32);
                b.responder.handle_packet(Time::from_us(now as u64 * 10), &packet, &mut b.memory);
            }
        }
        while let Some(reply) = b.responder.poll_transmit(&mut b.memory) {
            reply.validate().unwrap();
            out.push(format!("{reply:?}"));
        }
        while let Some(end) = b.responder.poll_completion() {
            let dead = b.responder.state() != QpState::Ready;
            assert!(dead || end.status == RecvStatus::Success);
            ended.push(end.wr_id);
            out.push(format!("{end:?}"));
        }
    }
    let open = posted - b.responder.posted_receives() as u64 - ended.len() as u64;
    assert!(open <= 1, "at most the receive of the SEND in progress is neither posted nor ended");
    (b, out, ended)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn anything_may_come(start in any::<u32>(), steps in prop::collection::vec(step(), 1..40)) {
        // TestMemory panics on any write outside the region.
        let (first, out, ended) = play(start, &steps);
        prop_assert!(ended.iter().copied().eq(0..ended.len() as u64), "once, in order: {ended:?}");
        let (second, again, _) = play(start, &steps);
        prop_assert_eq!(out, again);
        prop_assert_eq!(first.responder.counters(), second.responder.counters());
        prop_assert!(first.memory.bytes == second.memory.bytes);
    }
}
