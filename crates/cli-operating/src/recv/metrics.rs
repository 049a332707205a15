// SPDX-License-Identifier: Apache-2.0
//! Prometheus metrics: every counter of a session, in families with a help text, as `prometheus-client` writes them.
//! Promise: the receiver passes its report on and continues; the serving thread formats the text.
//! Source: OpenMetrics 1.0; docs/recv.md lists the names.

use super::listening::not_listening;
use super::observer::{Observer, ServerState, Turn};
use penstock_dashboard::serve_metrics;
use penstock_readout::session::{BoardReport, BoardState, SessionError, SessionReport};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{text, DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// The latest report of the receiver; none before the first.
type Latest = Arc<Mutex<Option<Published>>>;

#[derive(Debug, Clone)]
struct Published {
    report: Arc<SessionReport>,
    /// Its part in a farm.
    server: Option<ServerState>,
    /// Number of reports: a heartbeat that repeats it shows that the receiver hangs.
    turns: u64,
}

pub struct Metrics {
    latest: Latest,
    turns: u64,
}

impl Metrics {
    /// Listens at `address` until the process ends.
    pub fn serve(address: SocketAddr) -> Result<Metrics, String> {
        let latest = Latest::default();
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let registry = registry(latest.clone(), u64::try_from(since_1970.as_micros()).unwrap_or(0));
        serve_metrics(address, move || encoded(&registry))
            .map_err(|error| not_listening("--metrics", address, &error))?;
        Ok(Metrics { latest, turns: 0 })
    }
}

impl Observer for Metrics {
    fn observe(&mut self, turn: &mut Turn<'_>) -> Result<(), SessionError> {
        self.turns += 1;
        let published = Published { report: Arc::new(turn.session.report()), server: turn.server, turns: self.turns };
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(published);
        Ok(())
    }
}

fn registry(latest: Latest, started_us: u64) -> Registry {
    let mut registry = Registry::with_prefix("penstock");
    registry.register_collector(Box::new(Session { latest, started_us }));
    registry
}

fn encoded(registry: &Registry) -> String {
    let mut out = String::new();
    // Writing to a string does not fail, and nothing else does.
    let _ = text::encode(&mut out, registry);
    out
}

#[derive(Debug)]
struct Session {
    latest: Latest,
    /// Microseconds since 1970.
    started_us: u64,
}

impl Collector for Session {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(Published { report, server, turns }) = latest else { return Ok(()) };
        let mut families = Families(encoder);
        if let Some(ServerState { number, tables, digest }) = server {
            let help = "Tables of servers that were read from the file of servers, the first one included";
            families.one("server_tables", help, &ConstGauge::new(i64::try_from(tables).unwrap_or(i64::MAX)))?;
            families.one("server_number", "The number of this server", &ConstGauge::new(u32::from(number)))?;
            let help = "FNV-1a of the run's name and of those tables";
            families.one("server_tables_digest", help, &ConstGauge::new(digest))?;
        }
        let started = i64::try_from(self.started_us).unwrap_or(i64::MAX);
        families.one("started_microseconds", "When the process began, from 1970 on", &ConstGauge::new(started))?;
        families.counter("turns", "Number of reports of the receiver", turns)?;
        of_session(&mut families, &report)?;
        of_boards(&mut families, &report)
    }
}

/// The library appends `_total` to the names of counters, and a full stop to help texts.
struct Families<'a>(DescriptorEncoder<'a>);

impl Families<'_> {
    fn one(&mut self, name: &str, help: &str, metric: &impl EncodeMetric) -> fmt::Result {
        metric.encode(self.0.encode_descriptor(name, help, None, metric.metric_type())?)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.one(name, help, &ConstCounter::new(value))
    }

    /// A value of each board, labelled by its name.
    fn boards<M: EncodeMetric>(
        &mut self,
        report: &SessionReport,
        name: &str,
        help: &str,
        of: impl Fn(&BoardReport) -> M,
    ) -> fmt::Result {
        let Some(kind) = report.boards.first().map(|board| of(board).metric_type()) else { return Ok(()) };
        let mut family = self.0.encode_descriptor(name, help, None, kind)?;
        report.boards.iter().try_for_each(|board| {
            let labels = [("board", board.name.as_str())];
            of(board).encode(family.encode_family(&labels)?)
        })
    }
}

