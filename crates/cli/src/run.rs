// SPDX-License-Identifier: Apache-2.0
//! `penstock run`: one scenario, from its file to tables, Parquet files and plots.

use crate::simulation::{Progress, Simulation, SimulationError};
use crate::summary::{end_word, Summary};
use crate::{lab, output, plots, report, Verdict};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use penstock_netsim::lab::LabScenario;
use penstock_netsim::Scenario;
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
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not draw plots
    #[arg(long)]
    no_plots: bool,
}

/// Runs a scenario; prints what went wrong itself.
pub fn run(arguments: &Arguments) -> Verdict {
    let result = match is_lab(&arguments.scenario) {
        true => lab::run(arguments),
        false => simulate(arguments),
    };
    match result {
        Ok(verdict) => verdict,
        Err(Failure::Refused(message)) => {
            eprintln!("error: {message}");
            Verdict::Refused
        }
        Err(Failure::Fault(message)) => {
            eprintln!("error: {message}");
            Verdict::Fault
        }
    }
}

/// Whether a file is a scenario of the network laboratory; one that cannot be read is refused by whoever reads it next.
fn is_lab(scenario: &Path) -> bool {
    std::fs::read_to_string(scenario).is_ok_and(|text| LabScenario::is_lab(&text))
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
    let scenario =
        Scenario::load(&arguments.scenario, &arguments.set).map_err(|error| Failure::Refused(error.to_string()))?;
    for warning in &scenario.warnings {
        eprintln!("warning: {warning}");
    }
    let out = &arguments.out;
    let interrupted = on_interrupt()?;

    let started = Instant::now();
    let mut simulation = Simulation::build(&scenario, out).map_err(Failure::of_set_up)?;
    let progress = follow(&mut simulation, &interrupted, arguments.json)?;
    let result = simulation.finish()?;

    let name = arguments.scenario.display().to_string();
    let summary = Summary::new(&name, &scenario, end_word(progress), result, started.elapsed());
    let json = serde_json::to_string_pretty(&summary).expect("a summary has only plain keys");
    write(&out.join(output::SUMMARY), &json)?;
    if !arguments.no_plots {
        if let Err(message) = plots::draw(out) {
            eprintln!("warning: {message}");
        }
    }
    match arguments.json {
        true => println!("{json}"),
        false => println!("{}\nresults are in {}", report::tables(&summary), out.display()),
    }
    Ok(summary.verdict())
}

/// Steps the simulation to its end, or to the user's Ctrl-C, under a progress bar of events.
fn follow(simulation: &mut Simulation, interrupted: &AtomicBool, quiet: bool) -> Result<Progress, Failure> {
    let bar = ProgressBar::new(simulation.events_wanted()).with_style(
        ProgressStyle::with_template("{bar:40} {pos}/{len} events, {msg}, {elapsed} elapsed, {eta} left")
            .expect("a valid template"),
    );
    if quiet {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let mut progress = Progress::Running;
    while progress == Progress::Running && !interrupted.load(Ordering::Relaxed) {
        progress = simulation.step()?;
        bar.set_position(simulation.events_built());
        bar.set_message(format!("{:.2} ms simulated", simulation.now().as_secs_f64() * 1e3));
    }
    bar.finish_and_clear();
    Ok(progress)
}

/// A flag that Ctrl-C (or SIGTERM) raises; a second Ctrl-C ends the process at once.
pub(crate) fn on_interrupt() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let raised = flag.clone();
    ctrlc::set_handler(move || {
        if raised.swap(true, Ordering::Relaxed) {
            std::process::exit(1);
        }
        eprintln!("\ninterrupted: closing the files; once more to stop at once");
    })
    .map_err(|error| Failure::Fault(format!("cannot watch for Ctrl-C: {error}")))?;
    Ok(flag)
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| Failure::Fault(format!("cannot write {}: {error}", path.display())))
}
