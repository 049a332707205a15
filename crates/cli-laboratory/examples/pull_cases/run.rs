// SPDX-License-Identifier: Apache-2.0
//! Runs a case in pull mode and without anything that holds it back, and compares the two.

use penstock_cli_laboratory::Parts;
use penstock_lab::{Lab, LabProgress, LabScenario};
use penstock_netsim::{Distribution, PortId, Time};
use serde::Serialize;
use std::path::Path;

use crate::cases::{self, Case, Measure};
use crate::verilated;

/// Time between two looks at the queues.
const LOOK: Time = Time::from_us(10);
/// What holds nothing back.
const IDEAL: [&str; 7] = [
    "qp.mode=push",
    "cc.law=off",
    "switch.ecn=false",
    "switch.pfc=false",
    "switch.buffer=400GB",
    "qp.ack_timeout=0us",
    "qp.window=4000000",
];

/// The longest queue that a case with events may have for 99 % of the time.
const QUEUE_AT_10G: u64 = 50_000;
const QUEUE_AT_100G: u64 = 200_000;

/// What a case has come to.
#[derive(Serialize)]
pub struct Row {
    case: String,
    /// "events", "messages" (99th percentile of completion, us) or "goodput" (Gb/s of payload).
    measure: &'static str,
    /// The value without anything that holds it back.
    ideal: f64,
    pull: f64,
    queue_p99_bytes: u64,
    queue_peak_bytes: u64,
    /// None with other traffic.
    bound_bytes: Option<u64>,
    window_bytes: u64,
    /// The part of all bytes from boards that was announcements, 0 to 1.
    announcement_share: f64,
    dropped: u64,
    paused_us: f64,
    /// Goals that it does not meet.
    missed: Vec<&'static str>,
    /// Why.
    reason: Option<&'static str>,
}

struct Outcome {
    /// The value, in the unit of the measure.
    value: f64,
    queue_p99: u64,
    queue_peak: u64,
    bound: Option<u64>,
    window: u64,
    announcements: f64,
    drops: u64,
    pause_us: f64,
}

pub fn row(case: &Case, settings: &[String]) -> Row {
    let mode = ["qp.mode=pull"].into_iter().chain(settings.iter().map(String::as_str));
    let pull = run(case, &case.text, &mode.collect::<Vec<_>>());
    let ideal = match case.measure {
        // Payload of packets of 4096 bytes.
        Measure::Goodput { carries, .. } => carries * 4096.0 / 4178.0,
        // A board of software makes the same of a load that nothing holds back.
        _ => run(case, &case.text.replace(verilated::SENDER, ""), &IDEAL).value,
    };
    let measure = match case.measure {
        Measure::Events { .. } => "events",
        Measure::Messages => "messages",
        Measure::Goodput { .. } => "goodput",
    };
    let missed = missed(case, &pull, ideal);
    Row {
        measure,
        ideal,
        pull: pull.value,
        queue_p99_bytes: pull.queue_p99,
        queue_peak_bytes: pull.queue_peak,
        bound_bytes: pull.bound,
        window_bytes: pull.window,
        announcement_share: pull.announcements,
        dropped: pull.drops,
        paused_us: pull.pause_us,
        reason: if missed.is_empty() { None } else { cases::reason(&case.name) },
        missed,
        case: case.name.clone(),
    }
}

fn missed(case: &Case, pull: &Outcome, ideal: f64) -> Vec<&'static str> {
    let is_met = match case.measure {
        Measure::Events { .. } => pull.value <= (1.2 * ideal).max(ideal + 100.0),
        Measure::Messages => pull.value <= 2.0 * ideal,
        Measure::Goodput { least, .. } => pull.value >= least * ideal,
    };
    let is_short = match case.measure {
        Measure::Events { line } => pull.queue_p99 <= if line > 10 { QUEUE_AT_100G } else { QUEUE_AT_10G },
        _ => true,
    };
    let is_below_bound = pull.bound.is_none_or(|bound| pull.queue_peak <= bound);
    let measure = if matches!(case.measure, Measure::Goodput { .. }) { "line" } else { "completion" };
    let goals = [
        (measure, is_met),
        ("queue", is_short),
        ("bound", is_below_bound),
        ("drops", pull.drops == 0),
        ("pauses", pull.pause_us == 0.0),
    ];
    goals.into_iter().filter(|(_, is_met)| !is_met).map(|(goal, _)| goal).collect()
}

