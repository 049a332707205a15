// SPDX-License-Identifier: Apache-2.0
//! The latency of the first byte through an idle front end.

use crate::station::{Failure, Station, REGION};
use bytes::Bytes;
use penstock_board::{regs::global, Message, Top, Verb};

const PACKET_BYTES: u16 = 4096;
const ANSWER_CYCLES: u64 = 156;
/// Longer than a message and its answer take.
const PAUSE_CYCLES: u64 = 2_000;
/// The queue pairs of the messages: the same one again, and another.
const QUEUE_PAIRS: [u8; 8] = [0, 0, 1, 0, 1, 1, 0, 0];

/// The most cycles from the one in which a message is offered, with its first payload beat, to that of its first
/// octet on the wire (the start of the preamble). Messages of one packet come when the link has long been idle.
pub fn worst_case(top: Top, cut_through: bool) -> Result<f64, Failure> {
    let mut station = Station::open(top, 2, PACKET_BYTES, ANSWER_CYCLES)?;
    station.board.write(global::REQUESTER, global::REQUESTER_CUT_THROUGH_BITS.at(cut_through))?;
    let payload = Bytes::from(vec![0x5a; PACKET_BYTES.into()]);
    let (octets, cycles) = top.clock().octets_per_cycle;
    let mut worst = 0;
    for (tag, qp) in (0..).zip(QUEUE_PAIRS) {
        // No two messages meet the queue pairs' timers in the same place.
        let offered = station.board.cycle() + PAUSE_CYCLES + u64::from(tag);
        station.run_until(offered, |_, _| ())?;
        let (imm, remote_address, payload) = (None, REGION.va, payload.clone());
        station.board.post(Message { qp, verb: Verb::Write, imm, remote_address, tag, payload });
        let mut start_cycle = None;
        station.run_until(offered + PAUSE_CYCLES, |octet, _| start_cycle = Some(octet * cycles / octets))?;
        worst = worst.max(start_cycle.ok_or("a message was not sent")? - offered);
    }
    Ok(worst as f64)
}
