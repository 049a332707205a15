// SPDX-License-Identifier: Apache-2.0
//! The registers of the emulator's front ends over IPbus, which the emulator takes from its packet socket as it takes
//! segments: its addresses are not the kernel's.
//! Promise: the map is the gateware's, of a build with one TCP stream and no queue pair; what is read is the stream's state
//! now. A register without a function here is refused, like one that does not exist. The stream obeys the command line
//! alone: only the operators' counts can be written.

use super::board::Board;
use super::headers::Datagram;
use super::link::Link;
use crate::send::registers::{of_front_end, place, OF_EVERY};
use penstock_cc::DcqcnParams;
use penstock_ipbus::regs::{cc, counters, global, source, stream};
use penstock_ipbus::Responder;
use penstock_transport::simple_tcp::{Counts, State};
use penstock_wire::MacAddr;
use std::ops::Range;
use std::sync::LazyLock;

#[expect(clippy::single_range_in_vec_init, reason = "a list of ranges that has one")]
const WRITES: &[Range<u32>] = &[global::OPERATOR_IP..global::OPERATOR_ENDED + 4];

static READS: LazyLock<Vec<Range<u32>>> = LazyLock::new(|| {
    let parameters = cc::BASE..cc::BASE + 4 * DcqcnParams::WORDS as u32;
    OF_EVERY.iter().cloned().chain([parameters, stream::BASE..stream::BASE + stream::STRIDE]).collect()
});

/// Those of all front ends.
pub struct Registers(Vec<Responder>);

impl Registers {
    pub fn new(boards: &[Board], mac: MacAddr) -> Registers {
        Registers(boards.iter().map(|board| registers(board, mac)).collect())
    }

    /// Answers the requests that have come.
    pub fn serve(&mut self, link: &mut Link, boards: &[Board]) {
        for (k, request) in link.take_requests() {
            let (Some(responder), Some(board)) = (self.0.get_mut(k), boards.get(k)) else { continue };
            show(responder, board);
            if let Some(answer) = responder.handle(&request.payload) {
                link.answer(&Datagram { payload: answer.into(), ..request });
            }
        }
    }
}

fn registers(board: &Board, mac: MacAddr) -> Responder {
    let mut responder = Responder::new(of_front_end(1, WRITES, &READS));
    place(&mut responder, board.peers().ip, mac);
    responder.set(global::RING, board.stream().room() as u32);
    responder
}

/// The state of the front end, for the readable registers.
fn show(responder: &mut Responder, board: &Board) {
    let (row, peers) = (board.stream().row(), board.peers());
    let count = |kind| board.stream().counters().of(kind) as u32;
    let acked = board.bytes_acked();
    let state = match row.state {
        State::Closed => 0,
        State::SynSent => 1,
        State::Established => 2,
    };
    for (offset, word) in [
        (stream::PEER_IP, peers.server.to_bits()),
        (stream::PEER_PORT, u32::from(peers.server_port)),
        (stream::STATE, state | stream::STATE_ENDED_BITS.at(board.stream().last_end().map_or(0, |end| end as u32))),
        (stream::RING_FILL, row.written.wrapping_sub(row.una)),
        (stream::UNA, row.una),
        (stream::NXT, row.nxt),
        (stream::WRITTEN, row.written),
        (stream::WINDOW, row.window),
        // In ticks of a microsecond.
        (stream::ROUND_TRIP, row.srtt / 8),
        (stream::SEGMENTS, count(Counts::SEGMENT)),
        (stream::RETRANSMITTED, count(Counts::RETRANSMITTED)),
        (stream::TIMEOUTS, count(Counts::TIMEOUT)),
        (stream::FAST_RETRANSMITS, count(Counts::FAST_RETRANSMIT)),
        (stream::DUPLICATE_ACKS, count(Counts::DUPLICATE_ACK)),
        (stream::WINDOW_PROBES, count(Counts::PROBE)),
        (stream::CHALLENGE_ACKS, count(Counts::CHALLENGE)),
        (stream::OUT_OF_WINDOW, count(Counts::OUT_OF_WINDOW)),
        (stream::BAD_ACKS, count(Counts::BAD_ACK)),
        (stream::BAD_OPTIONS, count(Counts::BAD_OPTION)),
        (stream::PEER_DATA, count(Counts::PEER_DATA)),
        (stream::IGNORED, count(Counts::IGNORED)),
        (stream::PATH_MTU, count(Counts::PATH_MTU)),
        (stream::WINDOW_CLOSED, count(Counts::WINDOW_CLOSED)),
        (stream::MESSAGES_OK, board.messages_done() as u32),
        (stream::MESSAGES_ERR, board.messages_failed() as u32),
        (stream::BYTES_ACKED_LO, acked as u32),
        (stream::BYTES_ACKED_HI, (acked >> 32) as u32),
    ] {
        responder.set(stream::BASE + offset, word);
    }
    for (address, count) in [
        (counters::TCP_OPENED, u64::from(board.lives())),
        (counters::MESSAGES_DONE, board.messages_done()),
        (counters::IPBUS_PACKETS, responder.carried_out()),
    ] {
        responder.set(address, count as u32);
    }
    let sends = row.state == State::Established && !board.is_done();
    responder.set(source::STATUS, u32::from(sends));
}
