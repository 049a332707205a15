// SPDX-License-Identifier: Apache-2.0
//! The speed of the readout on this machine, per second of one core's time, in memory: `cargo run --release -p
//! penstock-readout --example readout_speed`. Prints a JSON array of `{name, value, unit, target, better, command}`.
//! Target: 2 million fragments of 1142 B per second of the builder with 265 sources.

use std::num::{NonZeroU16, NonZeroUsize};
use std::time::Instant;

use nix::sys::resource::{getrusage, UsageWho};
use nix::sys::time::TimeValLike;

use bytes::Bytes;
use penstock_readout::*;
use penstock_transport::Memory;
use penstock_units::Time;
use penstock_wire::{FragmentHeader, Payload};

const COMMAND: &str = "cargo run --release -p penstock-readout --example readout_speed";

struct Figure {
    name: &'static str,
    value: f64,
    unit: &'static str,
    /// None where a figure only explains another.
    target: Option<f64>,
    better: &'static str,
}

/// Seconds of one core that this thread has had: other programs do not count.
struct Core(f64);

impl Core {
    fn start() -> Core {
        Core(Core::seconds())
    }

    fn elapsed(&self) -> f64 {
        Core::seconds() - self.0
    }

    fn seconds() -> f64 {
        let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("the kernel counts our time");
        (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e6
    }
}

fn main() {
    let (memcpy, fragments_1142, bytes_100k) =
        (memcpy_rate(), receiver_rate(265, 1142, 4000).0, receiver_rate(3, 100_000, 6000).1);
    let prbs = Pattern::Prbs31 { invert: true };
    let behind = run_writer_rate(2);
    let figure = |name, value, unit, target| Figure { name, value, unit, target, better: "higher" };
    let latency = |name, value| Figure { name, value, unit: "us", target: Some(20.0), better: "lower" };
    let figures = [
        figure("event builder, 265 sources, handles only", builder_rate(265, 40_000), "fragments/s", Some(2e6)),
        figure("receiver, 265 sources x 1142 B, CRC-32C checked", fragments_1142, "fragments/s", Some(2e6)),
        figure("receiver, 3 sources x 100 kB, CRC-32C checked", bytes_100k, "B/s", Some(memcpy / 3.0)),
        figure("memcpy of 100 kB blocks", memcpy, "B/s", None),
        latency("last fragment to event handed out, 265 x 1142 B, median", latency_us(265, 1142, 2000)),
        latency("last fragment to event handed out, 3 x 100 kB, median", latency_us(3, 100_000, 2000)),
        figure("PRBS-31 checked in 1142 B payloads", pattern_rate(prbs), "B/s", None),
        figure("counter checked in 1142 B payloads", pattern_rate(Pattern::Counter), "B/s", None),
        figure("Parquet writer in the caller's thread, zstd 1, 300 kB events", writer_rate(), "B/s", None),
        figure("Parquet writer behind threads, 300 kB events, of the receiving thread's time", behind.0, "B/s", None),
        figure("Parquet writer behind threads, 300 kB events, 2 encoders, of real time", behind.1, "B/s", None),
    ];
    let objects = figures.iter().map(|Figure { name, value, unit, target, better }| {
        let target = target.map_or("null".to_owned(), |target| format!("{target:.0}"));
        let digits = if *unit == "us" { 2 } else { 0 };
        format!(r#"  {{"name": "{name}", "value": {value:.digits$}, "unit": "{unit}", "target": {target}, "better": "{better}", "command": "{COMMAND}"}}"#)
    });
    println!("[\n{}\n]", objects.collect::<Vec<_>>().join(",\n"));
}

fn builder_config(sources: u16) -> BuilderConfig {
    BuilderConfig { sources: NonZeroU16::new(sources).expect("at least one source"), ..BuilderConfig::default() }
}

/// Fragments per second through the builder alone; sources in another order for every event, some events interleaved.
fn builder_rate(sources: u16, events: u64) -> f64 {
    const INTERLEAVED: u64 = 8;
    let mut builder = EventBuilder::<u32>::new(builder_config(sources));
    let start = Core::start();
    let mut handles = 0u64;
    for block in (0..events).step_by(INTERLEAVED as usize) {
        for i in 0..u64::from(sources) {
            for event in block..block + INTERLEAVED {
                let source = ((i * 7 + event) % u64::from(sources)) as u16;
                let id = FragmentId { event, source, timestamp_ns: event };
                assert_eq!(builder.push(Time(event), id, i as u32), Pushed::Accepted);
                while let Some(event) = builder.poll_event(Time(block)) {
                    handles += event.fragments().map(|(_, handle)| u64::from(handle & 1)).sum::<u64>();
                }
            }
        }
    }
    assert_eq!(builder.counters().events_complete, events);
    std::hint::black_box(handles);
    (events * u64::from(sources)) as f64 / start.elapsed()
}

/// A receiver whose slots are filled as a NIC would fill them, outside the measured time.
struct Filled<S> {
    receiver: Receiver<S>,
    rings: Vec<RingConfig>,
    payload: Vec<u8>,
}

impl<S: EventSink> Filled<S> {
    const SLOTS: u64 = 64;

    fn new(sources: u16, payload_len: usize, sink: S) -> Filled<S> {
        let slot_bytes = payload_len as u32 + 64;
        let ring = RingConfig { slots: Self::SLOTS as u32, slot_bytes, ..RingConfig::default() };
        let rings: Vec<RingConfig> = (0..sources).map(|board| ring.for_board(board)).collect();
        let builder = builder_config(sources);
        let config = ReceiverConfig { rings: rings.clone(), builder, consumer_rate: None };
        let receiver = Receiver::new(config, sink).expect("rings of for_board do not overlap");
        Filled { receiver, rings, payload: (0..payload_len).map(|i| (i * 31) as u8).collect() }
    }

    /// Fragments of half a ring of events, board by board, lie in their slots.
    fn fill(&mut self, events: std::ops::Range<u64>) {
        for number in events {
            for board in 0..self.rings.len() as u16 {
                self.receiver.take_credits(board);
                let header = FragmentHeader::for_payload(board, number, number, &self.payload);
                let message = [&header.to_bytes()[..], &self.payload].concat();
                let ring = self.rings[usize::from(board)];
                let va = ring.va + number % Self::SLOTS * u64::from(ring.slot_bytes);
                self.receiver.write(va, &Payload::Bytes(Bytes::from(message)));
            }
        }
    }

    fn complete(&mut self, number: u64, board: u16) {
        let slot = (number % Self::SLOTS) as u32;
        let byte_len = self.payload.len() as u32 + 40;
        self.receiver.on_completion(Time(number), board, slot, byte_len).expect("nothing is written");
        std::hint::black_box(self.receiver.take_credits(board));
    }
}

/// Fragments per second and payload bytes per second from completion to sink.
fn receiver_rate(sources: u16, payload_len: usize, events: u64) -> (f64, f64) {
    let mut filled = Filled::new(sources, payload_len, Discard::default());
    let half = Filled::<Discard>::SLOTS / 2;
    let mut seconds = 0.0;
    for block in (0..events).step_by(half as usize).map(|first| first..events.min(first + half)) {
        filled.fill(block.clone());
        let start = Core::start();
        for number in block {
            (0..sources).for_each(|board| filled.complete(number, board));
        }
        seconds += start.elapsed();
    }
    assert_eq!(filled.receiver.report().builder.events_complete, events);
    let fragments = (events * u64::from(sources)) as f64;
    (fragments / seconds, fragments * payload_len as f64 / seconds)
}

/// Notes when it is given an event.
struct Clocked(Instant);

impl EventSink for Clocked {
    fn store(&mut self, _: &Event<'_>) -> Result<(), StoreError> {
        self.0 = Instant::now();
        Ok(())
    }

    fn close(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Median time from the completion of an event's last fragment to the event in the sink's hands, in us of wall time.
fn latency_us(sources: u16, payload_len: usize, events: u64) -> f64 {
    let mut filled = Filled::new(sources, payload_len, Clocked(Instant::now()));
    let mut taken: Vec<f64> = (0..events)
        .map(|number| {
            filled.fill(number..number + 1);
            (0..sources - 1).for_each(|board| filled.complete(number, board));
            let start = Instant::now();
            filled.complete(number, sources - 1);
            filled.receiver.sink().0.duration_since(start).as_secs_f64() * 1e6
        })
        .collect();
    taken.sort_by(f64::total_cmp);
    taken[taken.len() / 2]
}

/// Bytes per second of payloads of 1142 B that are compared with a pattern, from memory that the caches do not hold.
fn pattern_rate(pattern: Pattern) -> f64 {
    const LEN: usize = 1142;
    let payloads: Vec<Vec<u8>> = match pattern {
        Pattern::Prbs31 { invert } => {
            let mut prbs = penstock_wire::Prbs31::new(0, invert);
            let mut payload = || {
                let mut payload = vec![0; LEN];
                prbs.fill(&mut payload);
                payload
            };
            (0..20_000).map(|_| payload()).collect()
        }
        Pattern::Counter => {
            let words = LEN.div_ceil(8) as u64;
            let payload = |n: u64| (n * words..(n + 1) * words).flat_map(u64::to_le_bytes).take(LEN).collect();
            (0..20_000).map(payload).collect()
        }
    };
    const ROUNDS: usize = 20;
    let start = Core::start();
    for _ in 0..ROUNDS {
        let mut check = PatternCheck::new(pattern);
        assert!(payloads.iter().all(|payload| check.check(0, payload) == Found::Right));
    }
    (ROUNDS * payloads.len() * LEN) as f64 / start.elapsed()
}

fn memcpy_rate() -> f64 {
    const BLOCK: usize = 100_000;
    let (from, mut to) = (vec![1u8; BLOCK * 200], vec![0u8; BLOCK * 200]);
    let start = Core::start();
    for _ in 0..20 {
        for (to, from) in to.chunks_mut(BLOCK).zip(from.chunks(BLOCK)) {
            std::hint::black_box(to).copy_from_slice(std::hint::black_box(from));
        }
    }
    (20 * BLOCK * 200) as f64 / start.elapsed()
}

/// Recorded events, `use_it` for each; the payload bytes of all.
fn recorded_events(source: &EventSource, count: u64, mut use_it: impl FnMut(&Event<'_>)) -> usize {
    let mut bytes = 0;
    // Their CRC-32C comes with the boards' fragments, and is no work of the writer's.
    for number in 0..count {
        let fragment = |source_id| Fragment {
            source: source_id,
            timestamp_ns: number,
            crc32c: number as u32,
            payload: source.payload(number, source_id),
            trigger_type: 0,
            parts: &[],
        };
        let fragments: Vec<Fragment<'_>> = (0..3).map(fragment).collect();
        let event = Event { number, timestamp_ns: Some(number), complete: true, fragments: &fragments, missing: &[] };
        bytes += event.payload_bytes();
        use_it(&event);
    }
    bytes
}

fn recorded() -> EventSource {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/lst1_run2008/modules.npz");
    EventSource::new(&Dataset::load(path).expect("test data"), 3).expect("three boards")
}

fn scratch() -> std::path::PathBuf {
    std::env::temp_dir().join(format!("penstock-readout-speed-{}", std::process::id()))
}

/// Payload bytes per second of recorded events into a Parquet file in the temporary folder.
fn writer_rate() -> f64 {
    let (source, out) = (recorded(), scratch());
    let mut writer = EventWriter::create(&out, &WriterOptions::default()).expect("temporary folder is writable");
    let start = Core::start();
    let bytes = recorded_events(&source, 500, |event| writer.store(event).expect("room in the temporary folder"));
    writer.close().expect("room in the temporary folder");
    let rate = bytes as f64 / start.elapsed();
    std::fs::remove_file(out).expect("own file");
    rate
}

/// The same by a run's writer, per second of the storing thread and per second of real time.
fn run_writer_rate(encoders: usize) -> (f64, f64) {
    let source = recorded();
    let encoders = NonZeroUsize::new(encoders).expect("at least one");
    let options = RunOptions { encoders, ..RunOptions::default() };
    let mut run = RunWriter::open(scratch(), options).expect("temporary folder is writable");
    let (core, clock) = (Core::start(), Instant::now());
    let bytes =
        recorded_events(&source, 500, |event| run.store_waiting(event).expect("room in the temporary folder")) as f64;
    let storing = core.elapsed();
    run.close().expect("room in the temporary folder");
    let rates = (bytes / storing, bytes / clock.elapsed().as_secs_f64());
    std::fs::remove_dir_all(scratch()).expect("own folder");
    rates
}
