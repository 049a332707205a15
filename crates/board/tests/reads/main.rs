// SPDX-License-Identifier: Apache-2.0
//! Peers READ windows of a verilated front end's memory, WRITE there and SEND to its stream (`writes`), with the
//! requester of `penstock-transport`: every byte, whatever
//! the network does to requests and answers, while the front end sends messages from rings in the same memory; and what a
//! window does not permit is refused with its NAK.
//!
//! `PENSTOCK_SEED` sets the seed, which is printed.

#[path = "../common/mod.rs"]
mod common;
mod network;
mod station;
mod writes;

use network::Fates;
use penstock_board::{regs::counters, Board, WcStatus};
use penstock_netsim::Stream;
use penstock_transport::{Mtu, SendStatus};
use station::{rkey, Setup, Station, WINDOW, WINDOW_BYTES};

const READY_TO_SEND: u32 = 3;
const ERROR: u32 = 6;
const DEPTH: u8 = 16;
/// PSNs do not limit READs.
const ANY: u32 = 1 << 22;
/// Code of an ACK timer of 65 us.
const US_65: u8 = 4;
/// Around the MTUs, and odd; the longest is read by the first peer alone.
const LENGTHS: [u32; 12] = [0, 1, 2, 3, 7, 1023, 1024, 1025, 4095, 4096, 4097, 65_537];
const LONGEST: u32 = 1 << 20;
const FURTHER: usize = 24;

fn seed() -> u64 {
    let seed = std::env::var("PENSTOCK_SEED").map_or(1, |text| text.parse().expect("PENSTOCK_SEED is a number"));
    println!("PENSTOCK_SEED={seed}");
    seed
}

/// Lengths of all kinds in random order, anywhere in the window; one READ ends with it.
fn reads(random: &mut Stream, is_first: bool) -> Vec<(u64, u32)> {
    let mut lengths = LENGTHS.to_vec();
    lengths.extend((0..FURTHER).map(|_| random.below(30_000) as u32));
    lengths.extend(is_first.then_some(LONGEST));
    random.shuffle(&mut lengths);
    let place = |length: u32| WINDOW + random.below(WINDOW_BYTES as u64 - u64::from(length) + 1);
    let mut reads: Vec<_> = lengths.iter().copied().map(place).zip(lengths.iter().copied()).collect();
    reads.push((WINDOW + WINDOW_BYTES as u64 - 1001, 1001));
    reads
}

fn everything_is_read(seed: u64, queue_pairs: u8, mtu: Mtu, percent: u64) {
    let setup = Setup { queue_pairs, mtu, percent, depth: DEPTH, outstanding: DEPTH, window: ANY, ack_timeout: US_65 };
    let mut station = Station::open(seed, &setup);
    let mut random = Stream::new(seed, "reads");
    let mut count = 0;
    for index in 0..queue_pairs {
        for (va, len) in reads(&mut random, index == 0) {
            station.read(index, va, len, rkey(index));
            count += 1;
        }
    }
    station.run_while_writing();

    let fates = [station.to_board.fates, station.to_peers.fates];
    println!("{queue_pairs} queue pairs, {mtu:?}: {} cycles, {fates:?}", station.board.cycle());
    for (index, peer) in (0..).zip(&station.peers) {
        assert!(peer.statuses.iter().all(|status| *status == SendStatus::Success), "{index}: {:?}", peer.statuses);
        assert_eq!(peer.requester.counters().retransmitted_pkts > 0, percent > 0);
    }
    assert!(station.ended.len() > usize::from(queue_pairs), "the board has sent {} messages", station.ended.len());
    assert!(station.ended.iter().all(|message| message.status == WcStatus::Success), "{:?}", station.ended);
    for index in 0..queue_pairs {
        assert_eq!(station.state(index), READY_TO_SEND);
    }
    assert_eq!(station.board.read(counters::RX_READ_REQUESTS).unwrap(), count);
    assert_eq!(station.board.read(counters::DUPLICATE_REQUEST).unwrap() > 0, percent > 0);
    assert_eq!(refusals(&mut station.board), [0; 3]);
    let kinds: [fn(&Fates) -> u64; 3] = [|fates| fates.lost, |fates| fates.repeated, |fates| fates.late];
    for fate in kinds {
        assert_eq!(fates.iter().map(fate).sum::<u64>() > 0, percent > 0);
    }
}

