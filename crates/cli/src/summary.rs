// SPDX-License-Identifier: Apache-2.0
//! What a run found, as `summary.json` holds it. All but `timing` is the same for the same seed.

use crate::simulation::{Progress, RunResult, Simulation};
use crate::Verdict;
use penstock_board::regs::counters;
use penstock_board::CYCLE_PS;
use penstock_dashboard::Applied;
use penstock_netsim::{HostStats, PortStats, Scenario, SwitchStats, Time};
use penstock_readout::ReceiverReport;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Version of this layout.
const SCHEMA: u32 = 1;

#[derive(Debug, Serialize)]
pub struct Summary {
    pub schema: u32,
    pub scenario: String,
    /// Every key of the scenario with the value in force.
    pub settings: BTreeMap<String, String>,
    /// "done", "interrupted", "time limit" or "stopped".
    pub end: &'static str,
    pub boards: Vec<BoardSummary>,
    pub switch: SwitchSummary,
    pub server: ServerSummary,
    /// What was changed from the live page: such a run cannot be repeated from its scenario alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steered: Vec<Applied>,
    /// Jain's fairness index of the boards' goodput, mean over windows of 1 ms in which all were sending.
    pub jain_index: Option<f64>,
    /// Payload stored per second of simulated time, bit/s.
    pub goodput_bps: f64,
    pub simulated_s: f64,
    pub engine_events: u64,
    pub timing: Timing,
}

/// What depends on the machine.
#[derive(Debug, Serialize)]
pub struct Timing {
    pub wall_s: f64,
    /// Wall time over simulated time.
    pub slowdown: f64,
}

#[derive(Debug, Serialize)]
pub struct BoardSummary {
    pub name: String,
    /// Message payload that reached the server, per second until the board's last message ended, bit/s.
    pub goodput_bps: f64,
    pub messages_ok: u64,
    pub messages_error: u64,
    /// Failed messages by reason.
    pub errors: BTreeMap<String, u64>,
    /// The failure that the others followed from.
    pub first_error: Option<String>,
    pub cnps_received: u32,
    pub retransmissions: u32,
    pub pause_time_s: f64,
    /// Counters of the gateware.
    pub counters: BTreeMap<&'static str, u32>,
    /// Counters of the server's end of the connection.
    pub responder: BTreeMap<&'static str, u64>,
}

#[derive(Debug, Serialize)]
pub struct SwitchSummary {
    pub ecn_marked: u64,
    pub dropped: u64,
    /// Most bytes that waited for the link to the server.
    pub peak_queue_bytes: u64,
    pub peak_buffer_bytes: u64,
    /// Time in which the switch had each board paused, summed over boards.
    pub pfc_pausing_s: f64,
    pub fcs_errors: u64,
    pub no_route: u64,
}

#[derive(Debug, Serialize)]
pub struct ServerSummary {
    pub events_wanted: u64,
    pub events_complete: u64,
    pub events_incomplete: u64,
    pub bytes_stored: u64,
    pub byte_exact: bool,
    /// Frames dropped at the server's port, by reason.
    pub dropped_frames: BTreeMap<&'static str, u64>,
    #[serde(flatten)]
    pub report: ReceiverReport,
}

impl Summary {
    pub fn new(path: &str, scenario: &Scenario, end: &'static str, result: RunResult, wall: Duration) -> Self {
        let simulated_s = result.simulated.as_secs_f64();
        let jain_index = jain_over_time(&result);
        let boards = result.boards.iter().enumerate().map(|(k, b)| board_summary(k, b)).collect();
        let server = server_summary(scenario, &result.host, result.readout);
        let wall_s = wall.as_secs_f64();
        Self {
            schema: SCHEMA,
            scenario: path.to_owned(),
            settings: scenario.settings.iter().cloned().collect(),
            end,
            boards,
            switch: switch_summary(&result.switch, &result.server_port, &result.board_ports),
            steered: Vec::new(),
            jain_index,
            goodput_bps: server.bytes_stored as f64 * 8.0 / simulated_s.max(f64::MIN_POSITIVE),
            server,
            simulated_s,
            engine_events: result.engine_events,
            timing: Timing { wall_s, slowdown: wall_s / simulated_s.max(f64::MIN_POSITIVE) },
        }
    }

    /// Verified only if every event of the scenario is complete and equals what was sent, and every board knows it.
    pub fn verdict(&self) -> Verdict {
        let complete = self.server.events_complete == self.server.events_wanted;
        let acknowledged = self.boards.iter().all(|board| board.messages_error == 0);
        match complete && acknowledged && self.server.byte_exact {
            true => Verdict::Verified,
            false => Verdict::Fault,
        }
    }
}

