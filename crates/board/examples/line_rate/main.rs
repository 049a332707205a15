// SPDX-License-Identifier: Apache-2.0
//! Measures verilated front ends with servers that answer after 1 us, some after 160 us, and prints rows of `make
//! bench` as JSON: goodput on the wire as a share of the limit that packet overhead sets, for messages over RoCE and
//! TCP and for events through the fragment builder; latency; and speed of simulation.
//!
//! An argument selects the rows whose names contain it: `line_rate "100G, 5 kB"`.

mod detector;
mod events;
mod goodput;
mod latency;
mod row;
mod station;
mod stopwatch;
mod streams;

use goodput::{Line, Load};
use penstock_board::{Penstock100gTcpX16, Penstock100gX16, Penstock10g, Penstock10gTcpX16, Penstock10gX16, Top};
use row::Row;
use station::Failure;

/// The same model serves 10G and 25G: `penstock_xgmii` is the same logic at either clock, and cycles are what counts.
const LINES_64_BIT: [Line; 2] =
    [Line { name: "10G", gbps: 10.0, cycles_per_us: 156.25 }, Line { name: "25G", gbps: 25.0, cycles_per_us: 390.625 }];
const LINE_512_BIT: Line = Line { name: "100G", gbps: 100.0, cycles_per_us: 322.265_625 };

const MESSAGES: [(&str, u32); 3] = [("5 kB", 5000), ("64 kB", 1 << 16), ("1 MB", 1 << 20)];
const MTUS: [u16; 2] = [4096, 1024];
/// Payload of an event, of all inputs.
const EVENTS: [(&str, usize); 2] = [("5 kB", 5000), ("100 kB", 100_000)];
const QUEUE_PAIRS: [u8; 2] = [1, 16];
/// Payload bytes of a segment in frames of 9000 and of 1500.
const SEGMENTS: [u16; 2] = [8960, 1460];
/// The goodput in Gb/s that the demo's front end must reach, and with what.
const FIRST: (Load, f64) = (Load { message_bytes: 100_000, ..BUSY }, 9.79);
/// What the speed of simulation is measured with.
const BUSY: Load = Load { message_bytes: 1 << 16, mtu: 4096, queue_pairs: 1, answer_us: 1.0 };
/// What stays in flight before the rings fill: of one queue pair at 10G, of several at the other rates.
const FAR_US: f64 = 160.0;

fn main() -> Result<(), Failure> {
    let wanted = Wanted(std::env::args().nth(1));
    let mut rows = Vec::new();
    for (line, far_queue_pairs) in LINES_64_BIT.iter().zip([1, 4]) {
        rows.extend(goodput_rows::<Penstock10gX16>(line, far_queue_pairs, &wanted)?);
    }
    rows.extend(goodput_rows::<Penstock100gX16>(&LINE_512_BIT, 16, &wanted)?);
    for (line, far_streams) in LINES_64_BIT.iter().zip([1, 4]) {
        rows.extend(stream_rows::<Penstock10gTcpX16>(line, far_streams, &wanted)?);
    }
    rows.extend(stream_rows::<Penstock100gTcpX16>(&LINE_512_BIT, 16, &wanted)?);
    for line in &LINES_64_BIT {
        rows.extend(event_rows::<Penstock10gX16>(line, &wanted)?);
    }
    rows.extend(event_rows::<Penstock100gX16>(&LINE_512_BIT, &wanted)?);
    rows.extend(first_row::<Penstock10g>(&wanted)?);
    rows.extend(latency_rows::<Penstock10gX16>("64 bits", &wanted)?);
    rows.extend(latency_rows::<Penstock100gX16>("512 bits", &wanted)?);
    rows.extend(event_latency_rows::<Penstock10gX16>("64 bits", &wanted)?);
    rows.extend(event_latency_rows::<Penstock100gX16>("512 bits", &wanted)?);
    rows.extend(speed_row::<Penstock10g>("verilated 10G board, one core", &LINES_64_BIT[0], Some(3e5), &wanted)?);
    rows.extend(speed_row::<Penstock100gX16>("verilated 100G board, one core", &LINE_512_BIT, None, &wanted)?);
    println!("{}", row::json(&rows));
    Ok(())
}

/// The text that a row must have in its name.
struct Wanted(Option<String>);

impl Wanted {
    fn has(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|text| name.contains(text))
    }
}

/// All messages, MTUs and numbers of queue pairs on one line, and servers far away.
fn goodput_rows<T: Top>(line: &Line, far_queue_pairs: u8, wanted: &Wanted) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (message, message_bytes) in MESSAGES {
        for (mtu, queue_pairs) in MTUS.iter().flat_map(|mtu| QUEUE_PAIRS.map(|qps| (*mtu, qps))) {
            let load = Load { message_bytes, mtu, queue_pairs, ..BUSY };
            rows.extend(share_row::<T>(line, message, load, "", wanted)?);
        }
    }
    let far = Load { queue_pairs: far_queue_pairs, answer_us: FAR_US, ..BUSY };
    let how = format!(", answers after {FAR_US} us");
    rows.extend(share_row::<T>(line, "64 kB", far, &how, wanted)?);
    Ok(rows)
}

