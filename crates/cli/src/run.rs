// SPDX-License-Identifier: Apache-2.0
//! `penstock run`: one scenario, from its file to tables, Parquet files and plots.

use crate::live::{BoardHelm, LiveOptions, Page};
use crate::screen::say;
use crate::simulation::{Progress, Simulation, SimulationError};
use crate::summary::{end_word, Summary};
use crate::{lab, output, plots, report, Verdict};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use penstock_netsim::lab::LabScenario;
use penstock_netsim::{Scenario, Time};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Instant;

#[derive(clap::Args)]
pub struct Arguments {
    /// Scenario file (TOML)
    pub(crate) scenario: PathBuf,
    /// Folder for summary.json, trace.parquet, events.parquet, capture.pcapng and the plots
    #[arg(long, default_value = "out")]
    pub(crate) out: PathBuf,
    /// Set a key of the scenario, as in cc.law=off or link.loss=1e-3; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Print the summary as JSON instead of tables
    #[arg(short = 'J', long)]
    pub(crate) json: bool,
    /// Do not draw plots and do not write report.html
    #[arg(long)]
    pub(crate) no_plots: bool,
    #[command(flatten)]
    pub(crate) live: LiveOptions,
}

/// Runs a scenario; prints what went wrong itself.
pub fn run(arguments: &Arguments) -> Verdict {
    told(match is_lab(&arguments.scenario) {
        true => lab::run(arguments),
        false => simulate(arguments),
    })
}

/// The verdict of a command; prints what kept it from one of its own.
pub(crate) fn told(result: Result<Verdict, Failure>) -> Verdict {
    let (message, verdict) = match result {
        Ok(verdict) => return verdict,
        Err(Failure::Refused(message)) => (message, Verdict::Refused),
        Err(Failure::Fault(message)) => (message, Verdict::Fault),
    };
    say(format_args!("error: {message}"));
    verdict
}

/// Whether a file is a scenario of the network laboratory; one that cannot be read is refused by whoever reads it next.
fn is_lab(scenario: &Path) -> bool {
    std::fs::read_to_string(scenario).is_ok_and(|text| LabScenario::is_lab(&text))
}

/// Whether a file is TOML with this table at its top: for a hint that it belongs to another command.
pub(crate) fn has_table(file: &Path, name: &str) -> bool {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.parse::<toml::Table>().is_ok_and(|table| table.contains_key(name))
}

/// Why a command did not come to a verdict of its own.
pub(crate) enum Failure {
    Refused(String),
    Fault(String),
}

impl Failure {
    /// Nothing has run yet: most errors are about what was asked for.
    fn of_set_up(error: SimulationError) -> Self {
        match error.is_request() {
            true => Self::Refused(error.to_string()),
            false => Self::Fault(error.to_string()),
        }
    }
}

/// Errors of a run under way.
impl From<SimulationError> for Failure {
    fn from(error: SimulationError) -> Self {
        Self::Fault(error.to_string())
    }
}

fn simulate(arguments: &Arguments) -> Result<Verdict, Failure> {
    let refused = |error: &dyn std::fmt::Display| Failure::Refused(error.to_string());
    let (path, sets) = (&arguments.scenario, &arguments.set);
    let scenario = Scenario::load(path, sets).map_err(|error| match has_table(path, "step") {
        true => refused(&format!(
            "{error}\nthis is a scenario of an emulated switch: penstock board --switch (docs/board.md)"
        )),
        false => refused(&error),
    })?;
    let text = std::fs::read_to_string(path).map_err(|error| refused(&error))?;
    for warning in &scenario.warnings {
        say(format_args!("warning: {warning}"));
    }
    let out = &arguments.out;
    let interrupted = on_interrupt()?;

    let listener = arguments.live.listen()?;
    let mut helm = BoardHelm::new(path.clone(), text, sets.clone(), scenario.boards.count);
    let (manifest, plan) = helm.manifest(&scenario, listener.is_some());
    let page = Page::open(&arguments.live, listener, manifest, helm.settings(&scenario), "events")?;

    let started = Instant::now();
    let tee = page.tee(plan, settle(&scenario));
    let mut simulation = Simulation::build(&scenario, out, tee).map_err(Failure::of_set_up)?;
    let progress = follow(&mut simulation, &interrupted, arguments.json, &page, |simulation| {
        while let Some(request) = page.poll_request() {
            helm.handle(request, simulation, &scenario, page.recording());
        }
    })?;
    let (now, done) = (simulation.now(), (simulation.events_built(), simulation.events_wanted()));
    let result = simulation.finish()?;

    let name = path.display().to_string();
    let mut summary = Summary::new(&name, &scenario, end_word(progress), result, started.elapsed());
    summary.steered = page.applied();
    page.end(summary.end, now, done, &summary);
    let json = serde_json::to_string_pretty(&summary).expect("a summary has only plain keys");
    write(&out.join(output::SUMMARY), &json)?;
    if !arguments.no_plots {
        page.report(out);
        if let Err(message) = plots::draw(out) {
            say(format_args!("warning: {message}"));
        }
    }
    let verdict = match arguments.json {
        true => output::print(json, summary.verdict()),
        false => output::print(
            format_args!("{}\nresults are in {}", report::tables(&summary), out.display()),
            summary.verdict(),
        ),
    };
    page.stay(&interrupted);
    Ok(verdict)
}

/// How far back in time boards record: they run ahead of the network and behind it by up to their link's delay.
fn settle(scenario: &Scenario) -> Time {
    let delays = (0..scenario.boards.count).map(|k| scenario.link_of(&Scenario::board_name(k)).delay);
    scenario.trace.interval + delays.max().unwrap_or_default()
}

/// Steps the simulation to its end, or to the user's Ctrl-C, under a progress bar of events; `steer` is called
/// between steps.
fn follow(
    simulation: &mut Simulation,
    interrupted: &AtomicBool,
    quiet: bool,
    page: &Page,
    mut steer: impl FnMut(&mut Simulation),
) -> Result<Progress, Failure> {
    let bar = ProgressBar::new(simulation.events_wanted()).with_style(
        ProgressStyle::with_template("{bar:40} {pos}/{len} events, {msg}, {elapsed} elapsed, {eta} left")
            .expect("a valid template"),
    );
    if quiet {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let mut progress = Progress::Running;
    while progress == Progress::Running && !interrupted.load(Ordering::Relaxed) {
        steer(simulation);
        progress = simulation.step()?;
        page.advance(simulation.now(), simulation.events_built(), simulation.events_wanted(), interrupted);
        bar.set_position(simulation.events_built());
        bar.set_message(format!("{:.2} ms simulated", simulation.now().as_secs_f64() * 1e3));
    }
    bar.finish_and_clear();
    Ok(progress)
}

/// Nothing is left to be closed: Ctrl-C needs no words.
pub(crate) static QUIET_INTERRUPT: AtomicBool = AtomicBool::new(false);

/// A flag that Ctrl-C (or SIGTERM) raises; a second Ctrl-C ends the process at once.
pub(crate) fn on_interrupt() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let raised = flag.clone();
    ctrlc::set_handler(move || {
        if raised.swap(true, Ordering::Relaxed) {
            crate::screen::leave();
            std::process::exit(1);
        }
        if !QUIET_INTERRUPT.load(Ordering::Relaxed) {
            say("\ninterrupted: coming to its end; once more to stop at once");
        }
    })
    .map_err(|error| Failure::Fault(format!("cannot watch for Ctrl-C: {error}")))?;
    Ok(flag)
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| Failure::Fault(format!("cannot write {}: {error}", path.display())))
}
