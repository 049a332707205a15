// SPDX-License-Identifier: Apache-2.0
//! The metrics' names and texts. Names of counters are those of the register map.
//! Source: OpenMetrics 1.0; docs/ctl.md lists them.

use super::super::streams::Stream;
use super::look::{OfBoard, QueuePair, Read};
use super::meters::StreamMeters;
use penstock_ipbus::map::{Register, GROUPS};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{text, DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

type Latest = Arc<Mutex<Vec<OfBoard>>>;

/// The values for scrapes.
#[derive(Debug, Default)]
pub struct Served(Latest);

impl Served {
    pub fn registry(&self) -> Registry {
        let mut registry = Registry::with_prefix("penstock_gateware");
        registry.register_collector(Box::new(Boards(self.0.clone())));
        registry
    }

    pub fn publish(&self, boards: &[OfBoard]) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = boards.to_vec();
    }
}

pub fn encoded(registry: &Registry) -> String {
    let mut out = String::new();
    // Writing to a string does not fail, and nothing else does.
    let _ = text::encode(&mut out, registry);
    out
}

#[derive(Debug)]
struct Boards(Latest);

impl Collector for Boards {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let latest = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut families = Families { encoder, look: &latest };
        of_boards(&mut families)?;
        of_counters(&mut families)?;
        of_queue_pairs(&mut families)?;
        of_streams(&mut families)
    }
}

/// The library appends `_total` to the names of counters, and a full stop to help texts.
struct Families<'a, 'b> {
    encoder: DescriptorEncoder<'a>,
    look: &'b [OfBoard],
}

impl Families<'_, '_> {
    /// A value of each board that has one.
    fn boards<M: EncodeMetric>(
        &mut self,
        name: &str,
        help: &str,
        of: impl Fn(Option<&Read>) -> Option<M>,
    ) -> fmt::Result {
        let values = self.look.iter().filter_map(|(board, read)| Some((board, of(read.as_deref())?)));
        let values: Vec<_> = values.collect();
        let Some((_, first)) = values.first() else { return Ok(()) };
        let mut family = self.encoder.encode_descriptor(name, help, None, first.metric_type())?;
        values.iter().try_for_each(|(board, value)| value.encode(family.encode_family(&[("board", board.as_str())])?))
    }

    /// A value of each queue pair.
    fn queue_pairs<M: EncodeMetric>(&mut self, name: &str, help: &str, of: impl Fn(&QueuePair) -> M) -> fmt::Result {
        self.rows("queue_pair", name, help, |read| &read.queue_pairs, of)
    }

    /// A value of each TCP stream.
    fn streams<M: EncodeMetric>(&mut self, name: &str, help: &str, of: impl Fn(&Stream) -> M) -> fmt::Result {
        self.rows("stream", name, help, |read| &read.streams, of)
    }

    /// A value of each TCP stream's meters; the function passed to `of` makes seconds of cycles.
    fn meters<M: EncodeMetric>(
        &mut self,
        name: &str,
        help: &str,
        of: impl Fn(&StreamMeters, &dyn Fn(u64) -> f64) -> M,
    ) -> fmt::Result {
        let timed = |read: &Read| -> Vec<M> {
            let seconds = |cycles: u64| cycles as f64 / (f64::from(read.scale.clock_khz) * 1e3);
            read.meters.iter().map(|meters| of(meters, &seconds)).collect()
        };
        self.values("stream", name, help, timed)
    }

    /// A value for each copy of a register.
    fn rows<T, M: EncodeMetric>(
        &mut self,
        label: &'static str,
        name: &str,
        help: &str,
        rows: impl Fn(&Read) -> &Vec<T>,
        of: impl Fn(&T) -> M,
    ) -> fmt::Result {
        self.values(label, name, help, |read| rows(read).iter().map(&of).collect())
    }

    /// A value for each row of a board.
    fn values<M: EncodeMetric>(
        &mut self,
        label: &'static str,
        name: &str,
        help: &str,
        values: impl Fn(&Read) -> Vec<M>,
    ) -> fmt::Result {
        let mut all = Vec::new();
        for (board, read) in self.look {
            let rows = read.iter().flat_map(|read| values(read).into_iter().enumerate());
            all.extend(rows.map(|(row, one)| (board, row.to_string(), one)));
        }
        let Some((_, _, first)) = all.first() else { return Ok(()) };
        let mut family = self.encoder.encode_descriptor(name, help, None, first.metric_type())?;
        all.iter().try_for_each(|(board, row, value)| {
            value.encode(family.encode_family(&[("board", board.as_str()), (label, row.as_str())])?)
        })
    }
}

