// SPDX-License-Identifier: Apache-2.0
//! The course of a run: builds its network, runs it with a progress bar, writes the results.
//! Promise: files are complete whenever the run ends, also after Ctrl-C; without a requested page nothing is recorded
//! for it.

use super::arguments::Arguments;
use super::helm::Helm;
use super::parts::Parts;
use super::readout::SharedReadout;
use super::summary::{Delivered, ReadoutSummary, Summary};
use super::usage::Usage;
use super::{board, page, plots, tables};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use penstock_cli_common::interrupt::on_interrupt;
use penstock_cli_common::live::Page;
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_cli_common::output::screen::notify;
use penstock_cli_common::output::{print, results};
use penstock_lab::report::{self, per, End, LabSummary, Timing};
use penstock_lab::{Lab, LabScenario, RunError, SenderKind};
use penstock_netsim::{CaptureSink, Station, Time, TraceSink, TraceTee};
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

fn refused(error: impl Display) -> Failure {
    Failure::Refused(error.to_string())
}

fn fault(error: impl Display) -> Failure {
    Failure::Fault(error.to_string())
}

/// A run under way.
struct Course<'a> {
    scenario: &'a LabScenario,
    arguments: &'a Arguments,
    lab: Lab,
    readout: Option<SharedReadout>,
    delivered: Delivered,
    interrupted: &'a AtomicBool,
}

/// Runs a scenario and reports it.
pub fn run(arguments: &Arguments) -> Result<Verdict, Failure> {
    let scenario = LabScenario::load(&arguments.scenario, &arguments.set).map_err(refused)?;
    for warning in &scenario.warnings {
        notify(format_args!("warning: {warning}"));
    }
    if !arguments.overwrite {
        results::refuse_foreign(&arguments.out, Some(&arguments.scenario)).map_err(refused)?;
    }
    let interrupted = on_interrupt()?;
    let (started, before) = (Instant::now(), Usage::now());
    let listener = arguments.live.listen()?;
    let mut parts = Parts::new(&arguments.out);
    let lab = Lab::build(&scenario, &mut parts).map_err(refused)?;
    let readout = parts.readout;
    if readout.is_none() {
        results::prepare(&arguments.out).map_err(refused)?;
    }
    let delivered = Delivered::default();
    let mut course = Course { scenario: &scenario, arguments, lab, readout, delivered, interrupted: &interrupted };

    let name = arguments.scenario.display().to_string();
    let mut helm = match listener.is_some() && page::is_steerable(&scenario) {
        true => Some(Helm::new(arguments, &scenario).map_err(refused)?),
        false => None,
    };
    let shown = listener.is_some() || !arguments.no_plots;
    let (manifest, plan) =
        if shown { page::of_run(&name, &scenario, &course.lab, helm.is_some()) } else { page::none() };
    let settings = helm.as_ref().map_or_else(|| page::settings(&scenario), |helm| helm.settings(&scenario));
    let unit = if course.readout.is_some() { "events" } else { "flows" };
    let page = Page::open(&arguments.live, listener, manifest, settings, unit)?;
    report::watch(&mut course.lab, &scenario);
    let tee = shown.then(|| page.tee(plan, scenario.trace.interval + longest_delay(&scenario)));
    course.open_files(tee)?;
    let result = course.follow(&page, |course| {
        while let Some(request) = page.poll_request() {
            match &mut helm {
                Some(helm) => helm.handle(request, &mut course.lab, &scenario, page.recording()),
                None => request.answer(Err(page::no_controls())),
            }
        }
    });
    let never_recorded = course.close_files()?;
    let end = result?;

    let (now, done) = (course.lab.now(), course.progress());
    let mut summary = report::summary(&course.lab, &name, &scenario, &end);
    summary.warnings.extend(never_recorded);
    summary.timing = timing(summary.timing, started, before);
    if end != End::Interrupted {
        report::compare_with_ideal(&scenario, &mut summary);
    }
    let mut summary = course.summary(summary)?;
    summary.steered = page.applied();
    page.end(end.word(), now, done, &summary);
    let verdict = publish(arguments, &summary, &page, &interrupted)?;
    page.stay(&interrupted);
    Ok(verdict)
}