/// NAKs that end a queue pair, by their reasons: invalid request, access, operation.
fn refusals(board: &mut Board) -> [u32; 3] {
    [counters::RESP_INVALID_REQUESTS, counters::RESP_REMOTE_ACCESS_ERRORS, counters::RESP_REMOTE_OPERATIONAL_ERRORS]
        .map(|counter| board.read(counter).unwrap())
}

#[test]
fn every_byte_is_read_while_the_board_writes() {
    everything_is_read(seed(), 4, Mtu::B4096, 0);
}

#[test]
fn every_byte_is_read_by_one_peer_through_loss_repetition_and_reordering() {
    everything_is_read(seed(), 1, Mtu::B4096, 1);
    everything_is_read(seed(), 1, Mtu::B1024, 1);
}

#[test]
fn every_byte_is_read_by_several_peers_through_loss_repetition_and_reordering() {
    everything_is_read(seed(), 4, Mtu::B1024, 1);
}

/// The first peer's READs, as address, length and key; what comes of the last, and the refusals that are counted.
struct Refused {
    what: &'static str,
    depth: u8,
    reads: Vec<(u64, u32, u32)>,
    status: SendStatus,
    counted: [u32; 3],
}

fn refused() -> Vec<Refused> {
    let (end, key) = (WINDOW + WINDOW_BYTES as u64, rkey(0));
    let access = |what, va, len, key| Refused {
        what,
        depth: DEPTH,
        reads: vec![(WINDOW, 5000, rkey(0)), (va, len, key)],
        status: SendStatus::RemAccessErr,
        counted: [0, 1, 0],
    };
    let too_many = [(WINDOW, 200_000, key)].into_iter().chain((0..16).map(|read| (WINDOW + read, 100, key)));
    vec![
        access("another queue pair's key", WINDOW, 100, rkey(1)),
        access("a byte beyond the window", end - 999, 1000, key),
        access("a byte before the window", WINDOW - 1, 1, key),
        access("more than the window has", WINDOW, 1 << 31, key),
        Refused {
            what: "17 READs outstanding",
            depth: DEPTH,
            reads: too_many.collect(),
            status: SendStatus::RemInvReqErr,
            counted: [1, 0, 0],
        },
        Refused {
            what: "a queue pair that serves none",
            depth: 0,
            reads: vec![(WINDOW, 100, key)],
            status: SendStatus::RemInvReqErr,
            counted: [1, 0, 0],
        },
    ]
}

#[test]
fn what_a_window_does_not_permit_ends_its_queue_pair_alone_with_the_nak_of_its_reason() {
    for case in refused() {
        let what = case.what;
        let (depth, outstanding) = (case.depth, DEPTH + 1);
        let mtu = Mtu::B1024;
        let setup = Setup { queue_pairs: 2, mtu, percent: 0, depth, outstanding, window: ANY, ack_timeout: US_65 };
        let mut station = Station::open(1, &setup);
        for (va, len, key) in &case.reads {
            station.read(0, *va, *len, *key);
        }
        station.run();
        let expected = [vec![SendStatus::Success; case.reads.len() - 1], vec![case.status]].concat();
        assert_eq!(station.peers[0].statuses, expected, "{what}");
        assert_eq!((station.state(0), station.state(1)), (ERROR, READY_TO_SEND), "{what}");
        assert_eq!(refusals(&mut station.board), case.counted, "{what}");

        // Its messages are flushed, the other queue pair goes on.
        (0..2).for_each(|index| station.write(index));
        if case.depth > 0 {
            station.read(1, WINDOW + 3, 3000, rkey(1));
        }
        station.run();
        let ends: Vec<_> = station.ended.iter().map(|message| (message.qp, message.status)).collect();
        assert!(ends.contains(&(0, WcStatus::Flushed)) && ends.contains(&(1, WcStatus::Success)), "{what}: {ends:?}");
        assert!(station.peers[1].statuses.iter().all(|status| *status == SendStatus::Success), "{what}");
        assert_eq!(refusals(&mut station.board), case.counted, "{what}");
    }
}
