// SPDX-License-Identifier: Apache-2.0
//! Test patterns passing through the receiver, from bare messages and from fragments.
//! Promise checked: every wrong bit is counted once and the first one located; a gap is distinguished from an error and
//! measured. Source: ITU-T O.150 clause 5.8, implemented here again bit by bit; regs/source.rdl for the counter.

use std::num::NonZeroU16;

use bytes::Bytes;
use penstock_readout::*;
use penstock_transport::Memory;
use penstock_units::Time;
use penstock_wire::{FragmentHeader, Payload};

const SLOTS: u32 = 4;
const SLOT_BYTES: u32 = 2048;
const PRBS: Pattern = Pattern::Prbs31 { invert: true };

/// The sequence of O.150 behind 31 ones, complemented, from its first bit on.
fn prbs(len: usize) -> Vec<u8> {
    let mut bits = vec![true; 31];
    while bits.len() < 31 + 8 * len {
        bits.push(bits[bits.len() - 31] ^ bits[bits.len() - 28]);
    }
    bits[31..].chunks(8).map(|byte| byte.iter().rev().fold(0, |value, bit| value << 1 | u8::from(!bit))).collect()
}

/// Messages of one board one after the other, as (length, bytes) of a stream.
fn cut(stream: &[u8], lengths: &[usize]) -> Vec<Vec<u8>> {
    let mut at = 0;
    let message = |len: &usize| {
        at += len;
        stream[at - len..at].to_vec()
    };
    lengths.iter().map(message).collect()
}

fn receiver(boards: u16) -> Receiver<Discard> {
    let ring = RingConfig { slots: SLOTS, slot_bytes: SLOT_BYTES, ..RingConfig::default() };
    let builder = BuilderConfig { sources: NonZeroU16::new(boards).unwrap(), ..BuilderConfig::default() };
    let rings = (0..boards).map(|board| ring.for_board(board)).collect();
    Receiver::new(ReceiverConfig { rings, builder, consumer_rate: None }, Discard::default()).unwrap()
}

fn deliver(receiver: &mut Receiver<Discard>, board: u16, number: u32, message: Vec<u8>) {
    receiver.take_credits(board);
    let (slot, len) = (number % SLOTS, message.len() as u32);
    let va = receiver.region(board).unwrap().va;
    receiver.write(va + u64::from(slot * SLOT_BYTES), &Payload::Bytes(Bytes::from(message)));
    receiver.on_completion(Time::ZERO, board, slot, len).unwrap();
}

fn place(message: u64, event: Option<u64>, byte: usize) -> Option<PatternPlace> {
    Some(PatternPlace { message, event, byte })
}

const LENGTHS: [usize; 8] = [1142, 1, 33, 2048, 1500, 7, 1024, 4];

#[test]
fn bare_messages_are_compared_bit_by_bit_and_their_slots_come_free() {
    let mut receiver = receiver(2).with_bare_pattern(PRBS);
    let mut messages = cut(&prbs(LENGTHS.iter().sum()), &LENGTHS);
    messages[3][1999] ^= 0b0101_0000;
    messages[3][2000] ^= 1;
    messages[6][0] ^= 0x80;
    for (number, message) in (0..).zip(&messages) {
        deliver(&mut receiver, 1, number, message.clone());
    }
    let report = receiver.report();
    assert!(receiver.take_credits(1) > 0, "no slot is kept");
    assert_eq!((report.builder.strays(), report.receiver.fragments_malformed), (0, 0), "these are no fragments");
    let patterns = report.pattern.unwrap();
    assert_eq!(patterns[0], PatternReport::default());
    let expected = PatternReport {
        messages: 8,
        bytes: LENGTHS.iter().sum::<usize>() as u64,
        messages_wrong: 2,
        errors: 4,
        first_error: place(3, None, 1999),
        ..PatternReport::default()
    };
    assert_eq!(patterns[1], expected);
    assert_eq!(receiver.messages_compared(), 8);
}

#[test]
fn a_lost_message_and_a_source_that_begins_again_are_gaps_of_known_length() {
    let words: Vec<u8> = (0..2000u64).flat_map(u64::to_le_bytes).collect();
    for (pattern, stream) in [(PRBS, prbs(16_000)), (Pattern::Counter, words)] {
        let messages = cut(&stream, &[1600; 10]);
        let mut receiver = receiver(1).with_bare_pattern(pattern);
        for (number, &message) in (0..).zip(&[0, 1, 4, 5, 9, 0, 1]) {
            deliver(&mut receiver, 0, number, messages[message].clone());
        }
        let report = receiver.report().pattern.unwrap().remove(0);
        assert_eq!((report.errors, report.gaps, report.first_gap), (0, 3, place(2, None, 0)), "{pattern:?}");
        assert_eq!(report.first_gap_bytes, Some(2 * 1600), "{pattern:?}");

        let mut receiver = receiver_again(pattern, &messages);
        deliver(&mut receiver, 0, 2, messages[0].clone());
        let report = receiver.report().pattern.unwrap().remove(0);
        assert_eq!((report.gaps, report.first_gap_bytes), (1, Some(-2 * 1600)), "{pattern:?}");
    }
}

fn receiver_again(pattern: Pattern, messages: &[Vec<u8>]) -> Receiver<Discard> {
    let mut receiver = receiver(1).with_bare_pattern(pattern);
    (0..2).for_each(|number| deliver(&mut receiver, 0, number, messages[number as usize].clone()));
    receiver
}

#[test]
fn a_new_life_of_a_board_begins_its_pattern_anew() {
    let messages = cut(&prbs(3200), &[1600; 2]);
    let mut receiver = receiver_again(PRBS, &messages);
    assert!(receiver.restart_ring(0, 7));
    deliver(&mut receiver, 0, 0, messages[0].clone());
    let report = receiver.report().pattern.unwrap().remove(0);
    assert_eq!((report.messages, report.errors, report.gaps), (3, 0, 0));
}

#[test]
fn payloads_of_fragments_are_followed_in_order_of_event_past_those_of_other_servers() {
    let parts = cut(&prbs(1200), &[100; 12]);
    let mut receiver = receiver(1).with_pattern(PRBS);
    receiver.change_share(Share { from_event: 4, rows: 2.try_into().unwrap(), ours: vec![0] }).unwrap();
    for (number, event) in (0..).zip([0u64, 1, 2, 3, 4, 6, 8, 10]) {
        let mut payload = parts[event as usize].clone();
        payload[7] ^= u8::from(event == 6);
        let header = FragmentHeader::for_payload(0, event, event, &payload).to_bytes();
        deliver(&mut receiver, 0, number, [&header[..], &payload].concat());
    }
    let report = receiver.report().pattern.unwrap().remove(0);
    assert_eq!((report.messages, report.gaps), (8, 0));
    // Behind a gap that is known the pattern is joined in the damaged payload itself: its error still shows.
    assert!(report.errors > 0 && report.messages_wrong == 1, "{report:?}");
    assert_eq!(report.first_error.map(|first| first.event), Some(Some(6)));
}