/// Writes the summary and the plots, and prints the results.
fn publish(
    arguments: &Arguments,
    summary: &Summary,
    page: &Page,
    interrupted: &AtomicBool,
) -> Result<Verdict, Failure> {
    let json = serde_json::to_string_pretty(summary).expect("a summary has only plain keys");
    results::write(&arguments.out.join(results::SUMMARY), &json)?;
    let mut verdict = summary.verdict();
    if !arguments.no_plots {
        verdict = page.report(&arguments.out, verdict);
        if let Err(message) = plots::draw_of(summary, &arguments.out, interrupted) {
            notify(format_args!("warning: {message}"));
        }
    }
    let out = arguments.out.display();
    Ok(match arguments.json {
        true => print(json, verdict),
        false => print(format_args!("{}\nresults are in {out}", tables::of(summary)), verdict),
    })
}

/// Boards look back by up to their link's delay.
fn longest_delay(scenario: &LabScenario) -> Time {
    let from_boards = scenario.flows.iter().filter(|flow| flow.sender == SenderKind::Gateware);
    from_boards.map(|flow| scenario.link_of(flow.from).delay).max().unwrap_or_default()
}

fn timing(counted: Timing, started: Instant, before: Usage) -> Timing {
    let after = Usage::now();
    let cpu_s = after.cpu_s - before.cpu_s;
    let traversals_per_cpu_s = per(counted.traversals as f64, cpu_s);
    let wall_s = started.elapsed().as_secs_f64();
    Timing { wall_s, cpu_s, traversals_per_cpu_s, peak_rss_mb: after.peak_rss_mb, ..counted }
}