fn gauge(value: bool) -> ConstGauge<u32> {
    ConstGauge::new(u32::from(value))
}

fn of_boards(families: &mut Families<'_, '_>) -> fmt::Result {
    let unix = |time: SystemTime| time.duration_since(std::time::UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
    families.boards("up", "Whether the board answers and has this program's register map", |read| {
        Some(gauge(read.is_some()))
    })?;
    families.boards("read_time_seconds", "When the board was read last, Unix time", |read| {
        Some(ConstGauge::new(unix(read?.time)))
    })?;
    families
        .boards("link_up", "Whether the link has neither local nor remote fault", |read| Some(gauge(read?.link_up)))?;
    families.boards("source_runs", "Whether the message source runs", |read| Some(gauge(read?.source_runs)))
}

fn of_counters(families: &mut Families<'_, '_>) -> fmt::Result {
    let registers: &[Register] =
        GROUPS.iter().find(|group| group.name == "counters").map_or(&[], |group| group.registers);
    registers.iter().enumerate().try_for_each(|(at, register)| {
        let help = register.desc.trim_end_matches('.');
        families.boards(register.name, help, |read| Some(ConstCounter::new(u64::from(*read?.counters.get(at)?))))
    })
}

fn of_queue_pairs(families: &mut Families<'_, '_>) -> fmt::Result {
    let state = "State as enum ibv_qp_state: 0 RESET, 1 INIT, 2 RTR, 3 RTS, 4 SQD, 6 ERR";
    families.queue_pairs("queue_pair_state", state, |qp| ConstGauge::new(qp.state))?;
    let current = |qp: &QueuePair| ConstGauge::new(qp.rate_current_bps as f64);
    families.queue_pairs("rate_current_bits_per_second", "R_C of congestion control", current)?;
    let target = |qp: &QueuePair| ConstGauge::new(qp.rate_target_bps as f64);
    families.queue_pairs("rate_target_bits_per_second", "R_T of congestion control", target)?;
    families.queue_pairs("alpha", "Estimate of congestion, 0 to 1", |qp| ConstGauge::new(qp.alpha))?;
    let cuts = "Notifications that cut the rate";
    families.queue_pairs("cnp_handled", cuts, |qp| ConstCounter::new(u64::from(qp.notifications)))?;
    families.queue_pairs("acknowledged_bytes", "Payload bytes acknowledged", |qp| ConstCounter::new(qp.bytes_acked))
}

fn of_streams(families: &mut Families<'_, '_>) -> fmt::Result {
    let state = "State of a TCP stream: 0 closed, 1 a SYN is sent, 2 established";
    families.streams("stream_state", state, |stream| ConstGauge::new(stream.state))?;
    let bytes = "Bytes acknowledged by the receiver of a TCP stream";
    families.streams("stream_acknowledged_bytes", bytes, |stream| ConstCounter::new(stream.bytes_acked))?;
    let fill = "Bytes in the ring of a TCP stream without an acknowledgement";
    families.streams("stream_ring_bytes", fill, |stream| ConstGauge::new(stream.ring_fill))?;
    let series = "Bytes of a TCP stream's last series of messages that are acknowledged";
    families.meters("stream_series_bytes", series, |meters, _| ConstGauge::new(meters.bytes as f64))?;
    let time = "From the first byte of that series sent to the last acknowledgement so far";
    families.meters("stream_series_seconds", time, |meters, seconds| ConstGauge::new(seconds(meters.transfer_time)))?;
    let last = "From a segment of a TCP stream to its acknowledgement: the last one measured";
    families.meters("stream_latency_last_seconds", last, |meters, seconds| {
        ConstGauge::new(seconds(meters.latency_last.into()))
    })?;
    families.meters("stream_latency_shortest_seconds", "The shortest", |meters, seconds| {
        ConstGauge::new(seconds(meters.latency_shortest.into()))
    })?;
    families.meters("stream_latency_longest_seconds", "The longest", |meters, seconds| {
        ConstGauge::new(seconds(meters.latency_longest.into()))
    })
}