fn run(case: &Case, text: &str, mode: &[&str]) -> Outcome {
    let overrides: Vec<String> = mode.iter().map(|option| (*option).to_owned()).collect();
    let file = |_: &Path| Ok(case.table.clone().into_bytes());
    let scenario = LabScenario::parse("case.toml", text, &overrides, &file)
        .unwrap_or_else(|error| panic!("{}: {error}", case.name));
    // No case has a readout, which would have a folder.
    let mut parts = Parts::new(Path::new(""));
    let mut lab = Lab::build(&scenario, &mut parts).unwrap_or_else(|error| panic!("{}: {error}", case.name));
    let mut queues = Distribution::default();
    let (mut from, mut before) = (Time::ZERO, 0);
    if let Measure::Goodput { from: begin, .. } = case.measure {
        from = begin;
    }
    let mut is_begun = from == Time::ZERO;
    loop {
        let progress = lab.advance(lab.now() + LOOK).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        if !is_begun && lab.now() >= from {
            is_begun = true;
            before = delivered(&lab, case);
        }
        queues.record(Time(longest_queue(&lab)));
        if progress != LabProgress::Running {
            break;
        }
    }
    let ledger = lab.ledger.borrow();
    let us = |time: Option<Time>| time.map_or(f64::INFINITY, |time| time.as_ps() as f64 * 1e-6);
    let value = match case.measure {
        Measure::Events { .. } => us(ledger.events.completion.quantile(0.99)),
        Measure::Messages => us(ledger.completion.quantile(0.99)),
        Measure::Goodput { .. } => (delivered(&lab, case) - before) as f64 * 8e-9 / (lab.now() - from).as_secs_f64(),
    };
    drop(ledger);
    let results = penstock_lab::report::summary(&lab, &case.name, &scenario, &penstock_lab::report::End::Done);
    let ports = || results.switches.iter().flat_map(|switch| &switch.ports);
    Outcome {
        value,
        queue_p99: queues.quantile(0.99).map_or(0, Time::as_ps),
        queue_peak: ports().map(|port| port.peak_queue_bytes).max().unwrap_or(0),
        bound: results.pull.as_ref().and_then(|pull| pull.queue_bound_bytes),
        window: results.pull.iter().flat_map(|pull| &pull.hosts).map(|host| host.window_bytes).max().unwrap_or(0),
        announcements: results
            .pull
            .iter()
            .flat_map(|pull| &pull.hosts)
            .map(|host| host.announcement_share)
            .fold(0.0, f64::max),
        drops: results.switches.iter().map(|switch| switch.dropped_buffer + switch.dropped_headroom).sum(),
        pause_us: ports().map(|port| port.pausing_s).sum::<f64>() * 1e6,
    }
}

/// Bytes of all flows whose names begin as the case says.
fn delivered(lab: &Lab, case: &Case) -> u64 {
    let Measure::Goodput { of, .. } = case.measure else { return 0 };
    let ledger = lab.ledger.borrow();
    let flows = lab.flows.iter().filter(|flow| flow.name.starts_with(of));
    flows.map(|flow| ledger.flow(flow.id).delivered_bytes).sum()
}

fn longest_queue(lab: &Lab) -> u64 {
    let switches = lab.switches.iter().filter_map(|(_, id)| lab.engine.switch(*id));
    let ports = switches.flat_map(|switch| (0..switch.port_count()).map(move |port| switch.queue_bytes(PortId(port))));
    ports.max().unwrap_or(0)
}
