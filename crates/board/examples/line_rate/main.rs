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

use goodput::{gbps, Goodput, Load};
use penstock_board::Top;
use row::Row;
use station::Failure;

/// The front ends, by the names of their lines.
const TOPS: [(&str, Top); 3] = [("10G", Top::Gbps10X16), ("25G", Top::Gbps25X16), ("100G", Top::Gbps100X16)];
/// The same with streams of TCP instead of queue pairs.
const TCP_TOPS: [(&str, Top); 3] =
    [("10G", Top::Gbps10TcpX16), ("25G", Top::Gbps25TcpX16), ("100G", Top::Gbps100TcpX16)];
/// Those of queue pairs, by the width of their beats.
const WIDTHS: [(&str, Top); 2] = [("64 bits", Top::Gbps10X16), ("512 bits", Top::Gbps100X16)];
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
const FAR_QUEUE_PAIRS: [u8; 3] = [1, 4, 16];

fn main() -> Result<(), Failure> {
    let filter = Filter(std::env::args().nth(1));
    let mut rows = Vec::new();
    for ((line, top), far_queue_pairs) in TOPS.into_iter().zip(FAR_QUEUE_PAIRS) {
        rows.extend(goodput_rows(line, top, far_queue_pairs, &filter)?);
    }
    for ((line, top), far_streams) in TCP_TOPS.into_iter().zip(FAR_QUEUE_PAIRS) {
        rows.extend(stream_rows(line, top, far_streams, &filter)?);
    }
    for (line, top) in TOPS {
        rows.extend(event_rows(line, top, &filter)?);
    }
    rows.extend(first_row(Top::Gbps10, &filter)?);
    for (width, top) in WIDTHS {
        rows.extend(latency_rows(width, top, &filter)?);
    }
    for (width, top) in WIDTHS {
        rows.extend(event_latency_rows(width, top, &filter)?);
    }
    let of_source = |top| move || goodput::measure(top, BUSY);
    let of_software = |top| move || goodput::measure_posted(top, BUSY);
    rows.extend(speed_row("verilated 10G board, one core", of_source(Top::Gbps10), Some(5e5), &filter)?);
    let flows = "verilated 10G board of simulated flows, one core";
    rows.extend(speed_row(flows, of_software(Top::Gbps10Flows), Some(5e5), &filter)?);
    rows.extend(speed_row("verilated 100G board, one core", of_source(Top::Gbps100X16), None, &filter)?);
    println!("{}", row::json(&rows));
    Ok(())
}

/// The text that a row must have in its name.
struct Filter(Option<String>);

impl Filter {
    fn has(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|text| name.contains(text))
    }
}

/// All messages, MTUs and numbers of queue pairs on one line, and servers far away.
fn goodput_rows(line: &str, top: Top, far_queue_pairs: u8, filter: &Filter) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (message, message_bytes) in MESSAGES {
        for (mtu, queue_pairs) in MTUS.iter().flat_map(|mtu| QUEUE_PAIRS.map(|qps| (*mtu, qps))) {
            let load = Load { message_bytes, mtu, queue_pairs, ..BUSY };
            rows.extend(share_row(line, top, message, load, "", filter)?);
        }
    }
    let far = Load { queue_pairs: far_queue_pairs, answer_us: FAR_US, ..BUSY };
    let how = format!(", answers after {FAR_US} us");
    rows.extend(share_row(line, top, "64 kB", far, &how, filter)?);
    Ok(rows)
}

fn share_row(
    line: &str,
    top: Top,
    message: &str,
    load: Load,
    how: &str,
    filter: &Filter,
) -> Result<Option<Row>, Failure> {
    let limit = gbps(top) * load.payload_share();
    let (mtu, queue_pairs) = (load.mtu, load.queue_pairs);
    let plural = if queue_pairs == 1 { "" } else { "s" };
    let name = format!(
        "{line}, {message} messages, MTU {mtu}, {queue_pairs} QP{plural}{how}: share of {limit:.3} Gb/s possible"
    );
    if !filter.has(&name) {
        return Ok(None);
    }
    let share = goodput::measure(top, load)?.share;
    let (value, gbps) = (round(100.0 * share), Some((share * limit, limit)));
    Ok(Some(Row { name, value, unit: "%", target: Some(99.9), better: "higher", gbps }))
}

