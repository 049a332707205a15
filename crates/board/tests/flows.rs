// SPDX-License-Identifier: Apache-2.0
//! The front end that simulated flows have sends what the whole one sends, in the same cycles, while packets are marked
//! and lost.

mod common;

use bytes::Bytes;
use common::{endpoint_config, local, peer, qp_config, FIRST_PSN, REGION};
use penstock_board::{Board, Completion, Message, Received, Top, Verb, CYCLE};
use penstock_transport::{Memory, Mtu, Responder, ResponderConfig};
use penstock_wire::{Ecn, Packet, Payload};
use proptest::prelude::*;

const QUEUE_PAIRS: u8 = 4;
const MTU: Mtu = Mtu::B1024;
/// The cycle in which both begin, after they have been set up.
const BEGIN: u64 = 5_000;
/// The last message has ended: three cuts in a row leave an eighth of the line, and a lost packet waits for its timer.
const LATEST: u64 = 1_000_000;
const CHUNK_CYCLES: u64 = 50;
const ANSWER_CYCLES: u64 = 156;
/// 65 us.
const ACK_TIMEOUT: u8 = 4;

/// Memory that forgets.
struct Nowhere;

impl Memory for Nowhere {
    fn write(&mut self, _va: u64, _data: &Payload) {}
}

/// What its software asks of a board, and what the network does to it.
#[derive(Debug)]
struct Run {
    /// Queue pair and bytes of each message.
    messages: Vec<(u8, usize)>,
    /// The marked ones of the packets, in the order in which they are sent.
    marked: Vec<usize>,
    lost: Vec<usize>,
}

/// What comes of it.
#[derive(Debug, PartialEq)]
struct Seen {
    frames: Vec<Received>,
    completions: Vec<Completion>,
}

fn open(top: Top) -> Board {
    let mut board = Board::of(top);
    board.configure(&endpoint_config()).unwrap();
    for index in 0..QUEUE_PAIRS {
        board.open_qp(index, &qp_config(index, MTU.bytes() as u16, ACK_TIMEOUT)).unwrap();
    }
    // Without other masters of the registers, accesses take a cycle less.
    assert!(board.cycle() < BEGIN);
    board.run_until(BEGIN);
    board
}

fn run(top: Top, run: &Run) -> Seen {
    let responder = |index| {
        let config = ResponderConfig::new(peer(index), local(index), FIRST_PSN, MTU);
        Responder::new(config.with_region(REGION))
    };
    let mut servers: Vec<Responder> = (0..QUEUE_PAIRS).map(responder).collect();
    let mut board = open(top);
    for (tag, &(qp, bytes)) in (0..).zip(&run.messages) {
        let payload = Bytes::from((0..bytes).map(|at| at as u8).collect::<Vec<_>>());
        board.post(Message { qp, verb: Verb::Write, imm: None, remote_address: REGION.va, tag, payload });
    }
    let mut seen = Seen { frames: Vec::new(), completions: Vec::new() };
    while seen.completions.len() < run.messages.len() {
        assert!(board.cycle() < LATEST, "{run:?}: {} messages have ended", seen.completions.len());
        board.run_until(board.cycle() + CHUNK_CYCLES);
        while let Some(received) = board.poll_transmit() {
            let number = seen.frames.len();
            let Ok(Packet::Roce(mut packet)) = Packet::parse(received.frame.clone()) else { panic!("{received:?}") };
            seen.frames.push(received);
            if run.lost.contains(&number) {
                continue;
            }
            if run.marked.contains(&number) {
                packet.ecn = Ecn::Ce;
            }
            let server = &mut servers[(packet.bth.dest_qpn.value() - peer(0).qpn.value()) as usize];
            server.handle_packet(CYCLE * board.cycle(), &packet, &mut Nowhere);
            while let Some(reply) = server.poll_transmit(&mut Nowhere) {
                board.receive(board.cycle() + ANSWER_CYCLES, reply.emit(), true);
            }
        }
        seen.completions.extend(std::iter::from_fn(|| board.poll_completion()));
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_board_of_flows_sends_what_the_whole_front_end_sends(
        messages in proptest::collection::vec((0..QUEUE_PAIRS, 1usize..8_000), 1..12),
        marked in proptest::collection::vec(0usize..60, 0..4),
        lost in proptest::collection::vec(0usize..60, 0..4),
    ) {
        let given = Run { messages, marked, lost };
        let (whole, flows) = (run(Top::Gbps10, &given), run(Top::Gbps10Flows, &given));
        prop_assert_eq!(whole, flows);
    }
}
