// SPDX-License-Identifier: Apache-2.0
//! A scenario of the laboratory from its document: sections in the order in which they need each other.
//! Promise: nothing is built from a document with a problem; checks run when every key has been read.

use std::io;
use std::path::Path;

use super::{check, read_links, read_switch, read_topology, read_traffic, read_transport};
use super::{LabRun, LabScenario, LabTcp, LabTrace, Stop};
use crate::report::wrong_metric;
use crate::scenario::document::Document;
use crate::scenario::reader::{Findings, Section};
use crate::scenario::{Problem, ScenarioError};
use crate::topology::Topology;
use crate::units::Time;

/// Gives the bytes of a file.
pub(super) type ReadFile<'a> = &'a dyn Fn(&Path) -> io::Result<Vec<u8>>;

/// A file as text.
pub(super) fn read_text(read_file: ReadFile, path: &Path) -> io::Result<String> {
    let kind = io::ErrorKind::InvalidData;
    String::from_utf8(read_file(path)?).map_err(|_| io::Error::new(kind, "it is no UTF-8 text"))
}

/// `folder` is where the scenario lies.
pub(super) fn scenario(
    mut document: Document,
    folder: &Path,
    read_file: ReadFile,
) -> Result<LabScenario, ScenarioError> {
    let mut warnings: Vec<Problem> = Vec::new();
    let import = read_topology::import(&mut document, folder, read_file, &mut warnings)?;
    let document = document;
    let findings = Findings { folder: folder.to_owned(), origin: document.root.origin.clone(), ..Findings::default() };
    let mut root = Section::root(&document, &findings);
    let run = run(root.section("run"));
    let link_section = root.section("link");
    let mut links = read_links::Links::read(link_section);
    let mut topology = read_topology::topology(root.section("topology"), &links.kinds, import.as_ref());
    if let Some(topology) = &mut topology {
        links.apply(topology);
    }
    links.finish();
    let qp = read_transport::qp(root.section("qp"));
    let laws = read_transport::Laws::read(root.section("cc"));
    let tcp = read_transport::tcp(root.section("tcp"), LabTcp::default());
    let empty = Topology::new();
    let mut traffic = read_traffic::Traffic {
        seed: run.seed,
        time_limit: run.time_limit,
        topology: topology.as_ref().unwrap_or(&empty),
        folder,
        read_file,
        laws: &laws,
        qp: &qp,
        tcp,
        flows: Vec::new(),
        events: None,
    };
    traffic.flows(root.sections("flow"));
    if let Some(import) = &import {
        traffic.imported(import);
    }
    traffic.triggers(root.section("triggers"));
    traffic.replay(root.section("replay"));
    let changes = traffic.changes(root.sections("change"));
    let capture = traffic.capture(root.section("capture"));
    let (flows, events) = (traffic.flows, traffic.events);
    let trace = trace(root.section("trace"));
    let switches = read_switch::Switches::read(root.section("switch"), topology.as_ref());
    root.finish();

    let (mut problems, settings) = (findings.problems.take(), findings.settings.take());
    let (Some(topology), true) = (topology, problems.is_empty()) else {
        return Err(ScenarioError::Invalid(problems));
    };
    let mut scenario = LabScenario {
        run,
        topology,
        switches: Vec::new(),
        qp,
        flows,
        events,
        changes,
        trace,
        capture,
        settings,
        warnings,
    };
    scenario.switches = switches.finish(&mut scenario, &document, &mut problems);
    for switch in &mut scenario.switches {
        switch.params.trace_classes = scenario.trace.classes;
    }
    check::scenario(&mut scenario, &document, &mut problems);
    if problems.is_empty() {
        Ok(scenario)
    } else {
        Err(ScenarioError::Invalid(problems))
    }
}

fn run(mut section: Section) -> LabRun {
    let run = LabRun {
        seed: section.integer("seed", 1, 0..=u64::MAX),
        time_limit: section.read("time_limit", Time::from_s(1)),
        stop: section.choice("stop", Stop::Done, &[("done", Stop::Done), ("time", Stop::Time)]),
    };
    if run.time_limit == Time::ZERO {
        section.refuse("time_limit", "allowed is more than 0");
    }
    section.finish();
    run
}

fn trace(mut section: Section) -> LabTrace {
    let interval = section.read("interval", Time::from_us(100));
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