fn share_row<T: Top>(
    line: &Line,
    message: &str,
    load: Load,
    how: &str,
    wanted: &Wanted,
) -> Result<Option<Row>, Failure> {
    let limit = line.gbps * load.payload_share();
    let (mtu, queue_pairs) = (load.mtu, load.queue_pairs);
    let plural = if queue_pairs == 1 { "" } else { "s" };
    let name = format!(
        "{}, {message} messages, MTU {mtu}, {queue_pairs} QP{plural}{how}: share of {limit:.3} Gb/s possible",
        line.name
    );
    if !wanted.has(&name) {
        return Ok(None);
    }
    let share = goodput::measure::<T>(line, load)?.share;
    let (value, gbps) = (round(100.0 * share), Some((share * limit, limit)));
    Ok(Some(Row { name, value, unit: "%", target: Some(99.9), better: "higher", gbps }))
}

/// All messages, segments and numbers of streams of TCP on one line, and a host far away. Each stream keeps 256 KiB, so
/// a message of 1 MB does not bridge the distance: while it enters its ring no other stream gets data.
fn stream_rows<T: Top>(line: &Line, far_streams: u8, wanted: &Wanted) -> Result<Vec<Row>, Failure> {
    let near = MESSAGES.iter().flat_map(|message| SEGMENTS.map(|mss| (message, mss)));
    let near = near.flat_map(|(message, mss)| QUEUE_PAIRS.map(|streams| (message, mss, streams, BUSY.answer_us)));
    let far = MESSAGES[..2].iter().map(|message| (message, SEGMENTS[0], far_streams, FAR_US));
    let mut rows = Vec::new();
    for ((message, message_bytes), mss, streams, answer_us) in near.chain(far) {
        let load = streams::Load { message_bytes: *message_bytes, mss, streams, answer_us };
        let limit = line.gbps * load.payload_share();
        let how = if answer_us == FAR_US { format!(", answers after {FAR_US} us") } else { String::new() };
        let name = format!(
            "{}, TCP, {message} messages, MSS {mss}, {streams} stream{}{how}: share of {limit:.3} Gb/s possible",
            line.name,
            if streams == 1 { "" } else { "s" }
        );
        if wanted.has(&name) {
            let share = streams::measure::<T>(line, load)?;
            let (value, gbps) = (round(100.0 * share), Some((share * limit, limit)));
            rows.push(Row { name, value, unit: "%", target: Some(99.9), better: "higher", gbps });
        }
    }
    Ok(rows)
}

/// Goodput itself, of the 10G front end as the demo has it.
fn first_row<T: Top>(wanted: &Wanted) -> Result<Option<Row>, Failure> {
    let ((load, target), line) = (FIRST, &LINES_64_BIT[0]);
    let limit = line.gbps * load.payload_share();
    let name = format!("10G, 100 kB messages, MTU 4096, 1 QP: goodput of {limit:.3} Gb/s possible");
    if !wanted.has(&name) {
        return Ok(None);
    }
    let goodput = goodput::measure::<T>(line, load)?.share * limit;
    let gbps = Some((goodput, limit));
    Ok(Some(Row { name, value: round(goodput), unit: "Gb/s", target: Some(target), better: "higher", gbps }))
}

/// Events of four inputs through the fragment builder: what they put around the samples counts as payload of the
/// messages.
fn event_rows<T: Top>(line: &Line, wanted: &Wanted) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (event, payload) in EVENTS {
        let limit = line.gbps * events::load(payload).payload_share();
        let name = format!(
            "{}, events of {event} from 4 inputs, MTU 4096, 1 QP: share of {limit:.3} Gb/s possible",
            line.name
        );
        if wanted.has(&name) {
            let share = events::goodput::<T>(line, payload)?.share;
            let (value, gbps) = (round(100.0 * share), Some((share * limit, limit)));
            rows.push(Row { name, value, unit: "%", target: Some(99.9), better: "higher", gbps });
        }
    }
    Ok(rows)
}

/// A message of an event leaves when its last beat is there (docs/fragments.md), so this is at least the event's own
/// time.
fn event_latency_rows<T: Top>(width: &str, wanted: &Wanted) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (how, cut_through) in [("cut-through", true), ("a packet stored first", false)] {
        let name = format!("first sample in to first byte on the wire, event of 4000 bytes, {width}, {how}");
        if wanted.has(&name) {
            let value = events::latency::<T>(4000, cut_through)?;
            rows.push(Row { name, value, unit: "cycles", target: None, better: "lower", gbps: None });
        }
    }
    Ok(rows)
}

fn latency_rows<T: Top>(width: &str, wanted: &Wanted) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (how, cut_through, target) in
        [("cut-through", true, Some(100.0)), ("a 4096-byte packet stored first", false, None)]
    {
        let name = format!("first payload beat in to first byte on the wire, {width}, {how}");
        if wanted.has(&name) {
            let value = latency::worst_case::<T>(cut_through)?;
            rows.push(Row { name, value, unit: "cycles", target, better: "lower", gbps: None });
        }
    }
    Ok(rows)
}

fn speed_row<T: Top>(name: &str, line: &Line, target: Option<f64>, wanted: &Wanted) -> Result<Option<Row>, Failure> {
    if !wanted.has(name) {
        return Ok(None);
    }
    let value = goodput::measure::<T>(line, BUSY)?.cycles_per_second.round();
    Ok(Some(Row { name: name.to_owned(), value, unit: "cycles/s", target, better: "higher", gbps: None }))
}

/// To a thousandth: the start of a frame is known to a lane.
fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
