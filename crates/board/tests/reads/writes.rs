// SPDX-License-Identifier: Apache-2.0
//! Peers WRITE to windows of the board's memory and SEND to its stream, between READs: every byte of the memory, every
//! message once and in order, whatever the network does; and what is not permitted is refused with its NAK.

use crate::station::{rkey, Setup, Station, WINDOW, WINDOW_BYTES};
use crate::{refusals, seed, DEPTH, ERROR, READY_TO_SEND};
use penstock_board::{regs::counters, Arrival, ReceivedMessage};
use penstock_netsim::Stream;
use penstock_transport::{Mtu, SendStatus, Verb};

/// Around the MTUs, and odd.
const LENGTHS: [usize; 11] = [0, 1, 2, 7, 1023, 1024, 1025, 4095, 4096, 4097, 33_000];
const FURTHER: usize = 24;
/// READs are of the first part of the window, which stays as it is; WRITEs go to parts of their queue pairs after it, as
/// nothing orders those of different ones.
const KEPT_BYTES: u64 = 1 << 20;
const PART_BYTES: u64 = (WINDOW_BYTES as u64 - KEPT_BYTES) / 4;

fn setup(queue_pairs: u8, mtu: Mtu, percent: u64) -> Setup {
    // 8 packets of 4096 bytes from each of 4 peers take 105 us, the timer 524.
    Setup { queue_pairs, mtu, percent, depth: DEPTH, outstanding: DEPTH, window: 8, ack_timeout: 7 }
}

fn random_bytes(random: &mut Stream, len: usize) -> Vec<u8> {
    (0..len).map(|_| random.next_u32() as u8).collect()
}

/// Posts one message to each length, of verbs in turn with a READ among them; what the board's user gets of it.
fn post_all(station: &mut Station, random: &mut Stream, index: u8) -> Vec<ReceivedMessage> {
    let mut lengths = LENGTHS.to_vec();
    lengths.extend((0..FURTHER).map(|_| random.below(20_000) as usize));
    random.shuffle(&mut lengths);
    let part = KEPT_BYTES + PART_BYTES * u64::from(index);
    let mut expected = Vec::new();
    for (number, len) in lengths.into_iter().enumerate() {
        let bytes = random_bytes(random, len);
        let imm = random.next_u32();
        let at = part + random.below(PART_BYTES - len as u64 + 1);
        let va = WINDOW + at;
        let verb = [Verb::Write, Verb::Send, Verb::WriteImm(imm), Verb::SendImm(imm)][random.below(4) as usize];
        let arrival = match verb {
            Verb::Write => None,
            Verb::WriteImm(_) => Some(Arrival::Write { address: va, len: len as u32 }),
            _ => Some(Arrival::Send(bytes.clone().into())),
        };
        if matches!(verb, Verb::Write | Verb::WriteImm(_)) {
            station.window[at as usize..][..len].copy_from_slice(&bytes);
        }
        let imm = matches!(verb, Verb::WriteImm(_) | Verb::SendImm(_)).then_some(imm);
        expected.extend(arrival.map(|arrival| ReceivedMessage { qp: index, imm, arrival }));
        station.send(index, verb, va, bytes, rkey(index));
        if number % 4 == 0 {
            let len = random.below(6000) as u32;
            station.read(index, WINDOW + random.below(KEPT_BYTES - u64::from(len)), len, rkey(index));
        }
    }
    expected
}

fn everything_arrives(seed: u64, queue_pairs: u8, mtu: Mtu, percent: u64) {
    let mut station = Station::open(seed, &setup(queue_pairs, mtu, percent));
    let mut random = Stream::new(seed, "messages");
    let expected: Vec<_> = (0..queue_pairs).map(|index| post_all(&mut station, &mut random, index)).collect();
    station.run_while_writing();
    station.run_until_received(expected.iter().map(Vec::len).sum());

    println!("{queue_pairs} queue pairs, {mtu:?}: {} cycles", station.board.cycle());
    for (index, peer) in (0..).zip(&station.peers) {
        assert!(peer.statuses.iter().all(|status| *status == SendStatus::Success), "{index}: {:?}", peer.statuses);
        assert!(percent == 0 || peer.requester.counters().retransmitted_pkts > 0);
    }
    assert!(station.board.memory(WINDOW, WINDOW_BYTES) == station.window, "bytes of the windows");
    for (index, expected) in (0..).zip(&expected) {
        let received: Vec<_> = station.received.iter().filter(|message| message.qp == index).collect();
        assert!(received.iter().copied().eq(expected), "messages of queue pair {index}");
        assert_eq!(station.state(index), READY_TO_SEND);
    }
    let sends = expected.iter().flatten().filter(|message| matches!(message.arrival, Arrival::Send(_))).count();
    assert_eq!(station.board.read(counters::RX_SEND_REQUESTS).unwrap() as usize, sends);
    let messages = usize::from(queue_pairs) * (LENGTHS.len() + FURTHER);
    assert_eq!(station.board.read(counters::RX_WRITE_REQUESTS).unwrap() as usize, messages - sends);
    assert!(percent == 0 || station.board.read(counters::DUPLICATE_REQUEST).unwrap() > 0);
    assert_eq!(refusals(&mut station.board), [0; 3]);
}

