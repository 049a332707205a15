// SPDX-License-Identifier: Apache-2.0
//! Reads a scenario of the laboratory from its text: checks every key, with sections in the order of their
//! dependencies.
//! Promise: a returned scenario can be built; all errors are reported at once with file, line, key, value and allowed
//! values; `--set` can set every key of every section. Checks run when every key has been read.
//!
//! Such a file has `[run] kind = "network"`, which is also the default ([`crate::ScenarioKind`]).

mod files;
mod groups;
mod links;
mod readout;
mod replay;
mod switch;
mod topology;
mod traffic;
mod transport;

use std::io;
use std::path::Path;

use crate::check;
use crate::language::document::Document;
use crate::language::reader::{Findings, Section};
use crate::language::{Problem, ScenarioError, ScenarioKind};
use crate::metrics::wrong_metric;
use crate::scenario::{LabRun, LabScenario, LabTcp, LabTrace, Stop};
use crate::topology::{Ns3Import, Topology};
use crate::units::Time;
use files::{read_text, ReadFile};

impl LabScenario {
    /// Reads and checks a scenario file and the files that it names, `overrides` ("flow.0.start=1ms") laid over it.
    pub fn load(path: impl AsRef<Path>, overrides: &[String]) -> Result<Self, ScenarioError> {
        let path = path.as_ref();
        let read = |path: &Path| std::fs::read(path);
        let text = read_text(&read, path).map_err(|source| ScenarioError::Io { path: path.to_owned(), source })?;
        Self::parse(path, &text, overrides, &read)
    }

    /// Like `load`, for a text that is in memory; `path` is used in messages and to resolve relative paths, `read_file`
    /// gives the bytes of the files that the scenario names.
    pub fn parse(
        path: impl AsRef<Path>,
        text: &str,
        overrides: &[String],
        read_file: &dyn Fn(&Path) -> io::Result<Vec<u8>>,
    ) -> Result<Self, ScenarioError> {
        let path = path.as_ref();
        let mut document = Document::parse(path, text)?;
        for option in overrides {
            document.set(option)?;
        }
        let mut imported = Vec::new();
        scenario(document, path.parent().unwrap_or(Path::new("")), read_file, &mut imported)
            .map_err(|error| error.with_warnings(imported))
    }
}

/// `folder` is the folder of the scenario; `warnings` those of an import, which are also given if it is refused.
fn scenario(
    mut document: Document,
    folder: &Path,
    read_file: ReadFile,
    warnings: &mut Vec<Problem>,
) -> Result<LabScenario, ScenarioError> {
    let import = topology::import(&mut document, folder, read_file, warnings)?;
    let document = document;
    let findings = Findings { folder: folder.to_owned(), origin: document.root.origin.clone(), ..Findings::default() };
    let mut root = Section::root(&document, &findings);
    let run = run(root.section("run"));
    let topology = network(&mut root, import.as_ref());
    let qp = transport::qp(root.section("qp"));
    let pull = transport::pull(root.section("pull"));
    let empty = Topology::new();
    let mut readout = root.section("readout");
    let events_mode = readout::mode(&mut readout, qp.mode);
    let laws = transport::Laws::read(root.section("cc"), topology.as_ref().unwrap_or(&empty));
    let tcp = transport::tcp(root.section("tcp"), LabTcp::default());
    let mut traffic = traffic::Traffic {
        seed: run.seed,
        time_limit: run.time_limit,
        topology: topology.as_ref().unwrap_or(&empty),
        read_file,
        laws: &laws,
        qp: &qp,
        events_mode,
        tcp,
        flows: Vec::new(),
        derived: Vec::new(),
        events: None,
        endless_triggers: false,
        recorded: None,
    };
    traffic.flows(root.sections("flow"));
    if let Some(import) = &import {
        traffic.imported(import);
    }
    traffic.triggers(root.section("triggers"));
    traffic.replay(root.section("replay"));
    traffic.divide_shares();
    let changes = traffic.changes(root.sections("change"));
    let capture = traffic.capture(root.section("capture"));
    let readout = readout::readout(
        readout,
        events_mode,
        traffic.topology,
        &traffic.flows,
        traffic.recorded.as_ref().map(|recorded| recorded.longest_fragment()),
    );
    let (flows, events, recorded) = (traffic.flows, traffic.events, traffic.recorded);
    let endless_triggers = traffic.endless_triggers;
    let trace = trace(root.section("trace"), run.time_limit);
    let switches = switch::Switches::read(root.section("switch"), topology.as_ref());
    root.finish();

    let (problems, settings) = (findings.problems.take(), findings.settings.take());
    let (Some(topology), true) = (topology, problems.is_empty()) else {
        return Err(ScenarioError::Invalid(problems));
    };
    let scenario = LabScenario {
        run,
        topology,
        switches: Vec::new(),
        qp,
        pull,
        flows,
        events,
        endless_triggers,
        recorded,
        readout,
        changes,
        trace,
        capture,
        settings,
        warnings: warnings.clone(),
    };
    checked(scenario, switches, &document)
}

