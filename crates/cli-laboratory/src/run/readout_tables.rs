// SPDX-License-Identifier: Apache-2.0
//! Tables of verilated boards, and of the events that a readout stored.

use super::board::BoardSummary;
use super::flow_tables::in_force;
use super::summary::{ReadoutSummary, Summary};
use comfy_table::Table;
use penstock_cli_common::output::table;
use penstock_lab::report::{per, LabSummary};

/// One row a board.
pub fn boards(boards: &[BoardSummary]) -> String {
    let header = [
        "board",
        "goodput\n[Gb/s]",
        "CNPs",
        "paused\n[us]",
        "retransmissions",
        "completions\nok",
        "completions\nwith error",
    ];
    let row = |board: &BoardSummary| {
        vec![
            board.name.clone(),
            format!("{:.3}", board.goodput_gbps),
            board.cnps.to_string(),
            format!("{:.1}", board.paused_s * 1e6),
            board.retransmissions.to_string(),
            board.messages_ok.to_string(),
            board.messages_error.to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = boards.iter().map(row).collect();
    table::columns(&header, &rows, 1, table::terminal_width())
}

/// The results of the switches and the readout.
pub fn totals(readout: &ReadoutSummary, lab: &LabSummary) -> Table {
    let exact = if readout.byte_exact { "yes" } else { "no" };
    let jain = readout.jain_1ms.map_or("run too short".to_owned(), |index| format!("{index:.4} over 1 ms"));
    let mut rows = Vec::new();
    let mut add = |what: &str, value: String| rows.push((what.to_owned(), value));
    for switch in &lab.switches {
        let marked: u64 = switch.ports.iter().map(|port| port.ecn_marked).sum();
        let queue = switch.ports.iter().map(|port| port.peak_queue_bytes).max().unwrap_or(0);
        let pausing: f64 = switch.ports.iter().map(|port| port.pausing_s).sum();
        let dropped = switch.dropped_buffer + switch.dropped_threshold + switch.dropped_headroom;
        add(&switch.name, format!("{marked} marks, {dropped} drops"));
        let peak = queue as f64 / 1e3;
        add("", format!("peak queue {peak:.1} kB, others paused {:.1} us", pausing * 1e6));
        add("", in_force(switch));
    }
    let (complete, incomplete) = (readout.events_complete, readout.events_incomplete);
    let requested = readout.events_wanted;
    add("builder", format!("events {complete} complete, {incomplete} incomplete of {requested}"));
    add("", format!("{} bytes stored, byte-exact: {exact}", readout.bytes_stored));
    add("Jain's index", jain);
    add("goodput", format!("{:.3} Gb/s stored, over the whole run", readout.goodput_gbps));
    if let Some(goodput) = readout.goodput_first_to_last_gbps {
        add("", format!("{goodput:.3} Gb/s from its first packet to its last"));
    }
    let slowdown = per(lab.timing.wall_s, lab.simulated_s);
    let simulated_ms = lab.simulated_s * 1e3;
    add("time", format!("{simulated_ms:.3} ms simulated in {:.2} s, 1 : {slowdown:.0}", lab.timing.wall_s));
    table::statements(rows, table::terminal_width())
}

/// How the run ended, if early, and one line for each sender that has failed, with the first reason.
pub fn faults(summary: &Summary) -> String {
    let mut lines = Vec::new();
    if summary.lab.end != "done" {
        lines.push(format!("run ended early: {}", summary.lab.end));
    }
    lines.extend(summary.lab.deadlock.iter().map(|cycle| format!("fault: {cycle}")));
    for board in &summary.boards {
        let Some(error) = &board.first_error else { continue };
        let (failed, all) = (board.messages_error, board.messages_ok + board.messages_error);
        let name = &board.name;
        lines.push(format!(
            "{name}: {} 0 ended in error; {failed} of {all} messages failed, the first: {error}",
            board.over
        ));
    }
    if summary.boards.is_empty() {
        let failed = summary.lab.flows.iter().filter_map(|flow| Some((flow, flow.failed.as_ref()?)));
        lines.extend(failed.map(|(flow, why)| format!("fault: {}: {why}", flow.name)));
    }
    lines.join("\n")
}