impl Course<'_> {
    fn open_files(&mut self, tee: Option<TraceTee>) -> Result<(), Failure> {
        let (scenario, out) = (self.scenario, &self.arguments.out);
        let interval = scenario.trace.interval;
        if interval > Time::ZERO {
            let mut sink = TraceSink::create(out.join(results::TRACE), &[("penstock.kind", "lab")]).map_err(fault)?;
            sink.select(&scenario.trace.metrics);
            if let Some(tee) = tee {
                sink.set_tee(tee);
            }
            self.lab.engine.set_trace(sink, interval);
        }
        let capture = &scenario.capture;
        if !capture.links.is_empty() {
            let snap = u32::try_from(capture.snap.bytes()).unwrap_or(u32::MAX);
            let sink = CaptureSink::create(out.join(results::CAPTURE), snap).map_err(fault)?;
            let links: Vec<_> = capture.links.iter().map(|link| self.lab.links[*link].1).collect();
            self.lab.engine.set_capture(sink, &links);
        }
        Ok(())
    }

    /// Warnings about selected metrics without records.
    fn close_files(&mut self) -> Result<Vec<String>, Failure> {
        let mut warnings = Vec::new();
        let stored = self.readout.as_ref().map_or(Ok(()), |readout| readout.borrow_mut().finish(self.lab.now()));
        if let Some(capture) = self.lab.engine.take_capture() {
            capture.finish().map_err(fault)?;
        }
        if let Some(trace) = self.lab.engine.take_trace() {
            warnings.extend(
                trace.never_recorded().map(|metric| format!("trace.metrics: nothing recorded a metric `{metric}`")),
            );
            trace.finish().map_err(fault)?;
        }
        stored.map_err(fault)?;
        warnings.iter().for_each(|warning| notify(format_args!("warning: {warning}")));
        Ok(warnings)
    }

    /// How much is done of how much: events of a readout, flows without one.
    fn progress(&self) -> (u64, u64) {
        match &self.readout {
            Some(readout) => (readout.borrow().events_stored(), self.events_wanted()),
            None => (self.lab.ledger.borrow().flows_over() as u64, self.lab.flows.len() as u64),
        }
    }

    fn events_wanted(&self) -> u64 {
        self.scenario.events.as_ref().map_or(0, |events| events.times.len() as u64)
    }

    fn bar(&self) -> ProgressBar {
        let (length, template) = match self.readout {
            Some(_) => (self.events_wanted(), "{bar:40} {pos}/{len} events, {msg}, {elapsed} elapsed, {eta} left"),
            None => (
                micros(self.lab.time_limit()),
                "{bar:40} {percent} % of the time limit, {msg}, {elapsed} elapsed, {eta} left",
            ),
        };
        let style = ProgressStyle::with_template(template).expect("a valid template");
        let bar = ProgressBar::new(length).with_style(style);
        if self.arguments.json {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        bar
    }

    /// Steps the simulation to its end, or to the user's Ctrl-C, under a progress bar; `steer` is called between steps.
    fn follow(&mut self, page: &Page, mut steer: impl FnMut(&mut Self)) -> Result<End, Failure> {
        let bar = self.bar();
        let mut until = Time::ZERO;
        let end = loop {
            let failed = self.readout.as_ref().is_some_and(|readout| readout.borrow().has_failed());
            if failed || self.interrupted.load(Ordering::Relaxed) {
                self.lab.settle();
                break End::Interrupted;
            }
            steer(self);
            until = until.saturating_add(Delivered::STEP);
            let advanced = self.lab.advance(until);
            self.note_delivered();
            match advanced {
                Ok(progress) => {
                    if let Some(end) = End::of(progress, self.scenario) {
                        break end;
                    }
                }
                Err(RunError::Deadlock { cycle, .. }) => break End::Deadlock(cycle),
                Err(RunError::Simulation(error)) => return Err(fault(error)),
            }
            let (now_ms, (done, total)) = (self.lab.now().as_secs_f64() * 1e3, self.progress());
            page.advance(self.lab.now(), done, total, self.interrupted);
            if self.readout.is_some() {
                bar.set_position(done);
                bar.set_message(format!("{now_ms:.2} ms simulated"));
            } else {
                bar.set_position(micros(self.lab.now()));
                bar.set_message(format!("{now_ms:.2} ms simulated, {done} of {total} flows done"));
            }
        };
        bar.finish_and_clear();
        Ok(end)
    }

    fn note_delivered(&mut self) {
        if self.readout.is_some() {
            let ledger = self.lab.ledger.borrow();
            self.delivered.push(ledger.flows().iter().map(|flow| flow.delivered_bytes).collect());
        }
    }

    /// The whole summary; ends the boards.
    fn summary(self, mut lab: LabSummary) -> Result<Summary, Failure> {
        let readout = match (&self.readout, &self.scenario.readout) {
            (Some(readout), Some(spec)) => {
                let host = self.scenario.topology.name(spec.host);
                let id = self.lab.hosts.iter().find(|(name, _)| name == host).map(|(_, id)| *id);
                let station = id.and_then(|id| self.lab.engine.node::<Station>(id));
                let port = station.map(|station| station.stats(self.lab.now())).unwrap_or_default();
                let (requested, counts) = (self.events_wanted(), readout.borrow().counts());
                Some(ReadoutSummary::new(host, requested, self.lab.now(), counts, &port, &self.delivered))
            }
            _ => None,
        };
        let scenario = self.scenario;
        let boards = board::summaries(self.lab, scenario, &mut lab.flows).map_err(fault)?;
        // With what the boards counted.
        lab.verdict = report::verdict::of(scenario, &lab);
        Ok(Summary { lab, boards, readout, steered: Vec::new() })
    }
}

fn micros(time: Time) -> u64 {
    time.as_ps() / 1_000_000
}
