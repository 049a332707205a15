// SPDX-License-Identifier: Apache-2.0
//! The whole receiver, from memory writes to stored events, driven as a back end drives it.
//! Promise checked: byte-exactness is reported when it holds and only then; credits stop a board that is too fast.
//! A failing case prints its seed and input.

use std::num::NonZeroU16;
use std::path::Path;
use std::sync::LazyLock;

use bytes::Bytes;
use penstock_readout::*;
use penstock_transport::Memory;
use penstock_units::{Rate, Time};
use penstock_wire::{FragmentId, Part, PartFlags, Parts, Payload};
use proptest::prelude::*;

const MTU: usize = 4096;
const BOARDS: u16 = 3;
const TIMEOUT: Time = Time::from_us(1);

static SOURCE: LazyLock<EventSource> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/lst1_run2008/modules.npz");
    EventSource::new(&Dataset::load(path).unwrap(), BOARDS).unwrap()
});

fn config(slots: u32) -> ReceiverConfig {
    let ring = RingConfig { slots, ..RingConfig::default() };
    ReceiverConfig {
        rings: (0..BOARDS).map(|board| ring.for_board(board)).collect(),
        builder: BuilderConfig {
            sources: NonZeroU16::new(BOARDS).unwrap(),
            timeout: TIMEOUT,
            ..BuilderConfig::default()
        },
        consumer_rate: None,
    }
}

/// The back end: posts receives, writes packets, reports completions, as a board fills its ring.
struct Bench<S> {
    receiver: Receiver<S>,
    slots: u32,
    credits: [u32; BOARDS as usize],
    next_slot: [u32; BOARDS as usize],
}

impl<S: EventSink> Bench<S> {
    fn new(config: ReceiverConfig, sink: S) -> Bench<S> {
        let slots = config.rings[0].slots;
        let receiver = Receiver::new(config, sink).unwrap().with_reference(SOURCE.clone());
        Bench { receiver, slots, credits: [0; 3], next_slot: [0; 3] }
    }

    /// Whether `board` could send: it needs a posted receive.
    fn send(&mut self, now: Time, board: u16, message: &Bytes) -> bool {
        let b = usize::from(board);
        self.credits[b] += self.receiver.take_credits(board);
        if self.credits[b] == 0 {
            return false;
        }
        self.credits[b] -= 1;
        let slot = self.next_slot[b];
        self.next_slot[b] = (slot + 1) % self.slots;
        let va = self.receiver.region(board).unwrap().va + u64::from(slot) * 128 * 1024;
        for at in (0..message.len()).step_by(MTU) {
            let packet = message.slice(at..message.len().min(at + MTU));
            self.receiver.write(va + at as u64, &Payload::Bytes(packet));
        }
        self.receiver.on_completion(now, board, slot, message.len() as u32).unwrap();
        true
    }
}

fn message(event: u64, board: u16) -> Bytes {
    SOURCE.message(event, board, event * 100_000)
}

#[test]
fn whole_events_are_byte_exact() {
    let mut bench = Bench::new(config(8), Discard::default());
    for event in 0..60 {
        for board in [2, 0, 1] {
            assert!(bench.send(Time(event), board, &message(event, board)));
        }
    }
    bench.receiver.finish(Time(60)).unwrap();
    let report = bench.receiver.report();
    let check = report.check.unwrap();
    assert!(check.byte_exact(), "{:?}", check.first_difference);
    assert_eq!((report.builder.events_complete, report.builder.events_incomplete), (60, 0));
    assert_eq!((check.fragments, check.bytes, bench.receiver.sink().bytes), (180, 60 * 302_630, 60 * 302_630));
    assert!(report.rings.iter().all(|ring| ring.writes_refused == 0 && ring.completions == 60));
}

#[test]
fn a_fragment_of_another_event_with_a_right_crc_is_not_byte_exact() {
    let mut bench = Bench::new(config(8), Discard::default());
    let other = SOURCE.payload(5, 1);
    let forged = [&penstock_wire::FragmentHeader::for_payload(1, 0, 0, other).to_bytes(), &other[..]].concat();
    assert!(
        bench.send(Time::ZERO, 0, &message(0, 0))
            && bench.send(Time::ZERO, 1, &forged.into())
            && bench.send(Time::ZERO, 2, &message(0, 2))
    );
    let report = bench.receiver.report();
    let check = report.check.unwrap();
    assert_eq!((report.builder.events_complete, check.fragments_differing), (1, 1));
    assert_eq!(check.first_difference.map(|d| (d.event, d.source)), Some((0, 1)));
}

