// SPDX-License-Identifier: Apache-2.0
//! Checks a scenario and runs it with the interpreter lock released.
//! Promise: Ctrl-C is checked and progress reported several times per second; files are complete whenever a run ends;
//! runs share no state.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use penstock_lab::report::{self, End, LabSummary};
use penstock_lab::{Lab, LabError, LabScenario, RunError, ScenarioError, SoftwareOnly};
use penstock_netsim::{CaptureSink, Time, TraceSink};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::stream::Stream;

/// Simulated time between two looks at a run's end.
const STEP: Time = Time::from_us(100);
/// Real time between two looks at the interpreter.
const LOOK: Duration = Duration::from_millis(100);

/// What a run has left.
#[pyclass(frozen, get_all)]
pub struct Outcome {
    /// summary.json
    summary: String,
    /// None without a trace, or when it is in a file.
    trace: Option<Py<Stream>>,
    /// Metrics asked for that nothing recorded.
    never_recorded: Vec<String>,
}

fn refused(error: ScenarioError) -> PyErr {
    match error {
        ScenarioError::Io { ref source, .. } => std::io::Error::new(source.kind(), error.to_string()).into(),
        ScenarioError::Invalid(_) => PyValueError::new_err(error.to_string()),
    }
}

fn impossible(error: LabError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn unwritable(error: impl std::fmt::Display) -> PyErr {
    PyOSError::new_err(error.to_string())
}

fn scenario(text: &str, path: &Path, sets: &[String]) -> PyResult<LabScenario> {
    let read = |path: &Path| std::fs::read(path);
    LabScenario::parse(path, text, sets, &read).map_err(refused)
}

/// Settings (key and value) and warnings.
type Checked = (Vec<(String, String)>, Vec<String>);

/// Reads and checks a scenario: its settings in force and its warnings. ValueError says all that is wrong.
#[pyfunction]
#[pyo3(signature = (text, path, sets))]
pub fn check(py: Python<'_>, text: String, path: PathBuf, sets: Vec<String>) -> PyResult<Checked> {
    py.detach(|| {
        let scenario = scenario(&text, &path, &sets)?;
        Ok((scenario.settings, scenario.warnings.iter().map(ToString::to_string).collect()))
    })
}

/// Everything of a finished run that may leave its thread.
struct Finished {
    summary: LabSummary,
    trace: Option<Stream>,
    never_recorded: Vec<String>,
}

/// Runs a scenario to its end. With `out`, trace.parquet and capture.pcapng are written into that folder, without it
/// the trace is in the outcome. `progress(simulated_s, limit_s, flows_over, flows)` is called several times a second.
#[pyfunction]
#[pyo3(signature = (text, path, sets, out=None, progress=None))]
pub fn run(
    py: Python<'_>,
    text: String,
    path: PathBuf,
    sets: Vec<String>,
    out: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Outcome> {
    let finished = py.detach(|| simulate(&text, &path, &sets, out.as_deref(), progress.as_ref()))?;
    Ok(Outcome {
        summary: serde_json::to_string(&finished.summary)
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))?,
        trace: finished.trace.map(|trace| Py::new(py, trace)).transpose()?,
        never_recorded: finished.never_recorded,
    })
}

fn simulate(
    text: &str,
    path: &Path,
    sets: &[String],
    out: Option<&Path>,
    progress: Option<&Py<PyAny>>,
) -> PyResult<Finished> {
    let scenario = scenario(text, path, sets)?;
    if out.is_none() && !scenario.capture.links.is_empty() {
        return Err(PyValueError::new_err("capture.links: a capture is a file; give the folder for it, out=\"...\""));
    }
    let mut lab = Lab::build(&scenario, &mut SoftwareOnly).map_err(impossible)?;
    report::watch(&mut lab, &scenario);
    record(&mut lab, &scenario, out)?;
    let end = follow(&mut lab, &scenario, progress);
    let capture = lab.engine.take_capture().map_or(Ok(()), |capture| capture.finish().map(|_| ()));
    let trace = lab.engine.take_trace();
    let never_recorded = trace.iter().flat_map(|trace| trace.never_recorded()).map(str::to_owned).collect();
    let batches = trace.map(TraceSink::into_batches).transpose();
    let end = end?;
    capture.map_err(unwritable)?;
    let batches = batches.map_err(unwritable)?.filter(|_| out.is_none());
    let mut summary = report::summary(&lab, &path.display().to_string(), &scenario, &end);
    if end != End::Interrupted {
        report::compare_with_ideal(&scenario, &mut summary);
    }
    Ok(Finished { summary, trace: batches.and_then(Stream::new), never_recorded })
}

/// Opens the trace, in memory or in the folder, and the capture.
fn record(lab: &mut Lab, scenario: &LabScenario, out: Option<&Path>) -> PyResult<()> {
    let interval = scenario.trace.interval;
    if interval > Time::ZERO {
        let mut sink = match out {
            Some(out) => TraceSink::create(out.join("trace.parquet"), &[("penstock.kind", "lab")]),
            None => Ok(TraceSink::in_memory()),
        }
        .map_err(unwritable)?;
        sink.select(&scenario.trace.metrics);
        lab.engine.set_trace(sink, interval);
    }
    if let (Some(out), links @ [_, ..]) = (out, scenario.capture.links.as_slice()) {
        let snap = u32::try_from(scenario.capture.snap.bytes()).unwrap_or(u32::MAX);
        let sink = CaptureSink::create(out.join("capture.pcapng"), snap).map_err(unwritable)?;
        let links: Vec<_> = links.iter().map(|link| lab.links[*link].1).collect();
        lab.engine.set_capture(sink, &links);
    }
    Ok(())
}

/// Steps the simulation to its end, or to what the interpreter raises.
fn follow(lab: &mut Lab, scenario: &LabScenario, progress: Option<&Py<PyAny>>) -> PyResult<End> {
    let (mut until, mut looked) = (Time::ZERO, Instant::now());
    loop {
        until = until.saturating_add(STEP);
        match lab.advance(until) {
            Ok(progress) => {
                if let Some(end) = End::of(progress, scenario) {
                    return Ok(end);
                }
            }
            Err(RunError::Deadlock { cycle, .. }) => return Ok(End::Deadlock(cycle)),
            Err(RunError::Simulation(error)) => return Err(PyRuntimeError::new_err(error.to_string())),
        }
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            let (now, limit) = (lab.now().as_secs_f64(), lab.time_limit().as_secs_f64());
            let over = lab.ledger.borrow().flows_over();
            let flows = lab.flows.len();
            Python::attach(|py| {
                py.check_signals()?;
                progress.map_or(Ok(()), |progress| progress.call1(py, (now, limit, over, flows)).map(|_| ()))
            })?;
        }
    }
}
