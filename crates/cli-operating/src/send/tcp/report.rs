// SPDX-License-Identifier: Apache-2.0
//! The output of `penstock send --protocol tcp`.
//! Promise: a run is called good only if all streams came up and all messages were acknowledged.

use super::board::Board;
use super::link::LinkCounts;
use super::plan::TcpPlan;
use crate::send::plan::Plan;
use crate::send::tables::{listing, named, with_lines};
use penstock_transport::simple_tcp::{Counts, State};
use penstock_units::Time;
use penstock_wire::MacAddr;
use serde::Serialize;

#[derive(Serialize)]
pub struct Report {
    pub protocol: &'static str,
    pub stack: &'static str,
    pub seconds: f64,
    pub boards: Vec<BoardReport>,
    #[serde(flatten)]
    pub link: LinkCounts,
    pub faults: Vec<String>,
}

/// One stream; of the kernel's, which reports less, the counts of segments are 0.
#[derive(Serialize, Default)]
pub struct BoardReport {
    pub source: u16,
    pub ip: String,
    pub state: &'static str,
    /// How often a connection came up.
    pub lives: u32,
    /// Acknowledged.
    pub messages: u64,
    pub tx_payload_bytes: u64,
    pub segments: u64,
    pub retransmitted: u64,
    pub timeouts: u64,
    pub fast_retransmits: u64,
    pub duplicate_acks: u64,
    pub window_closed: u64,
    pub window_probes: u64,
    pub challenge_acks: u64,
    pub out_of_window: u64,
    pub bad_acks: u64,
    pub bad_options: u64,
    pub peer_data: u64,
    pub path_mtu: u64,
    /// Payload bytes of a segment, as negotiated.
    pub mss: u16,
    pub trouble: Option<String>,
    /// The server cannot take its messages: the stream was not opened again.
    pub refused: bool,
}

impl BoardReport {
    fn of(board: &Board) -> BoardReport {
        let (stream, row) = (board.stream(), board.stream().row());
        let count = |kind| stream.counters().of(kind);
        BoardReport {
            source: board.source(),
            ip: board.peers().ip.to_string(),
            state: match row.state {
                State::Closed => "closed",
                State::SynSent => "syn-sent",
                State::Established => "established",
            },
            lives: board.lives(),
            messages: board.messages_done(),
            tx_payload_bytes: board.tx_payload_bytes(),
            segments: count(Counts::SEGMENT),
            retransmitted: count(Counts::RETRANSMITTED),
            timeouts: count(Counts::TIMEOUT),
            fast_retransmits: count(Counts::FAST_RETRANSMIT),
            duplicate_acks: count(Counts::DUPLICATE_ACK),
            window_closed: count(Counts::WINDOW_CLOSED),
            window_probes: count(Counts::PROBE),
            challenge_acks: count(Counts::CHALLENGE),
            out_of_window: count(Counts::OUT_OF_WINDOW),
            bad_acks: count(Counts::BAD_ACK),
            bad_options: count(Counts::BAD_OPTION),
            peer_data: count(Counts::PEER_DATA),
            path_mtu: count(Counts::PATH_MTU),
            mss: board.mss(),
            trouble: board.trouble().map(str::to_owned),
            refused: board.is_refused(),
        }
    }
}

/// The report of the emulator.
pub fn of(boards: &[Board], now: Time, link: LinkCounts, failure: Option<String>) -> Report {
    let reports = boards.iter().map(BoardReport::of).collect();
    let has_end = boards.first().is_some_and(Board::has_end);
    let done: Vec<bool> = boards.iter().map(|board| board.is_done() && !board.is_refused()).collect();
    with_faults("emulator", reports, &done, has_end, now, link, failure)
}

/// The report of either stack, with what was not done.
pub fn with_faults(
    stack: &'static str,
    boards: Vec<BoardReport>,
    done: &[bool],
    has_end: bool,
    now: Time,
    link: LinkCounts,
    failure: Option<String>,
) -> Report {
    let why = |board: &BoardReport, otherwise: &str| board.trouble.clone().unwrap_or_else(|| otherwise.to_owned());
    let silent = |board: &BoardReport| {
        (board.lives == 0).then(|| format!("{} never came up: {}", board.ip, why(board, "the server has not answered")))
    };
    let unfinished = |(board, done): (&BoardReport, &bool)| {
        ((has_end || board.refused) && !done && board.lives > 0).then(|| {
            let why = why(board, "it was interrupted");
            format!("{}: {} messages acknowledged, not all taken: {why}", board.ip, board.messages)
        })
    };
    let faults = failure.into_iter().chain(boards.iter().filter_map(silent));
    let faults = faults.chain(boards.iter().zip(done).filter_map(unfinished)).collect();
    Report { protocol: "tcp", stack, seconds: now.as_secs_f64(), boards, link, faults }
}

pub fn opening(plan: &Plan, tcp: &TcpPlan, mac: MacAddr) -> String {
    let last = plan.ips().last().unwrap_or(plan.first_ip);
    let many = if plan.boards == 1 { "" } else { "s" };
    format!(
        "{}: {} stream{many}, {} to {last}, MAC {mac}, MSS {}; to {} port {}",
        plan.iface, plan.boards, plan.first_ip, tcp.parameters.mss, tcp.server, tcp.port
    )
}

pub fn closing(report: &Report) -> String {
    let header = ["board", "#messages", "BW average[Gb/sec]", "sent again", "timeouts", "closed windows", "lives"];
    let seconds = report.seconds.max(1e-9);
    let table = listing(
        &header,
        &report.boards,
        |board| &board.ip,
        |boards| {
            let sum = |of: fn(&BoardReport) -> u64| boards.iter().map(of).sum::<u64>();
            vec![
                sum(|b| b.messages).to_string(),
                format!("{:.3}", sum(|b| b.tx_payload_bytes) as f64 * 8e-9 / seconds),
                sum(|b| b.retransmitted).to_string(),
                sum(|b| b.timeouts).to_string(),
                sum(|b| b.window_closed).to_string(),
                sum(|b| b.lives.into()).to_string(),
            ]
        },
    );
    let link = &report.link;
    let counts = [
        ("strangers", link.strangers),
        ("bad_frames", link.bad_frames),
        ("rx_foreign_vlan", link.rx_foreign_vlan),
        ("rx_dropped", link.rx_dropped),
        ("hop_moves", link.hop_moves),
        ("hop_claims", link.hop_claims),
        ("refused_frames", link.refused_frames),
    ];
    with_lines(table, named("counted", &counts), &report.faults)
}
