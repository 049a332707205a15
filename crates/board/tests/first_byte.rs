// SPDX-License-Identifier: Apache-2.0
//! How long the first byte of an event takes from the detector to the wire.

mod common;

use bytes::Bytes;
use common::{endpoint_config, qp_config};
use penstock_board::regs::global;
use penstock_board::{Board, DetectorEvent, EventsConfig, RingTarget, WhileBusy};
use penstock_wire::fragment::message_2_len;

/// Bytes of a beat, and octets that the line takes in a cycle.
const LANES: u64 = 8;
/// Cycles from a trigger to the samples: it is accepted, and the digitisers answer in the cycle after that.
const ANSWERS_CYCLES: u64 = 2;

/// A board that makes events of its first input for a server that never answers, without storing packets first.
fn board() -> Board {
    let mut board = Board::new();
    board.configure(&endpoint_config()).unwrap();
    board.write(global::REQUESTER, global::REQUESTER_CUT_THROUGH_BITS.mask).unwrap();
    board.open_qp(0, &qp_config(0, 4096, 0)).unwrap();
    board.set_ring(0, RingTarget { va: 0x1000, slots: 1, slot_bytes: 8192 }).unwrap();
    let while_busy = WhileBusy::Wait;
    board
        .set_events(&EventsConfig { qp: 0, by_event: false, send: false, source_id: 1, inputs: 1, while_busy })
        .unwrap();
    board
}

/// Cycles from the first sample offered to the first octet on the wire.
fn latency(payload: usize) -> u64 {
    let mut board = board();
    board.run_until(board.cycle() + 1000);
    let offered = board.cycle() + ANSWERS_CYCLES;
    board.detect(DetectorEvent {
        number: 0,
        trigger_type: 1,
        cycle: 0,
        streams: vec![Bytes::from(vec![0x5a; payload])],
    });
    board.run_until(offered + 3000);
    let sent = board.poll_transmit().expect("the event is sent");
    sent.start_octet / LANES - offered
}

/// The event path, without the message's beats, and the transport with cut-through (docs/fragments.md): a cycle more or
/// less by the phase of the store's arbiter.
const FIXED_CYCLES: [u64; 2] = [53, 54];

#[test]
fn the_first_byte_leaves_a_fixed_time_after_the_messages_last_beat() {
    let found: Vec<(usize, u64)> = [8, 64, 136, 1000, 4000].map(|payload| (payload, latency(payload))).into();
    for (payload, cycles) in found {
        let beats = message_2_len(payload, 1).div_ceil(LANES as usize) as u64;
        assert!(FIXED_CYCLES.contains(&(cycles - beats)), "{payload} bytes, {beats} beats: {cycles} cycles");
    }
}
