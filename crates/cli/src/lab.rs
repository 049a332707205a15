// SPDX-License-Identifier: Apache-2.0
//! `penstock run` of a laboratory scenario: builds its network, runs it under a progress bar, writes what was found.
//! Promise: files are whole whenever the run ends, also after Ctrl-C.

use crate::live::{of_lab, Page};
use crate::output;
use crate::run::{on_interrupt, write, Arguments, Failure};
use crate::screen::say;
use crate::usage::Usage;
use crate::Verdict;
use crate::{lab_board, lab_report};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use penstock_netsim::lab::{Lab, LabScenario, RunError, SenderKind};
use penstock_netsim::report::{self, End, Timing};
use penstock_netsim::{CaptureError, CaptureSink, SimError, Time, TraceError, TraceSink, TraceTee};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Simulated time between two looks at a run's progress.
const STEP: Time = Time::from_us(100);

impl From<SimError> for Failure {
    fn from(error: SimError) -> Self {
        Self::Fault(error.to_string())
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Self {
        Self::Fault(error.to_string())
    }
}

impl From<CaptureError> for Failure {
    fn from(error: CaptureError) -> Self {
        Self::Fault(error.to_string())
    }
}

/// Runs a laboratory scenario and reports it.
pub fn run(arguments: &Arguments) -> Result<Verdict, Failure> {
    let refused = |error: &dyn std::fmt::Display| Failure::Refused(error.to_string());
    let scenario = LabScenario::load(&arguments.scenario, &arguments.set).map_err(|error| refused(&error))?;
    for warning in &scenario.warnings {
        say(format_args!("warning: {warning}"));
    }
    let interrupted = on_interrupt()?;
    let (started, before) = (Instant::now(), Usage::now());
    let mut lab = Lab::build(&scenario, &mut lab_board::board).map_err(|error| refused(&error))?;
    let listener = arguments.live.listen()?;
    output::prepare(&arguments.out).map_err(|error| refused(&error))?;
    let name = arguments.scenario.display().to_string();
    let (manifest, settings, plan) = of_lab(&name, &scenario, &lab);
    let page = Page::open(&arguments.live, listener, manifest, settings, "flows")?;
    report::watch(&mut lab, &scenario);
    let tee = page.tee(plan, scenario.trace.interval + longest_delay(&scenario));
    open_files(&mut lab, &scenario, arguments, tee)?;
    let result = follow(&mut lab, &scenario, &interrupted, arguments.json, &page);
    let never_recorded = close_files(&mut lab)?;
    let end = result?;

    let (now, done) = (lab.now(), (lab.ledger.borrow().flows_over() as u64, lab.flows.len() as u64));
    let mut summary = report::summary(&lab, &name, &scenario, &end);
    summary.warnings.extend(never_recorded);
    summary.timing = timing(summary.timing, started, before);
    lab_board::add_counters(lab, &mut summary.flows)?;
    page.end(end.word(), now, done, &summary);
    let json = serde_json::to_string_pretty(&summary).expect("a summary has only plain keys");
    write(&arguments.out.join(output::SUMMARY), &json)?;
    if !arguments.no_plots {
        page.report(&arguments.out);
    }
    let verdict = if summary.is_verified() { Verdict::Verified } else { Verdict::Fault };
    let verdict = match arguments.json {
        true => output::print(json, verdict),
        false => output::print(
            format_args!("{}\nresults are in {}", lab_report::tables(&summary), arguments.out.display()),
            verdict,
        ),
    };
    page.stay(&interrupted);
    Ok(verdict)
}

/// Boards look back by up to their link's delay.
fn longest_delay(scenario: &LabScenario) -> Time {
    let from_boards = scenario.flows.iter().filter(|flow| flow.sender == SenderKind::Gateware);
    from_boards.map(|flow| scenario.link_of(flow.from).delay).max().unwrap_or_default()
}

fn timing(counted: Timing, started: Instant, before: Usage) -> Timing {
    let after = Usage::now();
    let cpu_s = after.cpu_s - before.cpu_s;
    let traversals_per_cpu_s = counted.traversals as f64 / cpu_s.max(f64::MIN_POSITIVE);
    let wall_s = started.elapsed().as_secs_f64();
    Timing { wall_s, cpu_s, traversals_per_cpu_s, peak_rss_mb: after.peak_rss_mb, ..counted }
}

fn open_files(lab: &mut Lab, scenario: &LabScenario, arguments: &Arguments, tee: TraceTee) -> Result<(), Failure> {
    let interval = scenario.trace.interval;
    if interval > Time::ZERO {
        let mut sink = TraceSink::create(arguments.out.join(output::TRACE), &[("penstock.kind", "lab")])?;
        sink.select(&scenario.trace.metrics);
        sink.set_tee(tee);
        lab.engine.set_trace(sink, interval);
    }
    let capture = &scenario.capture;
    if !capture.links.is_empty() {
        let snap = u32::try_from(capture.snap.bytes()).unwrap_or(u32::MAX);
        let sink = CaptureSink::create(arguments.out.join(output::CAPTURE), snap)?;
        let links: Vec<_> = capture.links.iter().map(|link| lab.links[*link].1).collect();
        lab.engine.set_capture(sink, &links);
    }
    Ok(())
}

/// Warnings of metrics that were asked for in vain.
fn close_files(lab: &mut Lab) -> Result<Vec<String>, Failure> {
    let mut warnings = Vec::new();
    if let Some(capture) = lab.engine.take_capture() {
        capture.finish()?;
    }
    if let Some(trace) = lab.engine.take_trace() {
        warnings.extend(
            trace.never_recorded().map(|metric| format!("trace.metrics: nothing recorded a metric `{metric}`")),
        );
        trace.finish()?;
    }
    warnings.iter().for_each(|warning| say(format_args!("warning: {warning}")));
    Ok(warnings)
}

/// Steps the simulation to its end, or to the user's Ctrl-C, under a progress bar of simulated time.
fn follow(
    lab: &mut Lab,
    scenario: &LabScenario,
    interrupted: &AtomicBool,
    quiet: bool,
    page: &Page,
) -> Result<End, Failure> {
    let us = |time: Time| time.as_ps() / 1_000_000;
    let bar = ProgressBar::new(us(lab.time_limit())).with_style(
        ProgressStyle::with_template("{bar:40} {percent} % of the time limit, {msg}, {elapsed} elapsed, {eta} left")
            .expect("a valid template"),
    );
    if quiet {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let mut until = Time::ZERO;
    let end = loop {
        if interrupted.load(Ordering::Relaxed) {
            lab.settle();
            break End::Interrupted;
        }
        until = until.saturating_add(STEP);
        match lab.advance(until) {
            Ok(progress) => {
                if let Some(end) = End::of(progress, scenario) {
                    break end;
                }
            }
            Err(RunError::Deadlock { cycle, .. }) => break End::Deadlock(cycle),
            Err(RunError::Simulation(error)) => return Err(error.into()),
        }
        bar.set_position(us(lab.now()));
        let (now_ms, done) = (lab.now().as_secs_f64() * 1e3, lab.ledger.borrow().flows_over());
        page.advance(lab.now(), done as u64, lab.flows.len() as u64, interrupted);
        bar.set_message(format!("{now_ms:.2} ms simulated, {done} of {} flows done", lab.flows.len()));
    };
    bar.finish_and_clear();
    Ok(end)
}
