// SPDX-License-Identifier: Apache-2.0
//! The output of `penstock send`.
//! Promise: a run is called good only if all front ends came up and all messages were acknowledged.

use super::front_end::FrontEnd;
use super::link::LinkCounts;
use super::plan::Plan;
use penstock_cli_common::outcome::Verdict;
use penstock_cli_common::output::print;
use penstock_cli_common::output::table::{columns, terminal_width};
use penstock_ipbus::dcqcn::{show_share, InForce};
use penstock_units::Time;
use penstock_wire::gateware::CLOCK_HZ as BOARD_CLOCK_HZ;
use penstock_wire::MacAddr;
use serde::Serialize;
use std::collections::BTreeMap;

const CLOCK_KHZ: u32 = (BOARD_CLOCK_HZ / 1000) as u32;
/// More front ends than this are not listed one by one.
const LISTED: usize = 32;

#[derive(Serialize)]
pub struct Report {
    pub seconds: f64,
    pub boards: Vec<BoardReport>,
    /// Messages to the connection manager, and to the registers, of addresses that --allow does not name; with --cm rdma
    /// messages of others than the server.
    pub cm_strangers: u64,
    pub ipbus_strangers: u64,
    /// With --cm rdma.
    #[serde(flatten)]
    pub rdma_cm: BTreeMap<String, u64>,
    #[serde(flatten)]
    pub link: LinkCounts,
    pub faults: Vec<String>,
}

/// Names as in the kernel's RDMA counters, where there is one.
#[derive(Serialize)]
pub struct BoardReport {
    pub source: u16,
    pub ip: String,
    /// How often a connection came up.
    pub lives: u32,
    /// Acknowledged.
    pub messages: u64,
    /// Messages that were lost, with --by-event: with their queue pairs, or without a server.
    pub messages_lost: u64,
    pub tx_payload_bytes: u64,
    pub sent_pkts: u64,
    pub retransmitted_pkts: u64,
    pub packet_seq_err: u64,
    pub rnr_nak: u64,
    pub local_ack_timeout_err: u64,
    pub rp_cnp_received: u64,
    pub rp_cnp_handled: u32,
    /// How often its least rate was raised because notifications alone held the rate down.
    pub rp_cnp_overruled: u64,
    pub stale_acks: u64,
    /// Packets of strangers, of former connections, or that make no sense: without effect.
    pub dropped_not_for_us: u64,
    pub dropped_wrong_peer: u64,
    pub dropped_bad_pkey: u64,
    pub dropped_not_response: u64,
    pub dropped_in_error: u64,
    /// The rate that congestion control allows, bit/s; none without it.
    pub rate_bps: Option<u64>,
    /// "penstock", "advcam", "zhu", "ns3"; "custom" for parameters that have no name; none without congestion control.
    pub profile: Option<&'static str>,
    /// That "penstock" follows from, as in "39Mbps": of the command line, or as a server or an operator has set it.
    pub share: Option<String>,
    pub trouble: Option<String>,
}

/// What the connection manager and the registers have counted: messages of addresses that --allow does not name, and
/// all counts of the standard connection manager.
pub struct Requests {
    pub cm_strangers: u64,
    pub ipbus_strangers: u64,
    pub rdma_cm: BTreeMap<String, u64>,
}

/// `refusal`: what the device refused.
pub fn report(
    front_ends: &[FrontEnd],
    now: Time,
    requests: Requests,
    (link, refusal): (LinkCounts, Option<String>),
    earlier: Vec<String>,
) -> Report {
    let board = |f: &FrontEnd| {
        let (c, congestion) = (f.counters(), f.congestion());
        let in_force = InForce::read(&f.cc().words(), CLOCK_KHZ);
        BoardReport {
            source: f.source(),
            ip: f.ip().to_string(),
            lives: f.lives(),
            messages: f.messages_done(),
            messages_lost: f.messages_lost(),
            tx_payload_bytes: c.tx_payload_bytes,
            sent_pkts: c.sent_pkts,
            retransmitted_pkts: c.retransmitted_pkts,
            packet_seq_err: c.packet_seq_err,
            rnr_nak: c.rnr_nak,
            local_ack_timeout_err: c.local_ack_timeout_err,
            rp_cnp_received: c.rp_cnp_received,
            rp_cnp_handled: congestion.map_or(0, |(_, handled)| handled),
            rp_cnp_overruled: f.cnp_raises(),
            stale_acks: c.stale_acks,
            dropped_not_for_us: c.dropped_not_for_us,
            dropped_wrong_peer: c.dropped_wrong_peer,
            dropped_bad_pkey: c.dropped_bad_pkey,
            dropped_not_response: c.dropped_not_response,
            dropped_in_error: c.dropped_in_error,
            rate_bps: congestion.map(|(rate, _)| rate),
            profile: (in_force.law != "off").then(|| in_force.profile_name()),
            share: in_force.share.filter(|_| in_force.law != "off").map(|share| show_share(share, CLOCK_KHZ)),
            trouble: f.trouble().map(str::to_owned),
        }
    };
    let unfinished = front_ends.iter().filter(|f| !f.is_done() && f.has_end()).map(|f| {
        let why = f.trouble().unwrap_or("it was interrupted");
        format!("{}: {} messages acknowledged, not all: {why}", f.ip(), f.messages_done())
    });
    let silent = front_ends.iter().filter(|f| f.lives() == 0).map(|f| {
        let why = f.trouble().unwrap_or("no server has opened its queue pair");
        format!("{} never came up: {why}", f.ip())
    });
    let lost = front_ends.iter().filter(|f| f.messages_lost() > 0).map(|f| {
        let (ip, lost) = (f.ip(), f.messages_lost());
        format!("{ip}: {lost} messages lost with their queue pairs; `penstock check --servers` names the events")
    });
    let mut faults: Vec<String> = earlier.into_iter().chain(silent).chain(unfinished).chain(lost).collect();
    if !faults.is_empty() {
        faults.extend(refusal);
    }
    let boards = front_ends.iter().map(board).collect();
    let Requests { cm_strangers, ipbus_strangers, rdma_cm } = requests;
    Report { seconds: now.as_secs_f64(), boards, cm_strangers, ipbus_strangers, rdma_cm, link, faults }
}