/// The word for how a run ended.
pub fn end_word(progress: Progress) -> &'static str {
    match progress {
        Progress::Running => "interrupted",
        Progress::Done => "done",
        Progress::TimeLimit => "time limit",
        Progress::Stopped => "stopped",
    }
}

fn board_summary(k: usize, board: &crate::simulation::BoardResult) -> BoardSummary {
    let active_s = board.tally.last.as_secs_f64().max(f64::MIN_POSITIVE);
    let responder = &board.responder;
    BoardSummary {
        name: Scenario::board_name(k as u16),
        goodput_bps: responder.rx_payload_bytes as f64 * 8.0 / active_s,
        messages_ok: board.tally.ok,
        messages_error: board.tally.failed(),
        errors: board.tally.errors.iter().map(|(status, n)| (status.to_string(), *n)).collect(),
        first_error: board
            .tally
            .first_error
            .map(|(at, completion)| format!("message {} at {at}: {}", completion.tag, completion.status)),
        cnps_received: board.counters.at(counters::RX_CNP_PACKETS),
        retransmissions: board.counters.at(counters::PACKETS_RETRANSMITTED),
        pause_time_s: f64::from(board.counters.at(counters::TX_PAUSE_CYCLES)) * CYCLE_PS as f64 * 1e-12,
        responder: [
            ("duplicate_request", responder.duplicate_request),
            ("out_of_sequence", responder.out_of_sequence),
            ("out_of_buffer", responder.out_of_buffer),
            ("np_ecn_marked_roce_packets", responder.np_ecn_marked_roce_packets),
            ("np_cnp_sent", responder.np_cnp_sent),
            ("rx_payload_bytes", responder.rx_payload_bytes),
            ("rx_write_requests", responder.rx_write_requests),
        ]
        .into(),
        counters: board.counters.by_name(),
    }
}

fn switch_summary(switch: &SwitchStats, server_port: &PortStats, board_ports: &[PortStats]) -> SwitchSummary {
    let pausing: Time = board_ports.iter().fold(Time::ZERO, |sum, port| sum + port.pausing);
    SwitchSummary {
        ecn_marked: server_port.ecn_marked,
        dropped: switch.dropped(),
        peak_queue_bytes: server_port.peak_queue_bytes,
        peak_buffer_bytes: switch.peak_buffer_bytes,
        pfc_pausing_s: pausing.as_secs_f64(),
        fcs_errors: switch.fcs_errors,
        no_route: switch.no_route,
    }
}

fn server_summary(scenario: &Scenario, host: &HostStats, report: ReceiverReport) -> ServerSummary {
    ServerSummary {
        events_wanted: scenario.data.events,
        events_complete: report.builder.events_complete,
        events_incomplete: report.builder.events_incomplete,
        bytes_stored: report.receiver.bytes_stored,
        byte_exact: report.check.as_ref().is_some_and(penstock_readout::CheckReport::byte_exact),
        dropped_frames: [
            ("fcs_errors", host.fcs_errors),
            ("rx_icrc_encapsulated", host.icrc_errors),
            ("malformed", host.malformed),
            ("not_roce", host.not_roce),
            ("unknown_qpn", host.unknown_qpn),
            ("after_vanishing", host.ignored),
        ]
        .into(),
        report,
    }
}

/// Jain, Chiu, Hawe 1984: (sum x)^2 / (n sum x^2); 1 when all are equal, 1/n when one has it all.
fn jain(shares: &[f64]) -> Option<f64> {
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    let sum: f64 = shares.iter().sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// Mean of Jain's index over 1 ms windows, from the first byte received to the moment the first board had sent all.
fn jain_over_time(result: &RunResult) -> Option<f64> {
    const STEPS: usize = (Time::from_ms(1).as_ps() / Simulation::STEP.as_ps()) as usize;
    let finals = result.received.last()?;
    let contended: Vec<_> = result
        .received
        .iter()
        .skip_while(|row| row.contains(&0))
        .take_while(|row| row.iter().zip(finals).all(|(bytes, last)| bytes < last))
        .step_by(STEPS)
        .collect();
    let indices: Vec<f64> = contended
        .windows(2)
        .filter_map(|pair| {
            let shares: Vec<f64> = pair[0].iter().zip(pair[1]).map(|(before, after)| (after - before) as f64).collect();
            jain(&shares)
        })
        .collect();
    (!indices.is_empty()).then(|| indices.iter().sum::<f64>() / indices.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_is_one_for_equal_shares_and_one_over_n_for_a_monopoly() {
        assert_eq!(jain(&[2.0, 2.0, 2.0]), Some(1.0));
        assert_eq!(jain(&[3.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[0.0, 0.0]), None);
    }
}