fn of_session(families: &mut Families<'_>, report: &SessionReport) -> fmt::Result {
    let (builder, receiver) = (&report.readout.builder, &report.readout.receiver);
    let up = report.boards.iter().filter(|board| board.state == BoardState::Up).count();
    let strays = builder.strays() + builder.duplicates;
    families.one("boards", "Boards of this receiver", &ConstGauge::new(report.boards.len()))?;
    families.one("boards_up", "Boards that may send", &ConstGauge::new(up))?;
    families.counter("events_complete", "Events with all fragments", builder.events_complete)?;
    families.counter("events_incomplete", "Events without some fragments", builder.events_incomplete)?;
    families.counter("fragments_good", "Fragments whose CRC-32C is right", receiver.fragments_good)?;
    families.counter("fragments_crc_error", "Fragments whose CRC-32C is wrong", receiver.fragments_crc_error)?;
    families.counter("fragments_malformed", "Messages that are no fragments", receiver.fragments_malformed)?;
    families.counter("fragments_stray", "Fragments that belong to no event, or came twice", strays)?;
    families.counter("store_stalls", "How often storage failed and was waited for", receiver.store_stalls)?;
    families.counter("store_waits", "How often storage was slower than the boards", receiver.store_waits)?;
    families.counter("stored_bytes", "Payload bytes of all events stored", receiver.bytes_stored)?;
    families.one("cpu_seconds", "CPU time of the receiving thread", &ConstCounter::new(report.cpu_seconds))?;
    let whole = "Of the whole device or socket, under the kernel's name";
    report.counters.iter().try_for_each(|(name, value)| match is_gauge(name) {
        true => families.one(name, whole, &ConstGauge::new(i64::try_from(*value).unwrap_or(i64::MAX))),
        false => families.counter(name, whole, *value),
    })
}

/// Counts of a back end that also fall.
fn is_gauge(name: &str) -> bool {
    const GAUGES: [&str; 7] = [
        "pull_window_bytes",
        "pull_in_flight_bytes",
        "pull_highest_in_flight_bytes",
        "pull_unanswered_bytes",
        "pull_silent_boards",
        "pull_waiting",
        "pull_silent",
    ];
    GAUGES.contains(&name)
}

/// The state of each board, and the counters of its queue pair.
fn of_boards(families: &mut Families<'_>, report: &SessionReport) -> fmt::Result {
    let up = |board: &BoardReport| ConstGauge::new(u32::from(board.state == BoardState::Up));
    let lives = |board: &BoardReport| ConstCounter::new(u64::from(board.lives));
    families.boards(report, "board_up", "Whether the board may send", up)?;
    families.boards(report, "board_connections", "How often the board came up", lives)?;
    let credits = |board: &BoardReport| ConstGauge::new(board.credits);
    families.boards(
        report,
        "board_credits",
        "Receives that are posted for the board, or for all in a pool",
        credits,
    )?;
    let slots = |board: &BoardReport| ConstGauge::new(board.slots);
    families.boards(report, "board_slots", "Receives that there can be, of the board or of the pool", slots)?;
    let help = "The receiver's queue pair for the board, as the board's qp.dest_qpn names it; 0: it has none";
    families.boards(report, "board_queue_pair", help, |board| ConstGauge::new(board.queue_pair))?;
    families.boards(report, "board_messages", "Messages of the board", |board| ConstCounter::new(board.messages))?;
    let bytes = |board: &BoardReport| ConstCounter::new(board.bytes);
    families.boards(report, "board_bytes", "Bytes of the board's messages, fragment headers included", bytes)?;
    let names: BTreeSet<&String> = report.boards.iter().flat_map(|board| board.counters.keys()).collect();
    names.into_iter().try_for_each(|name| {
        let (help, family) = ("Of the board's queue pair, under the kernel's name", format!("board_{name}"));
        let value = |board: &BoardReport| board.counters.get(name).copied().unwrap_or(0);
        let gauge = |board: &BoardReport| ConstGauge::new(i64::try_from(value(board)).unwrap_or(i64::MAX));
        match is_gauge(name) {
            true => families.boards(report, &family, help, gauge),
            false => families.boards(report, &family, help, |board| ConstCounter::new(value(board))),
        }
    })
}