#[test]
fn a_slow_consumer_holds_back_credits_and_loses_nothing() {
    let consumer_rate = Some(Rate(8 * 302_630_000)); // 1 ms an event
    let mut bench = Bench::new(ReceiverConfig { consumer_rate, ..config(4) }, Discard::default());
    let (mut now, mut event) = (Time::ZERO, [0u64; 3]);
    while event.iter().any(|&event| event < 20) {
        let mut sent = false;
        for board in 0..BOARDS {
            let next = &mut event[usize::from(board)];
            if *next < 20 && bench.send(now, board, &message(*next, board)) {
                (sent, *next) = (true, *next + 1);
            }
        }
        if !sent {
            now = bench.receiver.poll_timeout().expect("a slot will come free");
            bench.receiver.handle_timeout(now).unwrap();
        }
    }
    bench.receiver.finish(now).unwrap();
    assert_eq!(bench.receiver.report().builder.events_complete, 20);
    assert!(bench.receiver.report().check.unwrap().byte_exact());
    assert_eq!(now, Time::from_ms(17), "three slots are filled at once, the others wait 1 ms each");
}

#[test]
fn rings_that_overlap_or_are_too_few_are_refused() {
    let mut overlapping = config(4);
    overlapping.rings[2].va = overlapping.rings[1].va + 1;
    let error = Receiver::new(overlapping, Discard::default()).err();
    assert_eq!(error, Some(ReceiverError::Overlap { a: 1, b: 2 }));
    let too_few = ReceiverConfig { rings: Vec::new(), ..config(4) };
    let error = Receiver::new(too_few, Discard::default()).err();
    assert_eq!(error, Some(ReceiverError::RingCount { rings: 0, sources: 3 }));
}

/// What happens to one fragment on its way.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Whole,
    Lost,
    /// A bit of the message flips behind all other checks.
    Flipped(prop::sample::Index, u8),
    /// The end is missing.
    Short(prop::sample::Index),
    Twice,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        12 => Just(Fate::Whole),
        1 => Just(Fate::Lost),
        1 => (any::<prop::sample::Index>(), 0u8..8).prop_map(|(at, bit)| Fate::Flipped(at, bit)),
        1 => any::<prop::sample::Index>().prop_map(Fate::Short),
        1 => Just(Fate::Twice),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn damage_makes_events_incomplete_but_never_wrong(fates in prop::collection::vec([fate(), fate(), fate()], 1..24)) {
        let mut bench = Bench::new(config(8), Discard::default());
        let (mut complete, mut good) = (0, 0);
        let mut now = Time::ZERO;
        for (event, fates) in (0..).zip(&fates) {
            for (board, fate) in (0..BOARDS).zip(fates) {
                now += TIMEOUT / 64;
                while bench.receiver.poll_timeout().is_some_and(|timeout| timeout <= now) {
                    bench.receiver.handle_timeout(now).unwrap();
                }
                let whole = message(event, board);
                let messages = match *fate {
                    Fate::Whole => vec![whole],
                    Fate::Lost => vec![],
                    Fate::Flipped(at, bit) => {
                        let mut bytes = whole.to_vec();
                        bytes[at.index(whole.len())] ^= 1 << bit;
                        vec![bytes.into()]
                    }
                    Fate::Short(at) => vec![whole.slice(..at.index(whole.len()))],
                    Fate::Twice => vec![whole.clone(), whole],
                };
                for message in messages {
                    while !bench.send(now, board, &message) {
                        now = bench.receiver.poll_timeout().expect("an event will time out");
                        bench.receiver.handle_timeout(now).unwrap();
                    }
                }
            }
            let intact = fates.iter().filter(|fate| matches!(fate, Fate::Whole | Fate::Twice)).count();
            good += intact as u64;
            complete += u64::from(intact == 3);
        }
        bench.receiver.finish(now).unwrap();

        let report = bench.receiver.report();
        let check = report.check.unwrap();
        prop_assert_eq!(report.builder.events_complete, complete);
        prop_assert_eq!(check.fragments, good);
        prop_assert_eq!(check.fragments_differing, 0);
        prop_assert_eq!(bench.receiver.sink().events, report.builder.events_complete + report.builder.events_incomplete);
    }
}

