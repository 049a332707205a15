// SPDX-License-Identifier: Apache-2.0
//! Receiver, rings and event builder with arbitrary writes and completions that a board could cause.
//! Promise: no panic; events come out in order, each once; every fragment in them is what was written when it
//! completed, despite later writes; every fragment is stored, a duplicate, a stray, or still open.

use crate::input::Input;
use bytes::Bytes;
use penstock_readout::{BuilderConfig, Event, EventSink, Fragment, Receiver, ReceiverConfig, RingConfig, StoreError};
use penstock_transport::Memory;
use penstock_units::{Rate, Time};
use penstock_wire::{FragmentHeader, Payload};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::num::NonZeroU16;
use std::rc::Rc;

const BOARDS: u16 = 3;
const SLOTS: u32 = 4;
const SLOT_BYTES: u32 = 128;

/// Remembers what was sent, and looks at what is stored.
#[derive(Default)]
struct Seen {
    last: Option<u64>,
    stored: BTreeSet<(u64, u16)>,
    fragments: u64,
}

struct Sink(Rc<RefCell<Seen>>);

impl EventSink for Sink {
    fn store(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        let mut seen = self.0.borrow_mut();
        assert!(seen.last.is_none_or(|last| event.number == last + 1), "event {} after {:?}", event.number, seen.last);
        seen.last = Some(event.number);
        assert_eq!(event.complete, event.missing.is_empty());
        let mut sources: Vec<u16> = event.fragments.iter().map(|fragment| fragment.source).collect();
        for Fragment { source, payload, .. } in event.fragments {
            assert!(seen.stored.insert((event.number, *source)), "twice");
            assert_eq!(*payload, body(event.number, *source, payload.len()), "another's bytes");
            seen.fragments += 1;
        }
        sources.extend(event.missing);
        sources.sort_unstable();
        assert_eq!(sources, (0..BOARDS).collect::<Vec<_>>());
        Ok(())
    }

    fn close(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// The payload of a fragment: fragments of one event and source may differ in length only.
fn body(event: u64, source: u16, len: usize) -> Vec<u8> {
    (0..len as u64).map(|n| (event * 7 + u64::from(source) * 31 + n) as u8).collect()
}

pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let seen = Rc::new(RefCell::new(Seen::default()));
    let mut bench = Bench::new(&mut input, Sink(seen.clone()));
    while !input.is_empty() {
        bench.step(&mut input);
        bench.count();
    }
    bench.receiver.finish(bench.now).expect("the sink takes all");
    let report = bench.receiver.report();
    let builder = report.builder;
    assert_eq!(builder.fragments_accepted, seen.borrow().fragments, "every accepted fragment is stored");
    let classified = builder.fragments_accepted + builder.duplicates + builder.strays();
    assert_eq!(report.receiver.fragments_good, classified);
}

struct Bench {
    receiver: Receiver<Sink>,
    now: Time,
    posted: [u32; BOARDS as usize],
    next: [u32; BOARDS as usize],
}

impl Bench {
    fn new(input: &mut Input, sink: Sink) -> Self {
        let ring = RingConfig { slots: SLOTS, slot_bytes: SLOT_BYTES, ..RingConfig::default() };
        let consumer = Rate::from_mbps(8 * u64::from(input.u8()));
        let config = ReceiverConfig {
            rings: (0..BOARDS).map(|board| ring.for_board(board)).collect(),
            builder: BuilderConfig {
                sources: NonZeroU16::new(BOARDS).expect("three"),
                window: 8,
                timeout: Time::from_us(1),
                ..BuilderConfig::default()
            },
            consumer_rate: (consumer > Rate(0)).then_some(consumer),
        };
        let receiver = Receiver::new(config, sink).expect("rings that fit");
        Bench { receiver, now: Time::ZERO, posted: [0; 3], next: [0; 3] }
    }

    fn step(&mut self, input: &mut Input) {
        let kind = input.u8();
        let board = u16::from(kind >> 4) % (BOARDS + 1);
        match kind % 8 {
            0..=3 => self.fragment(board % BOARDS, input),
            4 => {
                let region = self.receiver.region(board % BOARDS).expect("a board");
                let va = region.va.wrapping_add_signed(i64::from(input.u16()) - 64);
                let data = Bytes::copy_from_slice(input.bytes(usize::from(kind)));
                self.receiver.write(va, &Payload::Bytes(data));
            }
            5 => {
                let (imm, len) = (u32::from(input.u8()), u32::from(input.u16()));
                self.receiver.on_completion(self.now, board, imm, len).expect("the sink takes all");
            }
            6 => {
                self.now += Time(u64::from(input.u16()) * 100);
                self.receiver.handle_timeout(self.now).expect("the sink takes all");
            }
            _ => {
                for board in 0..BOARDS {
                    self.posted[usize::from(board)] += self.receiver.take_credits(board);
                }
            }
        }
    }

    /// What a board does: writes a fragment into its next slot and says so.
    fn fragment(&mut self, board: u16, input: &mut Input) {
        let region = self.receiver.region(board).expect("a board");
        let slot = &mut self.next[usize::from(board)];
        let (event, len) = (u64::from(input.u8() % 24), usize::from(input.u8()) % 80);
        let payload = body(event, board, len);
        let timestamp = if input.u8() == 0 { u64::from(input.u16()) } else { event * 10_000 };
        let header = FragmentHeader::for_payload(board, event, timestamp, &payload);
        let message = [&header.to_bytes()[..], &payload].concat();
        let va = region.va + u64::from(*slot) * u64::from(SLOT_BYTES);
        let imm = *slot;
        *slot = (*slot + 1) % SLOTS;
        let (len, bytes) = (message.len() as u32, Bytes::from(message));
        self.receiver.write(va, &Payload::Bytes(bytes));
        self.receiver.on_completion(self.now, board, imm, len).expect("the sink takes all");
    }

    /// A ring never posts more receives than it has slots but one, beside those that came to nothing.
    fn count(&self) {
        let report = self.receiver.report();
        for (ring, posted) in report.rings.iter().zip(self.posted) {
            let used = ring.completions + ring.completions_refused;
            assert!(u64::from(posted) < used + u64::from(SLOTS), "{posted} posted, {used} used");
        }
    }
}