#[test]
fn every_message_arrives_while_the_board_writes() {
    everything_arrives(seed(), 4, Mtu::B4096, 0);
}

#[test]
fn every_message_arrives_once_through_loss_repetition_and_reordering() {
    everything_arrives(seed(), 1, Mtu::B4096, 1);
    everything_arrives(seed(), 4, Mtu::B1024, 1);
}

#[test]
fn what_finds_no_buffer_is_answered_by_rnr_naks_until_the_user_takes_it() {
    let mut station = Station::open(1, &setup(2, Mtu::B1024, 0));
    let mut random = Stream::new(1, "messages");
    station.board.hold_received(true);
    let messages: Vec<Vec<u8>> = (0..40).map(|_| random_bytes(&mut random, 3000)).collect();
    for (index, bytes) in messages.iter().enumerate() {
        station.send(index as u8 % 2, Verb::Send, 0, bytes.clone(), 0);
    }
    while station.board.read(counters::OUT_OF_BUFFER).unwrap() < 4 {
        station.step();
    }
    assert!(station.received.is_empty());
    station.board.hold_received(false);
    station.run_until_received(messages.len());
    for index in 0..2 {
        let of_it = |message: &&ReceivedMessage| message.qp == index;
        let received: Vec<_> = station.received.iter().filter(of_it).map(|message| message.arrival.clone()).collect();
        let sent = messages.iter().skip(index.into()).step_by(2);
        assert!(received.into_iter().eq(sent.map(|bytes| Arrival::Send(bytes.clone().into()))), "{index}");
        assert!(station.peers[usize::from(index)].statuses.iter().all(|status| *status == SendStatus::Success));
    }
    assert_eq!(refusals(&mut station.board), [0; 3]);
}

/// A WRITE of so many bytes that the first peer's window does not permit.
fn refused() -> [(&'static str, u64, usize, u32); 4] {
    let end = WINDOW + WINDOW_BYTES as u64;
    [
        ("another queue pair's key", WINDOW, 100, rkey(1)),
        ("a byte beyond the window", end - 2999, 3000, rkey(0)),
        ("a byte before the window", WINDOW - 1, 1, rkey(0)),
        ("an address that wraps around", u64::MAX, 2, rkey(0)),
    ]
}

#[test]
fn a_write_that_its_window_does_not_permit_ends_its_queue_pair_alone_and_changes_no_byte() {
    for (what, va, len, key) in refused() {
        let mut station = Station::open(1, &setup(2, Mtu::B1024, 0));
        let mut random = Stream::new(1, "messages");
        let first = random_bytes(&mut random, 5000);
        station.window[..first.len()].copy_from_slice(&first);
        station.send(0, Verb::Write, WINDOW, first, rkey(0));
        station.send(0, Verb::Write, va, random_bytes(&mut random, len), key);
        station.run();
        assert_eq!(station.peers[0].statuses, [SendStatus::Success, SendStatus::RemAccessErr], "{what}");
        assert_eq!((station.state(0), station.state(1)), (ERROR, READY_TO_SEND), "{what}");

        // The other queue pair goes on.
        let next = random_bytes(&mut random, 3000);
        station.window[7000..10_000].copy_from_slice(&next);
        station.send(1, Verb::Write, WINDOW + 7000, next, rkey(1));
        station.run();
        assert_eq!(station.peers[1].statuses, [SendStatus::Success], "{what}");
        assert!(station.board.memory(WINDOW, WINDOW_BYTES) == station.window, "{what}");
        assert_eq!(refusals(&mut station.board), [0, 1, 0], "{what}");
    }
}