/// All messages, segments and numbers of streams of TCP on one line, and a host far away. Each stream keeps 256 KiB, so
/// a message of 1 MB does not bridge the distance: while it enters its ring no other stream gets data.
fn stream_rows(line: &str, top: Top, far_streams: u8, filter: &Filter) -> Result<Vec<Row>, Failure> {
    let near = MESSAGES.iter().flat_map(|message| SEGMENTS.map(|mss| (message, mss)));
    let near = near.flat_map(|(message, mss)| QUEUE_PAIRS.map(|streams| (message, mss, streams, BUSY.answer_us)));
    let far = MESSAGES[..2].iter().map(|message| (message, SEGMENTS[0], far_streams, FAR_US));
    let mut rows = Vec::new();
    for ((message, message_bytes), mss, streams, answer_us) in near.chain(far) {
        let load = streams::Load { message_bytes: *message_bytes, mss, streams, answer_us };
        let limit = gbps(top) * load.payload_share();
        let how = if answer_us == FAR_US { format!(", answers after {FAR_US} us") } else { String::new() };
        let name = format!(
            "{line}, TCP, {message} messages, MSS {mss}, {streams} stream{}{how}: share of {limit:.3} Gb/s possible",
            if streams == 1 { "" } else { "s" }
        );
        if filter.has(&name) {
            let share = streams::measure(top, load)?;
            let (value, gbps) = (round(100.0 * share), Some((share * limit, limit)));
            rows.push(Row { name, value, unit: "%", target: Some(99.9), better: "higher", gbps });
        }
    }
    Ok(rows)
}

/// Goodput itself, of the 10G front end as the demo has it.
fn first_row(top: Top, filter: &Filter) -> Result<Option<Row>, Failure> {
    let (load, target) = FIRST;
    let limit = gbps(top) * load.payload_share();
    let name = format!("10G, 100 kB messages, MTU 4096, 1 QP: goodput of {limit:.3} Gb/s possible");
    if !filter.has(&name) {
        return Ok(None);
    }
    let goodput = goodput::measure(top, load)?.share * limit;
    let gbps = Some((goodput, limit));
    Ok(Some(Row { name, value: round(goodput), unit: "Gb/s", target: Some(target), better: "higher", gbps }))
}

/// Events of four inputs through the fragment builder: what they put around the samples counts as payload of the
/// messages.
fn event_rows(line: &str, top: Top, filter: &Filter) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (event, payload) in EVENTS {
        let limit = gbps(top) * events::load(payload).payload_share();
        let name =
            format!("{line}, events of {event} from 4 inputs, MTU 4096, 1 QP: share of {limit:.3} Gb/s possible");
        if filter.has(&name) {
            let share = events::goodput(top, payload)?.share;
            let (value, gbps) = (round(100.0 * share), Some((share * limit, limit)));
            rows.push(Row { name, value, unit: "%", target: Some(99.9), better: "higher", gbps });
        }
    }
    Ok(rows)
}

/// A message of an event leaves when its last beat is there (docs/fragments.md), so this is at least the event's own
/// time.
fn event_latency_rows(width: &str, top: Top, filter: &Filter) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (how, cut_through) in [("cut-through", true), ("a packet stored first", false)] {
        let name = format!("first sample in to first byte on the wire, event of 4000 bytes, {width}, {how}");
        if filter.has(&name) {
            let value = events::latency(top, 4000, cut_through)?;
            rows.push(Row { name, value, unit: "cycles", target: None, better: "lower", gbps: None });
        }
    }
    Ok(rows)
}

fn latency_rows(width: &str, top: Top, filter: &Filter) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (how, cut_through, target) in
        [("cut-through", true, Some(100.0)), ("a 4096-byte packet stored first", false, None)]
    {
        let name = format!("first payload beat in to first byte on the wire, {width}, {how}");
        if filter.has(&name) {
            let value = latency::worst_case(top, cut_through)?;
            rows.push(Row { name, value, unit: "cycles", target, better: "lower", gbps: None });
        }
    }
    Ok(rows)
}

fn speed_row(
    name: &str,
    measure: impl FnOnce() -> Result<Goodput, Failure>,
    target: Option<f64>,
    filter: &Filter,
) -> Result<Option<Row>, Failure> {
    if !filter.has(name) {
        return Ok(None);
    }
    let value = measure()?.cycles_per_second.round();
    Ok(Some(Row { name: name.to_owned(), value, unit: "cycles/s", target, better: "higher", gbps: None }))
}

/// Rounds to a thousandth: the start of a frame is known to a lane.
fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
