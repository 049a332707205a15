// SPDX-License-Identifier: Apache-2.0
//! The contents of the live page and report.html for sampled boards.

use super::super::session::Session;
use super::arguments::Arguments;
use penstock_cli_common::live::Plan;
use penstock_dashboard::{Manifest, Sender, Series};

/// More senders than these are in trace.parquet only.
const SENDERS: usize = 128;

pub fn of(session: &Session, arguments: &Arguments) -> (Manifest, Plan) {
    let mut plan = Plan::default();
    let all: Vec<(usize, u16)> =
        session.fit().flat_map(|(board, _)| arguments.queue_pairs.iter().map(move |qp| (board, *qp))).collect();
    let several = arguments.queue_pairs.len() > 1;
    let sender = |(board, qp): &(usize, u16)| {
        let node = session.address(*board).to_string();
        let metrics = [
            ("throughput", "throughput_bps"),
            ("rate_current", "rate_current_bps"),
            ("rate_target", "rate_target_bps"),
            ("alpha", "alpha"),
            ("cnp_handled", "cnp_handled"),
        ];
        let series: Series = metrics.map(|(series, metric)| (series, plan.column(&node, *qp, metric))).into();
        let counters: Series = [("stage", plan.column(&node, *qp, "stage"))].into();
        let name = if several { format!("{node} queue pair {qp}") } else { node };
        let line = session.boards[*board].identity.as_ref().map_or(0.0, |of| of.line_rate().bits_per_second() as f64);
        Sender { name, series, counters, link_bps: line, share_bps: line }
    };
    let senders: Vec<Sender> = all.iter().take(SENDERS).map(sender).collect();
    let mut notes = Vec::new();
    if senders.len() < all.len() {
        notes.push(format!(
            "The first {} of {} queue pairs are shown; trace.parquet has all.",
            senders.len(),
            all.len()
        ));
    }
    let manifest = Manifest {
        title: format!("{} boards", session.fit().count()),
        kind: "lab",
        interval_ps: arguments.interval.as_ps(),
        senders,
        all_senders: all.len(),
        throughput: "payload",
        notes,
        columns: plan.count(),
        ..Manifest::default()
    };
    (manifest, plan)
}
