// SPDX-License-Identifier: Apache-2.0
//! Observes a laboratory while it runs: windows of throughput and fairness, and how the run ended.
//! Promise: observation does not change the run.
//! Source: Jain, Chiu, Hawe 1984.

use penstock_netsim::{NameNumber, PauseCycle, SharedLedger, TraceSink};

use super::per::per;
use crate::run::{Lab, LabProgress};
use crate::scenario::{LabScenario, Stop};
use crate::units::Time;

/// How a run has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Every flow has ended, or the requested time has passed.
    Done,
    /// The time limit came before the last flow had ended.
    TimeLimit,
    /// Nothing can happen any more, and yet flows have not ended.
    Idle,
    /// Ports pause each other in a circle.
    Deadlock(PauseCycle),
    /// The caller gave up.
    Interrupted,
}

impl End {
    /// How a run ended, from a laboratory's progress; `None` while it runs.
    pub fn of(progress: LabProgress, scenario: &LabScenario) -> Option<End> {
        match (progress, scenario.run.stop) {
            (LabProgress::Running, _) => None,
            (LabProgress::Idle, _) => Some(End::Idle),
            (LabProgress::TimeLimit, Stop::Done) => Some(End::TimeLimit),
            (LabProgress::Done, _) | (LabProgress::TimeLimit, Stop::Time) => Some(End::Done),
        }
    }

    /// The word of summary.json.
    pub fn word(&self) -> &'static str {
        match self {
            End::Done => "done",
            End::TimeLimit => "time limit",
            End::Idle => "idle",
            End::Deadlock(_) => "deadlock",
            End::Interrupted => "interrupted",
        }
    }
}

/// The window of throughput without a trace, which fairness needs.
const DEFAULT_WINDOW: Time = Time::from_ms(1);

/// Counts throughput and fairness of a laboratory in windows as long as its trace's interval. Before the run; windows
/// are written into the trace, if there is one.
pub fn watch(lab: &mut Lab, scenario: &LabScenario) {
    let interval = scenario.trace.interval;
    let window = if interval > Time::ZERO { interval } else { DEFAULT_WINDOW };
    let names = lab.flows.iter().map(|flow| flow.name.clone()).collect();
    let mut windows = Windows { ledger: lab.ledger.clone(), names, numbers: Vec::new() };
    lab.engine.observe(window, Box::new(move |now, trace| windows.close(now, trace)));
}

/// Closes the windows of the ledger and writes them into the trace: `throughput_bps` under each flow's name, and that
/// of all flows with Jain's index under "network".
struct Windows {
    ledger: SharedLedger,
    names: Vec<String>,
    /// The flows' names in the trace, then "network".
    numbers: Vec<NameNumber>,
}

impl Windows {
    fn close(&mut self, now: Time, trace: Option<&mut TraceSink>) {
        let mut ledger = self.ledger.borrow_mut();
        let Some(trace) = trace else {
            ledger.close_window(now, |_, _| ());
            return;
        };
        if self.numbers.is_empty() {
            let names = self.names.iter().map(String::as_str).chain(["network"]);
            self.numbers = names.map(|name| trace.name_number(name)).collect();
        }
        let (numbers, length) = (&self.numbers, ledger.window_so_far(now).as_secs_f64());
        let rate = |bytes: u64| per(bytes as f64 * 8.0, length);
        let window = ledger.close_window(now, |flow, bytes| {
            trace.begin_numbered(now, numbers[flow.0 as usize]);
            trace.record(0, "throughput_bps", rate(bytes));
        });
        if let Some(network) = numbers.last() {
            trace.begin_numbered(now, *network);
            trace.record(0, "throughput_bps", rate(window.bytes));
            if let Some(jain) = window.jain {
                trace.record(0, "jain", jain);
            }
        }
    }
}
