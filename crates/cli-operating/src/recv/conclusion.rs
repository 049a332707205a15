// SPDX-License-Identifier: Apache-2.0
//! The report of a run of `penstock recv`, with its faults and its verdict.

use super::ending::given_up;
#[cfg(feature = "gpu")]
use super::gpu;
#[cfg(not(feature = "gpu"))]
use super::no_gpu as gpu;
use super::plan::Plan;
use super::sink::Sink;
use super::tables;
use penstock_cli_common::outcome::Verdict;
use penstock_readout::session::{Session, SessionReport};

/// What the report of a run is made of.
pub struct Outcome {
    /// The report before the boards were closed.
    pub before: SessionReport,
    /// The report at the end.
    pub after: SessionReport,
    pub gpu: Option<gpu::Done>,
    /// Each board's share of the line.
    pub shares: Option<serde_json::Value>,
    pub faults: Vec<String>,
    /// The run has a fault if no board came up.
    pub needs_boards: bool,
}

impl Outcome {
    /// The report as text or JSON: boards as they were before they were closed, all else as it is at the end.
    pub fn conclude(self, plan: &Plan) -> (String, Verdict) {
        let Outcome { before, mut after, mut gpu, shares, mut faults, needs_boards } = self;
        after.readout.pattern = gpu.as_mut().and_then(gpu::take_pattern).or(after.readout.pattern);
        let states = before.boards.into_iter().zip(after.boards).map(|(before, mut after)| {
            (after.state, after.step, after.trouble) = (before.state, before.step, before.trouble);
            after
        });
        let boards = states.collect();
        let report = SessionReport { boards, seconds: before.seconds, cpu_seconds: before.cpu_seconds, ..after };
        faults.extend(tables::faults(&report, needs_boards));
        faults.extend(gpu.iter().flat_map(gpu::faults));
        let verdict = if faults.is_empty() { Verdict::Verified } else { Verdict::Fault };
        if !plan.json {
            let gpu = gpu.as_ref().map(|gpu| gpu::line(gpu, plan.charges()));
            return (tables::closing(&report, plan.out.is_some(), gpu, &faults), verdict);
        }
        let mut json = serde_json::to_value(&report).expect("a report has only plain keys");
        json["faults"] = serde_json::json!(faults);
        json["is_stored"] = serde_json::json!(plan.out.is_some());
        if let Some(shares) = shares {
            json["shares"] = shares;
        }
        if let Some(gpu) = &gpu {
            json["gpu"] = serde_json::json!(gpu);
        }
        (format!("{json:#}"), verdict)
    }
}

/// The report of a run that cannot be brought to its end any more.
pub fn last_words(plan: &Plan, session: &mut Session<Sink>) -> String {
    let report = session.report();
    let faults = vec![given_up(plan, session)];
    let outcome =
        Outcome { before: report.clone(), after: report, gpu: None, shares: None, faults, needs_boards: true };
    outcome.conclude(plan).0
}
