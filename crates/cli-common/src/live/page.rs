// SPDX-License-Identifier: Apache-2.0
//! The page of a run: `--live` during the run, `report.html` after it.
//! Promise: the page gets the same values as the trace; without `--live` no socket listens; without use of the
//! controls, a run is the same with and without a page.

use super::plan::Plan;
use crate::interrupt;
use crate::outcome::{Failure, Verdict};
use crate::output::results;
use crate::output::screen::notify;
use penstock_dashboard::{
    write_report, Applied, Listener, Manifest, Phase, Progress, Recording, Request, Server, Settings, Shared,
};
use penstock_netsim::{Time, TraceTee};
use serde::Serialize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// Options of commands that have a live page.
#[derive(Debug, Clone, clap::Args)]
pub struct LiveOptions {
    /// Serve the live page while it runs and afterwards, until Ctrl-C [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, default_missing_value = "127.0.0.1:8080")]
    live: Option<String>,
    /// With --live: end with the run
    #[arg(long, requires = "live")]
    live_exit: bool,
    /// Simulate at most X seconds in a second, as in --pace 0.001: slow enough to watch
    #[arg(long, value_name = "X", value_parser = pace)]
    pace: Option<f64>,
}

/// One simulated nanosecond a second.
const SLOWEST: f64 = 1e-9;

fn pace(text: &str) -> Result<f64, String> {
    let pace = text.parse::<f64>().ok().filter(|pace| pace.is_finite() && *pace >= SLOWEST);
    pace.ok_or_else(|| format!("give a number of {SLOWEST:e} or more: 0.001 is one simulated millisecond a second"))
}

impl LiveOptions {
    /// A page at this address that ends with the run; none: report.html alone.
    pub fn at(address: Option<String>) -> Self {
        LiveOptions { live: address, live_exit: true, pace: None }
    }

    /// Whether there is to be a page.
    pub fn is_on(&self) -> bool {
        self.live.is_some()
    }

    /// Takes the port, before anything is built.
    pub fn listen(&self) -> Result<Option<Listener>, Failure> {
        let bound = self.live.as_deref().map(Listener::bind).transpose();
        bound.map_err(|error| Failure::Refused(error.to_string()))
    }
}

/// The page of one run.
pub struct Page {
    recording: Shared,
    server: Option<Server>,
    started: Instant,
    pace: Option<f64>,
    stays: bool,
    unit: &'static str,
}

impl Page {
    /// A page of the values that `manifest` describes, served if there is a `listener`. `unit`: the unit of its
    /// progress.
    pub fn open(
        options: &LiveOptions,
        listener: Option<Listener>,
        manifest: Manifest,
        settings: Settings,
        unit: &'static str,
    ) -> Result<Self, Failure> {
        let recording = Recording::new(manifest, settings).shared();
        let serve = |listener: Listener| listener.serve(recording.clone());
        let server = listener.map(serve).transpose().map_err(|error| Failure::Fault(format!("--live: {error}")))?;
        if let Some(server) = &server {
            notify(format_args!("live page: http://{}", server.address));
            if !server.address.ip().is_loopback() {
                notify(format_args!(
                    "warning: every host that reaches {} can watch this run and steer it",
                    server.address
                ));
            }
        }
        let stays = !options.live_exit;
        Ok(Self { recording, server, started: Instant::now(), pace: options.pace, stays, unit })
    }

    /// Gives the page what a trace records; `settle`: how far back in time it records.
    pub fn tee(&self, plan: Plan, settle: Time) -> TraceTee {
        plan.tee(self.recording.clone(), settle)
    }

    /// The next control of a page.
    pub fn poll_request(&self) -> Option<Request> {
        self.server.as_ref()?.steering.poll()
    }

    /// The changes made from pages so far.
    pub fn applied(&self) -> Vec<Applied> {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner).applied.clone()
    }

    pub fn recording(&self) -> &Shared {
        &self.recording
    }

    /// Reports progress to the page, and limits the run to the page's pace.
    pub fn advance(&self, now: Time, done: u64, total: u64, interrupted: &AtomicBool) {
        self.publish(Phase::Running, "", now, done, total);
        let Some(pace) = self.pace else { return };
        let due = Duration::from_secs_f64(now.as_secs_f64() / pace);
        while !interrupted.load(Ordering::Relaxed) {
            let early = due.saturating_sub(self.started.elapsed());
            if early.is_zero() {
                return;
            }
            std::thread::sleep(early.min(Duration::from_millis(50)));
        }
    }

    fn publish(&self, phase: Phase, end: &str, now: Time, done: u64, total: u64) {
        let wall_s = self.started.elapsed().as_secs_f64();
        let (end, now_ps, unit) = (end.to_owned(), now.as_ps(), self.unit);
        let mut recording = self.recording.lock().unwrap_or_else(PoisonError::into_inner);
        let silent = std::mem::take(&mut recording.progress.silent);
        recording.progress = Progress { phase, end, now_ps, done, total, unit, wall_s, silent };
    }

    /// The run is over: reports its end and results to the page.
    pub fn end(&self, end: &str, now: Time, (done, total): (u64, u64), summary: &impl Serialize) {
        while let Some(request) = self.poll_request() {
            request.answer(Err(penstock_dashboard::ControlError::Ended));
        }
        self.publish(Phase::Ended, end, now, done, total);
        let summary = serde_json::to_value(summary).unwrap_or_default();
        self.recording.lock().unwrap_or_else(PoisonError::into_inner).summary = Some(summary);
    }

    /// Writes report.html; a run that was to leave one and cannot ends with a fault.
    pub fn report(&self, out: &Path, verdict: Verdict) -> Verdict {
        let file = out.join(results::REPORT);
        match write_report(&file, &self.recording) {
            Ok(()) => verdict,
            Err(error) => {
                notify(format_args!("error: cannot write {}: {error}", file.display()));
                Verdict::Fault
            }
        }
    }

    /// Keeps a live page there until Ctrl-C. A run that was interrupted has had its Ctrl-C.
    pub fn stay(&self, interrupted: &AtomicBool) {
        let Some(server) = self.server.as_ref().filter(|_| self.stays) else { return };
        if interrupted.load(Ordering::Relaxed) {
            return;
        }
        notify(format_args!("the run has ended; its page stays at http://{} until Ctrl-C", server.address));
        interrupt::be_quiet();
        while !interrupted.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_that_no_clock_can_hold_is_refused() {
        for text in ["1e-300", "0", "-1", "nan", "inf", "1e-10"] {
            let message = pace(text).unwrap_err();
            assert!(message.contains("1e-9 or more"), "{text}: {message}");
        }
        assert_eq!(pace("1e-9"), Ok(1e-9));
    }
}
