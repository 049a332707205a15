// SPDX-License-Identifier: Apache-2.0
//! How fast the readout is on this machine, one core, in memory: `cargo run --release -p penstock-readout --example
//! readout_speed`. Prints a JSON array of `{name, value, unit, target, better, command}`.
//! Targets: issue F asks 2 million fragments of 1142 B per second of the builder with 265 sources.

use std::num::NonZeroU16;
use std::time::Instant;

use bytes::Bytes;
use penstock_readout::*;
use penstock_transport::Memory;
use penstock_wire::{FragmentHeader, Payload};

const COMMAND: &str = "cargo run --release -p penstock-readout --example readout_speed";

struct Figure {
    name: &'static str,
    value: f64,
    unit: &'static str,
    /// None where a figure only explains another.
    target: Option<f64>,
}

fn main() {
    let (memcpy, fragments_1142, bytes_100k) =
        (memcpy_rate(), receiver_rate(265, 1142, 4000).0, receiver_rate(3, 100_000, 6000).1);
    let figures = [
        Figure {
            name: "event builder, 265 sources, handles only",
            value: builder_rate(265, 40_000),
            unit: "fragments/s",
            target: Some(2e6),
        },
        Figure {
            name: "receiver, 265 sources x 1142 B, CRC-32C checked",
            value: fragments_1142,
            unit: "fragments/s",
            target: Some(2e6),
        },
        Figure {
            name: "receiver, 3 sources x 100 kB, CRC-32C checked",
            value: bytes_100k,
            unit: "B/s",
            target: Some(memcpy / 3.0),
        },
        Figure { name: "memcpy of 100 kB blocks", value: memcpy, unit: "B/s", target: None },
        Figure { name: "Parquet writer, zstd 1, 300 kB events", value: writer_rate(), unit: "B/s", target: None },
    ];
    let objects = figures.iter().map(|Figure { name, value, unit, target }| {
        let target = target.map_or("null".to_owned(), |target| format!("{target:.0}"));
        format!(r#"  {{"name": "{name}", "value": {value:.0}, "unit": "{unit}", "target": {target}, "better": "higher", "command": "{COMMAND}"}}"#)
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
    let start = Instant::now();
    let mut handles = 0u64;
    for block in (0..events).step_by(INTERLEAVED as usize) {
        for i in 0..u64::from(sources) {
            for event in block..block + INTERLEAVED {
                let source = ((i * 7 + event) % u64::from(sources)) as u16;
                let id = FragmentId { event, source, timestamp_ns: event };
                assert_eq!(builder.push(event, id, i as u32), Pushed::Accepted);
                while let Some(event) = builder.poll_event(block) {
                    handles += event.fragments().map(|(_, handle)| u64::from(handle & 1)).sum::<u64>();
                }
            }
        }
    }
    assert_eq!(builder.counters().events_complete, events);
    std::hint::black_box(handles);
    (events * u64::from(sources)) as f64 / start.elapsed().as_secs_f64()
}

/// Fragments per second and payload bytes per second from completion to sink. The slots are filled by packets outside
/// the measured time, as a NIC would fill them.
fn receiver_rate(sources: u16, payload_len: usize, events: u64) -> (f64, f64) {
    const SLOTS: u64 = 64;
    let ring = RingConfig { slots: SLOTS as u32, slot_bytes: payload_len as u32 + 64, ..RingConfig::default() };
    let rings: Vec<RingConfig> = (0..sources).map(|board| ring.for_board(board)).collect();
    let config = ReceiverConfig { rings: rings.clone(), builder: builder_config(sources), consumer_bytes_per_s: None };
    let mut receiver = Receiver::new(config, Discard::default()).expect("rings of for_board do not overlap");
    let payload: Vec<u8> = (0..payload_len).map(|i| (i * 31) as u8).collect();
    let (mut seconds, mut event) = (0.0, 0);
    while event < events {
        let block = event..events.min(event + SLOTS / 2);
        for number in block.clone() {
            for board in 0..sources {
                receiver.take_credits(board);
                let mut message = FragmentHeader::for_payload(board, number, number, &payload).to_bytes().to_vec();
                message.extend_from_slice(&payload);
                let va = rings[usize::from(board)].va + number % SLOTS * u64::from(ring.slot_bytes);
                receiver.write(va, &Payload::Bytes(Bytes::from(message)));
            }
        }
        let start = Instant::now();
        for number in block.clone() {
            for board in 0..sources {
                let slot = (number % SLOTS) as u32;
                receiver.on_completion(number, board, slot, payload_len as u32 + 40).expect("nothing is written");
                std::hint::black_box(receiver.take_credits(board));
            }
        }
        seconds += start.elapsed().as_secs_f64();
        event = block.end;
    }
    assert_eq!(receiver.report().builder.events_complete, events);
    let fragments = (events * u64::from(sources)) as f64;
    (fragments / seconds, fragments * payload_len as f64 / seconds)
}

fn memcpy_rate() -> f64 {
    const BLOCK: usize = 100_000;
    let (from, mut to) = (vec![1u8; BLOCK * 200], vec![0u8; BLOCK * 200]);
    let start = Instant::now();
    for _ in 0..20 {
        for (to, from) in to.chunks_mut(BLOCK).zip(from.chunks(BLOCK)) {
            std::hint::black_box(to).copy_from_slice(std::hint::black_box(from));
        }
    }
    (20 * BLOCK * 200) as f64 / start.elapsed().as_secs_f64()
}

/// Payload bytes per second of recorded events into a Parquet file in the temporary folder.
fn writer_rate() -> f64 {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/lst1_run2008/modules.npz");
    let source = EventSource::new(&Dataset::load(path).expect("test data"), 3).expect("three boards");
    let out = std::env::temp_dir().join(format!("penstock-readout-speed-{}.parquet", std::process::id()));
    let mut writer = EventWriter::create(&out, &WriterOptions::default()).expect("temporary folder is writable");
    let (start, mut bytes) = (Instant::now(), 0);
    for number in 0..500 {
        let fragment = |board| Fragment::of(board, number, source.payload(number, board));
        let fragments: Vec<Fragment<'_>> = (0..3).map(fragment).collect();
        let event = Event { number, timestamp_ns: Some(number), complete: true, fragments: &fragments, missing: &[] };
        bytes += event.payload_bytes();
        writer.store(&event).expect("room in the temporary folder");
    }
    writer.close().expect("room in the temporary folder");
    let rate = bytes as f64 / start.elapsed().as_secs_f64();
    std::fs::remove_file(out).expect("own file");
    rate
}
