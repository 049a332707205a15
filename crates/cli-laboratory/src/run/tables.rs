// SPDX-License-Identifier: Apache-2.0
//! The final tables of a run: senders, network, readout, verdict, faults.

use super::summary::Summary;
use super::{flow_tables, readout_tables};

/// The tables of a summary, ready to print.
pub fn of(summary: &Summary) -> String {
    let senders = match summary.boards.len() == summary.lab.flows.len() {
        true => readout_tables::boards(&summary.boards),
        false => flow_tables::flows(&summary.lab),
    };
    let totals = match &summary.readout {
        Some(readout) => readout_tables::totals(readout, &summary.lab),
        None => flow_tables::totals(&summary.lab),
    };
    let faults = match &summary.readout {
        Some(_) => readout_tables::faults(summary),
        None => flow_tables::faults(&summary.lab),
    };
    let verdict = flow_tables::verdict(&summary.lab).to_string();
    let sections = [senders, totals.to_string(), verdict, faults];
    sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n")
}
