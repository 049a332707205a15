// SPDX-License-Identifier: Apache-2.0
//! The report of a session: boards, counters, events, the cost of waiting.
//! Promise: counters have the kernel's names; the report is computed only from counters and the clock.

use std::collections::BTreeMap;
use std::time::Duration;

use penstock_transport::{CmListenerCounters, CmState};
use serde::Serialize;

use super::board::BoardState;
use super::core::Core;
use super::pool::Pool;
use super::sockets::CmPort;
use crate::backend::{Counters, PollMode};
use crate::builder::SourceCounters;
use crate::poll::Latencies;
use crate::receiver::ReceiverReport;
use crate::sink::EventSink;

/// One board.
#[derive(Debug, Clone, Serialize)]
pub struct BoardReport {
    pub name: String,
    pub ip: String,
    pub state: BoardState,
    /// Requests of the connection manager that are not yet answered.
    pub step: Option<String>,
    /// How often it came up.
    pub lives: u32,
    /// The number of this side's queue pair for it; 0: none.
    pub queue_pair: u32,
    /// Receives that are posted: messages that it may send, or any board where all share a pool.
    pub credits: u32,
    /// Receives that there can be.
    pub slots: u32,
    pub messages: u64,
    /// Bytes of all messages, fragment headers included.
    pub bytes: u64,
    /// Why it is not up, or was not in between.
    pub trouble: Option<String>,
    /// Why events do not wait for it although it is up.
    pub left_out: Option<String>,
    /// Why the back end has ended a queue pair of it last, for a request that cannot be done.
    pub refused: Option<String>,
    /// Events that lack it, and what of it is in no event.
    #[serde(flatten)]
    pub events: SourceCounters,
    pub counters: BTreeMap<String, u64>,
}

/// Time from a frame's arrival in the kernel until it was looked at, ns.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct LatencyReport {
    pub samples: u64,
    pub median_ns: u64,
    pub p99_ns: u64,
    pub max_ns: u64,
}

/// The whole session.
#[derive(Debug, Clone, Serialize)]
pub struct SessionReport {
    pub backend: &'static str,
    pub poll: String,
    pub seconds: f64,
    /// Time from the first message to the last one.
    pub readout_seconds: f64,
    /// CPU time of the receiving thread.
    pub cpu_seconds: f64,
    pub latency: Option<LatencyReport>,
    pub boards: Vec<BoardReport>,
    pub readout: ReceiverReport,
    pub counters: BTreeMap<String, u64>,
    pub cm_requests: u64,
    pub cm_refused: u64,
    pub cm_ignored: u64,
    /// Connections that were given up because their boards did not finish opening them.
    pub cm_half_open: u64,
    /// Messages to the connection manager of addresses that are no board's.
    pub cm_strangers: u64,
}

fn by_name(counters: Counters) -> BTreeMap<String, u64> {
    counters.into_iter().map(|(name, value)| (name.into_owned(), value)).collect()
}

fn latency(latencies: &Latencies) -> Option<LatencyReport> {
    let (median_ns, p99_ns) = (latencies.value_at_quantile(0.5), latencies.value_at_quantile(0.99));
    let (samples, max_ns) = (latencies.len(), latencies.max());
    (samples > 0).then_some(LatencyReport { samples, median_ns, p99_ns, max_ns })
}

pub(super) fn of<S: EventSink>(
    core: &mut Core<S>,
    pool: Option<&Pool>,
    poll: PollMode,
    cpu: Duration,
    cm: CmListenerCounters,
    port: &dyn CmPort,
) -> SessionReport {
    let boards = core.boards.iter().enumerate().map(|(i, board)| BoardReport {
        name: board.spec.name.clone(),
        ip: board.spec.ip.to_string(),
        state: board.state,
        step: match board.opener.state() {
            CmState::Requesting(request) => Some(request.to_string()),
            _ => None,
        },
        lives: board.lives,
        queue_pair: board.local_info().qpn.value(),
        credits: core.receiver.credits(i as u16),
        slots: core.receiver.slots(i as u16),
        messages: board.messages,
        bytes: board.bytes,
        trouble: board.trouble.clone(),
        left_out: board.left_out.clone(),
        refused: board.refused.clone(),
        events: core.receiver.source_counters().get(i).copied().unwrap_or_default(),
        counters: by_name(core.backend.board_counters(i as u16)),
    });
    let boards = boards.collect();
    let mut counters = core.backend.counters();
    if let Some(pool) = pool {
        counters.push(("srq_limit_reached".into(), pool.ran_low));
    }
    counters.extend(port.counters());
    SessionReport {
        backend: core.backend.name(),
        poll: poll.to_string(),
        seconds: core.clock.now().as_secs_f64(),
        readout_seconds: core.last_at.saturating_sub(core.first_at.unwrap_or(core.last_at)).as_secs_f64(),
        cpu_seconds: cpu.as_secs_f64(),
        latency: core.backend.latencies().and_then(latency),
        boards,
        readout: core.receiver.report(),
        counters: by_name(counters),
        cm_requests: cm.requests,
        cm_refused: cm.refused,
        cm_ignored: cm.ignored,
        cm_half_open: cm.half_open,
        cm_strangers: port.strangers(),
    }
}
