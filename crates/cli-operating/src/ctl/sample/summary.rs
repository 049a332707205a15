// SPDX-License-Identifier: Apache-2.0
//! summary.json of a sampling run, and its table.

use super::super::faults::Faults;
use super::super::session::Session;
use super::arguments::Arguments;
use super::reading::Sampled;
use penstock_cli_common::output::table::{columns, terminal_width};
use penstock_units::Time;
use serde_json::{json, Value};
use std::path::Path;

pub fn of(
    session: &Session,
    arguments: &Arguments,
    sampled: &Sampled,
    (elapsed, end, rows): (Time, &str, u64),
    faults: &Faults,
) -> Value {
    let boards: Vec<Value> = session
        .fit()
        .map(|(number, identity)| {
            let of = &sampled.boards[number];
            let spans: Vec<[f64; 2]> =
                of.silences.iter().map(|(from, to)| [from.as_secs_f64(), to.as_secs_f64()]).collect();
            json!({
                "name": of.label,
                "samples": of.samples,
                "missed": of.missed,
                "resets_s": of.resets.iter().map(|at| at.as_secs_f64()).collect::<Vec<_>>(),
                "silent_s": spans,
                "line_rate_bps": identity.line_rate().bits_per_second(),
            })
        })
        .collect();
    let (again, strays) = session.fleet.lost_and_found();
    json!({
        "kind": "sample",
        "end": end,
        "seconds": elapsed.as_secs_f64(),
        "interval_s": arguments.interval.as_secs_f64(),
        "queue_pairs": arguments.queue_pairs,
        "boards": boards,
        "switches": [],
        "settings": {},
        "rows": rows,
        "late_ticks": sampled.late,
        "packets_sent_again": again,
        "stray_packets": strays,
        "faults": faults.json(),
    })
}

pub fn text(session: &Session, sampled: &Sampled, elapsed: Time, out: &Path) -> String {
    let header = ["board", "samples", "1/s", "missed", "resets", "silences"];
    let seconds = elapsed.as_secs_f64().max(1e-9);
    let rows: Vec<Vec<String>> = session
        .fit()
        .map(|(number, _)| {
            let of = &sampled.boards[number];
            vec![
                of.label.clone(),
                of.samples.to_string(),
                format!("{:.1}", of.samples as f64 / seconds),
                of.missed.to_string(),
                of.resets.len().to_string(),
                of.silences.len().to_string(),
            ]
        })
        .collect();
    let late = match sampled.late {
        0 => String::new(),
        late => format!("\n{late} ticks were skipped: this host was busy"),
    };
    format!("{}\nresults in {}{late}", columns(&header, &rows, 1, terminal_width()), out.display())
}