pub fn opening(plan: &Plan, mac: MacAddr) -> String {
    let last = plan.ips().last().unwrap_or(plan.first_ip);
    let how = match plan.server {
        Some(server) => format!("opening queue pairs at {server}"),
        None if plan.by_event => "waiting for servers that open queue pairs, and for a table of them".to_owned(),
        None => "waiting for servers that open queue pairs".to_owned(),
    };
    format!(
        "{}: {} front end{}, {} to {last}, MAC {mac}, MTU {}; {how}",
        plan.iface,
        plan.boards,
        if plan.boards == 1 { "" } else { "s" },
        plan.first_ip,
        plan.mtu.bytes()
    )
}

pub fn closing(report: &Report) -> String {
    let header = ["board", "#messages", "BW average[Gb/sec]", "sent again", "RNR", "CNPs", "lives"];
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
                sum(|b| b.retransmitted_pkts).to_string(),
                sum(|b| b.rnr_nak).to_string(),
                sum(|b| b.rp_cnp_received).to_string(),
                sum(|b| b.lives.into()).to_string(),
            ]
        },
    );
    with_lines(table, congestion(&report.boards).into_iter().chain(dropped(report)), &report.faults)
}

/// A row for each board, unless they are many, and one for all; `cells`: what follows the name.
pub fn listing<B>(header: &[&str], boards: &[B], name: fn(&B) -> &str, cells: impl Fn(&[B]) -> Vec<String>) -> String {
    let row = |name: &str, boards: &[B]| [name.to_owned()].into_iter().chain(cells(boards)).collect::<Vec<_>>();
    let listed = if boards.len() <= LISTED { boards } else { &[] };
    let each = listed.iter().map(|board| row(name(board), std::slice::from_ref(board)));
    columns(header, &each.chain([row("all", boards)]).collect::<Vec<_>>(), 1, terminal_width())
}

/// A table with what is to be said below it.
pub fn with_lines(table: String, lines: impl IntoIterator<Item = String>, faults: &[String]) -> String {
    let faults = faults.iter().map(|fault| format!("fault: {fault}"));
    lines.into_iter().chain(faults).fold(table, |text, line| format!("{text}\n{line}"))
}

/// Prints a report: as JSON, or as `closing` has it.
pub fn print_report<R: Serialize>(report: &R, faults: &[String], json: bool, closing: fn(&R) -> String) -> Verdict {
    let verdict = if faults.is_empty() { Verdict::Verified } else { Verdict::Fault };
    if json {
        let json = serde_json::to_value(report).expect("a report has only plain keys");
        return print(format_args!("{json:#}"), verdict);
    }
    print(closing(report), verdict)
}

/// Packets that nobody of this network's boards and servers should have sent, and those that did not leave or arrive.
fn dropped(report: &Report) -> Option<String> {
    let sum = |of: fn(&BoardReport) -> u64| report.boards.iter().map(of).sum::<u64>();
    let link = &report.link;
    let counts = [
        ("dropped_not_for_us", sum(|b| b.dropped_not_for_us)),
        ("dropped_wrong_peer", sum(|b| b.dropped_wrong_peer)),
        ("dropped_bad_pkey", sum(|b| b.dropped_bad_pkey)),
        ("dropped_not_response", sum(|b| b.dropped_not_response)),
        ("dropped_unknown_qpn", link.dropped_unknown_qpn),
        ("rx_icrc_encapsulated", link.rx_icrc_encapsulated),
        ("rx_malformed", link.rx_malformed),
        ("rx_foreign_vlan", link.rx_foreign_vlan),
        ("rx_dropped", link.rx_dropped),
        ("refused_frames", link.refused_frames),
    ];
    named("dropped packets", &counts)
}

/// The counts that are not zero, with their names.
pub fn named(title: &str, counts: &[(&str, u64)]) -> Option<String> {
    let counts: Vec<String> =
        counts.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{count} {name}")).collect();
    (!counts.is_empty()).then(|| format!("{title}: {}", counts.join(", ")))
}

/// The limits of the boards, one line for each kind of limit.
fn congestion(boards: &[BoardReport]) -> Vec<String> {
    let text = |board: &BoardReport| match (board.profile, &board.share) {
        (Some(profile), Some(share)) => format!("congestion control: profile {profile}, share {share}"),
        (Some(profile), None) => format!("congestion control: profile {profile}"),
        (None, _) => "congestion control: off".to_owned(),
    };
    let mut kinds: Vec<(String, usize)> = Vec::new();
    for text in boards.iter().map(text) {
        match kinds.iter_mut().find(|(other, _)| *other == text) {
            Some((_, count)) => *count += 1,
            None => kinds.push((text, 1)),
        }
    }
    let is_one = kinds.len() == 1;
    kinds.into_iter().map(|(text, count)| if is_one { text } else { format!("{count} boards: {text}") }).collect()
}