/// Keeps what the readout says of the parts of every fragment.
#[derive(Default)]
struct PartsKept(Vec<(u64, Vec<Part>)>);

impl EventSink for PartsKept {
    fn store(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        for fragment in event.fragments {
            let parts = Parts::parse(fragment.parts, fragment.payload.len() as u32).unwrap();
            assert_eq!(fragment.crc32c, penstock_wire::crc32c(fragment.payload));
            self.0.push((event.number, parts.iter().collect()));
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

#[test]
fn both_versions_make_one_event_and_the_parts_reach_the_sink() {
    let mut bench = Bench::new(config(8), PartsKept::default());
    for event in 0..20 {
        for board in 0..BOARDS {
            let payload = SOURCE.payload(event, board);
            let len = payload.len() as u32;
            let parts = [
                Part { input: 0, len: 1136, ..Part::default() },
                Part { input: 4, offset: 1136, len: len - 1136, ..Part::default() },
            ];
            let id =
                FragmentId { source_id: board, event_number: event, timestamp_ns: event * 100_000, trigger_type: 1 };
            let sent = match (event + u64::from(board)) % 2 {
                0 => message(event, board),
                _ => id.message_2(payload, PartFlags::default(), &parts).into(),
            };
            assert!(bench.send(Time(event), board, &sent));
        }
    }
    bench.receiver.finish(Time(60)).unwrap();
    let report = bench.receiver.report();
    assert!(report.check.unwrap().byte_exact());
    assert_eq!((report.receiver.fragments_good, report.builder.events_complete), (60, 20));
    for (at, (event, parts)) in bench.receiver.sink().0.iter().enumerate() {
        let inputs: Vec<u8> = parts.iter().map(|part| part.input).collect();
        let of_version_2 = (event + at as u64 % 3) % 2 == 1;
        assert_eq!(inputs, if of_version_2 { vec![0, 4] } else { vec![] });
    }
}

#[test]
fn a_fragment_of_version_2_that_is_damaged_or_cut_is_counted_and_not_stored() {
    let mut bench = Bench::new(config(8), Discard::default());
    let id = FragmentId { source_id: 0, event_number: 0, timestamp_ns: 0, trigger_type: 0 };
    let whole = id.message_2(SOURCE.payload(0, 0), PartFlags::default(), &[]);
    let mut damaged = whole.clone();
    damaged[500] ^= 4;
    assert!(bench.send(Time(0), 0, &damaged.into()));
    assert!(bench.send(Time(1), 0, &whole[..whole.len() - 8].to_vec().into()));
    assert!(bench.send(Time(2), 0, &whole.into()));
    let report = bench.receiver.report().receiver;
    assert_eq!((report.fragments_crc_error, report.fragments_malformed, report.fragments_good), (1, 1, 1));
}

#[test]
fn a_message_of_another_servers_event_is_foreign_from_the_announced_event_on() {
    let mut bench = Bench::new(config(8), Discard::default());
    let foreign = |bench: &Bench<Discard>, event| bench.receiver.foreign(&Payload::Bytes(message(event, 0)));
    assert_eq!(foreign(&bench, 7), None, "a server that shares no run takes every event");
    for share in Servers::of(vec![0, 1], [(10, vec![]), (10, vec![1]), (20, vec![])]).unwrap().shares(1) {
        bench.receiver.change_share(share).unwrap();
    }
    assert_eq!(
        [0, 1, 2, 9, 10, 11, 20, 21].map(|event| foreign(&bench, event)),
        [Some(0), None, Some(2), None, None, None, Some(20), Some(21)]
    );
    assert_eq!(bench.receiver.foreign(&Payload::Bytes(Bytes::from_static(b"no fragment"))), None);
}
