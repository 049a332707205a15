// SPDX-License-Identifier: Apache-2.0
//! The table that a run ends with.

use crate::summary::Summary;
use comfy_table::{presets, CellAlignment, Table};

/// The tables of a summary, ready to print.
pub fn tables(summary: &Summary) -> String {
    let end = match summary.end {
        "done" => String::new(),
        end => format!("run ended early: {end}\n"),
    };
    let sections = [boards(summary).to_string(), totals(summary).to_string(), end, failures(summary)];
    sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n")
}

fn boards(summary: &Summary) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["board", "goodput [Gb/s]", "CNPs", "paused [us]", "retransmissions", "completions ok", "error"]);
    for board in &summary.boards {
        table.add_row([
            board.name.clone(),
            format!("{:.3}", board.goodput_bps / 1e9),
            board.cnps_received.to_string(),
            format!("{:.1}", board.pause_time_s * 1e6),
            board.retransmissions.to_string(),
            board.messages_ok.to_string(),
            board.messages_error.to_string(),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn totals(summary: &Summary) -> Table {
    let (switch, server, timing) = (&summary.switch, &summary.server, &summary.timing);
    let exact = if server.byte_exact { "yes" } else { "no" };
    let jain = summary.jain_index.map_or("run too short".to_owned(), |index| format!("{index:.4}"));
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    for (what, value) in [
        ("switch", format!("{} marks, {} drops", switch.ecn_marked, switch.dropped)),
        (
            "",
            format!(
                "peak queue {:.1} kB, boards paused {:.1} us",
                switch.peak_queue_bytes as f64 / 1e3,
                switch.pfc_pausing_s * 1e6
            ),
        ),
        (
            "builder",
            format!(
                "events {} complete, {} incomplete of {}",
                server.events_complete, server.events_incomplete, server.events_wanted
            ),
        ),
        ("", format!("{} bytes stored, byte-exact: {exact}", server.bytes_stored)),
        ("Jain's index", jain),
        ("goodput", format!("{:.3} Gb/s stored", summary.goodput_bps / 1e9)),
        (
            "time",
            format!(
                "{:.3} ms simulated in {:.2} s, 1 : {:.0}",
                summary.simulated_s * 1e3,
                timing.wall_s,
                timing.slowdown
            ),
        ),
    ] {
        table.add_row([what.to_owned(), value]);
    }
    table
}

/// One line for each board that has failed, with the first reason.
fn failures(summary: &Summary) -> String {
    summary
        .boards
        .iter()
        .filter_map(|board| Some((board, board.first_error.as_ref()?)))
        .map(|(board, error)| {
            format!(
                "{}: queue pair 0 ended in error; {} of {} messages failed, the first: {error}\n",
                board.name,
                board.messages_error,
                board.messages_ok + board.messages_error
            )
        })
        .collect()
}