/// `[link]` and `[topology]`.
fn network(root: &mut Section, import: Option<&Ns3Import>) -> Option<Topology> {
    let mut links = links::Links::read(root.section("link"));
    let mut topology = topology::topology(root.section("topology"), &links.kinds, import);
    if let Some(topology) = &mut topology {
        links.apply(topology);
    }
    links.finish();
    topology
}

/// Adds the switches, and checks what concerns several sections.
fn checked(
    mut scenario: LabScenario,
    switches: switch::Switches,
    document: &Document,
) -> Result<LabScenario, ScenarioError> {
    let mut problems = Vec::new();
    scenario.switches = switches.finish(&mut scenario, document, &mut problems);
    for switch in &mut scenario.switches {
        switch.params.trace_classes = scenario.trace.classes;
    }
    check::scenario(&mut scenario, document, &mut problems);
    match problems.is_empty() {
        true => Ok(scenario),
        false => Err(ScenarioError::Invalid(problems)),
    }
}

fn run(mut section: Section) -> LabRun {
    ScenarioKind::Network.expect(&mut section);
    let run = LabRun {
        seed: section.integer("seed", 1, 0..=u64::MAX),
        time_limit: section.read("time_limit", Time::from_s(1)),
        stop: section.choice("stop", Stop::Done, &[("done", Stop::Done), ("time", Stop::Time)]),
        warm_up: section.read("warm_up", Time::ZERO),
    };
    if run.time_limit == Time::ZERO {
        section.refuse("time_limit", "allowed is more than 0");
    } else if run.warm_up >= run.time_limit {
        section.refuse("warm_up", "allowed is less than run.time_limit");
    }
    section.finish();
    run
}

/// Most samples of a trace whose interval is the default.
const MOST_SAMPLES: u64 = 1 << 17;

/// 100 us, doubled until a run that lasts to its time limit has no more than `MOST_SAMPLES`.
fn default_interval(time_limit: Time) -> Time {
    let mut interval = Time::from_us(100);
    while interval.as_ps().saturating_mul(MOST_SAMPLES) < time_limit.as_ps() {
        interval = Time::from_ps(2 * interval.as_ps());
    }
    interval
}

fn trace(mut section: Section, time_limit: Time) -> LabTrace {
    let interval = section.read("interval", default_interval(time_limit));
    if interval > Time::ZERO && interval < Time::from_ns(100) {
        section.refuse("interval", "allowed is 0us for no trace, or 100ns and more");
    }
    let metrics: Vec<String> = section.list("metrics");
    let classes = section.read("classes", false);
    for name in &metrics {
        if let Some(wrong) = wrong_metric(name, classes) {
            section.refuse("metrics", format!("{name}: {wrong}"));
        }
    }
    section.finish();
    LabTrace { interval, metrics, classes }
}
